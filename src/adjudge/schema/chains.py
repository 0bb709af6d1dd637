"""Chains, their triggers and executors on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ChainSummary(ResponseModel):
    """A chain in a list."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: Timestamp
    updated_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ChainRead(ChainSummary):
    """A chain with its DAG."""

    dag: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ChainNumberedPage(ResponseModel):
    """A numbered page of chains, by name."""

    items: list[ChainSummary]
    page: int
    size: int
    total: int


@dataclass(frozen=True, kw_only=True)
class ChainVersionRead(ResponseModel):
    """An old version of a chain."""

    version: int
    name: str
    description: str | None
    dag: dict[str, Any]
    actor: str | None
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ChainVersionList(ResponseModel):
    """Versions, newest first."""

    items: list[ChainVersionRead]


@dataclass(frozen=True, kw_only=True)
class TriggerRead(ResponseModel):
    """A trigger, without its secret."""

    id: str
    chain_id: str
    name: str
    kind: str
    spec: dict[str, Any]
    enabled: bool
    next_at: Timestamp | None
    last_error: str | None
    version: int
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class TriggerCreated(TriggerRead):
    """A new trigger; the secret of a webhook is shown once."""

    secret: str | None


@dataclass(frozen=True, kw_only=True)
class TriggerList(ResponseModel):
    """The triggers of a chain."""

    items: list[TriggerRead]


@dataclass(frozen=True, kw_only=True)
class TriggerCallAccepted(ResponseModel):
    """An accepted webhook call."""

    tick: str


@dataclass(frozen=True, kw_only=True)
class ExecutorRead(ResponseModel):
    """A node type."""

    type: str
    summary: str
    cfg_schema: dict[str, Any]
    package: str


@dataclass(frozen=True, kw_only=True)
class ExecutorList(ResponseModel):
    """All node types."""

    items: list[ExecutorRead]


@dataclass(frozen=True, kw_only=True)
class ChainApplyRead(ResponseModel):
    """Result of applying a chain."""

    chain: ChainRead
    outcome: Literal["created", "changed", "unchanged"]
    triggers: dict[str, Literal["created", "changed", "unchanged", "removed"]] = field(
        metadata=doc("Keyed by trigger name.")
    )
    secrets: dict[str, str] = field(metadata=doc("Secrets of new webhook triggers by name; shown once."))


@dataclass(frozen=True, kw_only=True)
class SecretInfo(ResponseModel):
    """A secret, without its value."""

    name: str = field(metadata=doc(examples=["CI_TOKEN"]))
    created_by: str | None = field(metadata=doc(examples=["ada"]))
    created_at: Timestamp
    updated_by: str | None = field(metadata=doc(examples=["ada"]))
    updated_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class SecretList(ResponseModel):
    """Secrets by name."""

    items: list[SecretInfo]
