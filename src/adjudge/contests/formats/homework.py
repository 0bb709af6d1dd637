"""The homework format: a deadline, after which each day costs a percentage until the contest ends.

The end of the contest is the final cut-off. Extra time of a participant extends both deadline and cut-off.
Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys, first_accepted
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.formats.points import combine_points, first_best, judged, points_cell
from adjudge.domain.contest import DAY_US, SECOND_US, ContestFormat
from adjudge.domain.errors import InvalidInput

_MAX_DEADLINE_SEC: Final = 3_650 * DAY_US // SECOND_US


@dataclass(frozen=True, slots=True)
class HomeworkConfig:
    """Options of the homework format."""

    deadline_us: int | None = None
    """Contest time of the deadline; None: nothing is late before the cut-off."""
    late_penalty_percent_per_day: int = 10
    """For each day begun after the deadline."""
    late_penalty_cap_percent: int = 100
    counts: str = "best"
    """``best`` or ``last`` submission, after the late penalty."""

    def check_duration(self, duration_us: int) -> None:
        """Raise InvalidInput if the deadline is after the end."""
        if self.deadline_us is not None and self.deadline_us > duration_us:
            raise InvalidInput(
                "format_cfg.deadline_sec: the deadline is after the end; give an earlier one, "
                "or make the contest longer in the same change.",
                field="format_cfg.deadline_sec",
            )

    def late_penalty_percent(self, submission: JudgedSubmission) -> int:
        """Return what a submission loses; one at the deadline itself is late."""
        if self.deadline_us is None or (late_us := submission.time_us - self.deadline_us - submission.extra_us) < 0:
            return 0
        days_begun = late_us // DAY_US + 1
        return min(self.late_penalty_cap_percent, days_begun * self.late_penalty_percent_per_day)


class HomeworkFormat:
    """The homework format."""

    name: Final = ContestFormat.HOMEWORK
    is_pass_fail: Final = False

    def parse_config(self, document: Mapping[str, Any]) -> HomeworkConfig:
        fields = ConfigFields(document)
        deadline_sec = fields.optional_integer("deadline_sec", 0, _MAX_DEADLINE_SEC)
        config = HomeworkConfig(
            deadline_us=None if deadline_sec is None else deadline_sec * SECOND_US,
            late_penalty_percent_per_day=fields.integer("late_penalty_percent_per_day", 10, 0, 100),
            late_penalty_cap_percent=fields.integer("late_penalty_cap_percent", 100, 0, 100),
            counts=fields.choice("counts", "best", ("best", "last")),
        )
        fields.finish()
        return config

    def fold(self, config: HomeworkConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:
        candidates = judged(submissions)
        if config.counts == "last":
            candidates = candidates[-1:]
        scored = [(item, _points(config, problem, item)) for item in candidates]
        return points_cell(submissions, first_best(scored), first_accepted(candidates))

    def combine(self, config: HomeworkConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:  # noqa: ARG002  # no tie-break
        return combine_points(cells, penalty_adjust_sec, by_time=False)


def _points(config: HomeworkConfig, problem: ProblemScoring, item: JudgedSubmission) -> int:
    kept_percent = 100 - config.late_penalty_percent(item)
    return problem.scaled(item.score_micro, item.verdict) * kept_percent // 100


FORMAT = HomeworkFormat()
