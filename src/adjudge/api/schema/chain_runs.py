"""Wire models of chain runs and their nodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.domain.timestamps import format_timestamp
from adjudge.store.chains.models import ChainNodeRow, ChainRunRow, ChainStatusChange, NodeLogRow

_TIMESTAMP = Field(examples=[TIMESTAMP_EXAMPLE])
_NEXT = Field(description="The cursor of the next page; null at the end.")
Reason = Annotated[
    str, Field(max_length=500, description="Reason, stored in the history.", examples=["the disk was full"])
]


class ChainRunCreate(ApiModel):
    """Parameters of a new run."""

    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"problem": "multiples"}])
    reason: Reason = ""


class ChainRunStarted(ApiModel):
    """The started run."""

    run_id: str
    number: int = Field(description="Number of the run in its chain.", examples=[12])
    is_new: bool = Field(description="false: the idempotency key was already used; this is the existing run.")


class ChainRunRead(ApiModel):
    """One run of a chain."""

    id: str
    number: int = Field(description="What people call it by, unique in its chain; gaps are possible.", examples=[12])
    chain_id: str
    chain_name: str
    chain_version: int
    status: ChainRunStatus
    parameters: dict[str, Any]
    trigger_kind: str
    started_by: str | None
    actor: str | None = Field(description="Actor of the last status change.")
    reason: str | None
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    parent_run_id: str | None
    origin_run_id: str | None = Field(description="Original run, if this is a rerun.")
    origin_run_number: int | None = Field(description="Number of the original run; null once it is deleted.")
    place: Literal["wanted", "held"] | None = Field(
        description="Concurrency slot of the run, if the chain limits runs: `waiting` or `held`."
    )
    created_at: str = _TIMESTAMP
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, run: ChainRunRow) -> ChainRunRead:
        return cls(
            id=run.id,
            number=run.number,
            chain_id=run.chain_id,
            chain_name=run.chain_name,
            chain_version=run.chain_version,
            status=run.status,
            parameters=dict(run.parameters),
            trigger_kind=run.trigger_kind,
            started_by=run.started_by_name,
            actor=run.actor,
            reason=run.reason,
            nodes_total=run.nodes_total,
            nodes_open=run.nodes_open,
            nodes_failed=run.nodes_failed,
            parent_run_id=run.parent_run_id,
            origin_run_id=run.origin_run_id,
            origin_run_number=run.origin_run_number,
            place=run.slot,
            created_at=format_timestamp(run.created_at),
            started_at=format_timestamp(run.started_at),
            finished_at=format_timestamp(run.finished_at),
        )


class RunDag(ApiModel):
    """The definition that a run goes by."""

    run_id: str
    dag: dict[str, Any] = Field(examples=[{"nodes": [{"id": "a", "type": "noop"}]}])


class ChainRunPage(ApiModel):
    """Runs, newest first."""

    items: list[ChainRunRead]
    next: str | None = _NEXT


class NodeRead(ApiModel):
    """One node of a run."""

    node_id: str
    type: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact: Any = Field(description="Artifact; null if it is large (download it separately).")
    artifact_bytes: int
    job_id: str | None
    actor: str | None
    reason: str | None
    waiting_on: int = Field(description="Number of unfinished dependencies.")
    wait_on: str | None = Field(description="What the node is waiting for; no worker is occupied.")
    wait_until: str | None
    place: Literal["wanted", "held"] | None = Field(
        description="Concurrency slot of the node, if limited: `waiting` or `held`."
    )
    parent_id: str | None = Field(description="Mapped node of which this is an instance.")
    started_at: str | None
    ended_at: str | None

    @classmethod
    def of(cls, node: ChainNodeRow) -> NodeRead:
        return cls(
            node_id=node.node_id,
            type=node.type,
            status=node.status,
            attempt=node.attempt,
            last_error=node.last_error,
            artifact=node.artifact,
            artifact_bytes=node.artifact_bytes,
            job_id=node.job_id,
            actor=node.actor,
            reason=node.reason,
            waiting_on=node.waiting_on,
            wait_on=node.wait_on,
            wait_until=format_timestamp(node.wait_until),
            place=node.slot,
            parent_id=node.parent_id,
            started_at=format_timestamp(node.started_at),
            ended_at=format_timestamp(node.ended_at),
        )


class NodeList(ApiModel):
    """The nodes of a run, in the order of its DAG."""

    items: list[NodeRead]


class StopBody(ApiModel):
    """Reason for stopping a run."""

    reason: Reason = ""


class ChainRunStatusRead(ApiModel):
    """Status of a run."""

    run_id: str
    status: ChainRunStatus


class NodeActionRequest(ApiModel):
    """Reason, and the artifact to store."""

    reason: Reason = ""
    artifact: Any = Field(
        default=None, description="For complete alone: what the node's dependents will see.", examples=[{"count": 3}]
    )


class RerunRequest(ApiModel):
    """Node to rerun from."""

    from_node: str | None = Field(
        default=None, max_length=200, description="null: from the start. Approvals before it are asked for again."
    )
    reason: Reason = ""


class ReasonRequired(ApiModel):
    """Reason for approving or rejecting a node; it is stored in the audit log and in the artifact."""

    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["verified on all solutions"])]


class DecisionRequest(ReasonRequired):
    """Body of the former `:decide`."""

    approved: bool


class ChainStatusChangeRead(ApiModel):
    """A status change of a run or node."""

    id: int
    node_id: str | None
    from_status: str
    to_status: str
    attempt: int | None
    actor: str | None
    reason: str | None
    at: str = _TIMESTAMP

    @classmethod
    def of(cls, change: ChainStatusChange) -> ChainStatusChangeRead:
        return cls(
            id=change.id,
            node_id=change.node_id,
            from_status=change.from_status,
            to_status=change.to_status,
            attempt=change.attempt,
            actor=change.actor,
            reason=change.reason,
            at=format_timestamp(change.at),
        )


class ChainStatusChangeList(ApiModel):
    """Status changes, oldest first."""

    items: list[ChainStatusChangeRead]


class NodeLogLineRead(ApiModel):
    """A log line of a node."""

    id: int
    attempt: int
    text: str
    at: str = _TIMESTAMP

    @classmethod
    def of(cls, line: NodeLogRow) -> NodeLogLineRead:
        return cls(id=line.id, attempt=line.attempt, text=line.text, at=format_timestamp(line.at))


class NodeLogLineList(ApiModel):
    """Log lines, oldest first; continue after the last ID."""

    items: list[NodeLogLineRead]
