"""A chain with its triggers on the wire: as a file has it, and what came of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adjudge.api.wire.base import Wire
from adjudge.api.wire.chains import ChainDetail, Dag, Name, NewTriggerBody


class WantedChain(Wire):
    """A chain as it is to be, with all of its triggers."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    enabled: bool = Field(default=True, description="Counts when it is created: one that was switched off stays off.")
    triggers: list[NewTriggerBody] = Field(default_factory=list, max_length=100, description="Others are removed.")


class ChainApplied(Wire):
    """What applying it did."""

    chain: ChainDetail
    outcome: Literal["created", "changed", "unchanged"]
    triggers: dict[str, Literal["created", "changed", "unchanged", "removed"]] = Field(description="By name.")
    secrets: dict[str, str] = Field(description="Of new webhooks, by the triggers' names; they are shown this once.")
