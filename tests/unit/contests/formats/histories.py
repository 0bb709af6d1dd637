"""Short notations for submissions in tests of scoring formats."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge.contests.formats.base import JudgedSubmission
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US
from adjudge.domain.verdict import Verdict


def submission(
    number: int,
    minute: float,
    verdict: str | None,
    points: float = 0,
    subtasks: Mapping[str, int] | None = None,
    extra_min: int = 0,
) -> JudgedSubmission:
    """A submission at a minute of the contest; points and subtasks in whole points."""
    time_us = round(minute * MINUTE_US)
    return JudgedSubmission(
        number=number,
        received_at=time_us,
        time_us=time_us,
        verdict=None if verdict is None else Verdict(verdict),
        score_micro=round(points * MICRO_POINTS),
        subtasks={name: value * MICRO_POINTS for name, value in (subtasks or {}).items()},
        extra_us=extra_min * MINUTE_US,
    )
