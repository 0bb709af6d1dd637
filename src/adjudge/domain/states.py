"""The state machines: for each, one annotated table of legal transitions.

Code, CHECK constraints, triggers, tests and the diagrams in the docs are derived from these tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Generic, TypeVar

from adjudge.domain.errors import InvalidStatus, InvalidTransition


class JobStatus(StrEnum):
    """The status of a job."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class SubmissionStatus(StrEnum):
    """The status of a submission, as its author sees it."""

    PENDING = "pending"
    JUDGING = "judging"
    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    ERROR = "error"
    CANCELED = "canceled"


class ChainRunStatus(StrEnum):
    """The status of a chain run."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCESS = "success"
    FAILED = "failed"
    STOPPED = "stopped"


class NodeStatus(StrEnum):
    """The status of a node in a chain run."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCESS = "success"
    FAILED = "failed"
    STOPPED = "stopped"
    SKIPPED = "skipped"


class ContestState(StrEnum):
    """The stored state of a contest; what the clock decides is its phase (``contests/clock.py``)."""

    DRAFT = "draft"
    PUBLISHED = "published"
    CANCELED = "canceled"
    FINALIZED = "finalized"


S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Edge(Generic[S]):
    """A legal transition and its cause."""

    source: S
    target: S
    cause: str


