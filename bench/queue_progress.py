"""Shared by the processes of the queue benchmark: a file of progress marks and the commands to a submitter.

The standard library alone, because peers' processes run in environments of their own. The board is a file mapped by all
processes: a mark there costs a fraction of a microsecond, so measuring is no part of what is measured.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

SIZE = 400_000
"""The number of jobs that the progress file can hold."""
BATCH = 100
"""How many jobs are submitted at once, where a queue has a way to do that."""
CONCURRENCY = 100
"""How many jobs a worker may run at the same time, in every system."""

_WORD = 8
_HEADER = _WORD
_STARTED = _HEADER
_COMMITTED = _STARTED + SIZE * _WORD
_FLAGS = _COMMITTED + SIZE * _WORD
_BYTES = _FLAGS + SIZE

Submit = Callable[[list[int]], Awaitable[None]]


class SharedProgress:
    """When each job was submitted and started, and whether it is done."""

    def __init__(self, path: Path) -> None:
        if not path.exists() or path.stat().st_size != _BYTES:
            with path.open("wb") as file:
                file.truncate(_BYTES)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self._words = memoryview(self._map)[:_FLAGS].cast("q")

    def committed(self, number: int) -> None:
        """The queue has taken the job."""
        self._words[1 + SIZE + number] = time.time_ns()

    def started(self, number: int) -> None:
        """The job's own code runs."""
        if number >= 0:
            self._words[1 + number] = time.time_ns()

    def done(self, number: int) -> None:
        """The job is over. Setting a flag twice counts once, from whatever thread or process."""
        if number >= 0:
            self._map[_FLAGS + number] = 1

    def count(self, jobs: int) -> None:
        """So many more are over; for one process that counts, of jobs that have no place on the board."""
        self._words[0] += jobs

    @property
    def counted(self) -> int:
        """What was counted so far."""
        return self._words[0]

    def done_of(self, first: int, count: int) -> int:
        """How many of these jobs are done."""
        return self._map[_FLAGS + first : _FLAGS + first + count].count(1)

    def waits_ms(self, first: int, count: int) -> list[float]:
        """How long each job waited from its commit to its start, sorted."""
        started, committed = self._words[1:], self._words[1 + SIZE :]
        return sorted((started[at] - committed[at]) / 1e6 for at in range(first, first + count))


def send_line(word: str) -> None:
    """Tell the parent."""
    print(word, flush=True)


async def submit_on_command(board: SharedProgress, submit: Submit) -> None:
    """Hand jobs in as the parent says: ``burst FIRST COUNT`` or ``spaced FIRST COUNT GAP_MS``, a line each."""
    send_line("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        how, first, count, *gap_ms = line.split()
        numbers = list(range(int(first), int(first) + int(count)))
        if how == "burst":
            for start in range(0, len(numbers), BATCH):
                await submit(numbers[start : start + BATCH])
        else:
            for number in numbers:
                await submit([number])
                board.committed(number)
                await asyncio.sleep(int(gap_ms[0]) / 1_000)
        send_line("ok")
