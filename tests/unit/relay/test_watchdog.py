"""The rounds of the scheduler."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.relay.periodic import run_periodically


@pytest.mark.parametrize("trouble", [Unavailable("away"), KeyError("a bug")])
async def test_failed_round_is_repeated(trouble: Exception) -> None:
    rounds = asyncio.Queue[int]()

    async def tick() -> int:
        rounds.put_nowait(1)
        raise trouble

    task = asyncio.create_task(run_periodically(tick, interval_ms=1))
    async with asyncio.timeout(120):
        for _ in range(3):
            await rounds.get()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
