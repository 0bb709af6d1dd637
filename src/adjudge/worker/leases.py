"""Renews the leases of all jobs of a worker in one statement, independently of the work.

The keeper never finishes a job; it calls the callback of a job whose lease is lost. A lease is lost when the job was
canceled, when a renewal is refused because another worker reclaimed the job, or when the database has been unavailable
for so long that the lease must have expired. From then on nothing of this attempt may be written, so its work is
stopped.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

from adjudge.domain.errors import RefusalReason
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.engine.notify import Wakeup
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.metrics import job_ids_fields
from adjudge.store.jobs.models import Fence

OnLost = Callable[[RefusalReason], None]
Clock = Callable[[], float]
OpenDatabase = Callable[[], AbstractAsyncContextManager[Database]]

_log = get_logger(__name__)


@dataclass(slots=True)
class _Held:
    fence: Fence
    on_lost: OnLost
    fields: Mapping[str, object]
    """Fields of its log lines."""
    sure_until: float
    """By the local clock, counted from before the renewal was sent: never later than the lease in the database."""


class LeaseKeeper:
    """Renews leases until they are removed or lost."""

    def __init__(
        self, database: Database, jobs: JobCommands, *, lease_ms: int, heartbeat_ms: int, clock: Clock
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._lease_ms = lease_ms
        self._heartbeat_ms = heartbeat_ms
        self.clock = clock
        self._held: dict[Fence, _Held] = {}
        """By attempt: what the keeper's thread learns about an older attempt must not affect the next one."""
        self._latest: dict[str, Fence] = {}
        """The attempt of each job; used only when leases are added and removed, never during a renewal."""
        self._ring = Wakeup()
        self._outage = Outage(_log, "heartbeat_failed")
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, fence: Fence, on_lost: OnLost, *, claimed_at: float, fields: Mapping[str, object]) -> None:
        """Add a lease whose claim was sent at ``claimed_at``; an older lease of the same job is lost."""
        if (older := self._latest.get(fence.job_id)) is not None:
            self._lose(older, RefusalReason.STALE_ATTEMPT)
        self._latest[fence.job_id] = fence
        self._held[fence] = _Held(fence, on_lost, fields, claimed_at + self._lease_ms / 1_000)

    def remove(self, fence: Fence) -> None:
        """Remove a lease, because the job has finished."""
        self._held.pop(fence, None)
        if self._latest.get(fence.job_id) == fence:
            del self._latest[fence.job_id]

    async def run(self) -> None:
        """Renew leases until canceled.

        A lease younger than half an interval is left to the next renewal: most short jobs have finished by then, and a
        renewal concurrent with their finish is a useless write.
        """
        self._loop = asyncio.get_running_loop()
        beat_at = self._loop.time() + self._heartbeat_ms / 1_000
        while True:
            if await self._ring.wait(max(0, math.ceil((beat_at - self._loop.time()) * 1_000))):
                self._ring.clear()
                await self._lose_canceled()
            if self._loop.time() >= beat_at:
                wait_sec = await self.renew_all(older_than_ms=self._heartbeat_ms / 2)
                beat_at = self._loop.time() + wait_sec

    def request_cancel_check(self) -> None:
        """Check soon whether a job was canceled. May be called on any thread."""
        if self._held and self._loop is not None:
            with suppress(RuntimeError):  # its event loop is closed, and every lease with it
                self._loop.call_soon_threadsafe(self._ring.set)

    async def _lose_canceled(self) -> None:
        """Only read: a renewal would conflict with results being written, and all workers get every notification."""
        if not (held := {fence.job_id: fence for fence in tuple(self._held)}):
            return
        try:
            async with self._looking_out():
                canceled = await self._database.read(lambda tx: self._jobs.find_canceled(tx, list(held)))
        except Exception as error:  # noqa: BLE001 — the next renewal detects the problem as well
            _log.warning("cancel_check_failed", error=repr(error), **job_ids_fields(list(held)))
            return
        for job_id in canceled:
            self._lose(held[job_id], RefusalReason.ALREADY_FINISHED)

    @asynccontextmanager
    async def _looking_out(self) -> AsyncIterator[None]:
        """Drop leases that expire while the block waits: the database may not respond for longer than a lease."""

        async def look_out() -> None:
            while True:
                await asyncio.sleep(self._heartbeat_ms / 1_000)
                self._give_up_expired()

        task = asyncio.create_task(look_out(), name="look-out")
        try:
            yield
        finally:
            task.cancel()

    async def renew_all(self, *, older_than_ms: float = 0) -> float:
        """Renew all leases older than ``older_ms``; return the delay until the next renewal, in seconds.

        After a failure the delay is shorter, because the leases have less time left.
        """
        usual_sec = self._heartbeat_ms / 1_000
        sent_at = self.clock()
        renewed_by = sent_at + (self._lease_ms - older_than_ms) / 1_000
        held_now = tuple(self._held.values())  # jobs are added and removed on another thread
        fences = [held.fence for held in held_now if held.sure_until <= renewed_by]
        if not fences:
            return usual_sec
        try:
            async with self._looking_out():
                outcome = await self._database.transact(
                    lambda tx: self._jobs.renew(tx, fences, lease_ms=self._lease_ms)
                )
        except Exception as error:  # noqa: BLE001 — after any error, only the next renewal can save these leases
            metrics.WORKER_HEARTBEAT.labels("failed", "db_error").inc()
            self._give_up_expired()
            return min(usual_sec, self._outage.failed(error, **job_ids_fields([fence.job_id for fence in fences])))
        self._outage.over()
        metrics.WORKER_HEARTBEAT.labels("renewed", "ok").inc(len(outcome.done))
        for fence in outcome.done:
            if (held := self._held.get(fence)) is not None:
                held.sure_until = sent_at + self._lease_ms / 1_000
        sent = {fence.job_id: fence for fence in fences}
        for refused in outcome.refused:
            metrics.WORKER_HEARTBEAT.labels("refused", str(refused.reason)).inc()
            self._lose(sent[refused.job_id], refused.reason)
        return usual_sec

    def _give_up_expired(self) -> None:
        now = self.clock()
        for fence in [held.fence for held in tuple(self._held.values()) if held.sure_until <= now]:
            self._lose(fence, RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH)

    def _lose(self, fence: Fence, reason: RefusalReason) -> None:
        held = self._held.pop(fence, None)
        if held is not None:
            _log.warning("lease_lost", stage="lost", reason=str(reason), **held.fields)
            held.on_lost(reason)


@asynccontextmanager
async def lease_keeper_thread(
    open_database: OpenDatabase, jobs: JobCommands, *, lease_ms: int, heartbeat_ms: int
) -> AsyncIterator[LeaseKeeper]:
    """A lease keeper that renews while the block runs, on its own thread and connection.

    Work that blocks the event loop of the worker then loses no lease.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[LeaseKeeper] = loop.create_future()
    ended = threading.Event()

    async def beat() -> None:
        async with open_database() as database:
            keeper = LeaseKeeper(database, jobs, lease_ms=lease_ms, heartbeat_ms=heartbeat_ms, clock=time.monotonic)
            loop.call_soon_threadsafe(ready.set_result, keeper)
            beating = asyncio.create_task(keeper.run())
            await asyncio.to_thread(ended.wait)
            beating.cancel()

    def main() -> None:
        try:
            asyncio.run(beat())
        except BaseException as error:  # noqa: BLE001 — the caller that waits for the keeper must get the error
            if not ready.done():
                loop.call_soon_threadsafe(ready.set_exception, error)

    thread = threading.Thread(target=main, name="adjudge-leases", daemon=True)
    thread.start()
    try:
        yield await ready
    finally:
        ended.set()
        await asyncio.to_thread(thread.join)
