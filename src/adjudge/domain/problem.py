"""A problem as the judge sees it, independent of the package format.

Everything that decides how a submission is run, compared and scored, as plain values. Jury programs and their protocols
are in ``programs``; file contents are referred to by package-relative paths (``/`` as separator) and read through
``programs.ProblemFiles``.

Languages are the ICPC codes (``c``, ``cpp``, ``java``, ``python3``, …); an empty language means "by file name". Groups
form a tree by path: the root is ``""``, below it usually ``sample`` and ``secret``. The path identifies a group, and
the parent of ``secret/1`` is ``secret``. ``Problem.groups`` lists every group, parents first; ``Problem.cases`` lists
every case in running order.

Score of a case: a rejected case earns ``reject_points``; an accepted one ``points``, unless its checker gave a score
(interpreted by ``Checker.score_unit``). If ``points`` is None, the case has no maximum and its checker must give an
absolute score; with ``ScoreUnit.UNBOUNDED`` it may. Score of a group: ``Aggregate`` of its children, cases and groups
alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.programs import Checker, FileRef, InputValidator, Interactor, Program, ScoreUnit, Stub
from adjudge.domain.verdict import Verdict


class Grading(StrEnum):
    """Whether a submission is accepted or rejected only, or earns a score."""

    PASS_FAIL = "pass-fail"  # noqa: S105  # a way of grading, no secret
    SCORING = "scoring"


class ProblemMode(StrEnum):
    """How the submission is run. Multi-pass problems are a matter of ``Problem.max_passes``, not of the mode."""

    BATCH = "batch"
    """Reads an input and writes an output."""
    INTERACTIVE = "interactive"
    """Exchanges data with the interactor through two pipes."""
    SUBMIT_ANSWER = "submit-answer"
    """The submission is the output, one file per case (``Case.output_name``); nothing is run."""
    COMMUNICATION = "communication"
    """One or more processes exchange data with a manager (IOI)."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test case."""

    name: str
    """Unique; the path in the tree of groups: ``secret/2/03``."""
    group: str
    input: str
    """Package path of the input."""
    answer: str | None = None
    args: tuple[str, ...] = ()
    """Command-line arguments of the submission."""
    files: tuple[FileRef, ...] = ()
    """Copied into the submission's work directory after compilation; overwrites existing files."""
    checker_args: tuple[str, ...] = ()
    """Arguments of all its groups and of the case itself, in this order."""
    input_validator_args: tuple[str, ...] = ()
    checker: Checker | None = None
    """Overrides the problem's checker."""
    points: float | None = 1.0
    reject_points: float = 0.0
    is_sample: bool = False
    full_feedback: bool = False
    output_name: str = ""
    """The submitted file that is the output of this case (submit-answer)."""
    description: str = ""
    hint: str = ""

    @property
    def submitted_name(self) -> str:
        """``output_name``, or the name that a case without one expects."""
        return self.output_name or f"{self.name}.out"


class Aggregate(StrEnum):
    """How the score of a group is computed from its children."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    MUL = "mul"
    """``max_points`` times the product of the children's fractions (score / points)."""
    ALL = "all"
    """``max_points`` if every child was accepted, else 0 (a pass-fail group)."""
    THRESHOLD = "threshold"
    """``max_points`` if the outcome of every child is above 0 and at most ``threshold`` (the outcome is a cost)."""


class OnReject(StrEnum):
    """What a group does after its first rejected child."""

    BREAK = "break"
    CONTINUE = "continue"


class GroupVerdict(StrEnum):
    """How the verdict of a group is computed from its children."""

    FIRST = "first"
    WORST = "worst"
    ALWAYS_ACCEPT = "always-accept"


class Feedback(StrEnum):
    """What the author of a submission sees of a group."""

    NONE = "none"
    POINTS = "points"
    FIRST_FAILURE = "first-failure"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Group:
    """A node of the tree of test cases: a subtask, a batch or a folder."""

    path: str
    aggregate: Aggregate = Aggregate.SUM
    max_points: float | None = None
    """None: no maximum."""
    score_range: tuple[float, float] | None = None
    """A score outside it is an error of the checker."""
    threshold: float = 0.0
    on_reject: OnReject = OnReject.BREAK
    verdict: GroupVerdict = GroupVerdict.FIRST
    accept_if_any: bool = False
    """One accepted child suffices."""
    ignore_sample: bool = False
    """Root only: samples neither score nor affect the verdict."""
    depends_on: tuple[str, ...] = ()
    """Paths of groups that must be fully accepted; otherwise this group is skipped and earns nothing."""
    static_points: float = 0.0
    """Earned if the static validator accepts the source."""
    static_validator_args: tuple[str, ...] = ()
    feedback: Feedback = Feedback.FIRST_FAILURE

    @property
    def parent(self) -> str | None:
        """The path of the parent group; None for the root."""
        return self.path.rpartition("/")[0] if self.path else None


