"""The best-submission format: of each problem the submission with the highest score counts.

Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys, first_accepted
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.formats.points import combine_points, first_best, judged, parse_tie_break, points_cell
from adjudge.domain.contest import ContestFormat


@dataclass(frozen=True, slots=True)
class BestConfig:
    """Options of the best-submission format."""

    by_time: bool = False


class BestFormat:
    """The best-submission format."""

    name: Final = ContestFormat.BEST
    is_pass_fail: Final = False

    def parse_config(self, document: Mapping[str, Any]) -> BestConfig:
        fields = ConfigFields(document)
        config = BestConfig(parse_tie_break(fields))
        fields.finish()
        return config

    def fold(self, config: BestConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:  # noqa: ARG002  # its option is for rows
        scored = [(item, problem.scaled(item.score_micro, item.verdict)) for item in judged(submissions)]
        return points_cell(submissions, first_best(scored), first_accepted(submissions))

    def combine(self, config: BestConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:
        return combine_points(cells, penalty_adjust_sec, by_time=config.by_time)


FORMAT = BestFormat()
