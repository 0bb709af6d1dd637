"""Watches which chain runs are stopping, so that running nodes stop early."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.chains import queries as chain_queries
from adjudge.store.engine.notify import Wakeup

_POLL_MS: Final = 2_000

_log = get_logger(__name__)


class ChainRunStopWatcher:
    """Signals running nodes when their run is stopping: on a notification, and at every poll in case one was lost.

    One background task watches all runs. It ends at the first poll that finds no run to watch, so a short node neither
    cancels a query nor starts a task of its own.
    """

    def __init__(self, database: Database, poll_ms: int = _POLL_MS) -> None:
        self._database = database
        self._poll_ms = poll_ms
        self._watched: dict[asyncio.Event, str] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch_run(self, run_id: str) -> Iterator[asyncio.Event]:
        """Watch a run while the block lasts; the event is set when the run is stopping."""
        event = asyncio.Event()
        self._watched[event] = run_id
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="chain-stop-watch")
        try:
            yield event
        finally:
            del self._watched[event]

    async def _watch(self) -> None:
        wakeup = Wakeup()
        silence = self._database.listen(chain_queries.STOPPING, wakeup.set)
        try:
            await wakeup.wait(self._poll_ms)
            while self._watched:
                wakeup.clear()
                await self._poll_once()
                await wakeup.wait(self._poll_ms)
        finally:
            silence()

    async def _poll_once(self) -> None:
        waiting = {run_id for event, run_id in self._watched.items() if not event.is_set()}
        try:
            stopping = (
                await self._database.read(lambda tx: chain_queries.find_stopping_runs(tx, waiting))
                if waiting
                else set()
            )
        except Unavailable:  # the next poll asks again
            return
        except Exception:  # noqa: BLE001 — one failed query must not end the watch of running nodes
            _log.exception("run_stop_watcher_failed")
            return
        for event, run_id in tuple(self._watched.items()):
            if run_id in stopping:
                event.set()
