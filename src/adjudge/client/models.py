"""Models of requests and responses. Timestamps are RFC 3339 strings, as the server sent them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adjudge.client.decode import ResponseModel
from adjudge.domain.states import CHAIN_RUN, SUBMISSION

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    items: tuple[T, ...]
    next: str | None
    """The cursor of the next page; None at the end."""


# Requests.


@dataclass(frozen=True, slots=True)
class SubmissionSpec:
    """A program to be judged."""

    problem: str
    language: str
    source: str


@dataclass(frozen=True, slots=True)
class ExecutionSpec:
    """A program to be run, on one input for each of ``stdins``."""

    language: str
    source: str
    stdins: Sequence[str] = ("",)
    cpu_ms: int | None = None
    wall_ms: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """A trigger of a chain to be applied."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    enabled: bool = True


# Accounts, problems, languages.


@dataclass(frozen=True, slots=True)
class Token(ResponseModel):
    """A new API token; the secret is shown once."""

    id: str
    name: str
    secret: str
    expires_at: str | None


@dataclass(frozen=True, slots=True)
class Me(ResponseModel):
    """The account of the caller."""

    id: str
    name: str
    role: str
    permissions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language(ResponseModel):
    """A programming language."""

    id: str
    name: str
    code: str
    extensions: tuple[str, ...]
    time_factor: float


@dataclass(frozen=True, slots=True)
class ProblemItem(ResponseModel):
    """A problem in a list."""

    id: str
    slug: str
    title: str
    tags: tuple[str, ...]
    difficulty: float | None
    solved: bool | None
    tried: bool | None
    """Tried, not solved; None for visitors and from older servers."""
    solvers: int | None
    acceptance: float | None
    """Share of accepted submissions."""


@dataclass(frozen=True, slots=True)
class Limits(ResponseModel):
    """Resource limits."""

    time_ms: int
    memory_bytes: int
    output_bytes: int
    code_bytes: int


@dataclass(frozen=True, slots=True)
class Sample(ResponseModel):
    """A sample test."""

    name: str
    input: str
    output: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Problem(ResponseModel):
    """A problem as contestants see it."""

    id: str
    slug: str
    title: str
    tags: tuple[str, ...]
    difficulty: float | None
    state: str
    revision: int
    grading: str
    mode: str
    limits: Limits
    tests: int
    samples: tuple[Sample, ...]
    statement: Mapping[str, Any] | None
    languages: tuple[Mapping[str, Any], ...]


# Submissions.


@dataclass(frozen=True, slots=True)
class Submitted(ResponseModel):
    """A new submission."""

    submission_id: str
    number: int
    job_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Submission(ResponseModel):
    """A submission."""

    id: str
    number: int
    user_id: str
    user_name: str
    problem: str
    language: str
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    version: int
    created_at: str
    finished_at: str | None

    @property
    def is_finished(self) -> bool:
        """Whether the status is final."""
        return self.status in SUBMISSION.terminal


@dataclass(frozen=True, slots=True)
class Results(ResponseModel):
    """The judgement; ``document`` is the result document, None until there is one."""

    submission_id: str
    view: str
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class SubmissionEventRead(ResponseModel):
    """An event of a submission: ``status``, ``progress`` or ``end``."""

    name: str
    submission_id: str
    status: str | None = None
    verdict: str | None = None
    stage: str | None = None
    done: int = 0
    total: int = 0
    cases: tuple[Mapping[str, Any], ...] = ()
    """The latest test results visible to the caller."""


# Executions.


@dataclass(frozen=True, slots=True)
class ExecutionRun(ResponseModel):
    """The result for one input."""

    verdict: str | None
    time_ms: int | None
    wall_ms: int | None
    mem_kb: int | None
    exit_code: int | None
    exit_signal: int | None
    stdout: str | None
    stderr: str | None
    encoding: str
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class Execution(ResponseModel):
    """An execution."""

    id: str
    language: str
    state: str
    verdict: str | None
    compile_message: str | None
    runs: tuple[ExecutionRun, ...]

    @property
    def is_finished(self) -> bool:
        """Whether it has finished."""
        return self.state != "pending"


# Imports.


@dataclass(frozen=True, slots=True)
class ImportStarted(ResponseModel):
    """An accepted import."""

    id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Import(ResponseModel):
    """An import: pending, running, succeeded, failed or canceled."""

    id: str
    state: str
    slug: str | None
    revision: int | None
    progress: Mapping[str, Any] | None
    findings: tuple[Mapping[str, Any], ...]
    jury: Mapping[str, Any] | None
    error: str | None
    finished_at: str | None

    @property
    def is_finished(self) -> bool:
        """Whether it has finished."""
        return self.finished_at is not None


# Chains.


@dataclass(frozen=True, slots=True)
class Chain(ResponseModel):
    """A chain; ``dag`` is empty in lists."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    updated_at: str
    dag: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretName(ResponseModel):
    """A secret of chains, without its value."""

    name: str
    created_by: str | None
    created_at: str
    updated_by: str | None
    updated_at: str


@dataclass(frozen=True, slots=True)
class Trigger(ResponseModel):
    """A trigger of a chain; the secret of a new webhook is shown once."""

    id: str
    name: str
    kind: str
    spec: Mapping[str, Any]
    enabled: bool
    version: int
    next_at: str | None = None
    last_error: str | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Applied(ResponseModel):
    """The result of applying a chain: created, changed or unchanged; for triggers, by name, also removed."""

    chain: Chain
    outcome: str
    triggers: Mapping[str, str]
    secrets: Mapping[str, str]
    """Trigger name → secret of a new webhook, shown once."""


@dataclass(frozen=True, slots=True)
class RunStarted(ResponseModel):
    """A started run."""

    run_id: str
    number: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Run(ResponseModel):
    """One run of a chain."""

    id: str
    number: int
    chain_id: str
    chain_name: str
    chain_version: int
    status: str
    parameters: Mapping[str, Any]
    trigger_kind: str
    started_by: str | None
    reason: str | None
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    created_at: str
    finished_at: str | None
    place: str | None = None
    """``wanted`` while the run waits for a slot."""

    @property
    def is_finished(self) -> bool:
        """Whether it has finished."""
        return self.status in CHAIN_RUN.terminal


@dataclass(frozen=True, slots=True)
class Node(ResponseModel):
    """One node of a run."""

    node_id: str
    type: str
    status: str
    attempt: int
    last_error: str | None
    artifact: Any
    wait_on: str | None
    parent_id: str | None
    started_at: str | None
    ended_at: str | None
    place: str | None = None
    """``wanted`` while the node waits for a slot (limits of run and chain)."""


@dataclass(frozen=True, slots=True)
class LogLine(ResponseModel):
    """One line of a node's log."""

    id: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class StoredFile(ResponseModel):
    """A stored file."""

    digest: str
    size_bytes: int


# Rejudging.


@dataclass(frozen=True, slots=True)
class RejudgeBatch(ResponseModel):
    """A rejudge batch: running, ready, applied, discarded or canceled."""

    id: str
    number: int
    state: str
    policy: str
    reason: str | None
    total: int
    ended: int


@dataclass(frozen=True, slots=True)
class RejudgePreview(ResponseModel):
    """The verdict changes of a batch."""

    batch: RejudgeBatch
    differences: tuple[Mapping[str, Any], ...]
    items: tuple[Mapping[str, Any], ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class RejudgeApplied(ResponseModel):
    """The result of applying a batch."""

    batch: RejudgeBatch
    changed: int
    kept: int
    skipped: int
