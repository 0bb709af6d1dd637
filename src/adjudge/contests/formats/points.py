"""What the formats that add up points have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, RowKeys, earliest_pending, pending_count
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.domain.contest import SECOND_US
from adjudge.domain.verdict import Verdict

TIE_BREAKS: Final = ("none", "time")


def parse_tie_break(fields: ConfigFields) -> bool:
    """Read ``tie_break``: whether equal scores are ordered by the time of the last improvement."""
    return fields.choice("tie_break", "none", TIE_BREAKS) == "time"


def judged(submissions: Iterable[JudgedSubmission]) -> list[JudgedSubmission]:
    return [item for item in submissions if not item.is_pending]


def count_attempts(submissions: Iterable[JudgedSubmission]) -> int:
    """Count the judged submissions without compile errors."""
    return sum(not item.is_pending and item.verdict is not Verdict.CE for item in submissions)


def first_best(scored: Iterable[tuple[JudgedSubmission, int]]) -> tuple[JudgedSubmission, int] | None:
    """Return the first submission with the highest score; None if every score is 0."""
    best: tuple[JudgedSubmission, int] | None = None
    for item, score_micro in scored:
        if score_micro > (best[1] if best else 0):
            best = (item, score_micro)
    return best


def points_cell(
    submissions: Sequence[JudgedSubmission],
    counting: tuple[JudgedSubmission, int] | None,
    solved: JudgedSubmission | None,
    *,
    penalty_sec: int = 0,
) -> Cell:
    """Build a cell from the submission whose score counts, and the one that solved the problem."""
    return Cell(
        attempts=count_attempts(submissions),
        pending=pending_count(submissions),
        solved_us=None if solved is None else solved.time_us,
        score_micro=counting[1] if counting else 0,
        time_us=counting[0].time_us if counting else 0,
        penalty_sec=penalty_sec,
        first_accepted_number=None if solved is None else solved.number,
        earliest_pending_number=earliest_pending(submissions),
    )


def total_score(cells: Iterable[Cell]) -> int:
    return sum(cell.score_micro for cell in cells)


def last_improvement_sec(cells: Iterable[Cell]) -> int:
    """Return the time of the last cell that has points, in whole seconds; the time of a cell without points is 0."""
    return max((cell.time_us // SECOND_US for cell in cells), default=0)


def combine_points(cells: Iterable[Cell], penalty_adjust_sec: int, *, by_time: bool) -> RowKeys:
    """Add up the scores; ties are equal, or ordered by the last improvement plus the adjustment."""
    cells = list(cells)
    time_sec = last_improvement_sec(cells) + penalty_adjust_sec if by_time else 0
    return RowKeys(total_score(cells), -time_sec)
