"""The ICPC format: solved problems, then penalty, then the time of the last accepted submission.

Rules: `docs/reference/scoring-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.formats.base import (
    Cell,
    JudgedSubmission,
    ProblemScoring,
    RowKeys,
    earliest_pending,
    first_accepted,
    pending_count,
)
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.domain.contest import MINUTE_US, SECOND_US, ContestFormat
from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class IcpcConfig:
    """Options of the ICPC format."""

    penalty_minutes: int = 20
    compile_error_penalty: bool = False
    """Whether compile errors count as attempts."""
    seconds: bool = False
    """Whether times count in whole seconds instead of whole minutes."""

    def floor_sec(self, time_us: int) -> int:
        """Round a time down to the unit that counts; in seconds."""
        return time_us // SECOND_US if self.seconds else time_us // MINUTE_US * 60


class IcpcFormat:
    """The ICPC format."""

    name: Final = ContestFormat.ICPC
    is_pass_fail: Final = True

    def parse_config(self, document: Mapping[str, Any]) -> IcpcConfig:
        fields = ConfigFields(document)
        config = IcpcConfig(
            penalty_minutes=fields.integer("penalty_minutes", 20, 0, 10_000),
            compile_error_penalty=fields.boolean("compile_error_penalty", default=False),
            seconds=fields.boolean("seconds", default=False),
        )
        fields.finish()
        return config

    def fold(self, config: IcpcConfig, problem: ProblemScoring, submissions: Sequence[JudgedSubmission]) -> Cell:  # noqa: ARG002  # pass or fail: points do not count
        accepted = first_accepted(submissions)
        rejected = sum(
            _is_rejected(config, item) for item in submissions if accepted is None or item.number < accepted.number
        )
        pending, earliest = pending_count(submissions), earliest_pending(submissions)
        if accepted is None:
            return Cell(attempts=rejected, pending=pending, earliest_pending_number=earliest)
        return Cell(
            attempts=rejected + 1,
            pending=pending,
            solved_us=accepted.time_us,
            time_us=accepted.time_us,
            penalty_sec=config.floor_sec(accepted.time_us) + rejected * config.penalty_minutes * 60,
            first_accepted_number=accepted.number,
            earliest_pending_number=earliest,
        )

    def combine(self, config: IcpcConfig, cells: Iterable[Cell], penalty_adjust_sec: int = 0) -> RowKeys:
        solved = [cell for cell in cells if cell.is_solved]
        penalty_sec = sum(cell.penalty_sec for cell in solved) + penalty_adjust_sec
        last_sec = max((config.floor_sec(cell.time_us) for cell in solved), default=0)
        return RowKeys(len(solved), -penalty_sec, -last_sec)


def _is_rejected(config: IcpcConfig, submission: JudgedSubmission) -> bool:
    if submission.is_pending or submission.verdict is Verdict.AC:
        return False
    return submission.verdict is not Verdict.CE or config.compile_error_penalty


FORMAT = IcpcFormat()
