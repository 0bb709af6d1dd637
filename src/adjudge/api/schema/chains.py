"""Chains, their triggers and executors on the wire."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints
from pydantic_core import PydanticCustomError

from adjudge.api.schema.base import ApiModel
from adjudge.chains.definition_file import CHAIN_NAME_PATTERN, NAME_CHARACTERS, NAME_RULE

_DAG_EXAMPLE = {
    "nodes": [
        {"id": "check", "type": "noop"},
        {"id": "publish", "type": "noop", "deps": ["check"], "retry": {"max_attempts": 3, "backoff_ms": 2000}},
    ]
}


def _validate_name(name: str) -> str:
    """Reject an invalid name with a readable message; the pattern itself is in the schema."""
    if re.fullmatch(CHAIN_NAME_PATTERN, name) is None:
        raise PydanticCustomError("name", NAME_RULE)
    return name


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=NAME_CHARACTERS),
    AfterValidator(_validate_name),
    Field(description=NAME_RULE, examples=["nightly-verify"], json_schema_extra={"pattern": CHAIN_NAME_PATTERN}),
]
Dag = Annotated[dict[str, Any], Field(description="DAG; see the chain guide.", examples=[_DAG_EXAMPLE])]


class ChainCreate(ApiModel):
    """A new chain."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    enabled: bool = True


class ChainUpdate(ApiModel):
    """Update of a chain."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    version: int = Field(ge=1, le=2**53, description="Version that was read; CONFLICT if it is outdated.")


class TriggerCreate(ApiModel):
    """A new trigger."""

    name: Name
    kind: Literal["cron", "delay", "event", "webhook", "chain"]
    spec: dict[str, Any] = Field(examples=[{"cron": "0 3 * * *", "timezone": "Europe/Berlin"}])
    enabled: bool = True


class TriggerUpdate(ApiModel):
    """Update of a trigger; omitted fields stay."""

    version: int = Field(ge=1, le=2**53)
    spec: dict[str, Any] | None = Field(None, examples=[{"cron": "0 4 * * *", "timezone": "Europe/Berlin"}])
    enabled: bool | None = None


class ChainApplyRequest(ApiModel):
    """Desired state of a chain and its triggers."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    enabled: bool = Field(default=True, description="Used only on creation; a disabled chain stays disabled.")
    triggers: list[TriggerCreate] = Field(
        default_factory=list, max_length=100, description=("Triggers not listed are deleted.")
    )


class SecretBody(ApiModel):
    """The value of a secret."""

    value: SecretStr = Field(
        description="8 to 8192 characters. It is stored encrypted and is in no response.",
        examples=["correct-horse-battery"],
    )
