"""Problems, revisions and imports on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ProblemSummary(ResponseModel):
    """A problem in a list."""

    id: str
    slug: str = field(metadata=doc("Slug.", examples=["multiples"]))
    title: str = field(metadata=doc(examples=["Multiples"]))
    tags: list[str] = field(metadata=doc(examples=[["math", "warm-up"]]))
    difficulty: float | None = field(metadata=doc(examples=[800]))
    revision: int | None = field(metadata=doc("Published revision number; null for a draft.", examples=[2]))
    version: int
    updated_at: Timestamp
    solved: bool | None = field(metadata=doc("Whether you have solved it; null if not logged in.", examples=[False]))
    tried: bool | None = field(
        metadata=doc("Whether you have tried but not solved it; null if not logged in.", examples=[True])
    )
    solvers: int = field(metadata=doc("Number of users who solved it; at most 20 minutes old.", ge=0, examples=[41]))
    accepted: int = field(metadata=doc("Number of accepted submissions.", ge=0, examples=[57]))
    judged: int = field(metadata=doc("Number of judged submissions, system errors excluded.", ge=0, examples=[152]))
    acceptance: float | None = field(
        metadata=doc("`accepted` / `judged`; null if nothing was judged.", ge=0, le=1, examples=[0.375])
    )


@dataclass(frozen=True, kw_only=True)
class ProblemPage(ResponseModel):
    """A page of problems."""

    items: list[ProblemSummary]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class SampleRead(ResponseModel):
    """A sample test."""

    name: str = field(metadata=doc(examples=["sample/1"]))
    input: str
    output: str
    is_cut: bool = field(metadata=doc("Whether the text is truncated."))


@dataclass(frozen=True, kw_only=True)
class ComparatorRead(ResponseModel):
    """How outputs are compared with the answers: a built-in comparator with its arguments and options."""

    kind: str = field(metadata=doc(examples=["token"]))
    args: list[str]
    options: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class LanguageLimits(ResponseModel):
    """An allowed language and its limits."""

    id: str = field(metadata=doc(examples=["cpp20"]))
    name: str = field(metadata=doc(examples=["C++20"]))
    time_ms: int
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class LimitsRead(ResponseModel):
    """Default limits of the problem."""

    time_ms: int = field(metadata=doc(examples=[2000]))
    memory_bytes: int = field(metadata=doc(examples=[268435456]))
    output_bytes: int
    code_bytes: int


@dataclass(frozen=True, kw_only=True)
class StatementRead(ResponseModel):
    """Problem statement in one language, as sanitised HTML. Math is TeX in `span.math`."""

    language: str = field(metadata=doc(examples=["en"]))
    format: str = field(metadata=doc("Source format: md, tex, html, txt or pdf."))
    html: str = field(metadata=doc("Empty for a PDF; see `url`."))
    url: str | None = field(metadata=doc("URL of the original file."))
    languages: list[str] = field(metadata=doc("Available statement languages."))


@dataclass(frozen=True, kw_only=True)
class AttachmentRead(ResponseModel):
    """A public attachment."""

    name: str
    size_bytes: int
    url: str


@dataclass(frozen=True, kw_only=True)
class GroupRead(ResponseModel):
    """A test group with points."""

    name: str = field(metadata=doc(examples=["secret/1"]))
    points: float | None
    tests: int


@dataclass(frozen=True, kw_only=True)
class ProblemRead(ResponseModel):
    """A problem as contestants see it."""

    id: str
    slug: str = field(metadata=doc("Slug.", examples=["multiples"]))
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    state: Literal["published", "draft"]
    revision: int
    revision_id: str
    grading: str = field(metadata=doc(examples=["pass-fail"]))
    mode: str = field(metadata=doc(examples=["batch"]))
    limits: LimitsRead
    languages: list[LanguageLimits]
    input_file: str = field(metadata=doc("Input file; empty: standard input."))
    output_file: str = field(metadata=doc("Output file; empty: standard output."))
    output_names: list[str] = field(
        metadata=doc("Names of the files to submit to an output-only problem, one per test; empty for other problems.")
    )
    tests: int
    groups: list[GroupRead]
    samples: list[SampleRead]
    comparator: ComparatorRead | None = field(metadata=doc("Null: a program of the jury decides."))
    statement: StatementRead | None
    attachments: list[AttachmentRead]
    authors: list[str]
    source: str
    license: str
    updated_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class ProblemAdminRead(ResponseModel):
    """A problem with its administrative state."""

    id: str
    slug: str = field(metadata=doc("Slug.", examples=["multiples"]))
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    owner_id: str
    published_revision: int | None
    updated_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class RevisionSummary(ResponseModel):
    """A revision in a list."""

    id: str
    number: int
    state: Literal["draft", "published", "withdrawn"]
    is_current: bool = field(metadata=doc("Whether new submissions are judged with it."))
    format: str = field(metadata=doc(examples=["icpc"]))
    manifest_digest: str = field(metadata=doc("Digest of the test data and all files that affect verdicts."))
    created_by: str
    created_at: Timestamp
    published_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class RevisionPage(ResponseModel):
    """Revisions, newest first."""

    items: list[RevisionSummary]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class RevisionFileRead(ResponseModel):
    """A file of a revision."""

    path: str
    size_bytes: int
    digest: str
    decides_verdicts: bool


@dataclass(frozen=True, kw_only=True)
class RevisionRead(ResponseModel):
    """A revision with all files (requires access to drafts)."""

    revision: RevisionSummary
    problem: dict[str, Any] = field(metadata=doc("Parsed contents of the package."))
    files: list[RevisionFileRead]
    jury: dict[str, Any] | None = field(metadata=doc("Results of the jury solutions in the last verification."))


@dataclass(frozen=True, kw_only=True)
class FileDiff(ResponseModel):
    """Change of one file."""

    path: str
    change: Literal["added", "removed", "changed"]
    old_bytes: int | None
    new_bytes: int | None
    diff: str | None = field(metadata=doc("Unified diff, for small text files."))


@dataclass(frozen=True, kw_only=True)
class ValueDiff(ResponseModel):
    """Change of one value."""

    name: str = field(metadata=doc(examples=["limits.run.cpu_ms"]))
    old: Any
    new: Any


@dataclass(frozen=True, kw_only=True)
class RevisionDiff(ResponseModel):
    """Differences between two revisions."""

    old: int
    new: int
    changes_verdicts: bool = field(metadata=doc("Whether verdicts may change."))
    old_tests: int
    new_tests: int
    files: list[FileDiff]
    values: list[ValueDiff]
    is_cut: bool = field(metadata=doc("Whether the list is truncated."))


@dataclass(frozen=True, kw_only=True)
class ProgressRead(ResponseModel):
    """Progress of a running import."""

    stage: str = field(metadata=doc(examples=["judging"]))
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class FindingRead(ResponseModel):
    """A finding in a package file."""

    severity: Literal["error", "warning", "info"]
    path: str
    line: int = field(metadata=doc("0: the whole file."))
    message: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class ImportRead(ResponseModel):
    """An import, or the verification of a revision."""

    id: str
    purpose: Literal["import", "verify"]
    state: Literal["pending", "running", "succeeded", "failed", "canceled"]
    job_id: str
    file_name: str
    slug: str | None
    problem_id: str | None
    revision: int | None
    progress: ProgressRead | None
    findings: list[FindingRead]
    jury: dict[str, Any] | None = field(metadata=doc("Jury solutions with expected and actual results."))
    error: str | None
    created_at: Timestamp
    finished_at: Timestamp | None

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None


@dataclass(frozen=True, kw_only=True)
class ImportPage(ResponseModel):
    """Imports, newest first."""

    items: list[ImportRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class ImportAccepted(ResponseModel):
    """Accepted import; follow it at `url`."""

    id: str
    job_id: str
    url: str = field(metadata=doc(examples=["/api/v1/imports/01890000-0000-7000-8000-000000000000"]))


@dataclass(frozen=True, kw_only=True)
class LanguageRead(ResponseModel):
    """A programming language."""

    id: str = field(metadata=doc(examples=["cpp20"]))
    name: str = field(metadata=doc(examples=["C++20"]))
    code: str = field(metadata=doc("Language code in problem packages.", examples=["cpp"]))
    extensions: list[str]
    source: str = field(metadata=doc("File name of a single source file.", examples=["main.cpp"]))
    entry_point: str = field(
        metadata=doc("What `entry_point` of a submission may name: `class`, `file` or `none`.", examples=["none"])
    )
    time_factor: float
    has_template: bool


@dataclass(frozen=True, kw_only=True)
class LanguageList(ResponseModel):
    """All languages."""

    items: list[LanguageRead]


@dataclass(frozen=True, kw_only=True)
class LanguageTemplateRead(ResponseModel):
    """Source template of a language."""

    language: str
    file_name: str
    source: str


@dataclass(frozen=True, kw_only=True)
class TestStatistics(ResponseModel):
    """Statistics of one test."""

    name: str = field(metadata=doc(examples=["secret/01"]))
    runs: int = field(metadata=doc("How often it was run."))
    verdicts: dict[str, int] = field(metadata=doc("How often each verdict was given.", examples=[{"AC": 80, "WA": 20}]))
    time_ms: int = field(metadata=doc("The most CPU time that any program took."))
    mem_kb: int = field(metadata=doc("The most memory that any program took."))


@dataclass(frozen=True, kw_only=True)
class RevisionTests(ResponseModel):
    """Statistics of the tests of a revision, over the latest 1,000 submissions judged on it."""

    items: list[TestStatistics] = field(
        metadata=doc("In the order of the tests; those that were never run are left out.")
    )
