"""Which failures are worth another attempt, and when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.errors import AdjudgeError


class RetryClass(StrEnum):
    """The one classification of failures that every room uses."""

    INFRASTRUCTURE = "infrastructure"
    """Ours and passing: the sandbox could not start, storage or Redis or the database hiccuped, a worker was lost."""
    FINAL = "final"
    """A verdict, or something another attempt cannot change: compile error, unknown language, policy violation."""


def classify(error: BaseException) -> RetryClass:
    """Say whether another attempt may help.

    A domain error knows it itself. Anything unforeseen counts as ours: retries are bounded, so the worst that a
    wrong guess costs is three attempts and a dead letter that shows the error.
    """
    if isinstance(error, AdjudgeError) and not error.retryable and error.http_status < 500:
        return RetryClass.FINAL
    return RetryClass.INFRASTRUCTURE


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter, bounded."""

    max_retries: int = 3
    base_ms: int = 2_000
    factor: int = 2
    cap_ms: int = 300_000
    jitter: float = 0.1

    @property
    def max_attempts(self) -> int:
        """The first attempt and its retries."""
        return self.max_retries + 1

    def delay_ms(self, failures: int, random_unit: float) -> int:
        """How long to wait after the ``failures``-th failure (from 1); ``random_unit`` in [0, 1) spreads the herd."""
        plain: int = min(self.cap_ms, self.base_ms * self.factor ** (max(1, failures) - 1))
        return round(plain * (1 + self.jitter * random_unit))
