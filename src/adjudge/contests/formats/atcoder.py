"""The AtCoder-like format: scores, then the time of the last best score plus penalties.

Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys, first_accepted
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.formats.points import (
    count_attempts,
    first_best,
    judged,
    last_improvement_sec,
    points_cell,
    total_score,
)
from adjudge.domain.contest import ContestFormat


@dataclass(frozen=True, slots=True)
class AtcoderConfig:
    """Options of the AtCoder-like format."""

    penalty_minutes: int = 5


class AtcoderFormat:
    """The AtCoder-like format."""

    name: Final = ContestFormat.ATCODER
    is_pass_fail: Final = False

    def parse_config(self, document: Mapping[str, Any]) -> AtcoderConfig:
        fields = ConfigFields(document)
        config = AtcoderConfig(fields.integer("penalty_minutes", 5, 0, 10_000))
        fields.finish()
        return config

    def fold(self, config: AtcoderConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:
        best = first_best((item, problem.scaled(item.score_micro, item.verdict)) for item in judged(submissions))
        earlier = [item for item in submissions if best is not None and item.number < best[0].number]
        penalty_sec = count_attempts(earlier) * config.penalty_minutes * 60
        return points_cell(submissions, best, first_accepted(submissions), penalty_sec=penalty_sec)

    def combine(self, config: AtcoderConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:  # noqa: ARG002  # its option is for cells
        cells = list(cells)
        penalty_sec = sum(cell.penalty_sec for cell in cells) + penalty_adjust_sec
        return RowKeys(total_score(cells), -(last_improvement_sec(cells) + penalty_sec))


FORMAT = AtcoderFormat()
