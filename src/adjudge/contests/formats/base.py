"""The interface of scoring formats: the submissions of a cell in, a cell and the sort keys of a row out.

A format is pure. ``fold`` gets all submissions of one participant to one problem that count (not ignored, within the
time), in number order, with overridden verdicts already replaced. The public view uses the same ``fold``: the caller
passes submissions since the freeze as pending (``JudgedSubmission.as_pending``), so a late verdict cannot change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from adjudge.domain.verdict import Verdict

Config = TypeVar("Config")


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """A submission as scoring sees it."""

    number: int
    """Its number in the contest; the order of submissions."""
    received_at: int
    time_us: int
    """Participant time when it was received."""
    verdict: Verdict | None
    """None while pending."""
    score_micro: int = 0
    """The problem's own score, not scaled to the points of the contest."""
    subtasks: Mapping[str, int] = field(default_factory=dict)
    """Scores of the subtasks in micro-points, by name; empty if the problem has none."""
    extra_us: int = 0
    """Extra time of the participant: the extension of a homework's deadline."""

    @property
    def is_pending(self) -> bool:
        """Whether no verdict counts yet. A system error is pending too: the jury must judge it again."""
        return self.verdict is None or self.verdict is Verdict.SE

    def as_pending(self) -> JudgedSubmission:
        """Return it without anything that its judgement revealed."""
        return replace(self, verdict=None, score_micro=0, subtasks={})


@dataclass(frozen=True, slots=True)
class ProblemScoring:
    """How a problem counts in a contest."""

    points_micro: int
    """What a full score is worth."""
    max_score_micro: int | None = None
    """The problem's own maximum; None if it is accepted or rejected only."""

    def scaled(self, score_micro: int, verdict: Verdict | None) -> int:
        """Return the points for a score: proportional, rounded down; a problem without scores gives all or nothing."""
        if self.max_score_micro is None or self.max_score_micro <= 0:
            return self.points_micro if verdict is Verdict.AC else 0
        return max(0, score_micro) * self.points_micro // self.max_score_micro


@dataclass(frozen=True, slots=True)
class Cell:
    """What one participant achieved on one problem, in one view."""

    attempts: int = 0
    """Judged submissions that count as attempts; which ones is a rule of the format."""
    pending: int = 0
    solved_us: int | None = None
    """Participant time of the first submission that solved it."""
    score_micro: int = 0
    time_us: int = 0
    """Participant time at which the score was reached; 0 without a score."""
    penalty_sec: int = 0
    """Penalty of formats that have one; 0 if the cell does not count."""
    subtasks: Mapping[str, int] = field(default_factory=dict)
    """Best score of each subtask, in the problem's own micro-points."""
    first_accepted_number: int | None = None
    earliest_pending_number: int | None = None

    @property
    def is_solved(self) -> bool:
        return self.solved_us is not None


class RowKeys(NamedTuple):
    """Sort keys of a row, all descending; rows with equal keys share a rank."""

    k1: int
    k2: int = 0
    k3: int = 0


class ScoringFormat(Protocol[Config]):
    """A scoring format."""

    @property
    def name(self) -> str:
        """Its name in ``ContestFormat``."""
        ...

    @property
    def is_pass_fail(self) -> bool:
        """Whether rows have solved counts and penalties; else they have scores."""
        ...

    def parse_config(self, document: Mapping[str, Any]) -> Config:
        """Check the ``format_cfg`` of a contest; raises InvalidInput with the field and the fix."""
        ...

    def fold(self, config: Config, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:
        """Compute a cell from its submissions, in number order."""
        ...

    def combine(self, config: Config, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:
        """Compute the sort keys of a row from its cells; the adjustment is added by judges, and may be negative."""
        ...


def pending_count(submissions: Iterable[JudgedSubmission]) -> int:
    return sum(item.is_pending for item in submissions)


def earliest_pending(submissions: Iterable[JudgedSubmission]) -> int | None:
    """Return the number of the first pending submission: an earlier accepted one may still come of it."""
    return min((item.number for item in submissions if item.is_pending), default=None)


def first_accepted(submissions: Iterable[JudgedSubmission]) -> JudgedSubmission | None:
    return next((item for item in submissions if item.verdict is Verdict.AC), None)
