"""Claiming: winning the jobs that messages speak of, by the short way where there is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import replace

from adjudge.domain.errors import OutcomeUnknown, Unavailable
from adjudge.domain.states import JobStatus
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import NEVER_STARTED, JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.models import BatchResult, Fence, Job, JobResult
from adjudge.stream.driver import Message
from adjudge.worker.handler import Handler, with_preloaded

_log = get_logger(__name__)


class Claimer:
    """Claims for one worker."""

    def __init__(
        self, database: Database, jobs: JobCommands, handlers: Mapping[str, Handler], *, name: str, lease_ms: int
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._name = name
        self._lease_ms = lease_ms
        self._isolation = JobIsolation(database, jobs, actor=name)
        self.unsure: set[str] = set()
        """Jobs that a transaction may have claimed whose answer was lost, and that nobody could look up since."""

    async def claim(
        self, messages: Mapping[str, Message], running: Container[Fence]
    ) -> AsyncIterator[BatchResult[Job]]:
        """Win the jobs, each with its brief; where an answer is lost, find out what was won besides what runs here.

        Every transaction's outcome comes as soon as it is known: what was won is to begin, even if whoever asks is
        stopped or the database goes away during the next. What was not asked for then stays pending and comes back.
        """
        left = set(messages)
        for kind, job_ids in self._openings(messages).items():
            won = await self._open(kind, job_ids, running)
            left.difference_update(job.id for job in won)
            yield BatchResult(won)
        if left:
            yield await self._claim([job_id for job_id in messages if job_id in left], running)

    def _openings(self, messages: Mapping[str, Message]) -> dict[str, list[str]]:
        """The jobs that there is a short way for, by kind."""
        found: dict[str, list[str]] = defaultdict(list)
        for job_id, message in messages.items():
            hint = message.body
            if hint is not None and self._jobs.opens(hint.kind, hint.payload, self._database.dialect):
                found[hint.kind].append(job_id)
        return found

    async def _open(self, kind: str, job_ids: Sequence[str], running: Container[Fence]) -> tuple[Job, ...]:
        try:
            return await self._database.transact(
                lambda tx: self._jobs.open(tx, kind, job_ids, worker=self._name, lease_ms=self._lease_ms)
            )
        except OutcomeUnknown:
            return await self._look_up(job_ids, running)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — the ordinary way finds out which of them it was
            _log.warning("claim_failed", error=repr(error), jobs=len(job_ids))
            return ()

    async def _claim(self, job_ids: Sequence[str], running: Container[Fence]) -> BatchResult[Job]:
        async def win(tx: Tx) -> BatchResult[Job]:
            outcome = await self._jobs.claim(tx, job_ids, worker=self._name, lease_ms=self._lease_ms)
            return replace(outcome, done=await with_preloaded(tx, self._handlers, outcome.done))

        try:
            return await self._database.transact(win)
        except OutcomeUnknown:  # what it did not win stays pending and comes back
            return BatchResult(await self._look_up(job_ids, running))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 — one job that cannot be claimed must not stop the others
            _log.warning("claim_failed", error=repr(error), jobs=len(job_ids))
            return await self._claim_apart(job_ids, running)

    async def _claim_apart(self, job_ids: Sequence[str], running: Container[Fence]) -> BatchResult[Job]:
        """Claim each job alone. What fails alone stays pending and comes back, or is set aside in the end."""

        async def win(tx: Tx, ids: Sequence[str]) -> list[BatchResult[Job]]:
            outcome = await self._jobs.claim(tx, ids, worker=self._name, lease_ms=self._lease_ms)
            return [replace(outcome, done=await with_preloaded(tx, self._handlers, outcome.done))]

        try:
            found = await self._isolation.one_by_one(job_ids, win)
        except Unavailable:  # some of them may have been won before
            return BatchResult(await self._look_up(job_ids, running))
        done = tuple(job for outcome in found for job in outcome.done)
        return BatchResult(done, tuple(refused for outcome in found for refused in outcome.refused))

    async def _look_up(self, job_ids: Sequence[str], running: Container[Fence]) -> tuple[Job, ...]:
        self.unsure.update(job_ids)
        held = await self._database.read(lambda tx: self._jobs.find_held(tx, job_ids, worker=self._name))
        self.unsure.difference_update(job_ids)
        return tuple(job for job in held if Fence(job.id, job.attempt_id, self._name) not in running)

    async def release_unsure(self, running: Container[Fence]) -> None:
        """Give back what was claimed without anybody knowing: it never started, so it costs no attempt.

        They are not started now: their leases began when the claim was sent, which was some time ago. One whose owner
        fails is left to the watchdog.
        """
        job_ids = sorted(self.unsure)

        async def release(tx: Tx, ids: Sequence[str]) -> Sequence[Job]:
            held = await self._jobs.find_held(tx, ids, worker=self._name)
            fences = [Fence(job.id, job.attempt_id, self._name) for job in held]
            releases = [
                JobResult(fence, JobStatus.PENDING, reason=NEVER_STARTED, refund=True, job=job)
                for job, fence in zip(held, fences, strict=True)
                if fence not in running
            ]
            return (await self._jobs.finish_and_claim_next(tx, releases)).done

        released = await self._isolation.run(job_ids, release)
        self.unsure.difference_update(job_ids)
        if released:
            _log.warning("claims_released", reason=NEVER_STARTED, jobs=len(released))
