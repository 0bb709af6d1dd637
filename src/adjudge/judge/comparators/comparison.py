"""The result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

_SHOWN_BYTES = 40


class ComparisonStatus(StrEnum):
    """Whether the output is accepted and, if not, why."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong"
    FORMAT_ERROR = "format"
    """The output does not have the required form (testlib's presentation error). Reported as wrong answer."""
    JURY_ERROR = "fault"
    """The jury's answer is invalid; not an error of the submission."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Status, reason and, for partial scores, the fraction of the maximum."""

    status: ComparisonStatus
    message: str = ""
    score: Fraction | None = None

    @property
    def accepted(self) -> bool:
        return self.status is ComparisonStatus.ACCEPTED


ACCEPTED = Comparison(ComparisonStatus.ACCEPTED)


def wrong_answer(message: str) -> Comparison:
    return Comparison(ComparisonStatus.WRONG_ANSWER, message)


def excerpt(piece: bytes) -> str:
    """Part of an output for a message: short, one line, printable."""
    text = piece[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return f"'{text}{'…' if len(piece) > _SHOWN_BYTES else ''}'"
