"""A problem as the judge sees it, whatever format it came in.

What belongs here: everything that decides how a submission is run, compared and scored, as plain values. What does
not: the programs and their protocols (``programs``), file contents (named by package-relative paths, ``/`` as
separator, and reached through ``programs.ProblemFiles``), and any knowledge of a package format.

Languages are the ICPC format's codes (``c``, ``cpp``, ``java``, ``python3``, …); an empty language means "by the names
of the files". Groups form a tree by path: the root is ``""``, below it usually ``sample`` and ``secret``. A path is a
group's only identity, and the parent of ``secret/1`` is ``secret``. ``Problem.groups`` lists every group, parents
first; ``Problem.cases`` lists every case in the order in which they run.

How a case earns: a rejected one earns ``reject_points``; an accepted one ``points``, unless its checker gave a score
(read as ``Checker.score_unit`` says). ``points`` of None means that the case has no maximum and its checker must give
an absolute score; with ``ScoreUnit.UNBOUNDED`` it may. How a group earns: ``Aggregate`` of its children, cases and
groups alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.programs import Checker, FileRef, InputValidator, Interactor, Program, ScoreUnit, Stub
from adjudge.domain.verdict import Verdict


class Grading(StrEnum):
    """Whether a submission is only right or wrong, or earns a score."""

    PASS_FAIL = "pass-fail"  # noqa: S105  # a way of grading, no secret
    SCORING = "scoring"


class ProblemMode(StrEnum):
    """How the submission meets the judge. Several passes are a matter of ``Problem.max_passes``, not of the mode."""

    BATCH = "batch"
    """It reads an input and writes an output."""
    INTERACTIVE = "interactive"
    """It talks to the interactor through two pipes."""
    SUBMIT_ANSWER = "submit-answer"
    """It is the output itself, one file for each case (``Case.output_name``); nothing of it runs."""
    COMMUNICATION = "communication"
    """One or more processes of it talk to a manager (IOI)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test."""

    name: str
    """Unique, and its place in the tree: ``secret/2/03``."""
    group: str
    input: str
    """Package path of the input."""
    answer: str | None = None
    args: tuple[str, ...] = ()
    """Command-line arguments of the submission."""
    files: tuple[FileRef, ...] = ()
    """Copied into the submission's work directory after compilation, over what is there."""
    checker_args: tuple[str, ...] = ()
    """All that its groups and the case itself say, in order."""
    input_validator_args: tuple[str, ...] = ()
    checker: Checker | None = None
    """Instead of the problem's."""
    points: float | None = 1.0
    reject_points: float = 0.0
    is_sample: bool = False
    full_feedback: bool = False
    output_name: str = ""
    """The submitted file that is its output, where answers are submitted."""
    description: str = ""
    hint: str = ""


class Aggregate(StrEnum):
    """How a group's score comes from its children's."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    MUL = "mul"
    """``max_points`` times the product of the children's fractions (score over points)."""
    ALL = "all"
    """``max_points`` if every child was accepted, else nothing (a pass-fail group)."""
    THRESHOLD = "threshold"
    """``max_points`` if every child's outcome is above 0 and at most ``threshold`` (an outcome is a cost)."""


class OnReject(StrEnum):
    """What a group does after its first child that was not accepted."""

    BREAK = "break"
    CONTINUE = "continue"


class GroupVerdict(StrEnum):
    """How a group's verdict comes from its children's."""

    FIRST = "first"
    WORST = "worst"
    ALWAYS_ACCEPT = "always-accept"


class Feedback(StrEnum):
    """What the author of a submission is told about a group."""

    NONE = "none"
    POINTS = "points"
    FIRST_FAILURE = "first-failure"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Group:
    """A node of the tree of tests: a subtask, a batch, or just a folder."""

    path: str
    aggregate: Aggregate = Aggregate.SUM
    max_points: float | None = None
    """None: no maximum."""
    score_range: tuple[float, float] | None = None
    """A score outside it is the checker's fault."""
    threshold: float = 0.0
    on_reject: OnReject = OnReject.BREAK
    verdict: GroupVerdict = GroupVerdict.FIRST
    accept_if_any: bool = False
    """One accepted child is enough for it to be accepted."""
    ignore_sample: bool = False
    """Of the root only: samples neither score nor decide."""
    depends_on: tuple[str, ...] = ()
    """Paths of groups that must be accepted wholly, or this one is skipped and earns nothing."""
    static_points: float = 0.0
    """Earned when the static validator accepts the submission's source."""
    static_validator_args: tuple[str, ...] = ()
    feedback: Feedback = Feedback.FIRST_FAILURE

    @property
    def parent(self) -> str | None:
        """The path of the group that it is a child of; the root has none."""
        return self.path.rpartition("/")[0] if self.path else None


@dataclass(frozen=True, slots=True)
class ProblemLimits:
    """What a submission and the jury's programs may use."""

    run: Limits = field(default_factory=Limits)
    has_explicit_time_limit: bool = True
    """False: the package states no time limit and ``run`` holds our default; suggest one from the jury's times."""
    per_language: Mapping[str, Limits] = field(default_factory=dict)
    """Whole limits instead of ``run``; neither ``time_factors`` nor the language's own multiplier apply to them."""
    time_factors: Mapping[str, float] = field(default_factory=dict)
    code_bytes: int = 128 * 1024
    """Of a submission, before anything is merged into it."""
    compile_ms: int = 60_000
    compile_memory_bytes: int = 2048 * MIB
    validation_ms: int = 60_000
    validation_memory_bytes: int = 2048 * MIB
    validation_output_bytes: int = 8 * MIB
    ac_to_time_limit: float = 2.0
    time_limit_to_tle: float = 1.5
    time_resolution_ms: int = 1_000


