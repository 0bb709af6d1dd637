"""Evaluations: records of programs with their tests, added in batches, whose results are read in completion order.

The number of a result is assigned under the lock of its evaluation, so that numbers are committed in ascending order:
a reader that has read up to a number misses none below it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.judging.evaluation_models import (
    EvaluationItemState,
    EvaluationJobOptions,
    EvaluationResultRow,
    EvaluationRow,
    EvaluationTask,
    FinishedEvaluation,
    KnownRecord,
    LockedEvaluation,
    NewEvaluationItem,
)

JOB_KIND_EVALUATE: Final = "evaluate"
"""The kind of job that evaluates a record."""

FIND = Statement(
    "evaluations.find",
    "Read an evaluation of a user.",
    "SELECT {columns} FROM evaluations WHERE id = :id AND user_id = :user_id AND name IS NOT NULL",
    row=EvaluationRow,
)
FIND_BY_NAME = Statement(
    "evaluations.find_by_name",
    "Read an evaluation of a user by its name.",
    "SELECT {columns} FROM evaluations WHERE user_id = :user_id AND name = :name",
    row=EvaluationRow,
)
INSERT = Statement(
    "evaluations.insert",
    "Create an evaluation.",
    """
    INSERT INTO evaluations (id, user_id, name, created_at, expires_at)
    VALUES (:id, :user_id, :name, {now}, {now} + :ttl_us)
    """,
)
PAGE = Statement(
    "evaluations.page",
    "List a user's evaluations, newest first, keyset-paginated.",
    """
    SELECT {columns} FROM evaluations WHERE user_id = :user_id AND id < :before AND name IS NOT NULL
    ORDER BY id DESC LIMIT :limit
    """,
    row=EvaluationRow,
)
COUNT_VERDICTS = Statement(
    "evaluation_items.count_verdicts",
    "Count the records of an evaluation by state and verdict.",
    """
    SELECT state, verdict, count(*) AS count FROM evaluation_items WHERE evaluation_id = :id GROUP BY state, verdict
    """,
)
FIND_KNOWN = Statement(
    "evaluation_items.find_known",
    "Of given records, read those that an evaluation has already.",
    """
    SELECT {columns} FROM evaluation_items
    WHERE evaluation_id = :id AND record_id IN (SELECT given_id FROM {given})
    """,
    row=KnownRecord,
    columns={"result_chars": "coalesce(length(result), 0)"},
    input_columns={"given_id": "text"},
)
ADD_COUNTS = Statement(
    "evaluations.add_counts",
    "Count records that are added to an evaluation, and keep it longer.",
    """
    UPDATE evaluations SET total = total + :count, kept_bytes = kept_bytes + :bytes, expires_at = {now} + :ttl_us
    WHERE id = :id AND name IS NOT NULL
    """,
)
INSERT_ITEMS = Statement(
    "evaluation_items.insert",
    "Add records to an evaluation.",
    """
    INSERT INTO evaluation_items (evaluation_id, record_id, digest, shape, record, job_id)
    SELECT :id, given_record_id, given_digest, given_shape, given_record, given_job_id FROM {given}
    """,
    input_columns={
        "given_record_id": "text",
        "given_digest": "text",
        "given_shape": "text",
        "given_record": "text",
        "given_job_id": "text",
    },
)
COUNT_RETRIED = Statement(
    "evaluations.count_retried",
    "Count records that are evaluated again as unfinished, and keep the evaluation longer.",
    """
    UPDATE evaluations SET finished = finished - :count, kept_bytes = kept_bytes - :bytes, expires_at = {now} + :ttl_us
    WHERE id = :id
    """,
)
RETRY_ITEMS = Statement(
    "evaluation_items.retry",
    "Remove the results of records that failed or were canceled, and set their new jobs.",
    """
    UPDATE evaluation_items SET job_id = given_job_id, state = 'pending', result = NULL, sequence = NULL,
        finished_at = NULL
    FROM {given} WHERE evaluation_id = :id AND record_id = given_record_id
    """,
    input_columns={"given_record_id": "text", "given_job_id": "text"},
)
SELECT_TASK = Statement(
    "evaluation_items.select_task",
    "Read what a worker needs to evaluate a record.",
    "SELECT {columns} FROM evaluation_items WHERE evaluation_id = :id AND record_id = :record_id",
    row=EvaluationTask,
)
PAGE_RESULTS = Statement(
    "evaluation_items.page_results",
    "Read the results of an evaluation after a number, in completion order.",
    """
    SELECT {columns} FROM evaluation_items WHERE evaluation_id = :id AND sequence > :after
    ORDER BY sequence LIMIT :limit
    """,
    row=EvaluationResultRow,
)
OPEN_JOBS = Statement(
    "evaluation_items.open_jobs",
    "Select jobs of an evaluation's unfinished records.",
    "SELECT job_id FROM evaluation_items WHERE evaluation_id = :id AND state = 'pending' ORDER BY job_id LIMIT :limit",
)
LOCK = Statement(
    "evaluations.lock",
    "Lock evaluations whose records have finished, by ascending id.",
    "SELECT {columns} FROM evaluations WHERE id IN (SELECT given_id FROM {given}) ORDER BY id FOR NO KEY UPDATE",
    row=LockedEvaluation,
    input_columns={"given_id": "text"},
)
FIND_STATES = Statement(
    "evaluation_items.find_states",
    "Read the states of records.",
    """
    SELECT {columns} FROM {given}
    JOIN evaluation_items ON evaluation_id = given_id AND record_id = given_record_id
    """,
    row=EvaluationItemState,
    input_columns={"given_id": "text", "given_record_id": "text"},
)
COUNT_FINISHED = Statement(
    "evaluations.count_finished",
    "Count the finished records of evaluations.",
    """
    UPDATE evaluations SET sequence = given_sequence, finished = finished + given_finished,
        kept_bytes = kept_bytes + given_bytes
    FROM {given} WHERE id = given_id
    """,
    input_columns={
        "given_id": "text",
        "given_sequence": "bigint",
        "given_finished": "bigint",
        "given_bytes": "bigint",
    },
)
FINISH = Statement(
    "evaluation_items.finish",
    "Store the results of records; the record of a finished item is no longer needed.",
    """
    UPDATE evaluation_items SET job_id = given_job_id, state = given_state, verdict = given_verdict,
        result = given_result, sequence = given_sequence, finished_at = {now},
        record = CASE WHEN given_state = 'finished' THEN '' ELSE record END
    FROM {given} WHERE evaluation_id = given_id AND record_id = given_record_id
    """,
    input_columns={
        "given_id": "text",
        "given_record_id": "text",
        "given_job_id": "text",
        "given_state": "text",
        "given_verdict": "text",
        "given_result": "text",
        "given_sequence": "bigint",
    },
)
RETIRE_EXPIRED = Statement(
    "evaluations.retire_expired",
    "Remove the name of expired evaluations, which hides them until their rows are deleted.",
    """
    UPDATE evaluations SET name = NULL
    WHERE expires_at <= {now} AND finished = total AND name IS NOT NULL
    """,
)
DELETE_ITEMS = Statement(
    "evaluation_items.delete_expired",
    "Delete records of hidden evaluations.",
    """
    DELETE FROM evaluation_items WHERE job_id IN (
        SELECT job_id FROM evaluations JOIN evaluation_items ON evaluation_id = evaluations.id
        WHERE expires_at <= {now} AND name IS NULL LIMIT :limit)
    """,
)
DELETE_EMPTY = Statement(
    "evaluations.delete_empty",
    "Delete hidden evaluations whose records are deleted.",
    """
    DELETE FROM evaluations WHERE expires_at <= {now} AND name IS NULL
      AND NOT EXISTS (SELECT 1 FROM evaluation_items WHERE evaluation_id = evaluations.id)
    """,
)


async def find(tx: Tx, evaluation_id: str, user_id: str) -> EvaluationRow | None:
    """An evaluation of a user; None if it does not exist or is another user's."""
    return await fetch_one(tx, FIND, id=evaluation_id, user_id=user_id)


