"""What a comparison says. Values only; how it is found lives in the neighbouring modules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

_SHOWN_BYTES = 40


class ComparisonStatus(StrEnum):
    """Whose fault it is, if anybody's."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong"
    FORMAT_ERROR = "format"
    """The output is not of the required form: testlib's presentation error. A wrong answer to the author."""
    JURY_ERROR = "fault"
    """The jury's own answer is unusable. Never the author's fault."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome, why, and, where a checker gives part of the points, how much of the maximum."""

    status: ComparisonStatus
    message: str = ""
    score: Fraction | None = None

    @property
    def accepted(self) -> bool:
        """Whether the output passes."""
        return self.status is ComparisonStatus.ACCEPTED


ACCEPTED = Comparison(ComparisonStatus.ACCEPTED)


def wrong_answer(message: str) -> Comparison:
    """A difference that is the author's."""
    return Comparison(ComparisonStatus.WRONG_ANSWER, message)


def excerpt(piece: bytes) -> str:
    """A piece of output as a message may carry it: short, one line, always printable."""
    text = piece[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return f"'{text}{'…' if len(piece) > _SHOWN_BYTES else ''}'"
