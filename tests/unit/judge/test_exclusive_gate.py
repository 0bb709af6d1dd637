"""The exclusive gate: judging and executions alternate, a repeated run is exclusive."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from adjudge.judge.exclusive_gate import SHARE, TURN_SEC, ExclusiveGate

pytestmark = pytest.mark.asyncio


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Runs:
    """Programs that run until the test ends them, and a record of which ran at the same time."""

    def __init__(self, quiet: ExclusiveGate) -> None:
        self.quiet = quiet
        self.running: list[str] = []
        self.order: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, kind: str = "") -> bool:
        """Start one, named after its side; whether it runs at once."""
        admitted = {"j": self.quiet.shared, "e": self.quiet.executing, "a": self.quiet.exclusive}[kind or name[0]]()
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, admitted))
        await self._settle()
        return name in self.running

    async def _run(self, name: str, admitted: AbstractAsyncContextManager[None]) -> None:
        async with admitted:
            self.running.append(name)
            self.order.append(name)
            await self._ends[name].wait()
            self.running.remove(name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        with suppress(asyncio.CancelledError):
            await self._tasks[name]
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for name in self._tasks:
            self._tasks[name].cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


@asynccontextmanager
async def runs(clock: Clock, *, apart: bool = True) -> AsyncIterator[Runs]:
    found = Runs(ExclusiveGate(executions_apart=apart, clock=clock))
    yield found
    await found.close()


async def test_executions_do_not_run_beside_judging() -> None:
    async with runs(Clock()) as these:
        assert await these.begin("j1")
        assert not await these.begin("e1")
        await these.end("j1")
        assert these.running == ["e1"]
        assert not await these.begin("j2")
        await these.end("e1")
        assert these.running == ["j2"]


async def test_executions_beside_judging_can_be_allowed() -> None:
    async with runs(Clock(), apart=False) as these:
        assert await these.begin("j1")
        assert await these.begin("e1")
        assert not these.quiet.executions_apart


async def test_programs_of_one_side_run_concurrently() -> None:
    async with runs(Clock()) as these:
        assert await these.begin("e1")
        assert await these.begin("e2")
    async with runs(Clock()) as these:
        assert await these.begin("j1")
        assert await these.begin("j2")


async def test_executions_do_not_starve() -> None:
    clock = Clock()
    async with runs(clock) as these:
        await these.begin("j1")
        await these.begin("e1")
        assert await these.begin("j2"), "judging goes on for a while"
        clock.now += TURN_SEC
        assert not await these.begin("j3"), "then executions are next"
        await these.end("j1")
        assert these.running == ["j2"]
        await these.end("j2")
        assert these.running == ["e1"]
        await these.end("e1")
        assert these.running == ["j3"]


async def test_no_execution_starts_while_judging_waits() -> None:
    async with runs(Clock()) as these:
        await these.begin("e1")
        await these.begin("j1")
        assert not await these.begin("e2")
        await these.end("e1")
        assert these.running == ["j1"]


async def test_waiting_judging_starts_together() -> None:
    clock = Clock()
    async with runs(clock) as these:
        await these.begin("e1")
        await these.begin("j1")
        await these.begin("j2")
        await these.begin("e2")
        clock.now += 60  # both sides have waited for longer than any turn
        await these.end("e1")
        assert these.running == ["j1", "j2"]


async def test_long_executions_get_a_small_share_of_the_time() -> None:
    clock = Clock()
    async with runs(clock) as these:
        await these.begin("e1")
        await these.begin("j1")
        clock.now += 10
        await these.begin("e2")
        await these.end("e1")
        clock.now += SHARE * 10 - 1
        assert await these.begin("j2")
        clock.now += 1
        assert not await these.begin("j3")


async def test_cancelled_turn_is_passed_on() -> None:
    clock = Clock()
    async with runs(clock) as these:
        await these.begin("j1")
        await these.begin("e1")
        clock.now += TURN_SEC
        await these.begin("j2")
        await these.cancel("e1")
        assert these.running == ["j1", "j2"]


async def test_exclusive_run_excludes_both_sides() -> None:
    async with runs(Clock()) as these:
        await these.begin("e1")
        assert not await these.begin("a1")
        assert not await these.begin("j1")
        await these.end("e1")
        assert these.running == ["a1"]
        assert not await these.begin("e2")
        await these.end("a1")
        assert these.running == ["j1"]
        await these.end("j1")
        assert these.running == ["e2"]


async def test_canceled_exclusive_run_releases_gate() -> None:
    async with runs(Clock()) as these:
        await these.begin("j1")
        await these.begin("a1")
        assert not await these.begin("j2")
        await these.cancel("a1")
        assert these.running == ["j1", "j2"]
        assert await these.begin("j3")
        await these.end("j1")
        assert await these.begin("j4")


@pytest.mark.parametrize("seed", range(20))
async def test_sides_never_mix_in_any_order(seed: int) -> None:
    chance, quiet, mixed, done = random.Random(seed), ExclusiveGate(executions_apart=True), 0, 0
    running = {"j": 0, "e": 0}

    async def one(side: str) -> None:
        nonlocal mixed, done
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        async with quiet.shared() if side == "j" else quiet.executing():
            running[side] += 1
            mixed += bool(running["j"] and running["e"])
            for _ in range(chance.randrange(5)):
                await asyncio.sleep(0)
            running[side] -= 1
        done += 1

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(chance.choice("je")) for _ in range(200)))
    assert (mixed, done) == (0, 200)
