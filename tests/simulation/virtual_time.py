"""An event loop whose clock only moves when nobody has anything to do: an hour of waiting costs nothing."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlockDetected(Exception):
    """Everybody waits, and nothing will ever happen."""


class _Selector(selectors.SelectSelector):
    """Instead of waiting, moves the clock. Nothing comes from outside, so no descriptor is ever looked at."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise DeadlockDetected("everybody waits, and nothing will ever happen")
        self.loop.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time is ``now``, in seconds from 0."""

    now = 0.0

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in virtual time; whatever it left behind is dropped without another step."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.set_exception_handler(lambda *_: None)  # that a task was dropped is no news
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        asyncio.set_event_loop(None)
        loop.close()
