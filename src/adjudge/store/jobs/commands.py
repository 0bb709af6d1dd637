"""Operations on jobs: enqueue, claim, renew, finish, release, cancel, dead-letter and replay.

Every operation takes the caller's transaction and a batch of jobs (often a batch of one). For every job it reports
success, or a refused write with its reason. A commit costs far more than a row, so callers should combine operations in
one transaction.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from adjudge.domain.errors import Conflict, InvalidTransition
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JOB, JobStatus
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_CANCELED, CHANNEL_OUTBOX
from adjudge.store.engine.statement import Dialect, Rows, Statement
from adjudge.store.jobs import metrics as accounts
from adjudge.store.jobs import outbox, scripts, write_refusals
from adjudge.store.jobs import statements as sql
from adjudge.store.jobs.models import (
    MILLISECOND,
    BatchResult,
    Capacity,
    DispatchedMessage,
    ExpiredAttempt,
    Fence,
    FinishedJob,
    FinishReport,
    FollowUpListener,
    Job,
    JobListener,
    JobResult,
    JobState,
    NewJob,
    PoisonJob,
    QueuedJob,
    RefusedWrite,
    ReplayListener,
    by_kind,
    finish_row,
    finished_job,
    first_by_fence,
    insert_row,
    ordered,
    replay_job,
)

T = TypeVar("T")

LEASE_EXPIRED = "lease_expired"
NEVER_STARTED = "never_started"
"""Why an attempt was refunded: its claim was never followed by a start."""
NO_HEARTBEAT = "no_heartbeat"
"""Why an attempt was refunded: its lease expired before the first heartbeat, so it had hardly begun, if at all."""
WORKER_LOST = "WORKER_LOST"
"""The error code of an attempt whose worker was lost."""
LISTENER_FAILED = "LISTENER_FAILED"
"""The error code of a job whose listener failed."""
_ENDS = (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.PENDING)
_REFUNDS_MAX = 3
"""How many attempts of a job are refunded because they expired without a heartbeat."""


class JobCommands:
    """The operations on jobs. The object is stateless: all state is in the rows."""

    def __init__(
        self,
        listeners: Mapping[str, JobListener],
        *,
        policy: RetryPolicy | None = None,
        new_id: IdFactory = new_id,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._listeners = listeners
        self._follow_up_listeners = {
            kind: listener for kind, listener in listeners.items() if isinstance(listener, FollowUpListener)
        }
        self._replay_listeners = {
            kind: listener for kind, listener in listeners.items() if isinstance(listener, ReplayListener)
        }
        self._policy = policy or RetryPolicy()
        self._max_attempts = self._policy.max_attempts
        self._new_id = new_id
        self._random_unit = random_unit

    async def enqueue(self, tx: Tx, jobs: Sequence[NewJob]) -> list[str]:
        """Create jobs with their outbox rows; return their ids, for a known deduplication key the existing one."""
        if not jobs:
            return []
        rows = [insert_row(job, self._max_attempts) for job in jobs]
        created = {row[0] for row in (await tx.run(scripts.CREATE, {"new_job": rows}))["created_job"]}
        if new := [job for job in jobs if job.id in created]:
            tx.on_commit(lambda: accounts.record_enqueued(new))
            tx.notify(CHANNEL_OUTBOX)
        known = [(job.id, job.kind, job.dedupe_key) for job in jobs if job.id not in created]
        existing = dict(await tx.fetch(sql.FIND_DEDUPED, known)) if known else {}
        return [existing.get(job.id, job.id) for job in jobs]

    async def claim(self, tx: Tx, job_ids: Sequence[str], *, worker: str, lease_ms: int) -> BatchResult[Job]:
        """Claim jobs that wait or whose lease has expired. A job must not be executed before this has committed.

        A job whose last attempt has expired is refused as exhausted: the watchdog finishes it or refunds the attempt.
        """
        jobs = await _update(tx, sql.CLAIM, job_ids, worker=worker, lease_us=lease_ms * MILLISECOND)
        return await self._started(tx, job_ids, tuple(jobs))

    async def renew(self, tx: Tx, fences: Sequence[Fence], *, lease_ms: int) -> BatchResult[Fence]:
        """Extend leases. The holder of a refused fence must stop immediately and write nothing more."""
        if not fences:
            return BatchResult(())
        alive = set(await tx.fetch(sql.RENEW, ordered(fences), lease_us=lease_ms * MILLISECOND))
        refused = await self._refuse_fences(tx, [fence for fence in fences if fence not in alive])
        return BatchResult(tuple(fence for fence in fences if fence in alive), refused)

    async def lock(self, tx: Tx, job_ids: Sequence[str]) -> None:
        """Lock jobs until the end of the transaction; no operation on SQLite, which has one writer.

        Needed by transactions that change jobs with several statements: they would otherwise lock rows in another order
        than a concurrent renewal, and deadlock with it.
        """
        if tx.dialect is Dialect.POSTGRES:
            await _update(tx, sql.LOCK, job_ids)

    async def finish_and_claim_next(
        self, tx: Tx, results: Sequence[JobResult], capacity: Capacity | None = None
    ) -> FinishReport:
        """Finish attempts, write the rows of the jobs' listeners, and claim follow-up jobs for ``capacity``.

        A failed job gets a dead letter, unless its handler requests none. A job to be retried gets an outbox row;
        without an attempt left it fails, as the status of the returned job shows.
        """
        for result in results:
            if result.status not in _ENDS:
                raise InvalidTransition(f"An attempt ends as succeeded, failed or pending, not as {result.status}.")
        first, late = first_by_fence(results)
        jobs = await self._jobs_of(tx, first)
        late += [fence for fence in first if fence not in jobs]
        done, counted, claimed = list[Job](), frozenset[str](), dict[str, tuple[Job, ...]]()
        for kind, group in by_kind(list(jobs.values())).items():
            ids = {job.id for job in group}
            items = [(first[fence], jobs[fence], self._letter_id(first[fence])) for fence in ordered(jobs)]
            items = [item for item in items if item[1].id in ids]
            if (finisher := self._follow_up_listeners.get(kind)) is not None:
                rows, written, follow_ups = await finisher.finish_attempts(tx, items, capacity)
                counted, claimed = counted | written, {**claimed, **follow_ups}
            else:
                rows = (await tx.run(scripts.FINISH, {"result": [finish_row(r, letter) for r, _, letter in items]}))[
                    "finished_job"
                ]
            found = {Fence(*row[:3]): row for row in rows}
            done += await self._finished(tx, items, found, self._listeners.get(kind) if finisher is None else None)
            late += [result.fence for result, _, _ in items if result.fence not in found]
        return FinishReport(tuple(done), await self._refuse_fences(tx, late), claimed, counted)

    async def _jobs_of(self, tx: Tx, results: Mapping[Fence, JobResult]) -> dict[Fence, Job]:
        """The jobs of results; those that the caller did not pass are read."""
        unknown = [fence.job_id for fence, result in results.items() if result.job is None]
        read = {job.id: job for job in await _update(tx, sql.FIND, unknown)}
        found = {fence: result.job or read.get(fence.job_id) for fence, result in results.items()}
        return {fence: job for fence, job in found.items() if job is not None}

    def _letter_id(self, result: JobResult) -> str | None:
        """The id of a dead letter, if the result may need one."""
        is_final = result.status is JobStatus.FAILED and result.dead_letter
        return self._new_id() if is_final or (result.status is JobStatus.PENDING and not result.refund) else None

    async def _finished(
        self,
        tx: Tx,
        items: Sequence[tuple[JobResult, Job, str | None]],
        rows: Mapping[Fence, Sequence[Any]],
        listener: JobListener | None,
    ) -> list[Job]:
        """The jobs after the write; calls their listener."""
        written = [
            (result, finished_job(job, result, rows[result.fence])) for result, job, _ in items if result.fence in rows
        ]
        jobs = [job for _, job in written]
        released = [job for job in jobs if job.status is JobStatus.PENDING]
        if released:
            tx.notify(CHANNEL_OUTBOX)
        if listener is not None:
            finished = [
                FinishedJob(job, result.typed_result) for result, job in written if job.status is not JobStatus.PENDING
            ]
            if finished:
                await listener.on_finished(tx, finished)
            if released:
                await listener.on_released(tx, released)
        accounts.record_transitions(tx, jobs)
        return jobs

    async def cancel(self, tx: Tx, job_ids: Sequence[str], *, actor: str, reason: str) -> BatchResult[Job]:
        done = await self._ended(tx, await _update(tx, sql.CANCEL, job_ids, actor=actor, reason=reason))
        if any(job.prior_status == JobStatus.RUNNING for job in done):
            tx.notify(CHANNEL_CANCELED)
        return BatchResult(done, await self._refuse(tx, job_ids, done))

    async def find_canceled(self, tx: Tx, job_ids: Sequence[str]) -> set[str]:
        return {row["id"] for row in await tx.fetch(sql.SELECT_CANCELED, [(job_id,) for job_id in job_ids])}

    async def dead_letter(self, tx: Tx, poison_jobs: Sequence[PoisonJob], *, actor: str) -> BatchResult[Job]:
        """Fail waiting jobs that no worker can run (invalid payload, unknown kind), with a dead letter each."""
        wanted = {poison_job.job_id: poison_job for poison_job in poison_jobs}
        rows = [
            _poison_row(state, wanted[state.id].error_code, wanted[state.id].error)
            for state in await _inspect(tx, list(wanted))
            if state.status in (JobStatus.PENDING, JobStatus.QUEUED)
        ]
        done = await self._dead_letter(tx, rows, actor=actor)
        return BatchResult(done, await self._refuse(tx, list(wanted), done))

    async def expired(self, tx: Tx, *, limit: int = 500, after: str = "") -> dict[str, list[str]]:
        """Find jobs whose lease has expired, by kind; with ``after``, those with a greater id."""
        found: dict[str, list[str]] = defaultdict(list)
        for job_id, kind in await tx.fetch(sql.SELECT_EXPIRED, limit=limit, after=after):
            found[kind].append(job_id)
        return found

    async def release_expired(self, tx: Tx, job_ids: Sequence[str] | None = None, *, actor: str) -> tuple[Job, ...]:
        """Release jobs whose worker is lost, all or the given ones; one without an attempt left gets a dead letter.

        An attempt without a heartbeat probably never started: it is refunded, a limited number of times. A last attempt
        is confirmed by a heartbeat before its handler is called, so without one it certainly never started.
        """
        if job_ids is None:
            job_ids = [job_id for found in (await self.expired(tx)).values() for job_id in found]
        expired = await _update(tx, sql.LOCK_EXPIRED, job_ids)
        unstarted = await self._unstarted(tx, expired)
        again = [item for item in expired if item.attempt_id < item.max_attempts or item.id in unstarted]
        delays = {item.id: self._policy.delay_ms(item.attempt_id, self._random_unit()) for item in again}
        rows = [
            (
                item.id,
                item.attempt_id,
                item.lease_owner,
                delays[item.id] * MILLISECOND,
                int(item.id in unstarted),
                _expiry_reason(item, is_refunded=item.id in unstarted),
            )
            for item in again
        ]
        freed = await tx.fetch(sql.RELEASE_EXPIRED, rows, actor=actor) if rows else []
        released = await self._released(tx, freed, delays)
        lost = [item for item in expired if item.id not in unstarted]
        return (*released, *await self._dead_letter_exhausted(tx, lost, actor=actor))

    async def _unstarted(self, tx: Tx, expired: Sequence[ExpiredAttempt]) -> set[str]:
        """Those of the attempts that never had a heartbeat and may be refunded."""
        candidates = [item.id for item in expired if item.heartbeat_at is None]
        refunds = dict(await _update(tx, sql.COUNT_REFUNDS, candidates))
        return {job_id for job_id in candidates if refunds.get(job_id, 0) < _REFUNDS_MAX}

    async def mark_queued(self, tx: Tx, deliveries: Sequence[DispatchedMessage], *, actor: str) -> None:
        """Mark published jobs as queued.

        A job claimed in the meantime keeps running; one released since then is still to be published. Must be
        the last operation of its transaction.
        """
        if not deliveries:
            return
        found = await tx.run(
            scripts.MARK_DELIVERED, {"delivery": outbox.delivery_rows(deliveries)}, last=True, actor=actor
        )
        accounts.count_queued(tx, [kind for _, kind in found["queued_job"]])

    async def not_delivered(self, tx: Tx, rows: Sequence[tuple[str, str]]) -> None:
        """Store why deliveries failed: rows of (job_id, error)."""
        await self.lock(tx, [job_id for job_id, _ in rows])
        await outbox.mark_failed(tx, sorted(rows))

    async def set_aside(self, tx: Tx, job_ids: Sequence[str], *, actor: str, error: str) -> list[str]:
        """Fail jobs whose listener raises on every call, with a dead letter each and without calling the listener."""
        rows = [
            _poison_row(state, LISTENER_FAILED, error)
            for state in await _inspect(tx, job_ids)
            if state.status not in JOB.terminal
        ]
        return [job.id for job in await self._dead_letter(tx, rows, actor=actor, calls_listener=False)]

    async def find_long_queued(
        self, tx: Tx, *, older_than_ms: int, limit: int = 500, after: tuple[int, str] = (0, "")
    ) -> list[QueuedJob]:
        """Find jobs that have been queued for so long that their message may be lost, the oldest first.

        With ``after``, the ``scan_position`` of a job, only those after it.
        """
        return await tx.fetch(
            sql.SELECT_LONG_QUEUED,
            older_than_us=older_than_ms * MILLISECOND,
            limit=limit,
            after_us=after[0],
            after_id=after[1],
        )

    async def requeue(self, tx: Tx, job_ids: Sequence[str], *, actor: str) -> tuple[Job, ...]:
        """Request another message for queued jobs whose message is lost."""
        return await self._released(tx, await _update(tx, sql.UNQUEUE, job_ids, actor=actor), {})

    async def defer(self, tx: Tx, job_ids: Sequence[str], *, delay_ms: int, actor: str, reason: str) -> tuple[Job, ...]:
        """Delay waiting jobs, because something they need is in full use."""
        await self.lock(tx, job_ids)
        wait = {"delay_us": delay_ms * MILLISECOND, "actor": actor, "reason": reason}
        rows = await _update(tx, sql.DEFER, job_ids, **wait)
        queued = await self._released(tx, rows, dict.fromkeys(job_ids, delay_ms))
        left = set(job_ids).difference(job.id for job in queued)
        pending = await _update(tx, sql.DEFER_PENDING, list(left), **wait)
        await outbox.insert_again(tx, [(job.id, delay_ms * MILLISECOND) for job in pending])
        return (*queued, *pending)

    async def hold(self, tx: Tx, job_ids: Sequence[str], *, actor: str, reason: str) -> None:
        """Keep jobs from being delivered until they are released; one that runs is held if it has to wait again."""
        await self.lock(tx, job_ids)
        queued = await _update(tx, sql.HOLD_QUEUED, job_ids, actor=actor, reason=reason)
        others = await _update(tx, sql.HOLD, job_ids)
        waiting = [*queued, *(job for job in others if job.status is JobStatus.PENDING)]
        await outbox.insert_again(tx, sorted((job.id, 0) for job in waiting))
        accounts.record_transitions(tx, queued)

    async def unhold(self, tx: Tx, job_ids: Sequence[str]) -> None:
        """Release held jobs; their order in the outbox is that in which they were created."""
        await self.lock(tx, job_ids)
        released = await _update(tx, sql.UNHOLD, job_ids)
        await outbox.insert_again(tx, sorted((job.id, 0) for job in released if job.status is JobStatus.PENDING))

    async def replay(self, tx: Tx, letter_ids: Sequence[str], *, actor: str, note: str) -> dict[str, str | None]:
        """Run the jobs of dead letters again as new jobs; return letter id → new job id.

        The old jobs keep their history. The new id is None if the listener creates the job later, when a slot is free.
        """
        letters = await _update(tx, sql.LOCK_OPEN_DEAD_LETTERS, letter_ids)
        new = {letter.letter_id: replay_job(letter, self._new_id(), actor) for letter in letters}
        doing: dict[str, str | None] = {job.id: job.id for job in new.values()}
        for kind in sorted({job.kind for job in new.values()}):
            group = [job for job in new.values() if job.kind == kind]
            if listener := self._replay_listeners.get(kind):
                doing.update(await listener.replay(tx, group, reason=note))
            else:
                await self.enqueue(tx, group)
        if not new:
            return {}
        rows = sorted((key, doing[job.id]) for key, job in new.items())
        resolved = await tx.fetch(sql.RESOLVE_DEAD_LETTERS, rows, state="replayed", actor=actor, note=note)
        if len(resolved) < len(new):
            raise Conflict("Somebody else closed one of the dead letters meanwhile; list them again, then decide.")
        return {row["id"]: doing[new[row["id"]].id] for row in resolved}

    async def discard(self, tx: Tx, letter_ids: Sequence[str], *, actor: str, note: str) -> list[str]:
        """Discard dead letters; return those that were open."""
        rows = [(letter_id, None) for letter_id in letter_ids]
        resolved = (
            await tx.fetch(sql.RESOLVE_DEAD_LETTERS, rows, state="discarded", actor=actor, note=note) if rows else []
        )
        return [row["id"] for row in resolved]

    # Common last steps of the operations.

    async def _started(self, tx: Tx, job_ids: Sequence[str], jobs: tuple[Job, ...]) -> BatchResult[Job]:
        for kind, group in by_kind(jobs).items():
            if listener := self._listeners.get(kind):
                await listener.on_started(tx, group)
        accounts.record_transitions(tx, jobs)
        if jobs:
            tx.on_commit(lambda: accounts.record_started(jobs))
        return BatchResult(jobs, await self._refuse(tx, job_ids, jobs))

    async def _released(self, tx: Tx, jobs: Sequence[Job], delays_ms: Mapping[str, int]) -> tuple[Job, ...]:
        await outbox.insert_again(tx, [(job.id, delays_ms.get(job.id, 0) * MILLISECOND) for job in jobs])
        for kind, group in by_kind(jobs).items():
            if listener := self._listeners.get(kind):
                await listener.on_released(tx, group)
        accounts.record_transitions(tx, jobs)
        return tuple(jobs)

    async def _ended(self, tx: Tx, jobs: Sequence[Job], *, calls_listener: bool = True) -> tuple[Job, ...]:
        await outbox.drop(tx, [job.id for job in jobs])
        for kind, group in by_kind(jobs).items():
            if calls_listener and (listener := self._listeners.get(kind)):
                await listener.on_finished(tx, [FinishedJob(job) for job in group])
        accounts.record_transitions(tx, jobs)
        return tuple(jobs)

    async def _dead_letter(
        self, tx: Tx, rows: Rows, *, actor: str | None, calls_listener: bool = True
    ) -> tuple[Job, ...]:
        if not rows:
            return ()
        dead_lettered = await tx.fetch(sql.DEAD_LETTER, rows, actor=actor)
        if not dead_lettered:
            return ()
        await tx.execute(sql.INSERT_DEAD_LETTERS, [(self._new_id(), job.id) for job in dead_lettered])
        return await self._ended(tx, dead_lettered, calls_listener=calls_listener)

    async def _dead_letter_exhausted(self, tx: Tx, lost: Sequence[ExpiredAttempt], *, actor: str) -> tuple[Job, ...]:
        error = "Its worker was lost on the last attempt it had."
        return await self._dead_letter(
            tx,
            [
                (item.id, item.attempt_id, "running", None, LEASE_EXPIRED, WORKER_LOST, error)
                for item in lost
                if item.attempt_id >= item.max_attempts
            ],
            actor=actor,
        )

    async def _refuse(self, tx: Tx, job_ids: Sequence[str], done: Sequence[Job]) -> tuple[RefusedWrite, ...]:
        won = {job.id for job in done}
        missing = [job_id for job_id in dict.fromkeys(job_ids) if job_id not in won]
        found = {state.id: state for state in await _inspect(tx, missing)}
        refused = tuple(RefusedWrite(job_id, write_refusals.explain_claim(found.get(job_id))) for job_id in missing)
        write_refusals.log_refusals(tx, refused, found)
        return refused

    async def _refuse_fences(self, tx: Tx, fences: Sequence[Fence]) -> tuple[RefusedWrite, ...]:
        if not fences:
            return ()
        found = {state.id: state for state in await _inspect(tx, [fence.job_id for fence in fences])}
        refused = tuple(
            RefusedWrite(fence.job_id, write_refusals.explain_fenced_write(found.get(fence.job_id), fence))
            for fence in fences
        )
        write_refusals.log_refusals(tx, refused, found, {fence.job_id: fence.attempt_id for fence in fences})
        return refused


async def _update(tx: Tx, statement: Statement[T], job_ids: Sequence[str], **parameters: object) -> list[T]:
    """Run ``statement`` once per job, ordered by id, so that overlapping batches lock in the same order."""
    return await tx.fetch(statement, [(job_id,) for job_id in sorted(set(job_ids))], **parameters) if job_ids else []


def _expiry_reason(expired: ExpiredAttempt, *, is_refunded: bool) -> str:
    if not is_refunded:
        return LEASE_EXPIRED
    return NEVER_STARTED if expired.attempt_id >= expired.max_attempts else NO_HEARTBEAT


def _poison_row(state: JobState, error_code: str, error: str) -> tuple[object, ...]:
    """The input row of ``jobs.dead_letter`` for a job that no worker can run."""
    return (state.id, state.attempt_id, str(state.status), None, "poison", error_code, error)


async def _inspect(tx: Tx, job_ids: Sequence[str]) -> list[JobState]:
    return await _update(tx, sql.INSPECT, job_ids)
