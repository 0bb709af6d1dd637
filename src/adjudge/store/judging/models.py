"""Dataclasses of submissions and judge runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from adjudge.domain.programs import SourceFormat
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict


class NewSubmission(NamedTuple):
    """A submission to be created. Its source is already stored under ``source_digest``."""

    id: str
    user_id: str
    problem_id: str
    revision_id: str
    language: str
    source_digest: str
    source_bytes: int
    source_format: SourceFormat = SourceFormat.TEXT
    contest_id: str | None = None
    participant_id: str | None = None
    """The participant of the contest that it counts for."""
    priority: int = 2
    timeout_ms: int | None = None
    trace_id: str | None = None
    request_id: str | None = None
    """The id of the HTTP request, for the log lines of its job."""
    delay_ms: int = 0
    source_text: str | None = None
    """A small source, or the document of several files, which is stored in the database in the same transaction."""
    job_id: str | None = None
    """The id of its job, if the caller needs to know it in advance."""


@dataclass(frozen=True, slots=True)
class CaseResultRow:
    """Result of one test case."""

    name: str
    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    group: str | None = None
    score: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    limit_hit: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Typed result of a judge job."""

    verdict: Verdict
    score: float | None = None
    time_ms: int | None = None
    mem_kb: int | None = None
    cases: tuple[CaseResultRow, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmissionUpdate:
    """An update of a submission that requires that it still has ``version``."""

    submission_id: str
    version: int
    status: SubmissionStatus
    actor: str | None
    reason: str | None
    job_id: str | None = None
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """What the judge needs to know of a submission."""

    submission_id: str
    language: str
    source_digest: str
    source_format: str
    revision_id: str
    manifest_digest: str
    definition: str
    """The problem as a JSON document."""
    source_text: str | None = None
    """The source, if it is stored in the database and not as a blob."""


class SubmissionIds(NamedTuple):
    """The ids of a new submission and of the job that judges it, and the submission's number."""

    submission_id: str
    job_id: str
    number: int


class SubmissionNumber(NamedTuple):
    """The number of a submission."""

    id: str
    number: int


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """A submission with its user and problem."""

    id: str
    number: int
    """What people call it by; unique in the installation."""
    user_id: str
    user_name: str
    problem_id: str
    problem_slug: str
    problem_title: str
    problem_owner_id: str
    revision_id: str
    contest_id: str | None
    language: str
    source_digest: str
    source_format: str
    source_bytes: int
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    job_id: str | None
    version: int
    reason: str | None
    created_at: int
    updated_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class SubmissionFilter:
    """Filter of a list of submissions."""

    user_id: str | None = None
    problem_id: str | None = None
    contest_id: str | None = None
    language: str | None = None
    status: str | None = None
    verdict: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    from_id: str = ""
    """The lowest id of the list, so that older ones are not read."""
    hidden_contests: str = ""
    """Contests whose submissions are left out, joined by ``store.contests.hidden.join_ids``."""


@dataclass(frozen=True, slots=True)
class JudgeRunRow:
    """A judge run."""

    id: str
    kind: str
    status: str
    attempt_id: int
    max_attempts: int
    priority: int
    submission_id: str | None
    submission_number: int | None
    rejudge_batch_id: str | None
    rejudge_batch_number: int | None
    origin_job_id: str | None
    lease_owner: str | None
    lease_until: int | None
    reason: str | None
    error_code: str | None
    error: str | None
    trace_id: str | None
    created_at: int
    queued_at: int | None
    started_at: int | None
    updated_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class JobStatusChange:
    """One change of a job's status."""

    from_status: str
    to_status: str
    attempt_id: int
    actor: str | None
    reason: str | None
    at: int


@dataclass(frozen=True, slots=True)
class SubmissionStatusChange:
    """One change of a submission."""

    from_status: str
    to_status: str
    verdict: str | None
    job_id: str | None
    version: int
    actor: str | None
    reason: str | None
    at: int


@dataclass(frozen=True, slots=True)
class ProblemRef:
    """A problem that was looked up by slug or id."""

    id: str
    published_revision_id: str | None
    owner_id: str


@dataclass(frozen=True, slots=True)
class SubmissionState:
    """The state and the result of a submission."""

    id: str
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None


class VerdictPolicy(StrEnum):
    """Which new verdicts replace old ones."""

    LATEST = "latest"
    BEST = "best"
    FIRST_ACCEPTED_STAYS = "first_accepted_stays"


class RevisionChoice(StrEnum):
    """The revision whose test data is used."""

    PINNED = "pinned"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class RejudgeSelection:
    """Selects the submissions to rejudge: those with a verdict that match all given values."""

    ids: tuple[str, ...] = ()
    problem_id: str | None = None
    contest_id: str | None = None
    user_id: str | None = None
    language: str | None = None
    verdict: str | None = None
    since_us: int | None = None
    until_us: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The filter values by name, without the ids."""
        names = ("problem_id", "contest_id", "user_id", "language", "verdict", "since_us", "until_us")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class NewRejudgeBatch:
    """A rejudge batch to be created."""

    id: str
    created_by: str
    selection: RejudgeSelection
    policy: VerdictPolicy
    revision: RevisionChoice
    reason: str


@dataclass(frozen=True, slots=True)
class RejudgeBatchRow:
    """A rejudge batch."""

    id: str
    number: int
    """What people call it by; unique in the installation."""
    created_by: str
    filter: Mapping[str, Any]
    policy: str
    revision: str
    state: str
    reason: str | None
    total: int
    ended: int
    version: int
    created_at: int
    updated_at: int
    applied_at: int | None


@dataclass(frozen=True, slots=True)
class RejudgeItemRow:
    """A submission of a rejudge batch with its old result and that of the new judge run."""

    submission_id: str
    submission_number: int
    job_id: str | None
    outcome: str | None
    old_verdict: str | None
    new_verdict: str | None
    old_score: float | None
    new_score: float | None
    old_time_ms: int | None
    new_time_ms: int | None
    old_mem_kb: int | None
    new_mem_kb: int | None
    applied: bool
    has_changed: bool
    """Whether the submission changed since the batch was created."""


@dataclass(frozen=True, slots=True)
class VerdictChangeCount:
    """The number of submissions with the same old and new verdict."""

    old_verdict: str | None
    new_verdict: str | None
    outcome: str | None
    count: int


@dataclass(frozen=True, slots=True)
class RejudgeApplyResult:
    """Result of applying a rejudge batch."""

    changed: int
    kept: int
    """Unchanged because of the policy, or because the new judge run failed."""
    skipped: int
    """Unchanged because the submission changed after the batch was created."""


@dataclass(frozen=True, slots=True)
class SelectedSubmission:
    """A submission that was selected for a rejudge."""

    id: str
    version: int
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    job_id: str | None
    language: str
    user_id: str
    pinned_revision_id: str
    current_revision_id: str | None
    timeout_ms: int | None


@dataclass(frozen=True, slots=True)
class LockedSubmission:
    """Status and version of a locked submission."""

    id: str
    status: SubmissionStatus
    version: int
    job_id: str | None
