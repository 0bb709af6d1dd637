"""The IOI format: for each subtask the best score over all submissions.

Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.formats.points import combine_points, judged, parse_tie_break, points_cell
from adjudge.domain.contest import ContestFormat
from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class IoiConfig:
    """Options of the IOI format."""

    by_time: bool = False


class IoiFormat:
    """The IOI format."""

    name: Final = ContestFormat.IOI
    is_pass_fail: Final = False

    def parse_config(self, document: Mapping[str, Any]) -> IoiConfig:
        fields = ConfigFields(document)
        config = IoiConfig(parse_tie_break(fields))
        fields.finish()
        return config

    def fold(self, config: IoiConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:  # noqa: ARG002  # its option is for rows
        progress = _Progress(problem)
        for item in judged(submissions):
            progress.add(item)
        cell = points_cell(submissions, progress.counting, progress.solved)
        return replace(cell, subtasks=progress.maxima)

    def combine(self, config: IoiConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:
        return combine_points(cells, penalty_adjust_sec, by_time=config.by_time)


class _Progress:
    """The maxima after each submission, and which submission raised the score last."""

    def __init__(self, problem: ProblemScoring) -> None:
        self._problem = problem
        self.maxima: dict[str, int] = {}
        self._best_whole = 0
        self.counting: tuple[JudgedSubmission, int] | None = None
        self.solved: JudgedSubmission | None = None

    def add(self, item: JudgedSubmission) -> None:
        for name, score_micro in item.subtasks.items():
            self.maxima[name] = max(self.maxima.get(name, 0), score_micro)
        self._best_whole = max(self._best_whole, item.score_micro)
        is_accepted = item.verdict is Verdict.AC or self.solved is not None
        raw_micro = max(self._best_whole, sum(self.maxima.values()))
        score_micro = self._problem.scaled(raw_micro, Verdict.AC if is_accepted else None)
        if score_micro > (self.counting[1] if self.counting else 0):
            self.counting = (item, score_micro)
        if self.solved is None and (is_accepted or 0 < self._problem.points_micro <= score_micro):
            self.solved = item


FORMAT = IoiFormat()
