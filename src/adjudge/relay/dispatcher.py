"""The dispatcher: publishes due outbox rows to the stream.

Delivery is at least once. If the dispatcher dies between publishing and marking the rows, they become due again and
their jobs are published twice; only one claim succeeds.

If the stream or the database is unavailable, the dispatcher retries with growing delays. Rows taken in the meantime are
postponed without counting a delivery attempt: only errors of the row itself count.

The number of published messages is limited. Rows that wait in the outbox cost nothing and keep a fair order between
users; messages in the stream are read in the order of publication and use memory, and beyond the limit of the stream
the oldest would be dropped, detected as lost and published again.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from adjudge.domain.errors import Unavailable
from adjudge.domain.priority import BANDS, band_of
from adjudge.observe import metrics, tracing
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.observe.tracing import Span, SpanKind
from adjudge.relay.periodic import periodic_task
from adjudge.store import Database, Tx
from adjudge.store.engine.notify import CHANNEL_OUTBOX, Wakeup
from adjudge.store.jobs import outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import job_ids_fields, request_fields
from adjudge.store.jobs.models import DispatchedMessage, PoisonJob
from adjudge.store.jobs.outbox import DueRow
from adjudge.stream.driver import MessageBody, PublishResult, Stream

_log = get_logger(__name__)
_SECOND_US = 1_000_000
_DELIVERED = metrics.OUTBOX_DISPATCH.labels("delivered", "ok")
_SOON_MS = 100
"""Delay before checking again whether the stream has capacity, or whether more is due after a delivery."""
_LEAST_MS = 20
"""Minimum delay before the next check: rows that are due but were not taken are held by another dispatcher."""

_INLINE_RESTART_MS = 1_000

UNDELIVERABLE = "UNDELIVERABLE"
"""The error code of a job for which no message can be created."""
_FINAL_TRIES = 3


class _BandCapacity:
    """How many more messages each priority band of the stream may hold.

    A message in the stream has left the order of turns, so only as many wait there as the workers read soon: the
    allowance of a band doubles when they have read most of it and is halved when they read less than an eighth of it
    in ``_SOON_MS``. What waits there is then less than a second of work, or ``least_ahead`` messages.

    The stream is asked when half of a band's allowance is used, and after each full batch, because other dispatchers
    publish too during a backlog. An idle dispatcher seldom needs the additional round trip.
    """

    def __init__(self, stream: Stream, ahead: int, least_ahead: int) -> None:
        self._stream = stream
        self._ahead = ahead
        self._least = min(least_ahead, ahead)
        self._allowance = dict.fromkeys(BANDS, self._least)
        self._left = dict(self._allowance)
        self._is_stale = True
        self._halved_at = -math.inf
        self._logged: set[int] = set()
        self.wait_ms = _LEAST_MS
        """When to ask again while a band is full: soon while the workers read fast, else less and less often."""

    @property
    def is_short(self) -> bool:
        """Whether a band is full."""
        return min(self._left.values()) <= 0

    async def left(self) -> list[int]:
        if self._is_stale or any(self._is_used(band) for band in BANDS):
            await self._ask()
        return [self._left[band] for band in BANDS]

    def use(self, due: Sequence[DueRow], batch: int) -> None:
        """Subtract messages that are about to be published."""
        for row in due:
            band = band_of(row.priority)
            self._left[band] = max(0, self._left[band] - 1)
        self._is_stale = len(due) >= batch

    def _is_used(self, band: int) -> bool:
        return self._left[band] * 2 < self._allowance[band]

    async def _ask(self) -> None:
        try:
            depth, pending = await asyncio.gather(self._stream.depths(), self._stream.pending_counts())
        except Unavailable:  # publishing fails, and each row stores the reason
            self._left = dict(self._allowance)
            return
        waiting = {band: max(0, depth.get(band, 0) - pending.get(band, 0)) for band in BANDS}
        self._adapt(waiting)
        self._left = {
            band: max(0, min(self._allowance[band] - waiting[band], self._ahead - depth.get(band, 0))) for band in BANDS
        }
        self._is_stale = False
        self._tell({band for band in BANDS if depth.get(band, 0) >= self._ahead})

    def _adapt(self, waiting: Mapping[int, int]) -> None:
        read = {band for band in BANDS if self._is_used(band) and waiting[band] * 4 <= self._allowance[band]}
        for band in read:
            self._allowance[band] = min(self._ahead, self._allowance[band] * 2)
        self.wait_ms = _LEAST_MS if read else min(_SOON_MS, self.wait_ms * 2)
        now = asyncio.get_running_loop().time()
        if now < self._halved_at + _SOON_MS / 1_000:
            return
        self._halved_at = now
        for band in BANDS:
            if waiting[band] * 8 > self._allowance[band] * 7:
                self._allowance[band] = max(self._least, self._allowance[band] // 2)

    def _tell(self, full: set[int]) -> None:
        """Log once that a band is full, not whenever a little capacity was freed and used: a backlog may take hours."""
        for band in BANDS:
            metrics.STREAM_FULL.labels(str(band)).set(band in full)
        for band in sorted(full - self._logged):
            _log.warning("dispatch_retrying", reason="stream_full", band=band, ahead=self._ahead)
        self._logged = {band for band in full | self._logged if self._left[band] < self._ahead // 2}


class Dispatcher:
    """Publishes the outbox in batches: two transactions and one round trip to the stream for each.

    After a full batch there is another round trip, to ask for the remaining capacity. Between ``least_ahead`` and
    ``ahead`` messages of a band wait in the stream for workers, depending on how fast these read.
    """

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        stream: Stream,
        *,
        name: str,
        batch: int = 512,
        poll_ms: int = 1_000,
        ahead: int = 4_000,
        least_ahead: int = 8,
        heartbeat: LoopHeartbeat | None = None,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._stream = stream
        self._name = name
        self._batch = batch
        self._poll_ms = poll_ms
        self._capacity = _BandCapacity(stream, ahead, least_ahead)
        self._isolation = JobIsolation(database, jobs, actor=name)
        self._heartbeat = heartbeat or LoopHeartbeat("dispatcher")
        self._outage = Outage(_log, "dispatch_retrying")
        self._pause_sec = 0.0
        """The delay because the stream accepted nothing of the last batch."""

    async def run(self) -> None:
        """Publish forever: on notifications, when a row becomes due, and at every poll in case one was lost."""
        wakeup = Wakeup()
        silence = self._database.listen(CHANNEL_OUTBOX, wakeup.set)
        try:
            while True:
                wakeup.clear()
                self._heartbeat.beat()
                try:
                    wait_ms = await self._turn()
                except Unavailable as error:
                    await asyncio.sleep(self._outage.failed(error))
                    continue
                if wait_ms:
                    await wakeup.wait(wait_ms)
        finally:
            silence()

    async def _turn(self) -> int:
        """Publish; return how long to wait for a notification. The next due time is read only if nothing was due."""
        delivered = await self.dispatch_batch()
        if self._pause_sec:
            await asyncio.sleep(self._pause_sec)
            return 0
        if delivered >= self._batch:
            return 0
        if self._capacity.is_short:
            return min(self._capacity.wait_ms, self._poll_ms)
        if delivered:
            return min(_SOON_MS, self._poll_ms)
        due_ms = await self._database.read(outbox.next_due_ms)
        return self._poll_ms if due_ms is None else min(self._poll_ms, max(_LEAST_MS, due_ms))

    async def dispatch_batch(self) -> int:
        """Publish one batch of due rows, within the capacity of each band; return how many were taken."""
        self._pause_sec = 0.0
        capacities = await self._capacity.left()
        due = await self._database.transact(lambda tx: outbox.take_due(tx, limit=self._batch, capacities=capacities))
        if not due:
            return 0
        self._capacity.use(due, self._batch)
        hints, broken = _hints(due)
        published, failure = await self._publish(hints)
        taking = {row.job_id: row.dispatch_seq for row in due}
        sent = [
            DispatchedMessage(item.job_id, item.entry_id, taking[item.job_id])
            for item in published
            if item.entry_id is not None
        ]
        unsent = {item.job_id: item for item in [*published, *broken] if item.entry_id is None}
        failed = {job_id: item for job_id, item in unsent.items() if not item.is_outage}
        put_off = [item for item in unsent.values() if item.is_outage]
        if failed:
            await self._note_failures(failed, {row.job_id: row.attempts for row in due})
        if put_off and failure is None:
            failure = Unavailable(put_off[0].error)
        put_off_ids = job_ids_fields([item.job_id for item in put_off])
        pause_sec = self._outage.failed(failure, **put_off_ids) if failure is not None else 0.0
        if put_off:
            pause_us = round(pause_sec * _SECOND_US)
            await self._put_off([(it.job_id, it.error or "", taking[it.job_id], pause_us) for it in put_off])
        if sent:
            await self._database.transact(lambda tx: self._jobs.mark_queued(tx, sent, actor=self._name))
        _count(due, [*published, *broken], {hint.job_id: hint.payload for hint in hints})
        self._pause_sec = 0.0 if sent else pause_sec
        if failure is None:
            self._outage.over()
        return len(due)

    async def _note_failures(self, failed: Mapping[str, PublishResult], attempts: Mapping[str, int]) -> None:
        """Store why deliveries failed; a row that repeatedly fails by itself gets a dead letter for its job."""
        rows = [(job_id, item.error or "unknown") for job_id, item in failed.items()]
        await self._database.transact(lambda tx: self._jobs.not_delivered(tx, rows))
        poison_jobs = {
            job_id: PoisonJob(job_id, UNDELIVERABLE, item.error or "unknown")
            for job_id, item in failed.items()
            if item.is_final and attempts[job_id] >= _FINAL_TRIES
        }
        if not poison_jobs:
            return

        async def dead_letter(tx: Tx, job_ids: Sequence[str]) -> list[str]:
            done = (
                await self._jobs.dead_letter(tx, [poison_jobs[job_id] for job_id in job_ids], actor=self._name)
            ).done
            return [job.id for job in done]

        for job_id in await self._isolation.run(list(poison_jobs), dead_letter):
            _log.error("job_dead_lettered", stage="poisoned", job_id=job_id, error=poison_jobs[job_id].error)

    async def _put_off(self, rows: Sequence[tuple[str, str, int, int]]) -> None:
        """Postpone deliveries that the stream could not accept, without counting a delivery attempt."""

        async def note(tx: Tx) -> None:
            await self._jobs.lock(tx, [row[0] for row in rows])
            await outbox.postpone(tx, sorted(rows))

        await self._database.transact(note)

    async def _publish(self, hints: Sequence[MessageBody]) -> tuple[list[PublishResult], Unavailable | None]:
        """Publish; return the result of each message, and the error if none could be published."""
        try:
            return (await self._stream.publish(hints) if hints else []), None
        except Unavailable as error:
            return [PublishResult(hint.job_id, None, error.message, is_outage=True) for hint in hints], error


@asynccontextmanager
async def dispatch_inline(dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Publish in this process while the block runs; an error is logged and does not end the process.

    Used with ``OUTBOX_ENABLED=false``, for installations without a working scheduler: every server and every worker
    has its own dispatcher. Outbox rows are written as usual, so no job depends on the life of one process, and a
    running scheduler does no harm.
    """

    async def run() -> int:
        await dispatcher.run()
        return 0

    async with periodic_task(run, interval_ms=_INLINE_RESTART_MS, name="direct-delivery"):
        yield


