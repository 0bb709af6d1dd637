"""Looking things up together: whoever asks while a look is under way shares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Together(Generic[K, V]):
    """Many askers, few queries, no waiting for company, and nothing remembered: an answer is never older than asked."""

    def __init__(self, fetch: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._fetch = fetch
        self._waiting: dict[K, asyncio.Future[V | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def get(self, key: K) -> V | None:
        """What ``key`` names; nothing if there is no such thing."""
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await asyncio.shield(waiting)

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                found = await self._fetch(list(batch))
            except Exception as error:  # noqa: BLE001  # it belongs to everybody who asked
                for waiting in batch.values():
                    waiting.set_exception(error)
                    waiting.exception()  # those who asked may have gone
                continue
            for key, waiting in batch.items():
                waiting.set_result(found.get(key))
