"""Wire models for applying a chain with its triggers."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.api.schema.chains import Dag, Name, TriggerCreate


class ChainApplyRequest(ApiModel):
    """Desired state of a chain and its triggers."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    enabled: bool = Field(default=True, description="Used only on creation; a disabled chain stays disabled.")
    triggers: list[TriggerCreate] = Field(
        default_factory=list, max_length=100, description=("Triggers not listed are deleted.")
    )
