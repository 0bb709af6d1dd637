"""Claiming: winning the jobs that messages speak of, by the short way where there is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import replace

from adjudge.domain.errors import OutcomeUnknown
from adjudge.store import Database, Tx
from adjudge.store.job_values import Fence, Job, Outcome
from adjudge.store.jobs import Jobs
from adjudge.stream.driver import Message
from adjudge.worker.handler import Handler, briefed


class Claimer:
    """Claims for one worker."""

    def __init__(
        self, database: Database, jobs: Jobs, handlers: Mapping[str, Handler], *, name: str, lease_ms: int
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._handlers = handlers
        self._name = name
        self._lease_ms = lease_ms

    async def claim(self, messages: Mapping[str, Message], running: Container[Fence]) -> AsyncIterator[Outcome[Job]]:
        """Win the jobs, each with its brief; where an answer is lost, find out what was won besides what runs here.

        Every transaction's outcome comes as soon as it is known: what was won is to begin, even if whoever asks is
        stopped or the database goes away during the next. What was not asked for then stays pending and comes back.
        """
        left = set(messages)
        for kind, job_ids in self._openings(messages).items():
            won = await self._open(kind, job_ids, running)
            left.difference_update(job.id for job in won)
            yield Outcome(won)
        if left:
            yield await self._claim([job_id for job_id in messages if job_id in left], running)

    def _openings(self, messages: Mapping[str, Message]) -> dict[str, list[str]]:
        """The jobs that there is a short way for, by kind."""
        found: dict[str, list[str]] = defaultdict(list)
        for job_id, message in messages.items():
            hint = message.hint
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

    async def _claim(self, job_ids: Sequence[str], running: Container[Fence]) -> Outcome[Job]:
        async def win(tx: Tx) -> Outcome[Job]:
            outcome = await self._jobs.claim(tx, job_ids, worker=self._name, lease_ms=self._lease_ms)
            return replace(outcome, done=await briefed(tx, self._handlers, outcome.done))

        try:
            return await self._database.transact(win)
        except OutcomeUnknown:  # what it did not win stays pending and comes back
            return Outcome(await self._look_up(job_ids, running))

    async def _look_up(self, job_ids: Sequence[str], running: Container[Fence]) -> tuple[Job, ...]:
        held = await self._database.read(lambda tx: self._jobs.held(tx, job_ids, worker=self._name))
        return tuple(job for job in held if Fence(job.id, job.attempt_id, self._name) not in running)
