"""Decides which messages can be processed; missing data is read from the job's row.

An expired payload, a missing field or an unknown kind in a message says nothing about the job. Only a job whose row is
invalid gets a dead letter, with an error code, and it never delays other jobs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adjudge.domain.errors import RefusalReason
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.jobs import outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.models import PoisonJob, RefusedWrite
from adjudge.stream.driver import Message, MessageBody

_log = get_logger(__name__)
_UNKNOWN_KIND = "unknown_kind"
_DECISIONS = {
    RefusalReason.NOT_FOUND: "not_found",
    RefusalReason.LEASE_STILL_VALID: "lease_still_valid",
    RefusalReason.ATTEMPTS_EXHAUSTED: "exhausted",
}
"""What is made of a message whose job could not be taken over; for any other reason, there is nothing left to do."""


@dataclass(frozen=True, slots=True)
class ValidatedMessages:
    """The result of validating a batch of messages."""

    usable: dict[str, Message] = field(default_factory=dict)
    """By job, one message each, with everything that a worker needs."""
    to_acknowledge: list[Message] = field(default_factory=list)
    """To be acknowledged: poison jobs with a dead letter, messages without a job, and duplicates."""


class MessageValidator:
    """Validates messages, and writes dead letters for jobs that no worker can run."""

    def __init__(self, database: Database, jobs: JobCommands, kinds: Collection[str], *, actor: str) -> None:
        self._database = database
        self._jobs = jobs
        self._kinds = kinds
        self._actor = actor
        self._isolation = JobIsolation(database, jobs, actor=actor)

    async def validate(self, messages: Sequence[Message]) -> ValidatedMessages:
        """Validate each message; for incomplete ones, read the row."""
        result, suspects = ValidatedMessages(), {}
        for message in messages:
            if message.job_id is None:
                metrics.WORKER_CLAIM.labels("poison", str(message.defect)).inc()
                result.to_acknowledge.append(message)
            elif message.job_id in result.usable or message.job_id in suspects:
                result.to_acknowledge.append(message)
            elif message.body is not None and message.body.kind in self._kinds:
                result.usable[message.job_id] = message
            else:
                suspects[message.job_id] = message
        if suspects:
            await self._look_up(suspects, result)
        return result

    async def _look_up(self, suspects: dict[str, Message], result: ValidatedMessages) -> None:
        rows = await self._database.read(lambda tx: outbox.load_messages(tx, list(suspects)))
        poison_jobs, traces = dict[str, PoisonJob](), {row.job_id: row.trace_id for row in rows}
        for row in rows:
            message = suspects[row.job_id]
            problem = str(message.defect or _UNKNOWN_KIND)
            try:
                hint = MessageBody(row.job_id, row.priority, row.kind, row.trace_id, dict(json.loads(row.payload)))
            except (TypeError, ValueError) as error:
                why = f"The job's payload is not an object: {error}"
                poison_jobs[row.job_id] = PoisonJob(row.job_id, problem.upper(), why)
                continue
            if row.kind not in self._kinds:
                why = f"No handler is registered for jobs of kind {row.kind!r}."
                poison_jobs[row.job_id] = PoisonJob(row.job_id, _UNKNOWN_KIND.upper(), why)
                continue
            metrics.WORKER_CLAIM.labels("restored", problem).inc()
            _log.warning("message_payload_recovered", job_id=row.job_id, reason=problem, trace_id=row.trace_id)
            result.usable[row.job_id] = replace(message, body=hint, defect=None)
        for poison_job in poison_jobs.values():
            metrics.WORKER_CLAIM.labels("poison", poison_job.error_code.lower()).inc()
            _log.warning(
                "job_dead_lettered",
                stage="poisoned",
                job_id=poison_job.job_id,
                trace_id=traces[poison_job.job_id],
                reason=poison_job.error_code,
                error=poison_job.error,
            )
        left = set(poison_jobs) - set(await self._dead_letter(poison_jobs)) if poison_jobs else set()
        kept = left.union(result.usable)  # without a dead letter the message stays pending and is delivered again
        result.to_acknowledge.extend(message for job_id, message in suspects.items() if job_id not in kept)

    async def _dead_letter(self, poison_jobs: Mapping[str, PoisonJob]) -> list[str]:
        """Write dead letters; return the jobs that are finished. A job whose listener fails stops no other."""

        async def dead_letter(tx: Tx, job_ids: Sequence[str]) -> Sequence[str]:
            await self._jobs.dead_letter(tx, [poison_jobs[job_id] for job_id in job_ids], actor=self._actor)
            return job_ids

        return await self._isolation.run(list(poison_jobs), dead_letter)


def without_alive(refused: Sequence[RefusedWrite], usable: Mapping[str, Message]) -> list[Message]:
    """Of reclaimed messages whose jobs were refused: those to acknowledge.

    A message whose job has an unexpired lease is left alone: its worker is alive but slow.
    """
    for item in refused:
        metrics.WORKER_RECLAIM.labels(_DECISIONS.get(item.reason, "done_or_stale"), str(item.reason)).inc()
    return [usable[item.job_id] for item in refused if item.reason is not RefusalReason.LEASE_STILL_VALID]