async def find_by_name(tx: Tx, user_id: str, name: str) -> EvaluationRow | None:
    """The evaluation of a user with this name."""
    return await fetch_one(tx, FIND_BY_NAME, user_id=user_id, name=name)


async def create(tx: Tx, evaluation_id: str, user_id: str, name: str, *, ttl_ms: int) -> None:
    """Create an evaluation without records; the user must be locked (``executions.kept_bytes``)."""
    await tx.execute(INSERT, id=evaluation_id, user_id=user_id, name=name, ttl_us=ttl_ms * 1_000)


async def page(tx: Tx, user_id: str, *, before: str, limit: int) -> list[EvaluationRow]:
    """A user's evaluations, newest first."""
    return await tx.fetch(PAGE, user_id=user_id, before=before, limit=limit)


async def count_verdicts(tx: Tx, evaluation_id: str) -> dict[str, int]:
    """The number of records by verdict; ``pending``, and ``error`` for those without a verdict."""
    counts: Counter[str] = Counter()
    for row in await tx.fetch(COUNT_VERDICTS, id=evaluation_id):
        counts["pending" if row["state"] == "pending" else row["verdict"] or "error"] += int(row["count"])
    return dict(sorted(counts.items()))


async def lock(tx: Tx, evaluation_id: str) -> None:
    """Lock an evaluation: no result is stored until the transaction ends."""
    await tx.fetch(LOCK, [(evaluation_id,)])


