"""Group commit: collects items while the previous batch is being written, then writes them together.

A lone item is written at once: nobody waits for company. Under load a batch holds whatever arrived during the previous
write, so the cost of a commit or a round trip is shared. Retries belong in ``write``, which knows what its errors mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Generic, TypeVar

from adjudge.observe.logs import get_logger

T = TypeVar("T")
R = TypeVar("R")

_log = get_logger(__name__)


class _Entry(Generic[T, R]):
    """An item and the future of everybody who waits for it."""

    __slots__ = ("future", "is_offered", "item", "waiters", "weight")

    def __init__(self, future: asyncio.Future[R]) -> None:
        self.item: T
        self.weight = 0
        self.waiters = 0
        self.is_offered = False
        self.future = future

    @property
    def is_wanted(self) -> bool:
        return self.is_offered or self.waiters > 0

    def succeed(self, result: R) -> None:
        self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        self.future.set_exception(error)
        self.future.exception()  # mark it as retrieved: everybody who waited may be gone


class Batcher(Generic[T, R]):
    """Collects items while the previous batch is being written; a lone item is written at once."""

    def __init__(
        self,
        write: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
        *,
        name: str,
        max_weight: int = 256,
        weight: Callable[[T], int] | None = None,
        writers: int = 1,
        pause_sec: float = 0.0,
        key: Callable[[T], Hashable] | None = None,
        isolate: Callable[[Exception], bool] | None = None,
    ) -> None:
        """``write`` returns one result per item, in order.

        ``weight`` of a batch is at most ``max_weight``, but a single heavier item is written alone. Once a full batch
        waits, up to ``writers`` write concurrently. ``pause_sec`` passes between two batches. Items with the same
        ``key`` are one entry: the latest item is written, and everybody gets its result. If ``isolate`` says that one
        item may be at fault for an error, the items of the failed batch are written one by one, so that only that item
        gets the error; items that nobody waits for any more are left out. Another error, as of an outage, is that of
        all items: none is tried again.
        """
        self._write = write
        self._name = name
        self._max_weight = max_weight
        self._weight = weight
        self._writers = writers
        self._pause_sec = pause_sec
        self._key = key
        self._isolate = isolate
        self._waiting: dict[Hashable, _Entry[T, R]] = {}
        self._waiting_weight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._skip_pause = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being written."""
        return not self._tasks

    async def put(self, item: T) -> R:
        """Write ``item`` and return its result. A caller that is canceled withdraws an item not yet sent."""
        entry = self._add(item)
        entry.waiters += 1
        try:
            return await asyncio.shield(entry.future)
        finally:
            entry.waiters -= 1  # at zero, ``_take`` drops it

    def offer(self, item: T) -> None:
        """Write ``item`` without waiting; a failure is only logged."""
        self._add(item).is_offered = True

    async def flush(self) -> None:
        """Wait until everything is written or has failed, without pauses."""
        self._skip_pause.set()
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._skip_pause.clear()

    async def close(self) -> None:
        """Cancel what is being written and drop what waits: only for writes that may be lost."""
        entries, self._waiting, self._waiting_weight = [*self._waiting.values()], {}, 0
        for entry in entries:
            entry.future.cancel()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
            self._tasks.discard(task)  # a task that is cancelled before its first step does not remove itself

    def _add(self, item: T) -> _Entry[T, R]:
        key = object() if self._key is None else self._key(item)
        entry = self._waiting.get(key)
        if entry is None:
            entry = self._waiting[key] = _Entry(asyncio.get_running_loop().create_future())
        weight = 1 if self._weight is None else self._weight(item)
        self._waiting_weight += weight - entry.weight
        entry.item, entry.weight = item, weight
        if not self._tasks or (len(self._tasks) < self._writers and self._is_full()):
            # A context of its own: what the writer logs belongs to many callers, not to the first one.
            self._tasks.add(asyncio.create_task(self._run(), name=self._name, context=Context()))
        return entry

    def _is_full(self) -> bool:
        return self._waiting_weight >= self._max_weight

    def _take(self) -> list[_Entry[T, R]]:
        """Remove the next batch: up to ``max_weight``, at least one; entries that nobody waits for are dropped."""
        batch: list[_Entry[T, R]] = []
        weight = 0
        for key, entry in [*self._waiting.items()]:
            if entry.is_wanted and batch and weight + entry.weight > self._max_weight:
                break
            del self._waiting[key]
            self._waiting_weight -= entry.weight
            if entry.is_wanted:
                batch.append(entry)
                weight += entry.weight
        return batch

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            # A second writer ends as soon as no full batch waits: two half-full batches cost more than one.
            while (len(self._tasks) == 1 or self._is_full()) and (batch := self._take()):
                await self._write_batch(batch)
                await self._pause()
        finally:
            # Not in a done callback: an item added before the callback runs would wait forever.
            self._tasks.discard(task)

    async def _pause(self) -> None:
        if not self._pause_sec or self._skip_pause.is_set():
            await asyncio.sleep(0)  # a caller that got its result may add the next item
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_sec):
                await self._skip_pause.wait()

    async def _write_batch(self, batch: list[_Entry[T, R]]) -> None:
        try:
            results = await self._write([entry.item for entry in batch])
            pairs = [*zip(batch, results, strict=True)]
        except asyncio.CancelledError:
            for entry in batch:
                entry.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 — callers get it, and the next batch is written
            if len(batch) > 1 and self._isolate is not None and self._isolate(error):
                await self._write_one_by_one(batch)
            else:
                self._fail(batch, error)
        else:
            for entry, result in pairs:
                entry.succeed(result)

    def _fail(self, entries: Sequence[_Entry[T, R]], error: Exception) -> None:
        if offered := sum(entry.is_offered for entry in entries):
            _log.error("batch_write_failed", batcher=self._name, items=offered, error=repr(error))
        for entry in entries:
            entry.fail(error)

    async def _write_one_by_one(self, batch: list[_Entry[T, R]]) -> None:
        try:
            for number, entry in enumerate(batch):
                if not entry.is_wanted:
                    entry.future.cancel()
                    continue
                await self._write_batch([entry])
                error = entry.future.exception()
                if isinstance(error, Exception) and self._isolate is not None and not self._isolate(error):
                    self._fail(batch[number + 1 :], error)
                    return
        except asyncio.CancelledError:
            for entry in batch:
                entry.future.cancel()  # no effect on those that have a result
            raise
