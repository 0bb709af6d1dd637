"""Problems, revisions and imports on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.pagination import encode_cursor
from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel, Timestamp
from adjudge.domain.problem_metadata import MAX_DIFFICULTY, MAX_TAGS, MAX_TITLE
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.languages import LanguageInfo, SourceTemplate
from adjudge.services.problem_detail import ProblemDetail
from adjudge.services.problem_imports import ImportState
from adjudge.services.problems import ListedProblem

_NEXT = Field(description="Cursor of the next page; null on the last page.")
_SLUG = Field(description="Slug.", examples=["multiples"])
_TIMESTAMP = Field(examples=[TIMESTAMP_EXAMPLE])
Version = Annotated[
    int, Field(ge=1, le=2**53, description="Version that was read; CONFLICT if it is outdated.", examples=[3])
]
Revision = Annotated[int, Field(ge=1, le=2**53, description="Revision number, starting at 1.", examples=[2])]


class ProblemSummary(ApiModel):
    """A problem in a list."""

    id: str
    slug: str = _SLUG
    title: str = Field(examples=["Multiples"])
    tags: list[str] = Field(examples=[["math", "warm-up"]])
    difficulty: float | None = Field(examples=[800])
    revision: int | None = Field(description="Published revision number; null for a draft.", examples=[2])
    version: int
    updated_at: Timestamp = _TIMESTAMP
    solved: bool | None = Field(description="Whether you have solved it; null if not logged in.", examples=[False])
    tried: bool | None = Field(
        description="Whether you have tried but not solved it; null if not logged in.",
        examples=[True],
    )
    solvers: int = Field(ge=0, description="Number of users who solved it; at most 20 minutes old.", examples=[41])
    accepted: int = Field(ge=0, description="Number of accepted submissions.", examples=[57])
    judged: int = Field(ge=0, description="Number of judged submissions, system errors excluded.", examples=[152])
    acceptance: float | None = Field(
        ge=0, le=1, description="`accepted` / `judged`; null if nothing was judged.", examples=[0.375]
    )


class ProblemPage(ApiModel):
    """A page of problems."""

    items: list[ProblemSummary]
    next: str | None = _NEXT


class SampleRead(ApiModel):
    """A sample test."""

    name: str = Field(examples=["sample/1"])
    input: str
    output: str
    is_cut: bool = Field(description="Whether the text is truncated.")


class LanguageLimits(ApiModel):
    """An allowed language and its limits."""

    id: str = Field(examples=["cpp20"])
    name: str = Field(examples=["C++20"])
    time_ms: int
    memory_bytes: int


class LimitsRead(ApiModel):
    """Default limits of the problem."""

    time_ms: int = Field(examples=[2000])
    memory_bytes: int = Field(examples=[268435456])
    output_bytes: int
    code_bytes: int


class StatementRead(ApiModel):
    """Problem statement in one language, as sanitised HTML. Math is TeX in `span.math`."""

    language: str = Field(examples=["en"])
    format: str = Field(description="Source format: md, tex, html, txt or pdf.")
    html: str = Field(description="Empty for a PDF; see `url`.")
    url: str | None = Field(description="URL of the original file.")
    languages: list[str] = Field(description="Available statement languages.")


class AttachmentRead(ApiModel):
    """A public attachment."""

    name: str
    size_bytes: int
    url: str


class GroupRead(ApiModel):
    """A test group with points."""

    name: str = Field(examples=["secret/1"])
    points: float | None
    tests: int


class ProblemRead(ApiModel):
    """A problem as contestants see it."""

    id: str
    slug: str = _SLUG
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    state: Literal["published", "draft"]
    revision: int
    revision_id: str
    grading: str = Field(examples=["pass-fail"])
    mode: str = Field(examples=["batch"])
    limits: LimitsRead
    languages: list[LanguageLimits]
    input_file: str = Field(description="Input file; empty: standard input.")
    output_file: str = Field(description="Output file; empty: standard output.")
    output_names: list[str] = Field(
        description="Names of the files to submit to an output-only problem, one per test; empty for other problems."
    )
    tests: int
    groups: list[GroupRead]
    samples: list[SampleRead]
    statement: StatementRead | None
    attachments: list[AttachmentRead]
    authors: list[str]
    source: str
    license: str
    updated_at: Timestamp = _TIMESTAMP


class ProblemAdminRead(ApiModel):
    """A problem with its administrative state."""

    id: str
    slug: str = _SLUG
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    owner_id: str
    published_revision: int | None
    updated_at: Timestamp = _TIMESTAMP


class ProblemUpdate(ApiModel):
    """Metadata changes; omitted fields stay."""

    version: Version
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE, examples=["Multiples of 3 and 5"])
    tags: list[Annotated[str, Field(max_length=60)]] | None = Field(None, max_length=MAX_TAGS)
    difficulty: float | None = Field(None, ge=0, le=MAX_DIFFICULTY, description="`null` removes it.")


class PublishRequest(ApiModel):
    """Revision to publish."""

    version: Version
    revision: Revision
    reason: str = Field("", max_length=500)


class RollbackRequest(ApiModel):
    """Revision to roll back to. Default: the previously published one."""

    version: Version
    revision: Revision | None = None
    reason: str = Field("", max_length=500)


class WithdrawRequest(ApiModel):
    """Reason for withdrawing a problem."""

    version: Version
    reason: str = Field("", max_length=500)


class RevisionSummary(ApiModel):
    """A revision in a list."""

    id: str
    number: int
    state: Literal["draft", "published", "withdrawn"]
    is_current: bool = Field(description="Whether new submissions are judged with it.")
    format: str = Field(examples=["icpc"])
    manifest_digest: str = Field(description="Digest of the test data and all files that affect verdicts.")
    created_by: str
    created_at: Timestamp = _TIMESTAMP
    published_at: Timestamp | None


class RevisionPage(ApiModel):
    """Revisions, newest first."""

    items: list[RevisionSummary]
    next: str | None = _NEXT


class RevisionFileRead(ApiModel):
    """A file of a revision."""

    path: str
    size_bytes: int
    digest: str
    decides_verdicts: bool


class RevisionRead(ApiModel):
    """A revision with all files (requires access to drafts)."""

    revision: RevisionSummary
    problem: dict[str, Any] = Field(description="Parsed contents of the package.")
    files: list[RevisionFileRead]
    jury: dict[str, Any] | None = Field(description="Results of the jury solutions in the last verification.")


class FileDiff(ApiModel):
    """Change of one file."""

    path: str
    change: Literal["added", "removed", "changed"]
    old_bytes: int | None
    new_bytes: int | None
    diff: str | None = Field(description="Unified diff, for small text files.")


class ValueDiff(ApiModel):
    """Change of one value."""

    name: str = Field(examples=["limits.run.cpu_ms"])
    old: Any
    new: Any


class RevisionDiff(ApiModel):
    """Differences between two revisions."""

    old: int
    new: int
    changes_verdicts: bool = Field(description="Whether verdicts may change.")
    old_tests: int
    new_tests: int
    files: list[FileDiff]
    values: list[ValueDiff]
    is_cut: bool = Field(description="Whether the list is truncated.")


class ProgressRead(ApiModel):
    """Progress of a running import."""

    stage: str = Field(examples=["judging"])
    done: int
    total: int


class FindingRead(ApiModel):
    """A finding in a package file."""

    severity: Literal["error", "warning", "info"]
    path: str
    line: int = Field(description="0: the whole file.")
    message: str
    fix: str


class ImportRead(ApiModel):
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
    jury: dict[str, Any] | None = Field(description="Jury solutions with expected and actual results.")
    error: str | None
    created_at: Timestamp = _TIMESTAMP
    finished_at: Timestamp | None

    @classmethod
    def of(cls, state: ImportState) -> ImportRead:
        """Build it from the row of the import and the progress of its job."""
        row, progress = state.row, state.progress
        return cls(
            id=row.id,
            purpose=row.purpose,
            state=row.state,
            job_id=row.job_id,
            file_name=row.file_name,
            slug=row.slug or row.requested.get("slug"),
            problem_id=row.problem_id,
            revision=row.revision,
            progress=ProgressRead.model_validate(progress) if progress and row.finished_at is None else None,
            findings=[FindingRead(**item) for item in row.findings],
            jury=row.jury,
            error=row.error,
            created_at=format_timestamp(row.created_at),
            finished_at=format_timestamp(row.finished_at),
        )


class ImportPage(ApiModel):
    """Imports, newest first."""

    items: list[ImportRead]
    next: str | None = _NEXT


class ImportAccepted(ApiModel):
    """Accepted import; follow it at `url`."""

    id: str
    job_id: str
    url: str = Field(examples=["/api/v1/imports/01890000-0000-7000-8000-000000000000"])


class LanguageRead(ApiModel):
    """A programming language."""

    id: str = Field(examples=["cpp20"])
    name: str = Field(examples=["C++20"])
    code: str = Field(description="Language code in problem packages.", examples=["cpp"])
    extensions: list[str]
    source: str = Field(description="File name of a single source file.", examples=["main.cpp"])
    entry_point: str = Field(
        description="What `entry_point` of a submission may name: `class`, `file` or `none`.", examples=["none"]
    )
    time_factor: float
    has_template: bool


class LanguageList(ApiModel):
    """All languages."""

    items: list[LanguageRead]


class LanguageTemplateRead(ApiModel):
    """Source template of a language."""

    language: str
    file_name: str
    source: str


class TestStatistics(ApiModel):
    """What became of one test."""

    name: str = Field(examples=["secret/01"])
    runs: int = Field(description="How often it was run.")
    verdicts: dict[str, int] = Field(description="How often each verdict was given.", examples=[{"AC": 80, "WA": 20}])
    time_ms: int = Field(description="The most CPU time that any program took.")
    mem_kb: int = Field(description="The most memory that any program took.")


class RevisionTests(ApiModel):
    """What became of the tests of a revision, over the latest 1,000 submissions that were judged on it."""

    items: list[TestStatistics] = Field(
        description="In the order of the tests; those that were never run are left out."
    )


def encode_problem(detail: ProblemDetail) -> bytes:
    """The response of ``GET /problems/{problem}``, as it is cached."""
    return ProblemRead.model_validate(detail).model_dump_json().encode()


def encode_problem_page(items: Sequence[ListedProblem], next_key: tuple[str | float, str] | None) -> bytes:
    """The response of ``GET /problems``, as it is cached."""
    found = [ProblemSummary.model_validate(item) for item in items]
    page = ProblemPage(items=found, next=encode_cursor(list(next_key)) if next_key else None)
    return page.model_dump_json().encode()


def encode_languages(items: Sequence[LanguageInfo]) -> bytes:
    """The response of ``GET /languages``, as it is cached."""
    return LanguageList(items=[LanguageRead.model_validate(item) for item in items]).model_dump_json().encode()


def encode_template(template: SourceTemplate) -> bytes:
    """The response of ``GET /languages/{language}/template``, as it is cached."""
    return LanguageTemplateRead.model_validate(template).model_dump_json().encode()
