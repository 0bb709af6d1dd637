"""Which failures are retried, and after which delay.

Callers: ``worker/failures.py`` (a handler raised), ``store/jobs/commands.py`` (a worker was lost), ``client/retry.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.errors import AdjudgeError


class RetryClass(StrEnum):
    """Whether a failure is retried."""

    INFRASTRUCTURE = "infrastructure"
    """A transient failure of the system: sandbox start, storage, Redis, database, lost worker."""
    FINAL = "final"
    """A verdict, or a failure that another attempt cannot change: compile error, unknown language, policy violation."""


def classify(error: BaseException) -> RetryClass:
    """Classify a failure.

    Domain errors declare whether they are retryable. Unexpected exceptions count as infrastructure: attempts are
    bounded, so a wrong classification costs at most three retries and a dead letter that shows the error.
    """
    if isinstance(error, AdjudgeError) and not error.retryable and error.http_status < 500:
        return RetryClass.FINAL
    return RetryClass.INFRASTRUCTURE


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff up to a cap; jitter is added last, so a delay can exceed the cap by ``jitter``."""

    max_retries: int = 3
    base_ms: int = 2_000
    factor: int = 2
    cap_ms: int = 300_000
    jitter: float = 0.1

    @property
    def max_attempts(self) -> int:
        return self.max_retries + 1

    def delay_ms(self, attempt: int, random_unit: float) -> int:
        """The delay after attempt number ``attempt`` (from 1); ``random_unit`` in [0, 1) is the source of jitter."""
        plain: int = min(self.cap_ms, self.base_ms * self.factor ** (max(1, attempt) - 1))
        return round(plain * (1 + self.jitter * random_unit))
