"""Rows and documents of evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class NewEvaluationItem:
    """A record to be added."""

    record_id: str
    digest: str
    shape: str
    record: str
    """JSON in ASCII."""
    language: str
    timeout_ms: int
    revision_id: str | None = None
    """The revision of a record with a problem."""


@dataclass(frozen=True, slots=True)
class EvaluationJobOptions:
    """What the jobs of one request have in common."""

    user_id: str
    priority: int
    delay_ms: int = 0
    trace_id: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """An evaluation."""

    id: str
    name: str
    total: int
    finished: int
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """What a worker needs to evaluate a record."""

    record: str
    shape: str


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A record that was added before."""

    record_id: str
    digest: str
    state: str
    result_chars: int


@dataclass(frozen=True, slots=True)
class EvaluationResultRow:
    """A result; ``result`` is JSON in ASCII."""

    sequence: int
    result: str


@dataclass(frozen=True, slots=True)
class FinishedEvaluation:
    """Typed result of an evaluation job."""

    verdict: Verdict | None
    result: str
    record_bytes: int


@dataclass(frozen=True, slots=True)
class EvaluationItemState:
    """The state of a record."""

    evaluation_id: str
    record_id: str
    state: str


@dataclass(frozen=True, slots=True)
class LockedEvaluation:
    """An evaluation with the number of its last result."""

    id: str
    sequence: int