@dataclass(frozen=True, slots=True)
class ProblemLimits:
    """Limits of submissions and jury programs."""

    run: Limits = field(default_factory=Limits)
    has_explicit_time_limit: bool = True
    """False: the package states no time limit and ``run`` has the default; suggest one from the times of jury
    solutions."""
    per_language: Mapping[str, Limits] = field(default_factory=dict)
    """Complete limits that replace ``run``; ``time_factors`` and the language's own factor do not apply to them."""
    time_factors: Mapping[str, float] = field(default_factory=dict)
    code_bytes: int = 128 * 1024
    """Maximum source size, before stubs are merged."""
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
    """Which bound on the time limit the running times of a jury submission give."""

    AUTO = "auto"
    """Derived from the permitted verdicts."""
    NEITHER = "neither"
    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a jury submission must do on the cases matched by a glob."""

    cases: str = ""
    """Glob on case and group names; empty: all cases."""
    permitted: frozenset[Verdict] = ANY_VERDICT
    """The verdict of every case must be in this set."""
    required: frozenset[Verdict] = ANY_VERDICT
    """The verdict of at least one case must be in this set."""
    result: frozenset[Verdict] = frozenset()
    """The verdict of the submission must be in this set, unless it is empty."""
    score: tuple[float, float] | None = None
    message: str = ""
    """Must be contained in the jury message of some case."""
    time_bound: TimeBound = TimeBound.AUTO


@dataclass(frozen=True, slots=True)
class JurySubmission:
    """A solution in the package, with its expectations."""

    path: str
    """Path below the folder of submissions, ``accepted/sol.cpp``; unique."""
    program: Program
    expectations: tuple[Expectation, ...] = ()
    authors: tuple[str, ...] = ()
    is_model: bool = False


class SelfTestKind(StrEnum):
    """What the validators and checkers of the package must report for a test that submissions do not see."""

    VALID_INPUT = "valid_input"
    INVALID_INPUT = "invalid_input"
    VALID_OUTPUT = "valid_output"
    INVALID_OUTPUT = "invalid_output"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A test of the jury programs: of the input validators, or of the checker on one output."""

    kind: SelfTestKind
    name: str
    input: str
    output: str | None = None
    answer: str | None = None
    checker_args: tuple[str, ...] = ()
    input_validator_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProblemStatement:
    """The statement, or the solution text, in one language and format."""

    language: str
    format: str
    """``tex``, ``md``, ``html``, ``pdf`` or ``txt``."""
    path: str
    assets: tuple[FileRef, ...] = ()
    """Images and other files that it refers to."""


@dataclass(frozen=True, slots=True)
class ProblemSource:
    """Where the problem was first used."""

    name: str
    url: str = ""


AWAITING_PACKAGE: Final = "awaiting-package"
"""The format of a revision that was created before the package of its problem was uploaded."""


@dataclass(frozen=True, slots=True)
class PackageFormat:
    """The format that the package was read from."""

    format: str
    """``icpc``, ``polygon``, ``dmoj``, ``cms`` or ``plain``."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that the package defines."""

    short_name: str
    package_format: PackageFormat
    titles: Mapping[str, str] = field(default_factory=dict)
    """Language code → title."""
    uuid: str = ""
    version: str = ""
    grading: Grading = Grading.PASS_FAIL
    mode: ProblemMode = ProblemMode.BATCH
    max_passes: int = 1
    """More than 1: a multi-pass problem."""
    is_minimised: bool = False
    """Lower scores are better."""
    limits: ProblemLimits = field(default_factory=ProblemLimits)
    input_file: str = ""
    """File in the work directory that the submission reads; empty: stdin."""
    output_file: str = ""
    """File in the work directory that the submission writes; empty: stdout."""
    keeps_stdio: bool = False
    """The named files exist in addition to stdin and stdout (DMOJ links them)."""
    allow_file_writing: bool = False
    languages: tuple[str, ...] = ()
    """Allowed languages; empty: all."""
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
    """Already substituted in all texts that the package reader derived; kept for statements."""
    credits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Role (``authors``, ``testers``, …) → people."""
    sources: tuple[ProblemSource, ...] = ()
    license: str = "unknown"
    rights_owner: str = ""
    embargo_until: str = ""
    keywords: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title to show when the reader's language is unknown."""
        return self.titles.get("en") or next(iter(self.titles.values()), self.short_name)

    @property
    def is_scored(self) -> bool:
        """Whether submissions earn points."""
        return self.grading is Grading.SCORING

    def has_maximum(self, case: Case) -> bool:
        """Whether the points of a case are the maximum that it can earn."""
        return case.points is not None and (case.checker or self.checker).score_unit is not ScoreUnit.UNBOUNDED

    def group(self, path: str) -> Group:
        """Return the group at ``path``; readers ensure that the group of every case exists."""
        return next(group for group in self.groups if group.path == path)

    def feedback_of(self, case: Case) -> str:
        """How much of a test case the author of a submission may see: ``full``, or a value of ``Feedback``."""
        return "full" if case.is_sample or case.full_feedback else self.group(case.group).feedback.value

    def children(self, path: str) -> tuple[Group | Case, ...]:
        """The children of a group in running order; groups without cases come last."""
        below = {group.path: group for group in self.groups if group.parent == path}
        result: list[Group | Case] = []
        for case in self.cases:
            if case.group == path:
                result.append(case)
            elif (step := _step_below(path, case.group)) in below:
                result.append(below.pop(step))
        return (*result, *below.values())


def _step_below(ancestor: str, path: str) -> str:
    """The child of ``ancestor`` that contains ``path``; empty if ``path`` is not below it."""
    prefix = f"{ancestor}/" if ancestor else ""
    if not path.startswith(prefix):
        return ""
    return prefix + path[len(prefix) :].partition("/")[0]
