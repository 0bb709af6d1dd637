"""Values of contests: formats, phases, kinds of participants, roles, visibility settings, and micro-points."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import Final

MICRO_POINTS: Final = 1_000_000
"""Micro-points in a point. Scores of contests are integers, because sums of floats depend on their order."""

SECOND_US: Final = 1_000_000
MAX_PRINT_BYTES: Final = 4 * 1024**2
"""The most that `printing.job_bytes` allows."""
MINUTE_US: Final = 60 * SECOND_US
DAY_US: Final = 86_400 * SECOND_US


class ContestFormat(StrEnum):
    """A scoring format; its rules are in the module of ``adjudge.contests.formats`` with the same name."""

    ICPC = "icpc"
    IOI = "ioi"
    BEST = "best"
    LAST = "last"
    ATCODER = "atcoder"
    HOMEWORK = "homework"


class ContestPhase(StrEnum):
    """What the clock says about a published contest; never stored."""

    BEFORE = "before"
    RUNNING = "running"
    FROZEN = "frozen"
    ENDED = "ended"
    """Ended, but not thawed, or not ended for every official participant."""
    THAWED = "thawed"


class ParticipantKind(StrEnum):
    """How a participant takes part; only official ones are ranked."""

    OFFICIAL = "official"
    UNOFFICIAL = "unofficial"
    TEST = "test"
    """A tester: may submit before the start, never shown to others."""
    VIRTUAL = "virtual"
    """Takes part after the contest, with its own start."""
    PRACTICE = "practice"
    """Submits after the contest without a clock; has no row on the scoreboard."""


OWN_CLOCK: Final = frozenset({ParticipantKind.VIRTUAL, ParticipantKind.PRACTICE})
"""Kinds that users create for themselves after the contest."""


class ContestRole(StrEnum):
    """A role of a user in one contest."""

    ORGANISER = "organiser"
    JUDGE = "judge"
    BALLOON = "balloon"
    PRINT = "print"
    API_READER = "api_reader"


class ContestVisibility(StrEnum):
    """Who sees that a contest exists."""

    PUBLIC = "public"
    PRIVATE = "private"
    """Participants and roles only."""


class RegistrationMode(StrEnum):
    """How users become participants."""

    OPEN = "open"
    CODE = "code"
    INVITATION = "invitation"
    LIST = "list"


class MaterialVisibility(StrEnum):
    """From when a material of a contest is visible."""

    ALWAYS = "always"
    """With the contest itself."""
    START = "start"
    """To those who see the problems."""
    THAW = "thaw"
    """To all after the thaw, if the contest makes its materials public."""


class ScoreboardVisibility(StrEnum):
    """Who sees the scoreboard while the contest runs; the jury always does."""

    PUBLIC = "public"
    PARTICIPANTS = "participants"
    HIDDEN = "hidden"


class ContestFeedback(StrEnum):
    """What participants see of their own judgements while the contest runs."""

    FULL = "full"
    """Verdict, score and test cases."""
    PARTIAL = "partial"
    """Verdict and score."""
    NONE = "none"
    """Only that the submission was received."""


def to_micro_points(points: float | Fraction) -> int:
    """Convert points to micro-points, rounded half up; a float counts as the decimal number that it is written as."""
    exact = points if isinstance(points, Fraction) else Fraction(repr(points))
    return floor(exact * MICRO_POINTS + Fraction(1, 2))
