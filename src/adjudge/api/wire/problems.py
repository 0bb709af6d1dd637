"""Problems, revisions and imports on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.wire.base import MOMENT_EXAMPLE, Wire
from adjudge.domain.catalogue import MAX_DIFFICULTY, MAX_TAGS, MAX_TITLE

_NEXT = Field(description="The cursor of the next page; null at the end.")
_SLUG = Field(description="The problem's name in addresses.", examples=["multiples"])
_MOMENT = Field(examples=[MOMENT_EXAMPLE])
Version = Annotated[
    int, Field(ge=1, le=2**53, description="The version that was read; another one by now is a CONFLICT.", examples=[3])
]
Revision = Annotated[int, Field(ge=1, le=2**53, description="A revision's number, from 1 on.", examples=[2])]


class ProblemItem(Wire):
    """A problem in a list."""

    id: str
    slug: str = _SLUG
    title: str = Field(examples=["Multiples"])
    tags: list[str] = Field(examples=[["math", "warm-up"]])
    difficulty: float | None = Field(examples=[800])
    revision: int | None = Field(description="The published revision's number; null for a draft.", examples=[2])
    version: int
    updated_at: str = _MOMENT
    solved: bool | None = Field(description="Whether the viewer has solved it; null for visitors.", examples=[False])
    tried: bool | None = Field(
        description="Whether something of the viewer's was judged and nothing accepted yet; null for visitors.",
        examples=[True],
    )
    solvers: int = Field(
        ge=0, description="How many people have solved it. Counted anew within twenty minutes.", examples=[41]
    )
    accepted: int = Field(ge=0, description="How many submissions were accepted.", examples=[57])
    judged: int = Field(
        ge=0, description="How many submissions have a verdict that is theirs, not a failure of ours.", examples=[152]
    )
    acceptance: float | None = Field(
        ge=0, le=1, description="`accepted` of `judged`; null where nothing was judged.", examples=[0.375]
    )


class ProblemPage(Wire):
    """Problems, in the order that was asked for."""

    items: list[ProblemItem]
    next: str | None = _NEXT


class SampleView(Wire):
    """A sample test."""

    name: str = Field(examples=["sample/1"])
    input: str
    output: str
    is_cut: bool = Field(description="Whether it is longer than what is shown; the whole is an attachment or a file.")


class LanguageLimits(Wire):
    """A language that may be submitted, with what a program in it may use."""

    id: str = Field(examples=["cpp20"])
    name: str = Field(examples=["C++20"])
    time_ms: int
    memory_bytes: int


class LimitsView(Wire):
    """What a program may use, unless its language has other limits."""

    time_ms: int = Field(examples=[2000])
    memory_bytes: int = Field(examples=[268435456])
    output_bytes: int
    code_bytes: int


class StatementView(Wire):
    """The task in one language, as HTML that is safe to show. Maths is TeX in `span.math`."""

    language: str = Field(examples=["en"])
    format: str = Field(description="What it was written in: md, tex, html, txt or pdf.")
    html: str = Field(description="Empty for a PDF: then `url` has it.")
    url: str | None = Field(description="Where the original is, for what cannot be shown.")
    languages: list[str] = Field(description="In which languages there is a statement.")


class FileLink(Wire):
    """A file that anybody who sees the problem may fetch."""

    name: str
    size_bytes: int
    url: str


class GroupView(Wire):
    """A group of tests that earns points."""

    name: str = Field(examples=["secret/1"])
    points: float | None
    tests: int


class ProblemDetail(Wire):
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
    limits: LimitsView
    languages: list[LanguageLimits]
    input_file: str = Field(description="The file a program reads; empty: standard input.")
    output_file: str = Field(description="The file a program writes; empty: standard output.")
    tests: int
    groups: list[GroupView]
    samples: list[SampleView]
    statement: StatementView | None
    attachments: list[FileLink]
    authors: list[str]
    source: str
    license: str
    updated_at: str = _MOMENT


class ProblemState(Wire):
    """A problem as its owner manages it."""

    id: str
    slug: str = _SLUG
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    owner_id: str
    published_revision: int | None
    updated_at: str = _MOMENT


class ProblemPatch(Wire):
    """What to change of a problem; what is left out stays."""

    version: Version
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE, examples=["Multiples of 3 and 5"])
    tags: list[Annotated[str, Field(max_length=60)]] | None = Field(None, max_length=MAX_TAGS)
    difficulty: float | None = Field(None, ge=0, le=MAX_DIFFICULTY, description="Give `null` to remove it.")


class PublishBody(Wire):
    """Which revision is to be published."""

    version: Version
    revision: Revision
    reason: str = Field("", max_length=500)


class RollBackBody(Wire):
    """Which revision to go back to; by default the one that was published before."""

    version: Version
    revision: Revision | None = None
    reason: str = Field("", max_length=500)


class WithdrawBody(Wire):
    """Why a problem is taken back."""

    version: Version
    reason: str = Field("", max_length=500)


class RevisionItem(Wire):
    """A revision in a list."""

    id: str
    number: int
    state: Literal["draft", "published", "withdrawn"]
    is_current: bool = Field(description="Whether submissions are judged against it now.")
    format: str = Field(examples=["icpc"])
    manifest_digest: str = Field(description="Names the test data and all that decides how it is used.")
    created_by: str
    created_at: str = _MOMENT
    published_at: str | None


class RevisionPage(Wire):
    """Revisions, the latest first."""

    items: list[RevisionItem]
    next: str | None = _NEXT


class RevisionFile(Wire):
    """A file of a revision."""

    path: str
    size_bytes: int
    digest: str
    decides_verdicts: bool


class RevisionDetail(Wire):
    """All of a revision, for those who may see drafts."""

    revision: RevisionItem
    problem: dict[str, Any] = Field(description="What the package says, as the judge understands it.")
    files: list[RevisionFile]
    jury: dict[str, Any] | None = Field(description="What the jury's solutions did when it was last verified.")


class FileChange(Wire):
    """What became of one file."""

    path: str
    change: Literal["added", "removed", "changed"]
    old_bytes: int | None
    new_bytes: int | None
    diff: str | None = Field(description="A unified diff of a small text.")


class ValueChange(Wire):
    """A value that is another one now."""

    name: str = Field(examples=["limits.run.cpu_ms"])
    old: Any
    new: Any


class RevisionDiff(Wire):
    """What differs between two revisions."""

    old: int
    new: int
    changes_verdicts: bool = Field(description="Whether a submission might be judged otherwise.")
    old_tests: int
    new_tests: int
    files: list[FileChange]
    values: list[ValueChange]
    is_cut: bool = Field(description="Whether there is more than is shown.")


class ProgressView(Wire):
    """How far running work has come."""

    stage: str = Field(examples=["judging"])
    done: int
    total: int


class FindingView(Wire):
    """A remark on a file of a package."""

    severity: Literal["error", "warning", "info"]
    path: str
    line: int = Field(description="0: the whole file.")
    message: str
    fix: str


class ImportView(Wire):
    """A package on its way, or a revision being verified."""

    id: str
    purpose: Literal["import", "verify"]
    state: Literal["pending", "running", "succeeded", "failed", "canceled"]
    job_id: str
    file_name: str
    slug: str | None
    problem_id: str | None
    revision: int | None
    progress: ProgressView | None
    findings: list[FindingView]
    jury: dict[str, Any] | None = Field(description="The jury's solutions: what was expected, what they did.")
    error: str | None
    created_at: str = _MOMENT
    finished_at: str | None


class ImportPage(Wire):
    """Imports, the latest first."""

    items: list[ImportView]
    next: str | None = _NEXT


class ImportAccepted(Wire):
    """Work that was taken on; watch it at `url`."""

    id: str
    job_id: str
    url: str = Field(examples=["/api/v1/imports/01890000-0000-7000-8000-000000000000"])


class LanguageView(Wire):
    """A language that programs may be written in."""

    id: str = Field(examples=["cpp20"])
    name: str = Field(examples=["C++20"])
    code: str = Field(description="What problem packages call it.", examples=["cpp"])
    extensions: list[str]
    source: str = Field(description="What a single source file is called.", examples=["main.cpp"])
    time_factor: float
    has_template: bool


class LanguageList(Wire):
    """Every language."""

    items: list[LanguageView]


class TemplateView(Wire):
    """Where to begin in a language."""

    language: str
    file_name: str
    source: str


class TestStatistics(Wire):
    """What became of one test."""

    name: str = Field(examples=["secret/01"])
    runs: int = Field(description="How often it was run.")
    verdicts: dict[str, int] = Field(description="How often each verdict was given.", examples=[{"AC": 80, "WA": 20}])
    time_ms: int = Field(description="The most CPU time that any program took.")
    mem_kb: int = Field(description="The most memory that any program took.")


class RevisionTests(Wire):
    """What became of the tests of a revision, over the latest 1,000 submissions that were judged on it."""

    items: list[TestStatistics] = Field(
        description="In the order of the tests; those that were never run are left out."
    )
