"""The last-submission format: of each problem the last judged submission counts.

Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.formats.points import combine_points, judged, parse_tie_break, points_cell
from adjudge.domain.contest import ContestFormat
from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class LastConfig:
    """Options of the last-submission format."""

    by_time: bool = False
    ignore_compile_errors: bool = False
    """Whether a compile error leaves the submission before it in force; else it scores 0."""


class LastFormat:
    """The last-submission format."""

    name: Final = ContestFormat.LAST
    is_pass_fail: Final = False

    def parse_config(self, document: Mapping[str, Any]) -> LastConfig:
        fields = ConfigFields(document)
        config = LastConfig(
            by_time=parse_tie_break(fields),
            ignore_compile_errors=fields.boolean("ignore_compile_errors", default=False),
        )
        fields.finish()
        return config

    def fold(self, config: LastConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:
        counting = None
        for item in judged(submissions):
            if item.verdict is not Verdict.CE or not config.ignore_compile_errors:
                counting = item
        if counting is None:
            return points_cell(submissions, None, None)
        score_micro = problem.scaled(counting.score_micro, counting.verdict)
        return points_cell(
            submissions,
            (counting, score_micro) if score_micro > 0 else None,
            counting if counting.verdict is Verdict.AC else None,
        )

    def combine(self, config: LastConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:
        return combine_points(cells, penalty_adjust_sec, by_time=config.by_time)


FORMAT = LastFormat()