async def find_known(tx: Tx, evaluation_id: str, record_ids: Sequence[str]) -> dict[str, KnownRecord]:
    """Those of the records that the evaluation has, by record id."""
    if not record_ids:
        return {}
    rows = await tx.fetch(FIND_KNOWN, [(record_id,) for record_id in record_ids], id=evaluation_id)
    return {row.record_id: row for row in rows}


async def add(
    tx: Tx,
    jobs: JobCommands,
    evaluation_id: str,
    items: Sequence[NewEvaluationItem],
    options: EvaluationJobOptions,
    *,
    ttl_ms: int,
    new_id: IdFactory = new_id,
) -> bool:
    """Add records with their jobs; False if the evaluation has expired. The user must be locked."""
    job_ids = await _enqueue(tx, jobs, evaluation_id, items, options, new_id=new_id)
    size = sum(len(item.record) for item in items)
    if not await tx.execute(ADD_COUNTS, id=evaluation_id, count=len(items), bytes=size, ttl_us=ttl_ms * 1_000):
        return False
    rows = [
        (item.record_id, item.digest, item.shape, item.record, job_id)
        for item, job_id in zip(items, job_ids, strict=True)
    ]
    if rows:
        await tx.execute(INSERT_ITEMS, rows, id=evaluation_id)
    return True


async def retry(
    tx: Tx,
    jobs: JobCommands,
    evaluation_id: str,
    items: Mapping[NewEvaluationItem, KnownRecord],
    options: EvaluationJobOptions,
    *,
    ttl_ms: int,
    new_id: IdFactory = new_id,
) -> None:
    """Evaluate records again that failed or were canceled. The user and the evaluation must be locked."""
    if not items:
        return
    job_ids = await _enqueue(tx, jobs, evaluation_id, [*items], options, new_id=new_id)
    size = sum(known.result_chars for known in items.values())
    await tx.execute(COUNT_RETRIED, id=evaluation_id, count=len(items), bytes=size, ttl_us=ttl_ms * 1_000)
    rows = [(item.record_id, job_id) for item, job_id in zip(items, job_ids, strict=True)]
    await tx.execute(RETRY_ITEMS, rows, id=evaluation_id)


async def _enqueue(
    tx: Tx,
    jobs: JobCommands,
    evaluation_id: str,
    items: Sequence[NewEvaluationItem],
    options: EvaluationJobOptions,
    *,
    new_id: IdFactory,
) -> Sequence[str]:
    made = [
        NewJob(
            id=new_id(),
            kind=JOB_KIND_EVALUATE,
            priority=options.priority,
            delay_ms=options.delay_ms,
            timeout_ms=item.timeout_ms,
            payload=_payload(evaluation_id, item, options),
            actor=options.user_id,
            trace_id=options.trace_id,
        )
        for item in items
    ]
    return await jobs.enqueue(tx, made)


