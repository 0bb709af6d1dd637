"""Backoff and logging of one long-lived task during an outage of a dependency.

Delays grow exponentially up to a limit and are random in their upper half, so that many processes do not retry at the
same time. The first failure and the recovery are logged, the failures in between are not.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Final

from adjudge.observe.logs import Logger

FIRST_SEC: Final = 0.2
LONGEST_SEC: Final = 10.0
_MOST_DOUBLINGS: Final = 30
_ENDING: Final = re.compile(r"_(?:retrying|failed|reconnecting)$")
JITTER: Final = random.Random()  # noqa: S311 — it only spreads retries
"""The source of random delays; simulations seed it."""


class Outage:
    """The failures of one task since its last success."""

    def __init__(
        self,
        log: Logger,
        event: str,
        *,
        first_sec: float = FIRST_SEC,
        longest_sec: float = LONGEST_SEC,
        random_unit: Callable[[], float] = JITTER.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._event = event
        self._first_sec = first_sec
        self._longest_sec = longest_sec
        self._random_unit = random_unit
        self._clock = clock
        self._began = 0.0
        self.failures = 0
        """Consecutive failures."""

    def failed(self, error: Exception, **fields: object) -> float:
        """Record a failure; returns the seconds to wait before the next attempt."""
        self.failures += 1
        if self.failures == 1:
            self._began = self._clock()
            code = getattr(error, "code", type(error).__name__)
            self._log.warning(self._event, reason=code, error=str(error) or repr(error), **fields)
        plain: float = min(self._longest_sec, self._first_sec * 2.0 ** min(self.failures - 1, _MOST_DOUBLINGS))
        return plain * (1 + self._random_unit()) / 2

    def over(self) -> None:
        """Record a success; the first one after failures is logged with the duration of the outage."""
        if self.failures:
            lasted_sec = round(self._clock() - self._began, 1)
            self._log.info(f"{_ENDING.sub('', self._event)}_recovered", failures=self.failures, lasted_sec=lasted_sec)
            self.failures = 0
