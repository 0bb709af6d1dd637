"""What goes into and comes out of the store's operations on chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from adjudge.domain.authority import Authority
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.jobs.models import Job

JOB_KIND_NODE = "node"
"""The kind of job that executes a node."""
SlotState = Literal["wanted", "held"]
"""Where something is limited: whether one waits for its turn, or has it."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a node leaves behind: JSON kept in its row, or in a blob where it is large."""

    text: str | None = None
    digest: str | None = None
    size_bytes: int = 0


NO_ARTIFACT: Final = Artifact()


@dataclass(frozen=True, slots=True)
class NodeDone:
    """Outcome of a node's job: executed."""

    artifact: Artifact = Artifact()


@dataclass(frozen=True, slots=True)
class NodeSuspended:
    """Outcome of a node's job: the rest happens elsewhere."""

    wait_kind: str
    wait_key: str
    artifact: Artifact = Artifact()
    until_ms: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NodeExpanded:
    """Outcome of a mapped node's first job: one instance for every item."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NodeStopped:
    """Outcome of a node's job that ended because its run is to stop."""

    reason: str = "stopped in good order"


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A definition, as it stands."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: int
    updated_at: int
    dag: Mapping[str, Any] | None = None
    """Left out where many are listed."""


@dataclass(frozen=True, slots=True)
class ChainVersionRow:
    """A definition, as it stood."""

    chain_id: str
    version: int
    name: str
    description: str | None
    dag: Mapping[str, Any]
    actor: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class ChainPage:
    """Some chains, and how many there are in all."""

    items: Sequence[ChainRow]
    total: int


@dataclass(frozen=True, slots=True)
class ChainRunRow:
    """One run of a chain. Moments are microseconds since the Unix epoch."""

    id: str
    chain_id: str
    chain_name: str
    chain_version: int
    status: ChainRunStatus
    parameters: Mapping[str, Any]
    trigger_kind: str
    idempotency_key: str | None
    started_by: str | None
    """A user's id, or another actor such as ``trigger:ID``."""
    started_by_name: str | None
    """The same for display: a user's name."""
    actor: str | None
    reason: str | None
    trace_id: str | None
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    parent_run_id: str | None
    parent_node_id: str | None
    origin_run_id: str | None
    slot: SlotState | None
    """``wanted`` while it waits for its turn, ``held`` while it has it; none where runs take no turns."""
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class ChainNodeRow:
    """One node of a run, as people see it."""

    run_id: str
    node_id: str
    type: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact: Any
    artifact_digest: str | None
    artifact_bytes: int
    job_id: str | None
    actor: str | None
    reason: str | None
    ordinal: int
    priority: int
    waiting_on: int
    parent_id: str | None
    item: Any
    slot: SlotState | None
    wait_on: str | None
    wait_key: str | None
    wait_until: int | None
    updated_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class ChainStatusChange:
    """One transition of a run (``node_id`` is none) or of a node."""

    id: int
    node_id: str | None
    from_status: str
    to_status: str
    attempt: int | None
    actor: str | None
    reason: str | None
    at: int


@dataclass(frozen=True, slots=True)
class NodeLogRow:
    """One line that a node wrote."""

    id: int
    node_id: str
    attempt: int
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class NewChainRun:
    """A run to be created."""

    chain_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    actor: str = "system"
    """On whose behalf."""
    trigger_kind: str = "manual"
    reason: str | None = None
    trace_id: str | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    authority: Authority | None = None
    """What its nodes may do; nothing that needs a permission where there is none."""


@dataclass(frozen=True, slots=True)
class StartedChainRun:
    """What starting a chain answers with."""

    run_id: str
    is_new: bool
    """False where the idempotency key was known: this is the run that it started."""


@dataclass(frozen=True, slots=True)
class ChainRunFinished:
    """A run that has just ended, for whoever acts on it in the same transaction."""

    run_id: str
    chain_id: str
    status: ChainRunStatus
    started_by: str | None
    trace_id: str | None
    parent_run_id: str | None
    parent_node_id: str | None


def node_attempt(job: Job) -> int:
    """Which attempt of its node a claimed job makes; those of the node's earlier jobs count."""
    return int(job.payload.get("attempts_before", 0)) + job.attempt_id


@dataclass(frozen=True, slots=True)
class TriggerTick:
    """One reason to start one run."""

    trigger_id: str
    tick: str
    due_at: int | None = None
    """None: now."""
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PendingTick:
    """A tick that waits, with what its trigger says."""

    trigger_id: str
    tick: str
    due_at: int
    payload: Mapping[str, Any]
    chain_id: str
    kind: str
    name: str
    spec: Mapping[str, Any]
    authority: Authority | None = None
    """Of whoever saved the trigger, and of whoever saved the chain."""
