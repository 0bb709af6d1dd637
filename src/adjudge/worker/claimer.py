"""Claims the jobs that messages name, as far as slots and limits allow.

A claim whose commit is unknown is not looked up: its jobs never start here, their leases expire without a heartbeat,
and the watchdog refunds the attempts.

Messages whose jobs cannot start yet, because a limit of this worker is reached, are parked. They stay pending in the
stream, unacknowledged: if this worker dies or takes long, others reclaim them after the usual idle time. When a slot
becomes free, the first message that fits is claimed. The number of parked messages is limited. Further ones are
returned to the outbox with a delay that grows with their number, so that a backlog is not read again and again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.metrics import job_ids_fields
from adjudge.store.jobs.models import BatchResult, Fence, Job
from adjudge.stream.driver import Message
from adjudge.worker.handler import Handler
from adjudge.worker.slots import Claim, Slots
from adjudge.worker.worker_settings import WorkerOptions

PARKED_MAX: Final = 256
_DEFERRED_PER_SEC: Final = 50
"""Maximum rate, per second, at which returned messages may be delivered again."""
_DELAY_MS: Final = (1_000, 30_000)
_REASON: Final = "worker_limit"
_DECISIONS: Final = {
    RefusalReason.NOT_FOUND: "not_found",
    RefusalReason.LEASE_STILL_VALID: "lease_still_valid",
    RefusalReason.ATTEMPTS_EXHAUSTED: "exhausted",
}
"""What is made of a message whose job could not be taken over; for any other reason, there is nothing left to do."""

_log = get_logger(__name__)


class ClaimReport(NamedTuple):
    """The claimed jobs, and the messages that need no further attention."""

    claimed: Sequence[Claim] = ()
    to_acknowledge: Sequence[Message] = ()


class Claimer:
    """Claims jobs for one worker. Slots are acquired before a claim is sent; those of refused jobs are freed."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        handlers: Mapping[str, Handler],
        settings: WorkerOptions,
        slots: Slots,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._slots = slots
        self._clock = clock
        self._name = settings.name
        self._lease_ms = settings.lease_ms
        self._isolation = JobIsolation(database, jobs, actor=settings.name)
        self.parked: dict[str, Message] = {}
        """Parked messages, by job, in the order of arrival."""
        self._due_back: deque[float] = deque()
        self._is_logged = False

    async def claim(self, messages: Mapping[str, Message]) -> ClaimReport:
        """Claim the jobs of new and parked messages that fit; the other messages are parked or returned."""
        if not self._slots.has_limits:
            return await self._claim({job_id: self._acquire(message) for job_id, message in messages.items()}, messages)
        for job_id, message in messages.items():
            self.parked.setdefault(job_id, message)
        ready, needs = dict[str, Message](), dict[str, tuple[str, ...]]()
        for job_id, message in sorted(self.parked.items(), key=lambda item: item[1].band):
            if self._slots.free > 0 and self._slots.fits(self._needs(message)):
                ready[job_id], needs[job_id] = message, self._acquire(message)
        for job_id in ready:
            del self.parked[job_id]
        self._log_limits()
        report = await self._claim(needs, ready)
        returned = await self._defer_excess()
        return report._replace(to_acknowledge=[*report.to_acknowledge, *returned])

    async def _claim(self, needs: Mapping[str, tuple[str, ...]], messages: Mapping[str, Message]) -> ClaimReport:
        if not needs:
            return ClaimReport()
        claimed_at = self._clock()
        try:
            outcome = await self._claim_rows(needs)
        except Unavailable:
            metrics.WORKER_CLAIM.labels("failed", "db_error").inc(len(needs))
            raise
        metrics.WORKER_CLAIM.labels("won", "ok").inc(len(outcome.done))
        for refused in outcome.refused:
            metrics.WORKER_CLAIM.labels("refused", str(refused.reason)).inc()
        return ClaimReport(
            self._claims(outcome.done, claimed_at, needs, messages),
            [messages[refused.job_id] for refused in outcome.refused],
        )

    async def take_over(self, messages: Mapping[str, Message]) -> ClaimReport:
        """Claim the jobs of messages that another worker has left unacknowledged, as far as they fit.

        A message is left alone if a limit is reached, or if the lease of its job is valid: its worker is alive but
        slow.
        """
        needs = {
            job_id: self._acquire(message)
            for job_id, message in messages.items()
            if job_id not in self.parked and self._slots.fits(self._needs(message))
        }
        if not needs:
            return ClaimReport()
        claimed_at = self._clock()
        try:
            outcome = await self._claim_rows(needs)
        except Unavailable:
            metrics.WORKER_RECLAIM.labels("failed", "db_error").inc(len(needs))
            raise
        for job in outcome.done:
            is_expired = job.prior_status is JobStatus.RUNNING  # else its reader was lost before the claim
            decision = ("claimed", "lease_expired") if is_expired else ("unclaimed", "not_in_expected_state")
            metrics.WORKER_RECLAIM.labels(*decision).inc()
        for item in outcome.refused:
            metrics.WORKER_RECLAIM.labels(_DECISIONS.get(item.reason, "done_or_stale"), str(item.reason)).inc()
        claims = self._claims(outcome.done, claimed_at, needs, messages)
        return ClaimReport(
            [claim._replace(is_takeover=True) for claim in claims],
            [messages[it.job_id] for it in outcome.refused if it.reason is not RefusalReason.LEASE_STILL_VALID],
        )

    def _claims(
        self,
        jobs: Sequence[Job],
        claimed_at: float,
        needs: Mapping[str, tuple[str, ...]],
        messages: Mapping[str, Message],
    ) -> list[Claim]:
        return [
            Claim(job, Fence(job.id, job.attempt_id, self._name), claimed_at, needs[job.id], messages[job.id])
            for job in jobs
        ]

    def _needs(self, message: Message) -> tuple[str, ...]:
        body = message.body
        return () if body is None else self._slots.needs(self._handlers[body.kind], body.kind, body.payload)

    def _acquire(self, message: Message) -> tuple[str, ...]:
        needs = self._needs(message)
        self._slots.acquire(needs)
        return needs

    async def _claim_rows(self, needs: Mapping[str, tuple[str, ...]]) -> BatchResult[Job]:
        """Claim jobs that wait or whose lease has expired; free the slots of those that are not claimed."""
        unclaimed = dict(needs)
        try:
            outcome = await self._claim_together(list(needs))
            for job in outcome.done:
                del unclaimed[job.id]
            return outcome
        finally:
            for keys in unclaimed.values():
                self._slots.cancel(keys)

    async def _claim_together(self, job_ids: Sequence[str]) -> BatchResult[Job]:
        try:
            return await self._database.transact(lambda tx: self._claim_in(tx, job_ids))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — one job that cannot be claimed must not stop the others
            _log.warning("claim_failed", error=repr(error), **job_ids_fields(job_ids))
            return await self._claim_apart(job_ids)

    async def _claim_in(self, tx: Tx, job_ids: Sequence[str]) -> BatchResult[Job]:
        return await self._jobs.claim(tx, job_ids, worker=self._name, lease_ms=self._lease_ms)

    async def _claim_apart(self, job_ids: Sequence[str]) -> BatchResult[Job]:
        """Claim each job alone. A job that fails alone stays pending, and finally gets a dead letter."""

        async def claim(tx: Tx, ids: Sequence[str]) -> list[BatchResult[Job]]:
            return [await self._claim_in(tx, ids)]

        found = await self._isolation.one_by_one(job_ids, claim)
        done = tuple(job for outcome in found for job in outcome.done)
        return BatchResult(done, tuple(refused for outcome in found for refused in outcome.refused))

    # Parked messages.

    def _log_limits(self) -> None:
        """Log once that jobs wait for a limit, not every time they are checked."""
        if bool(self.parked) != self._is_logged:
            self._is_logged = bool(self.parked)
            _log.info("worker_limit_reached" if self._is_logged else "worker_limit_left", worker=self._name)

    async def _defer_excess(self) -> list[Message]:
        """Return the messages that are too many to be parked, with a delay; return those to be acknowledged."""
        job_ids = list(self.parked)[PARKED_MAX:]
        if not job_ids:
            return []
        now = self._clock()
        while self._due_back and self._due_back[0] <= now:
            self._due_back.popleft()
        least, most = _DELAY_MS
        delay_ms = min(most, max(least, (len(self._due_back) + len(job_ids)) * 1_000 // _DEFERRED_PER_SEC))
        self._due_back.extend([now + delay_ms / 1_000] * len(job_ids))
        return await self._return(job_ids, delay_ms)

    async def return_parked(self) -> list[Message]:
        """Return all parked messages to the outbox; return those to be acknowledged."""
        return await self._return(list(self.parked), 0) if self.parked else []

    async def _return(self, job_ids: Sequence[str], delay_ms: int) -> list[Message]:
        """Return messages to the outbox; if the database is unavailable, others reclaim them when they are idle."""
        given = {job_id: self.parked.pop(job_id) for job_id in job_ids}
        try:
            done = await self._database.transact(
                lambda tx: self._jobs.defer(tx, job_ids, delay_ms=delay_ms, actor=self._name, reason=_REASON)
            )
        except Unavailable as error:
            _log.warning("parked_messages_left", reason=error.code, error=error.message, **job_ids_fields(job_ids))
            return []
        return [given[job.id] for job in done]