ANY_VERDICT: frozenset[Verdict] = frozenset(Verdict) - {Verdict.SE, Verdict.CE}


class TimeBound(StrEnum):
    """Which side of the time limit a jury submission's times bound."""

    AUTO = "auto"
    """Follows from the verdicts it may have."""
    NEITHER = "neither"
    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a jury submission must do on the cases that a glob names."""

    cases: str = ""
    """Matches a case's name or that of a group it is in; empty: all cases."""
    permitted: frozenset[Verdict] = ANY_VERDICT
    """Every case's verdict must be one of these."""
    required: frozenset[Verdict] = ANY_VERDICT
    """At least one case's verdict must be one of these."""
    result: frozenset[Verdict] = frozenset()
    """The submission's own verdict must be one of these, where there are any."""
    score: tuple[float, float] | None = None
    message: str = ""
    """Part of some case's message to the jury."""
    time_bound: TimeBound = TimeBound.AUTO


@dataclass(frozen=True, slots=True)
class JurySubmission:
    """A solution in the package and what it is there to show."""

    path: str
    """Its place below the jury's folder, ``accepted/sol.cpp``: unique."""
    program: Program
    expectations: tuple[Expectation, ...] = ()
    authors: tuple[str, ...] = ()
    is_model: bool = False


class SelfTestKind(StrEnum):
    """What a package's own validators and checkers must say of a test that no submission sees."""

    VALID_INPUT = "valid_input"
    INVALID_INPUT = "invalid_input"
    VALID_OUTPUT = "valid_output"
    INVALID_OUTPUT = "invalid_output"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A test of the jury's programs: the input validators, or the checker on one output."""

    kind: SelfTestKind
    name: str
    input: str
    output: str | None = None
    answer: str | None = None
    checker_args: tuple[str, ...] = ()
    input_validator_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProblemStatement:
    """The task, or its solution, in one language and one format."""

    language: str
    format: str
    """``tex``, ``md``, ``html``, ``pdf`` or ``txt``."""
    path: str
    assets: tuple[FileRef, ...] = ()
    """Pictures and the like that it names."""


@dataclass(frozen=True, slots=True)
class ProblemSource:
    """Where a problem was used first."""

    name: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class PackageFormat:
    """The format that the problem was read from."""

    format: str
    """``icpc``, ``polygon``, ``dmoj``, ``cms`` or ``plain``."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that a package says."""

    short_name: str
    package_format: PackageFormat
    titles: Mapping[str, str] = field(default_factory=dict)
    """By language code."""
    uuid: str = ""
    version: str = ""
    grading: Grading = Grading.PASS_FAIL
    mode: ProblemMode = ProblemMode.BATCH
    max_passes: int = 1
    """More than 1: a multi-pass problem."""
    is_minimised: bool = False
    """The lower score is the better one."""
    limits: ProblemLimits = field(default_factory=ProblemLimits)
    input_file: str = ""
    """The submission reads this file in its work directory; empty: stdin."""
    output_file: str = ""
    """The submission writes this file in its work directory; empty: stdout."""
    keeps_stdio: bool = False
    """The named files are there beside stdin and stdout, not instead of them (DMOJ's links to them)."""
    allow_file_writing: bool = False
    languages: tuple[str, ...] = ()
    """Those that may be submitted; empty: all."""
    cases: tuple[Case, ...] = ()
    groups: tuple[Group, ...] = (Group(""),)
    checker: Checker = field(default_factory=Checker)
    interactor: Interactor | None = None
    stubs: tuple[Stub, ...] = ()
    static_validator: Program | None = None
    input_validators: tuple[InputValidator, ...] = ()
    generators: tuple[Program, ...] = ()
    submissions: tuple[JurySubmission, ...] = ()
    self_tests: tuple[SelfTest, ...] = ()
    statements: tuple[ProblemStatement, ...] = ()
    editorials: tuple[ProblemStatement, ...] = ()
    attachments: tuple[FileRef, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    """Already substituted in every text that the package's reader derives; kept for statements."""
    credits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Role (``authors``, ``testers``, …) to people."""
    sources: tuple[ProblemSource, ...] = ()
    license: str = "unknown"
    rights_owner: str = ""
    embargo_until: str = ""
    keywords: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title for a reader whose language is unknown."""
        return self.titles.get("en") or next(iter(self.titles.values()), self.short_name)

    @property
    def is_scored(self) -> bool:
        """Whether submissions earn points."""
        return self.grading is Grading.SCORING

    def has_maximum(self, case: Case) -> bool:
        """Whether the points of a case are the most that it can earn."""
        return case.points is not None and (case.checker or self.checker).score_unit is not ScoreUnit.UNBOUNDED

    def group(self, path: str) -> Group:
        """Return the group at ``path``; no reader lets a case pass whose group is not in the tree."""
        return next(group for group in self.groups if group.path == path)

    def children(self, path: str) -> tuple[Group | Case, ...]:
        """List what a group consists of, in the order of running; groups that hold no case come last."""
        below = {group.path: group for group in self.groups if group.parent == path}
        found: list[Group | Case] = []
        for case in self.cases:
            if case.group == path:
                found.append(case)
            elif (step := _step_below(path, case.group)) in below:
                found.append(below.pop(step))
        return (*found, *below.values())


def _step_below(ancestor: str, path: str) -> str:
    """Name the child of ``ancestor`` on the way to ``path``; nothing where ``path`` is not below it."""
    prefix = f"{ancestor}/" if ancestor else ""
    if not path.startswith(prefix):
        return ""
    return prefix + path[len(prefix) :].partition("/")[0]