def _payload(evaluation_id: str, item: NewEvaluationItem, options: EvaluationJobOptions) -> dict[str, Any]:
    payload = {
        "evaluation_id": evaluation_id,
        "record_id": item.record_id,
        "language": item.language,
        "user_id": options.user_id,
    }
    if item.revision_id is not None:
        payload["revision_id"] = item.revision_id
    return payload if options.request_id is None else {**payload, "request_id": options.request_id}


async def find_task(tx: Tx, evaluation_id: str, record_id: str) -> EvaluationTask | None:
    """Read what is to be evaluated; None if it was deleted."""
    return await fetch_one(tx, SELECT_TASK, id=evaluation_id, record_id=record_id)


async def page_results(tx: Tx, evaluation_id: str, *, after: int, limit: int) -> list[EvaluationResultRow]:
    """Results with a number greater than ``after``, in completion order."""
    return await tx.fetch(PAGE_RESULTS, id=evaluation_id, after=after, limit=limit)


async def open_jobs(tx: Tx, evaluation_id: str, *, limit: int) -> list[str]:
    """Jobs of unfinished records."""
    return [row["job_id"] for row in await tx.fetch(OPEN_JOBS, id=evaluation_id, limit=limit)]


async def delete_expired(tx: Tx, *, limit: int = 500) -> int:
    """Delete expired evaluations, some records at a time; return the number of changed rows."""
    retired = await tx.execute(RETIRE_EXPIRED)
    return retired + await tx.execute(DELETE_EMPTY) + await tx.execute(DELETE_ITEMS, limit=limit)


class EvaluationListener:
    """Updates records of evaluations with their jobs."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """The status is that of the job."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """The status is that of the job."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the results with the next numbers of their evaluations."""
        groups: dict[str, list[FinishedJob]] = defaultdict(list)
        for item in ended:
            groups[item.job.payload["evaluation_id"]].append(item)
        locked = await tx.fetch(LOCK, [(evaluation_id,) for evaluation_id in sorted(groups)])
        keys = [_key(item) for item in ended]
        states = {(row.evaluation_id, row.record_id): row.state for row in await tx.fetch(FIND_STATES, keys)}
        counts, rows = [], []
        for evaluation in locked:
            # A record may have several jobs: replayed ones, and those of records that were sent again. The first
            # result that is not an error stays; one that replaces an error gets a new number, but counts once.
            found = {_key(item): item for item in groups[evaluation.id]}
            group = [item for key, item in found.items() if states.get(key) != "finished"]
            made = list(_item_rows(group, evaluation.sequence))
            finished = sum(states.get((evaluation.id, row[1])) == "pending" for row in made)
            size = sum(_size_change(item) for item in group)
            counts.append((evaluation.id, evaluation.sequence + len(made), finished, size))
            rows += made
        if rows:
            await tx.execute(COUNT_FINISHED, counts)
            await tx.execute(FINISH, rows)
        tx.notify(CHANNEL_JUDGING)


def _key(item: FinishedJob) -> tuple[str, str]:
    return item.job.payload["evaluation_id"], item.job.payload["record_id"]


_STATES: Final = {JobStatus.SUCCEEDED: "finished", JobStatus.CANCELED: "canceled"}


def _item_rows(ended: Sequence[FinishedJob], sequence: int) -> Iterator[tuple[Any, ...]]:
    for number, item in enumerate(ended, sequence + 1):
        payload, found = item.job.payload, item.typed_result
        state = _STATES.get(item.job.status, "failed")
        verdict = found.verdict.value if isinstance(found, FinishedEvaluation) and found.verdict else None
        yield (
            payload["evaluation_id"],
            payload["record_id"],
            item.job.id,
            state,
            verdict,
            _result(item),
            number,
        )


def _result(item: FinishedJob) -> str:
    if isinstance(item.typed_result, FinishedEvaluation):
        return item.typed_result.result
    is_canceled = item.job.status is JobStatus.CANCELED
    error = "Canceled." if is_canceled else "It could not be evaluated: internal error."
    return json.dumps({"id": item.job.payload["record_id"], "verdict": None, "error": error})


def _size_change(item: FinishedJob) -> int:
    removed = item.typed_result.record_bytes if isinstance(item.typed_result, FinishedEvaluation) else 0
    return len(_result(item)) - removed
