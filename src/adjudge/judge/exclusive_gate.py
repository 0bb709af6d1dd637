"""Decides which programs of one process run concurrently.

A run near its time limit is repeated with nothing beside it. Executions, whose output their author reads, do not run
beside judging, whose input is secret: programs that run concurrently can communicate by the load that they cause
(docs/adr/0050).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

TURN_SEC: Final = 0.5
SHARE: Final = 4
"""Judging continues this many times as long as it waited for executions before executions run again."""


@dataclass(slots=True)
class _Side:
    """Programs that may run concurrently with each other."""

    running: int = 0
    waiting: int = 0
    running_since: float = 0.0
    waiting_since: float = 0.0


class ExclusiveGate:
    """Admits runs; without ``executions_apart`` executions count as judging.

    The two sides alternate. No execution starts while judging waits; judging continues for a while when executions
    wait, so that their share stays small however long they run. Neither side starves.
    """

    def __init__(self, *, executions_apart: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._judging = _Side()
        self._executing = _Side() if executions_apart else self._judging
        self._last = self._executing
        self._turn_sec = TURN_SEC
        self._alone = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def executions_apart(self) -> bool:
        """Whether executions and judging exclude each other."""
        return self._executing is not self._judging

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Run for judging, beside other judging."""
        async with self._running(self._judging, self._executing):
            yield

    @asynccontextmanager
    async def executing(self) -> AsyncIterator[None]:
        """Run an execution, beside other executions."""
        async with self._running(self._executing, self._judging):
            yield

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Run exclusively: wait for running programs, block new ones."""
        await self._wait(lambda: not self._alone)
        self._alone = True
        try:
            await self._wait(lambda: not self._judging.running and not self._executing.running)
            yield
        finally:
            self._alone = False
            self._wake()

    @asynccontextmanager
    async def _running(self, side: _Side, other: _Side) -> AsyncIterator[None]:
        if not self._may_start(side, other):
            await self._wait_for_turn(side, other)
        if not side.running:
            self._last, side.running_since = side, self._clock()
        side.running += 1
        try:
            yield
        finally:
            side.running -= 1
            if not side.running and side is self._executing and other.waiting:
                waited_sec = self._clock() - max(side.running_since, other.waiting_since)
                self._turn_sec = max(TURN_SEC, SHARE * waited_sec)
            self._wake()

    def _may_start(self, side: _Side, other: _Side) -> bool:
        if self._alone:
            return False
        if side is other or not (other.running or other.waiting):
            return True
        if other.running:
            return False
        if not side.running:
            return self._last is other
        return side is self._judging and self._clock() < self._turn_sec + max(side.running_since, other.waiting_since)

    async def _wait_for_turn(self, side: _Side, other: _Side) -> None:
        if not side.waiting:
            side.waiting_since = self._clock()
        side.waiting += 1
        try:
            await self._wait(lambda: self._may_start(side, other))
        except BaseException:
            side.waiting -= 1
            self._wake()  # the other side may have waited for this one
            raise
        side.waiting -= 1

    async def _wait(self, is_ready: Callable[[], bool]) -> None:
        while not is_ready():
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        """Wake all waiters, which check their condition again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