def _hints(due: Sequence[DueRow]) -> tuple[list[MessageBody], list[PublishResult]]:
    """The messages to publish, and the rows that have none: an invalid row never delays others."""
    hints, broken = [], []
    for row in due:
        try:
            payload = dict(json.loads(row.payload))
        except (TypeError, ValueError) as error:
            broken.append(PublishResult(row.job_id, None, f"payload is not an object: {error}", is_final=True))
            continue
        hints.append(MessageBody(row.job_id, row.priority, row.kind, row.trace_id, payload))
    return hints, broken


def _count(
    due: Sequence[DueRow], published: Sequence[PublishResult], payloads: Mapping[str, Mapping[str, Any]]
) -> None:
    rows = {row.job_id: row for row in due}
    for item in published:
        if item.entry_id is None:
            metrics.OUTBOX_DISPATCH.labels("failed", _reason(item)).inc()
        if item.entry_id is None and not item.is_outage:
            _log.warning("dispatch_failed", job_id=item.job_id, trace_id=rows[item.job_id].trace_id, error=item.error)
    delivered = [rows[item.job_id] for item in published if item.entry_id is not None]
    _DELIVERED.inc(len(delivered))
    for row in delivered:
        if tracing.state.is_on:
            _record_span(row)
        metrics.OUTBOX_DISPATCH_LATENCY.observe(max(0, row.waited_us) / _SECOND_US)
    _log.info_many("job_dispatched", (_fields(row, payloads[row.job_id]) for row in delivered))


def _record_span(row: DueRow) -> None:
    """The span from when a delivery was due to its end."""
    if row.trace_id is None or not tracing.is_sampled(row.trace_id):
        return
    now_ns = time.time_ns()
    tracing.record(
        Span(
            name="dispatch",
            trace_id=row.trace_id,
            span_id=tracing.derive_span_id("dispatch", row.job_id, row.dispatch_seq),
            start_ns=now_ns - max(0, row.waited_us) * 1_000,
            end_ns=now_ns,
            parent_id=tracing.job_span_id(row.job_id),
            kind=SpanKind.PRODUCER,
            attributes={"adjudge.job.id": row.job_id, "adjudge.job.kind": row.kind},
        )
    )


def _reason(item: PublishResult) -> str:
    """Why a message was not published, for the metric."""
    if item.is_outage:
        return "stream_unavailable"
    return "invalid_message" if item.is_final else "stream_error"


def _fields(row: DueRow, payload: Mapping[str, Any]) -> dict[str, object]:
    return {"stage": "delivered", "job_id": row.job_id, "trace_id": row.trace_id, **request_fields(payload)}
