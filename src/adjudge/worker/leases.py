"""Keeping leases: all of a worker's jobs are renewed in one statement, apart from the work itself.

The keeper only tells; it never ends a job. Whoever holds a job says what is to happen when it is lost. A job is lost
when it was canceled, when a renewal is refused because somebody reclaimed it, or when the database has been away or
silent for so long that the lease must have expired: from then on nothing of this attempt may be written, so its work is
stopped.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from adjudge.domain.errors import RefusalReason
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database
from adjudge.store.engine.notify import Wakeup
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence

OnLost = Callable[[RefusalReason], None]
Clock = Callable[[], float]

_log = get_logger(__name__)


@dataclass(slots=True)
class _Held:
    fence: Fence
    on_lost: OnLost
    fields: Mapping[str, object]
    """What its log lines carry."""
    sure_until: float
    """By our own clock, counted from before the renewal was sent: never later than the database's lease."""


class LeaseKeeper:
    """Renews what is held, until told that it is lost."""

    def __init__(
        self, database: Database, jobs: JobCommands, *, lease_ms: int, heartbeat_ms: int, clock: Clock
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._lease_ms = lease_ms
        self._heartbeat_ms = heartbeat_ms
        self.clock = clock
        self._held: dict[Fence, _Held] = {}
        """By attempt: what is found out of an older one on the keeper's thread must not touch the next one's."""
        self._latest: dict[str, Fence] = {}
        """The attempt of each job; looked at where jobs come and go, never by a beat."""
        self._ring = Wakeup()
        self._outage = Outage(_log, "heartbeat_failed")
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, fence: Fence, on_lost: OnLost, *, claimed_at: float, fields: Mapping[str, object]) -> None:
        """Keep a lease that was won by a claim sent at ``claimed_at``; an older one of the same job is lost by that."""
        if (older := self._latest.get(fence.job_id)) is not None:
            self._lose(older, RefusalReason.STALE_ATTEMPT)
        self._latest[fence.job_id] = fence
        self._held[fence] = _Held(fence, on_lost, fields, claimed_at + self._lease_ms / 1_000)

    def remove(self, fence: Fence) -> None:
        """Stop keeping a lease: the job has ended."""
        self._held.pop(fence, None)
        if self._latest.get(fence.job_id) == fence:
            del self._latest[fence.job_id]

    async def run(self) -> None:
        """Beat for ever.

        A lease younger than half a beat is left to the next one: most short jobs have ended by then, and a renewal that
        meets their end is a write for nothing.
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
        """Something that is held may have been canceled. May be called on any thread."""
        if self._held and self._loop is not None:
            with suppress(RuntimeError):  # its loop has gone, and with it every lease
                self._loop.call_soon_threadsafe(self._ring.set)

    async def _lose_canceled(self) -> None:
        """Only asked: a renewal would meet ends that are being written, and every worker hears every bell."""
        if not (held := {fence.job_id: fence for fence in tuple(self._held)}):
            return
        try:
            async with self._looking_out():
                canceled = await self._database.read(lambda tx: self._jobs.find_canceled(tx, list(held)))
        except Exception as error:  # noqa: BLE001 — whatever it was, the next beat finds out as well
            _log.warning("cancel_check_failed", error=repr(error), jobs=len(held))
            return
        for job_id in canceled:
            self._lose(held[job_id], RefusalReason.ALREADY_FINISHED)

    @asynccontextmanager
    async def _looking_out(self) -> AsyncIterator[None]:
        """Give up what expires while the block waits: the database may be silent for longer than a lease."""

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
        """Renew everything once, but for leases that are younger than ``older_ms``; return when to beat again, in sec.

        After a failure that is sooner than usual: the leases have less time left.
        """
        usual_sec = self._heartbeat_ms / 1_000
        sent_at = self.clock()
        renewed_by = sent_at + (self._lease_ms - older_than_ms) / 1_000
        held_now = tuple(self._held.values())  # jobs come and go on another thread
        fences = [held.fence for held in held_now if held.sure_until <= renewed_by]
        if not fences:
            return usual_sec
        try:
            async with self._looking_out():
                outcome = await self._database.transact(
                    lambda tx: self._jobs.renew(tx, fences, lease_ms=self._lease_ms)
                )
        except Exception as error:  # noqa: BLE001 — whatever it was, only the next beat can save these leases
            metrics.WORKER_HEARTBEAT.labels("failed", "db_error").inc()
            self._give_up_expired()
            return min(usual_sec, self._outage.failed(error, jobs=len(fences)))
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
