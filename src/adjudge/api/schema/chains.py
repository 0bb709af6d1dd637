"""Chains, their triggers and executors on the wire."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.chains.definition_file import CHAIN_NAME_PATTERN, NAME_CHARACTERS, NAME_RULE
from adjudge.domain.timestamps import format_timestamp
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains.models import ChainRow, ChainVersionRow

_DAG_EXAMPLE = {
    "nodes": [
        {"id": "check", "type": "noop"},
        {"id": "publish", "type": "noop", "deps": ["check"], "retry": {"max_attempts": 3, "backoff_ms": 2000}},
    ]
}
_TIMESTAMP = Field(examples=[TIMESTAMP_EXAMPLE])
_NEXT = Field(description="Cursor of the next page; null on the last page.")


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


class ChainSummary(ApiModel):
    """A chain in a list."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: str = _TIMESTAMP
    updated_at: str = _TIMESTAMP

    @classmethod
    def of(cls, chain: ChainRow) -> ChainSummary:
        return cls(**_chain_fields(chain))


class ChainRead(ChainSummary):
    """A chain with its DAG."""

    dag: dict[str, Any]

    @classmethod
    def whole(cls, chain: ChainRow) -> ChainRead:
        return cls(**_chain_fields(chain), dag=dict(chain.dag or {}))


class ChainNumberedPage(ApiModel):
    """A numbered page of chains, by name."""

    items: list[ChainSummary]
    page: int
    size: int
    total: int


class ChainVersionRead(ApiModel):
    """An old version of a chain."""

    version: int
    name: str
    description: str | None
    dag: dict[str, Any]
    actor: str | None
    created_at: str = _TIMESTAMP

    @classmethod
    def of(cls, version: ChainVersionRow) -> ChainVersionRead:
        return cls(
            version=version.version,
            name=version.name,
            description=version.description,
            dag=dict(version.dag),
            actor=version.actor,
            created_at=format_timestamp(version.created_at),
        )


class ChainVersionList(ApiModel):
    """Versions, newest first."""

    items: list[ChainVersionRead]


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


class TriggerRead(ApiModel):
    """A trigger, without its secret."""

    id: str
    chain_id: str
    name: str
    kind: str
    spec: dict[str, Any]
    enabled: bool
    next_at: str | None
    last_error: str | None
    version: int
    created_at: str = _TIMESTAMP

    @classmethod
    def of(cls, trigger: chain_triggers.TriggerRow) -> TriggerRead:
        return cls(**_trigger_fields(trigger))


class TriggerCreated(TriggerRead):
    """A new trigger; the secret of a webhook is shown once."""

    secret: str | None

    @classmethod
    def made(cls, trigger: chain_triggers.TriggerRow, secret: str | None) -> TriggerCreated:
        return cls(**_trigger_fields(trigger), secret=secret)


class TriggerList(ApiModel):
    """The triggers of a chain."""

    items: list[TriggerRead]


class TriggerCallAccepted(ApiModel):
    """An accepted webhook call."""

    tick: str


class ExecutorRead(ApiModel):
    """A node type."""

    type: str
    summary: str
    cfg_schema: dict[str, Any]
    package: str


class ExecutorList(ApiModel):
    """All node types."""

    items: list[ExecutorRead]


def _chain_fields(chain: ChainRow) -> dict[str, Any]:
    return {
        "id": chain.id,
        "name": chain.name,
        "description": chain.description,
        "enabled": chain.enabled,
        "version": chain.version,
        "created_at": format_timestamp(chain.created_at),
        "updated_at": format_timestamp(chain.updated_at),
    }


def _trigger_fields(trigger: chain_triggers.TriggerRow) -> dict[str, Any]:
    return {
        "id": trigger.id,
        "chain_id": trigger.chain_id,
        "name": trigger.name,
        "kind": trigger.kind,
        "spec": dict(trigger.spec),
        "enabled": trigger.enabled,
        "next_at": format_timestamp(trigger.next_at),
        "last_error": trigger.last_error,
        "version": trigger.version,
        "created_at": format_timestamp(trigger.created_at),
    }
