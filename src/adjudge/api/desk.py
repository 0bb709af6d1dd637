"""The desk that submissions are handed in at: whoever waits when a commit ends goes into the next one.

Nobody is made to wait for company: an order that comes alone is committed alone, at once. Under load a commit carries
as many orders as came while the one before it was under way, so that the database does few commits and large
statements. Once a transaction's fill waits, nothing is gained by waiting longer: a second clerk places it beside the
first. An order that cannot be placed takes no other along.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Final

from adjudge.api.rulebook import Rulebook
from adjudge.domain.errors import AdjudgeError, OutcomeUnknown
from adjudge.observe.logs import get_logger
from adjudge.store import Database, orders, reads
from adjudge.store.idempotency import Answer
from adjudge.store.jobs import Jobs
from adjudge.store.orders import Order
from adjudge.store.submissions import Submissions

_TOGETHER: Final = 1_000
"""How many submissions one transaction carries; a single larger order goes alone."""

_log = get_logger(__name__)


@dataclass(eq=False, slots=True)
class _Waiting:
    order: Order
    answer: asyncio.Future[Answer]


class Desk:
    """Places orders, many in one transaction."""

    def __init__(self, database: Database, jobs: Jobs) -> None:
        self._database = database
        self._submissions = Submissions(jobs)
        self.rulebook = Rulebook(database)
        self._waiting: deque[_Waiting] = deque()
        self._size = 0
        """How many submissions wait."""
        self._clerk: asyncio.Task[None] | None = None
        self._helper: asyncio.Task[None] | None = None

    async def place(self, order: Order) -> Answer:
        """Place an order and wait until it is committed; an order that was placed before gets its first answer."""
        waiting = _Waiting(order, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._size += len(order.submissions)
        if not _is_busy(self._clerk):
            self._clerk = _at_work(self._work(), "desk")
        elif self._size >= _TOGETHER and not _is_busy(self._helper):
            self._helper = _at_work(self._help(), "desk-helper")
        return await waiting.answer

    async def _work(self) -> None:
        while self._waiting:
            await self._place_next()

    async def _help(self) -> None:
        """Do as the clerk does, who goes on until nobody waits, for as long as there is a transaction's fill."""
        while self._size >= _TOGETHER:
            await self._place_next()

    async def _place_next(self) -> None:
        batch = self._next_batch()
        try:
            await self._place_all(batch)
        except Exception as error:  # noqa: BLE001  # one order that cannot be placed must not take others along
            await self._place_apart(batch, error)

    def _next_batch(self) -> list[_Waiting]:
        batch = [self._waiting.popleft()]
        size = len(batch[0].order.submissions)
        while self._waiting and size + len(self._waiting[0].order.submissions) <= _TOGETHER:
            batch.append(self._waiting.popleft())
            size += len(batch[-1].order.submissions)
        self._size -= size
        return batch

    async def _place_all(self, batch: Sequence[_Waiting]) -> None:
        placed = [waiting.order for waiting in batch]
        answers = await self._database.transact(lambda tx: orders.place(tx, self._submissions, placed))
        for waiting, answer in zip(batch, answers, strict=True):
            _settle(waiting, answer)

    async def _place_apart(self, batch: Sequence[_Waiting], error: Exception) -> None:
        """Place each order alone; the one that fails gets the error. One whose commit is in doubt is looked up."""
        if isinstance(error, OutcomeUnknown):
            batch = await self._without_placed(batch)
        elif len(batch) == 1:
            _settle(batch[0], error)
            return
        for waiting in batch:
            try:
                await self._place_all([waiting])
            except Exception as own:  # noqa: BLE001  # whatever it is, it belongs to this caller
                _settle(waiting, own)

    async def _without_placed(self, batch: Sequence[_Waiting]) -> list[_Waiting]:
        ids = [item.id for waiting in batch for item in waiting.order.submissions]
        try:
            known = await self._database.read(lambda tx: reads.existing(tx, ids))
        except AdjudgeError as error:
            _log.warning("submit_in_doubt", error=error.message, submissions=len(ids))
            for waiting in batch:
                _settle(waiting, OutcomeUnknown())
            return []
        for waiting in batch:
            if waiting.order.submissions[0].id in known:
                _settle(waiting, waiting.order.answer)
        return [waiting for waiting in batch if not waiting.answer.done()]


def _at_work(work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    """Start in a context of its own: what is logged belongs to many requests, not to the one that asked for it."""
    return asyncio.create_task(work, name=name, context=Context())


def _is_busy(clerk: asyncio.Task[None] | None) -> bool:
    return clerk is not None and not clerk.done()


def _settle(waiting: _Waiting, answer: Answer | Exception) -> None:
    if waiting.answer.done():  # nobody waits any more; what was committed stays so
        return
    if isinstance(answer, Exception):
        waiting.answer.set_exception(answer)
    else:
        waiting.answer.set_result(answer)