@dataclass(frozen=True)
class StateMachine(Generic[S]):
    """A named table of legal transitions."""

    name: str
    statuses: type[S]
    initial: S
    terminal: frozenset[S]
    edges: tuple[Edge[S], ...]

    @cached_property
    def _targets(self) -> dict[S, frozenset[S]]:
        return {
            source: frozenset(edge.target for edge in self.edges if edge.source is source) for source in self.statuses
        }

    def parse(self, value: str) -> S:
        """Parse a status, or raise INVALID_STATUS."""
        try:
            return self.statuses(value)
        except ValueError:
            known = ", ".join(self.statuses)
            raise InvalidStatus(f"{value[:64]!r} is not a {self.name} status; use one of {known}.") from None

    def allows(self, source: S, target: S) -> bool:
        return target in self._targets[source]

    def check(self, source: S, target: S) -> None:
        """Raise INVALID_TRANSITION with the legal transitions unless this one is legal."""
        if self.allows(source, target):
            return
        reachable = ", ".join(sorted(self._targets[source])) or "nothing: it is final"
        raise InvalidTransition(
            f"A {self.name} cannot go from {source} to {target}; from {source} it can go to {reachable}.",
            source=str(source),
            target=str(target),
        )

    def mermaid(self) -> str:
        """The state diagram in Mermaid syntax, for the docs."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        lines += [f"    {edge.source} --> {edge.target}: {edge.cause}" for edge in self.edges]
        lines += [f"    {status} --> [*]" for status in self.statuses if status in self.terminal]
        return "\n".join(lines)


def _edges(*rows: tuple[S, S, str]) -> tuple[Edge[S], ...]:
    return tuple(Edge(*row) for row in rows)


_J = JobStatus
JOB = StateMachine(
    name="job",
    statuses=JobStatus,
    initial=_J.PENDING,
    terminal=frozenset({_J.SUCCEEDED, _J.FAILED, _J.CANCELED}),
    edges=_edges(
        (_J.PENDING, _J.QUEUED, "its message was delivered"),
        (_J.PENDING, _J.RUNNING, "claimed before its outbox row was marked delivered"),
        (_J.PENDING, _J.FAILED, "dead-lettered: invalid payload or unknown kind"),
        (_J.PENDING, _J.CANCELED, "canceled while waiting"),
        (_J.QUEUED, _J.RUNNING, "claimed"),
        (_J.QUEUED, _J.PENDING, "its message was lost"),
        (_J.QUEUED, _J.FAILED, "dead-lettered: invalid payload or unknown kind"),
        (_J.QUEUED, _J.CANCELED, "canceled while waiting"),
        (_J.RUNNING, _J.RUNNING, "expired lease reclaimed by another worker"),
        (_J.RUNNING, _J.PENDING, "retry, or its worker was lost"),
        (_J.RUNNING, _J.SUCCEEDED, "finished with a result"),
        (_J.RUNNING, _J.FAILED, "final error, or attempts exhausted"),
        (_J.RUNNING, _J.CANCELED, "canceled while running"),
    ),
)

_B = SubmissionStatus
SUBMISSION = StateMachine(
    name="submission",
    statuses=SubmissionStatus,
    initial=_B.PENDING,
    terminal=frozenset({_B.ACCEPTED, _B.WRONG_ANSWER, _B.ERROR, _B.CANCELED}),
    edges=_edges(
        (_B.PENDING, _B.JUDGING, "its job was claimed"),
        (_B.PENDING, _B.CANCELED, "canceled while waiting"),
        (_B.JUDGING, _B.ACCEPTED, "verdict AC"),
        (_B.JUDGING, _B.WRONG_ANSWER, "verdict WA or PA"),
        (_B.JUDGING, _B.ERROR, "any other verdict"),
        (_B.JUDGING, _B.CANCELED, "canceled while judging"),
    ),
)

_R = ChainRunStatus
CHAIN_RUN = StateMachine(
    name="chain run",
    statuses=ChainRunStatus,
    initial=_R.PENDING,
    terminal=frozenset({_R.SUCCESS, _R.FAILED, _R.STOPPED}),
    edges=_edges(
        (_R.PENDING, _R.RUNNING, "first node became ready"),
        (_R.PENDING, _R.STOPPING, "stop requested"),
        (_R.RUNNING, _R.SUCCESS, "every node succeeded or was skipped"),
        (_R.RUNNING, _R.FAILED, "a node failed for good"),
        (_R.RUNNING, _R.STOPPING, "stop requested"),
        (_R.STOPPING, _R.STOPPED, "its last node stopped"),
        (_R.FAILED, _R.RUNNING, "a node was retried or completed by a user"),
        (_R.STOPPED, _R.RUNNING, "a node was retried or completed by a user"),
    ),
)

_N = NodeStatus
NODE = StateMachine(
    name="node",
    statuses=NodeStatus,
    initial=_N.PENDING,
    terminal=frozenset({_N.SUCCESS, _N.FAILED, _N.STOPPED, _N.SKIPPED}),
    edges=_edges(
        (_N.PENDING, _N.RUNNING, "its job was claimed"),
        (_N.PENDING, _N.SKIPPED, "its dependency rule can no longer be met"),
        (_N.PENDING, _N.STOPPED, "the run was stopped before it began"),
        (_N.RUNNING, _N.SUCCESS, "executed, or completed by a user"),
        (_N.RUNNING, _N.FAILED, "attempts exhausted"),
        (_N.RUNNING, _N.STOPPED, "the run was stopped"),
        (_N.RUNNING, _N.RETRYING, "an attempt failed"),
        (_N.RETRYING, _N.RUNNING, "its job was claimed again"),
        (_N.RETRYING, _N.STOPPED, "the run was stopped while it waited"),
        (_N.FAILED, _N.RETRYING, "retried by a user"),
        (_N.STOPPED, _N.RETRYING, "retried by a user"),
        (_N.FAILED, _N.SUCCESS, "completed by a user"),
        (_N.STOPPED, _N.SUCCESS, "completed by a user"),
        (_N.SKIPPED, _N.PENDING, "the cause of the skip was retried or completed"),
        (_N.STOPPED, _N.PENDING, "not started, and a dependency was retried or completed"),
    ),
)

_C = ContestState
CONTEST = StateMachine(
    name="contest",
    statuses=ContestState,
    initial=_C.DRAFT,
    terminal=frozenset({_C.CANCELED}),
    edges=_edges(
        (_C.DRAFT, _C.PUBLISHED, "published, with problems and a start"),
        (_C.PUBLISHED, _C.DRAFT, "withdrawn before the start"),
        (_C.PUBLISHED, _C.CANCELED, "canceled"),
        (_C.PUBLISHED, _C.FINALIZED, "ended for all, and everything is judged"),
        (_C.FINALIZED, _C.PUBLISHED, "reopened by an admin before the end of updates"),
    ),
)

STATE_MACHINES: tuple[
    StateMachine[JobStatus]
    | StateMachine[SubmissionStatus]
    | StateMachine[ChainRunStatus]
    | StateMachine[NodeStatus]
    | StateMachine[ContestState],
    ...,
] = (
    JOB,
    SUBMISSION,
    CHAIN_RUN,
    NODE,
    CONTEST,
)
