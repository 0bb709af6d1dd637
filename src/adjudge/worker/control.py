"""Carries out the orders of operators to this worker: pause, resume, drain.

The order is a row. It is read at every notification and at every heartbeat, so a lost notification or a restart of the
worker loses no order.
"""

from __future__ import annotations

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.engine.notify import CHANNEL_WORKER_CONTROL, Wakeup
from adjudge.store.ops import worker_controls
from adjudge.worker.worker import Worker

_log = get_logger(__name__)


class WorkerControl:
    """Follows the order to one worker."""

    def __init__(self, database: Database, worker: Worker, *, name: str, interval_ms: int) -> None:
        self._database = database
        self._worker = worker
        self._name = name
        self._interval_ms = interval_ms

    async def run(self) -> None:
        """Follow orders until the worker drains."""
        wakeup = Wakeup()
        unlisten = self._database.listen(CHANNEL_WORKER_CONTROL, wakeup.set)
        try:
            while not self._worker.is_draining:
                wakeup.clear()
                try:
                    await self.run_once()
                except Unavailable as error:  # the order in force stays; it is read again
                    _log.debug("worker_control_unknown", worker=self._name, error=error.message)
                await wakeup.wait(self._interval_ms)
        finally:
            unlisten()

    async def run_once(self) -> None:
        """Read the order and carry it out. An order to drain is deleted first: a restarted worker works again."""
        order = await self._database.read(lambda tx: worker_controls.find(tx, self._name))
        if order is not None and order.mode == "drain":
            await self._database.transact(lambda tx: worker_controls.delete(tx, self._name))
            _log.info("drain_ordered", worker=self._name, actor=order.actor, reason=order.reason)
            self._worker.drain()
            return
        is_paused = order is not None
        if is_paused != self._worker.is_paused:
            _log.info("worker_paused" if is_paused else "worker_resumed", worker=self._name)
            await self._worker.set_paused(is_paused)
