"""Who gets a slot, and that none is lost: seats are held here without anything being run."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adjudge.sandbox import Sandbox, SandboxRunSpec, pool
from adjudge.sandbox.launcher import LauncherDied


async def hold(box: Sandbox, name: str, order: list[str], leave: asyncio.Event) -> None:
    async with box.reserve_slots(1):
        order.append(name)
        await leave.wait()


async def turns(count: int = 5) -> None:
    """Let whoever can go on do so; a slot is passed on within a few turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


async def waiting(box: Sandbox, names: str, order: list[str], leave: asyncio.Event) -> list[asyncio.Task[None]]:
    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(hold(box, name, order, leave)))
        await turns()
    return tasks


async def test_a_slot_goes_to_whoever_waits_longest() -> None:
    box, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    async with box.reserve_slots(1):
        tasks = await waiting(box, "abc", order, leave)
        assert order == []
        leave.set()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c"]


async def test_who_comes_when_a_slot_was_just_given_waits_for_the_next() -> None:
    box, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    leave.set()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(box.reserve_slots(1))
        [first] = await waiting(box, "a", order, leave)
        await stack.aclose()
        late = asyncio.create_task(hold(box, "late", order, leave))
        await asyncio.gather(first, late)
    assert order == ["a", "late"]


@pytest.mark.parametrize("already_given", [False, True])
async def test_whoever_stops_waiting_leaves_the_slot_to_the_next(already_given: bool) -> None:
    box, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    leave.set()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(box.reserve_slots(1))
        [first, second] = await waiting(box, "ab", order, leave)
        if already_given:
            await stack.aclose()
        first.cancel()
        await stack.aclose()
        await asyncio.wait([first, second])
    assert first.cancelled()
    assert order == ["b"]
    async with asyncio.timeout(120), box.reserve_slots(1):
        pass


async def test_seats_at_once_are_given_back_when_their_taker_is_cancelled() -> None:
    box = Sandbox(slots=2)

    async def take_both() -> None:
        async with box.reserve_slots(2):
            pass

    async with box.reserve_slots(1):
        both = asyncio.create_task(take_both())
        await turns()
        both.cancel()
        await asyncio.wait([both])
        async with asyncio.timeout(120), box.reserve_slots(1):
            pass
    async with asyncio.timeout(120), box.reserve_slots(2):
        pass


async def test_a_pair_that_is_cancelled_before_it_begins_leaves_no_slot_and_no_pipe_behind() -> None:
    box, spec = Sandbox(slots=2), SandboxRunSpec(argv=("/bin/true",))
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    pair = asyncio.create_task(box.run_interactive(spec, spec))
    asyncio.get_running_loop().call_soon(pair.cancel)  # behind its first step, before the first step of either run
    await asyncio.wait([pair])
    assert pair.cancelled()
    async with asyncio.timeout(120), box.reserve_slots(2):
        pass
    assert len(list(descriptors.iterdir())) == before


async def test_a_launcher_that_says_nothing_is_closed_though_nobody_waits_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closing, closed = asyncio.Event(), list[str]()

    class Mute:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def wait_ready(self) -> None:
            raise LauncherDied("not a word")

        async def close(self) -> None:
            closing.set()
            await turns()
            closed.append("all of it")

    monkeypatch.setattr(pool, "Launcher", Mute)
    starting = asyncio.create_task(Sandbox(slots=1).__aenter__())
    await closing.wait()
    starting.cancel()
    await asyncio.wait([starting])
    assert (starting.cancelled(), closed) == (True, ["all of it"])
