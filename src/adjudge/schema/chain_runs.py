"""Wire models of chain runs and their nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from adjudge.domain.states import CHAIN_RUN, ChainRunStatus, NodeStatus
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ChainRunStarted(ResponseModel):
    """The started run."""

    run_id: str
    number: int = field(metadata=doc("Number of the run in its chain.", examples=[12]))
    is_new: bool = field(metadata=doc("false: the idempotency key was already used; this is the existing run."))


@dataclass(frozen=True, kw_only=True)
class ChainRunRead(ResponseModel):
    """One run of a chain."""

    sources: ClassVar = {"started_by": "started_by_name", "place": "slot"}

    id: str
    number: int = field(metadata=doc("Short number for people, unique in its chain; gaps are possible.", examples=[12]))
    chain_id: str
    chain_name: str
    chain_version: int
    status: ChainRunStatus
    parameters: dict[str, Any]
    trigger_kind: str
    started_by: str | None
    actor: str | None = field(metadata=doc("Actor of the last status change."))
    reason: str | None
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    parent_run_id: str | None
    origin_run_id: str | None = field(metadata=doc("Original run, if this is a rerun."))
    origin_run_number: int | None = field(metadata=doc("Number of the original run; null once it is deleted."))
    place: Literal["wanted", "held"] | None = field(
        metadata=doc("Concurrency slot of the run, if the chain limits runs: `wanted` (waiting) or `held`.")
    )
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None

    @property
    def is_finished(self) -> bool:
        return self.status in CHAIN_RUN.terminal


@dataclass(frozen=True, kw_only=True)
class RunDag(ResponseModel):
    """The DAG of a run."""

    run_id: str
    dag: dict[str, Any] = field(metadata=doc(examples=[{"nodes": [{"id": "a", "type": "noop"}]}]))


@dataclass(frozen=True, kw_only=True)
class ChainRunPage(ResponseModel):
    """Runs, newest first."""

    items: list[ChainRunRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class NodeRead(ResponseModel):
    """One node of a run."""

    sources: ClassVar = {"place": "slot"}

    node_id: str
    type: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact: Any = field(metadata=doc("Artifact; null if it is large (download it separately)."))
    artifact_bytes: int
    job_id: str | None
    actor: str | None
    reason: str | None
    waiting_on: int = field(metadata=doc("Number of unfinished dependencies."))
    wait_on: str | None = field(metadata=doc("What the node is waiting for; no worker is occupied."))
    wait_until: Timestamp | None
    place: Literal["wanted", "held"] | None = field(
        metadata=doc("Concurrency slot of the node, if limited: `wanted` (waiting) or `held`.")
    )
    parent_id: str | None = field(metadata=doc("Mapped node of which this is an instance."))
    started_at: Timestamp | None
    ended_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class NodeList(ResponseModel):
    """The nodes of a run, in the order of its DAG."""

    items: list[NodeRead]


@dataclass(frozen=True, kw_only=True)
class ChainRunStatusRead(ResponseModel):
    """Status of a run."""

    run_id: str
    status: ChainRunStatus


@dataclass(frozen=True, kw_only=True)
class ChainStatusChangeRead(ResponseModel):
    """A status change of a run or node."""

    id: int
    node_id: str | None
    from_status: str
    to_status: str
    attempt: int | None
    actor: str | None
    reason: str | None
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ChainStatusChangeList(ResponseModel):
    """Status changes, oldest first."""

    items: list[ChainStatusChangeRead]


@dataclass(frozen=True, kw_only=True)
class NodeLogLineRead(ResponseModel):
    """A log line of a node."""

    id: int
    attempt: int
    text: str
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class NodeLogLineList(ResponseModel):
    """Log lines, oldest first; continue after the last ID."""

    items: list[NodeLogLineRead]


@dataclass(frozen=True, kw_only=True)
class FileCreated(ResponseModel):
    """A stored file, referenced by its digest."""

    digest: str = field(metadata=doc("SHA-256 of the content.", examples=["9f86d081884c7d659a2feaa0c55ad015" * 2]))
    size_bytes: int = field(metadata=doc(examples=[48_213]))
