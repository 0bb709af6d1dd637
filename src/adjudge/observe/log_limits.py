"""Limits repeated log lines of one job (INV-6): a job that fails in a loop must not fill the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

LINES: Final = 10
WINDOW_SEC: Final = 10.0
_KEYS_MAX: Final = 50_000
"""Beyond this many events of jobs in one window, counting starts again, to bound memory."""


class LeftOutLines(NamedTuple):
    """How many lines of one event of a job were not written."""

    event: str
    job_id: object
    lines: int


class JobLineLimiter:
    """Allows ``lines`` lines of an event per job and window, and counts the others."""

    def __init__(
        self, *, lines: int = LINES, window_sec: float = WINDOW_SEC, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lines = lines
        self._window_sec = window_sec
        self._clock = clock
        self._ends_at = clock() + window_sec
        self._counts: dict[tuple[str, object], int] = {}

    def allows(self, event: str, job_id: object) -> bool:
        """Whether a line may be written; counts it."""
        key = (event, job_id)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count <= self._lines

    def take_left_out(self) -> list[LeftOutLines]:
        """What was left out in the window that has ended; empty while it lasts."""
        if self._clock() < self._ends_at and len(self._counts) < _KEYS_MAX:
            return []
        counts, self._counts = self._counts, {}
        self._ends_at = self._clock() + self._window_sec
        return [LeftOutLines(*key, count - self._lines) for key, count in counts.items() if count > self._lines]
