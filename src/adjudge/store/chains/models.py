"""Parameters and results of the store's operations on chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple

from adjudge.domain.authority import Authority, parse_authority
from adjudge.domain.chain import DependencyCounts
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.engine.rows import Convert, Json, decode_json
from adjudge.store.jobs.models import Job

JOB_KIND_NODE = "node"
"""The kind of job that executes a node."""
SlotState = Literal["wanted", "held"]
"""With a limit: whether a run or node waits for a slot or holds one."""
NodeKey = tuple[str, str]
"""A run and one of its nodes."""
JsonValue = Annotated[Any, Json()]
StoredAuthority = Annotated[Authority | None, Convert(lambda found: parse_authority(decode_json(found)))]


@dataclass(frozen=True, slots=True)
class Artifact:
    """The artifact of a node: JSON stored in its row, or in a blob if it is large."""

    text: str | None = None
    digest: str | None = None
    size_bytes: int = 0


NO_ARTIFACT: Final = Artifact()


@dataclass(frozen=True, slots=True)
class NodeDone:
    """Result of a node's job: executed."""

    artifact: Artifact = Artifact()


@dataclass(frozen=True, slots=True)
class NodeSuspended:
    """Result of a node's job: the node waits."""

    wait_kind: str
    wait_key: str
    artifact: Artifact = Artifact()
    until_ms: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NodeExpanded:
    """Result of a mapped node's first job: one instance for every item."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NodeStopped:
    """Result of a node's job that ended because its run is stopping."""

    reason: str = "stopped in good order"


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A chain definition, current version."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: int
    updated_at: int
    dag: Mapping[str, Any] | None = None
    """Empty in lists."""


@dataclass(frozen=True, slots=True)
class ChainVersionRow:
    """A version of a chain definition."""

    chain_id: str
    version: int
    name: str
    description: str | None
    dag: Mapping[str, Any]
    actor: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class ChainPage:
    """A page of chains, and the total number."""

    items: Sequence[ChainRow]
    total: int


@dataclass(frozen=True, slots=True)
class ChainRunRow:
    """One run of a chain. Timestamps are microseconds since the Unix epoch."""

    id: str
    number: int
    """What people call it by; unique among the runs of its chain."""
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
    origin_run_number: int | None
    slot: SlotState | None
    """``wanted`` while it waits for a slot, ``held`` while it has one; None if runs are not limited."""
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class ChainNodeRow:
    """One node of a run, for display."""

    run_id: str
    node_id: str
    type: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact: JsonValue
    artifact_digest: str | None
    artifact_bytes: int
    job_id: str | None
    actor: str | None
    reason: str | None
    ordinal: int
    priority: int
    waiting_on: int
    parent_id: str | None
    item: JsonValue
    slot: SlotState | None
    wait_on: str | None
    wait_key: str | None
    wait_until: int | None
    updated_at: int
    started_at: int | None
    ended_at: int | None


class NodeTask(NamedTuple):
    """What a worker needs to execute a node."""

    status: NodeStatus
    type: str
    job_id: str | None
    attempt: int
    item: JsonValue
    is_instance: bool
    run_status: ChainRunStatus
    parameters: Mapping[str, Any]
    chain_id: str
    chain_version: int
    chain_name: str
    started_by: str
    authority: StoredAuthority
    trace_id: str | None
    checkpoint: JsonValue


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
    """The actor on whose behalf it runs."""
    trigger_kind: str = "manual"
    reason: str | None = None
    trace_id: str | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    authority: Authority | None = None
    """The authority of its nodes; without one, nothing that needs a permission is allowed."""


class NumberedRun(NamedTuple):
    """A run by its id and its number."""

    id: str
    number: int


@dataclass(frozen=True, slots=True)
class StartedChainRun:
    """The result of starting a chain."""

    run_id: str
    number: int
    is_new: bool
    """False if the idempotency key was known: the run is the existing one."""


