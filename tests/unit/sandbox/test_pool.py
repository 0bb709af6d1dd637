"""Slot assignment: FIFO order, and no slot is lost. Slots are reserved here without running programs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adjudge.sandbox import Sandbox, SandboxRunSpec, pool
from adjudge.sandbox.launcher import LauncherDied


async def reserve(sandbox: Sandbox, name: str, order: list[str], leave: asyncio.Event) -> None:
    async with sandbox.reserve_slots(1):
        order.append(name)
        await leave.wait()


async def run_loop(count: int = 5) -> None:
    """Run the event loop a few times; a slot is passed on within that."""
    for _ in range(count):
        await asyncio.sleep(0)


async def start_waiters(
    sandbox: Sandbox, names: str, order: list[str], leave: asyncio.Event
) -> list[asyncio.Task[None]]:
    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(reserve(sandbox, name, order, leave)))
        await run_loop()
    return tasks


async def test_slot_is_assigned_in_fifo_order() -> None:
    sandbox, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    async with sandbox.reserve_slots(1):
        tasks = await start_waiters(sandbox, "abc", order, leave)
        assert order == []
        leave.set()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c"]


async def test_new_waiter_does_not_overtake_assigned_slot() -> None:
    sandbox, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    leave.set()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(sandbox.reserve_slots(1))
        [first] = await start_waiters(sandbox, "a", order, leave)
        await stack.aclose()
        late = asyncio.create_task(reserve(sandbox, "late", order, leave))
        await asyncio.gather(first, late)
    assert order == ["a", "late"]


@pytest.mark.parametrize("already_assigned", [False, True])
async def test_canceled_waiter_passes_slot_to_next(already_assigned: bool) -> None:
    sandbox, order, leave = Sandbox(slots=1), list[str](), asyncio.Event()
    leave.set()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(sandbox.reserve_slots(1))
        [first, second] = await start_waiters(sandbox, "ab", order, leave)
        if already_assigned:
            await stack.aclose()
        first.cancel()
        await stack.aclose()
        await asyncio.wait([first, second])
    assert first.cancelled()
    assert order == ["b"]
    async with asyncio.timeout(120), sandbox.reserve_slots(1):
        pass


async def test_reserved_slots_are_released_on_cancel() -> None:
    sandbox = Sandbox(slots=2)

    async def reserve_both() -> None:
        async with sandbox.reserve_slots(2):
            pass

    async with sandbox.reserve_slots(1):
        both = asyncio.create_task(reserve_both())
        await run_loop()
        both.cancel()
        await asyncio.wait([both])
        async with asyncio.timeout(120), sandbox.reserve_slots(1):
            pass
    async with asyncio.timeout(120), sandbox.reserve_slots(2):
        pass


async def test_interaction_canceled_before_start_leaks_no_slot_and_no_pipe() -> None:
    sandbox, spec = Sandbox(slots=2), SandboxRunSpec(argv=("/bin/true",))
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    pair = asyncio.create_task(sandbox.run_interactive(spec, spec))
    asyncio.get_running_loop().call_soon(pair.cancel)  # after its first step, before the first step of either run
    await asyncio.wait([pair])
    assert pair.cancelled()
    async with asyncio.timeout(120), sandbox.reserve_slots(2):
        pass
    assert len(list(descriptors.iterdir())) == before


async def test_failed_launcher_is_closed_although_start_was_canceled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closing, closed = asyncio.Event(), list[str]()

    class FailingLauncher:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def wait_ready(self) -> None:
            raise LauncherDied("no hello")

        async def close(self) -> None:
            closing.set()
            await run_loop()
            closed.append("closed")

    monkeypatch.setattr(pool, "Launcher", FailingLauncher)
    starting = asyncio.create_task(Sandbox(slots=1).__aenter__())
    await closing.wait()
    starting.cancel()
    await asyncio.wait([starting])
    assert (starting.cancelled(), closed) == (True, ["closed"])