@dataclass(frozen=True, slots=True)
class LockedChainRun:
    """A run that this transaction has locked, with its node counts."""

    id: str
    status: ChainRunStatus
    chain_id: str
    chain_version: int
    nodes_open: int
    nodes_failed: int
    trace_id: str | None
    slot: SlotState | None = None

    @property
    def is_waiting_for_slot(self) -> bool:
        """Whether it waits for a slot: its nodes start when it gets one."""
        return self.slot == "wanted"

    @property
    def can_start_nodes(self) -> bool:
        return self.status in (ChainRunStatus.PENDING, ChainRunStatus.RUNNING)


LockedRuns = dict[str, LockedChainRun]


@dataclass(frozen=True, slots=True)
class NodeCountDelta:
    """Changes of the node counts of a run."""

    total: int = 0
    open: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node to be inserted: a node of the DAG, or an instance of a mapped node."""

    run_id: str
    node_id: str
    type: str
    ordinal: int
    priority: int
    waiting_on: int = 0
    """Dependencies that have not finished."""
    deps_success: int = 0
    """Dependencies that were copied from another run."""
    job_id: str | None = None
    parent_id: str | None = None
    """The mapped node of an instance."""
    item: str | None = None
    """The item of an instance, as JSON."""
    pool: str | None = None
    """The chain whose slots its run shares with other runs."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node as the engine reads it to decide what follows."""

    node_id: str
    status: NodeStatus
    attempt: int
    parent_id: str | None
    counts: DependencyCounts
    job_id: str | None


@dataclass(frozen=True, slots=True)
class CountedNode:
    """A node after finished dependencies, or finished instances, were counted for it."""

    run_id: str
    node_id: str
    counts: DependencyCounts
    job_id: str | None = None
    """Set if the dependencies decide that it runs: the job that it was given."""

    @property
    def key(self) -> NodeKey:
        return self.run_id, self.node_id


@dataclass(frozen=True, slots=True)
class NodeClosing:
    """A node without a running job, to be finished."""

    run_id: str
    node_id: str
    status: NodeStatus
    reason: str
    source: NodeStatus = NodeStatus.RUNNING
    """The status that it must have."""
    actor: str = "engine"
    error: str | None = None
    artifact: Artifact = NO_ARTIFACT
    """Without one, the node keeps the artifact that it has."""
    wait: tuple[str, str] | None = None
    """The wait that it must still have: kind and key."""


@dataclass(frozen=True, slots=True)
class FinishedNode:
    """A node that has just finished."""

    run_id: str
    node_id: str
    type: str
    status: NodeStatus
    parent_id: str | None = None
    duration_sec: float | None = None
    pool: str | None = None
    """The chain whose slots its run shares with other runs."""

    @property
    def key(self) -> NodeKey:
        return self.run_id, self.node_id


@dataclass(frozen=True, slots=True)
class ChainRunFinished:
    """A run that has just finished, for listeners in the same transaction."""

    run_id: str
    chain_id: str
    status: ChainRunStatus
    started_by: str | None
    trace_id: str | None
    parent_run_id: str | None
    parent_node_id: str | None
    created_at: int
    finished_at: int


def node_attempt(job: Job) -> int:
    """The attempt of the node that a claimed job is; includes those of the node's earlier jobs."""
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
    """A waiting tick, with the data of its trigger."""

    trigger_id: str
    tick: str
    due_at: int
    payload: Mapping[str, Any]
    chain_id: str
    kind: str
    name: str
    spec: Mapping[str, Any]
    trigger_authority: StoredAuthority
    chain_authority: StoredAuthority

    @property
    def authority(self) -> Authority | None:
        """The intersection of what the users who saved the trigger and the chain may do; None if one is unknown."""
        if self.trigger_authority is None or self.chain_authority is None:
            return None
        return self.trigger_authority.intersect(self.chain_authority)
