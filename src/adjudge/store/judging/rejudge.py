"""Rejudge batches: new judge runs of judged submissions, whose verdicts are applied together or discarded.

An item of a batch has the old verdict of a submission and the verdict of its new judge run. Submissions change only
when the batch is applied, in one transaction; one that has changed since the batch was created is never overwritten.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from adjudge.domain.errors import Conflict, InvalidInput, InvalidTransition
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.observe import metrics
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.contests.hidden import join_ids
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.judging import rejudge_statements as sql
from adjudge.store.judging.commands import JOB_KIND_JUDGE, judge_payload, record_transitions
from adjudge.store.judging.models import (
    Judgement,
    NewRejudgeBatch,
    RejudgeApplyResult,
    RejudgeBatchRow,
    RejudgeItemRow,
    RejudgeSelection,
    RevisionChoice,
    SelectedSubmission,
    VerdictChangeCount,
)
from adjudge.store.judging.submission_listener import SubmissionListener
from adjudge.store.ops import audit_log
from adjudge.store.webhooks import commands as webhook_commands

MAX_SUBMISSIONS: Final = 20_000
"""Maximum size of a batch, because it is applied in one transaction."""
PRIORITY: Final = 3
"""Below the priority of new submissions."""


class RejudgeCommands:
    """The operations on batches."""

    def __init__(
        self, jobs: JobCommands, new_id: IdFactory = new_id, *, listener: SubmissionListener | None = None
    ) -> None:
        self._jobs = jobs
        self._new_id = new_id
        self._listener = listener

    async def create(self, tx: Tx, batch: NewRejudgeBatch) -> int:
        """Create a batch with judge runs for the selected submissions; return their number."""
        rows = await self._select(tx, batch.selection)
        await tx.execute(
            sql.INSERT_BATCH,
            id=batch.id,
            created_by=batch.created_by,
            filter=json.dumps({**batch.selection.as_dict(), "ids": list(batch.selection.ids)}),
            policy=str(batch.policy),
            revision=str(batch.revision),
            reason=batch.reason,
            total=len(rows),
        )
        jobs = [self._job(batch, row) for row in rows]
        await self._jobs.enqueue(tx, jobs)
        items = [_item_row(job, row) for job, row in zip(jobs, rows, strict=True)]
        await tx.execute(sql.INSERT_ITEMS, items, batch_id=batch.id)
        await _audit(tx, batch.created_by, "create", batch.id, batch.reason, total=len(rows))
        return len(rows)

    async def _select(self, tx: Tx, selection: RejudgeSelection) -> list[SelectedSubmission]:
        if selection.ids:
            given = [(item,) for item in dict.fromkeys(selection.ids)]
            rows = await tx.fetch(sql.SELECT_BY_IDS, given, **selection.as_dict())
        else:
            rows = await tx.fetch(sql.SELECT_BY_FILTER, limit=MAX_SUBMISSIONS + 1, **selection.as_dict())
        if not rows:
            raise InvalidInput("filter: no submission with a verdict matches it.", field="filter")
        if len(rows) > MAX_SUBMISSIONS:
            raise InvalidInput(
                f"filter: more than {MAX_SUBMISSIONS} submissions match it; make it narrower.", field="filter"
            )
        return rows

    def _job(self, batch: NewRejudgeBatch, row: SelectedSubmission) -> NewJob:
        current = row.current_revision_id if batch.revision is RevisionChoice.CURRENT else None
        revision_id = current or row.pinned_revision_id
        return NewJob(
            id=self._new_id(),
            kind=JOB_KIND_JUDGE,
            dedupe_key=f"{batch.id}:{row.id}",
            submission_id=row.id,
            rejudge_batch_id=batch.id,
            priority=PRIORITY,
            timeout_ms=row.timeout_ms,
            payload=judge_payload(row.id, revision_id, row.language, row.user_id),
            actor=batch.created_by,
        )

    async def apply(self, tx: Tx, batch_id: str, *, actor: str, skip_changed: bool = False) -> RejudgeApplyResult:
        """Set the new verdicts according to the policy of the batch, in one transaction."""
        batch = await _lock(tx, batch_id)
        _check_state(batch, "ready", "applied")
        locked = await tx.fetch(sql.LOCK_SUBMISSIONS, batch_id=batch_id)
        late = [row["id"] for row in locked if row["version"] != row["old_version"]]
        metrics.SUBMISSION_CONFLICTS.inc(len(late))
        if late and not skip_changed:
            raise Conflict(
                f"{len(late)} submissions changed since the batch was created (first: "
                f"{late[0]!r}); rejudge them again, or apply with skip_changed.",
                submission_ids=",".join(late[:20]),
            )
        rows = await tx.fetch(
            sql.APPLY, batch_id=batch_id, policy=batch.policy, actor=actor, reason=f"rejudge {batch_id}"
        )
        await tx.execute(sql.MARK_APPLIED, [(row["id"],) for row in rows], batch_id=batch_id)
        await tx.execute(sql.SET_STATE, id=batch_id, state="applied", is_applied=1)
        done = RejudgeApplyResult(len(rows), len(locked) - len(late) - len(rows), len(late))
        await _audit(tx, actor, "apply", batch_id, batch.reason or "", changed=done.changed, skipped=done.skipped)
        await webhook_commands.enqueue_deliveries(
            tx, [row["id"] for row in rows], webhook_commands.REJUDGED, new_id=self._new_id
        )
        event = {"batch_id": batch_id, "changed": done.changed, "skipped": done.skipped}
        await chain_triggers.fire_event(tx, chain_triggers.REJUDGE_APPLIED, event, key=batch_id)
        edges = [(row["prior_status"], row["status"]) for row in rows]
        tx.on_commit(lambda: record_transitions(edges))
        tx.notify(CHANNEL_JUDGING)
        in_contests = [row["id"] for row in rows if row["contest_id"] is not None]
        if in_contests and self._listener is not None:
            await self._listener.changed(tx, in_contests)
        return done

    async def discard(self, tx: Tx, batch_id: str, *, actor: str, reason: str) -> None:
        """Discard a batch without changing verdicts."""
        batch = await _lock(tx, batch_id)
        _check_state(batch, "ready", "discarded")
        await tx.execute(sql.SET_STATE, id=batch_id, state="discarded", is_applied=0)
        await _audit(tx, actor, "discard", batch_id, reason)

    async def cancel(self, tx: Tx, batch_id: str, *, actor: str, reason: str) -> None:
        """Cancel a running batch with its unfinished judge runs.

        Runs are locked before the batch, in the order in which a finishing run locks them. The batch is canceled before
        its runs, so that its last run does not make it ready, and nodes that wait for it see that it was canceled.
        """
        open_runs = [row["id"] for row in await tx.fetch(sql.LOCK_OPEN_RUNS, batch_id=batch_id)]
        _check_state(await _lock(tx, batch_id), "running", "canceled")
        await tx.execute(sql.SET_STATE, id=batch_id, state="canceled", is_applied=0)
        await self._jobs.cancel(tx, open_runs, actor=actor, reason=reason or "rejudge canceled")
        await _audit(tx, actor, "cancel", batch_id, reason)


async def find(tx: Tx, batch_id: str) -> RejudgeBatchRow:
    return or_not_found(await fetch_one(tx, sql.FIND, id=batch_id), "rejudge_batch", batch_id)


async def find_many(tx: Tx, batch_ids: Iterable[str]) -> dict[str, RejudgeBatchRow]:
    """Batches by id."""
    return {row.id: row for row in await tx.fetch(sql.FIND_MANY, [(item,) for item in sorted(batch_ids)])}


async def find_id(tx: Tx, number: int) -> str | None:
    """The id of the batch with a number; None if there is none."""
    found = await fetch_one(tx, sql.FIND_ID, number=number)
    return None if found is None else str(found["id"])


async def page(tx: Tx, *, before: str, limit: int, hidden_contests: Iterable[str] = ()) -> list[RejudgeBatchRow]:
    """List batches without those of hidden contests, newest first; ``before`` is the last id of the previous page."""
    return await tx.fetch(sql.PAGE, before=before, limit=limit, hidden_contests=join_ids(hidden_contests))


async def items(
    tx: Tx, batch_id: str, *, after: str, limit: int, only_different: bool, hidden_contests: Iterable[str] = ()
) -> list[RejudgeItemRow]:
    """List the submissions of a batch with their old and new verdicts, without those of hidden contests."""
    return await tx.fetch(
        sql.ITEMS,
        batch_id=batch_id,
        after=after,
        limit=limit,
        only_different=int(only_different),
        hidden_contests=join_ids(hidden_contests),
    )


async def count_verdict_changes(
    tx: Tx, batch_id: str, *, hidden_contests: Iterable[str] = ()
) -> list[VerdictChangeCount]:
    """Count the items of a batch by old and new verdict, without those of hidden contests."""
    return await tx.fetch(sql.COUNT_VERDICT_CHANGES, batch_id=batch_id, hidden_contests=join_ids(hidden_contests))


class RejudgeListener:
    """Updates rejudge batches with their judge runs."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A batch counts finished runs only."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A released run is not finished."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the results of runs; a batch becomes ready with its last run."""
        rows = [_ended_row(item) for item in ended if item.job.rejudge_batch_id is not None]
        if not rows:
            return
        fresh = await tx.fetch(sql.FINISH_ITEMS, rows)
        if len(fresh) < len(rows):
            known = {(row["batch_id"], row["submission_id"]) for row in fresh}
            await tx.execute(sql.FINISH_REPLAYED_ITEMS, [row for row in rows if (row[0], row[1]) not in known])
        counts = Counter(row["batch_id"] for row in fresh)
        if counts:
            await tx.execute(sql.COUNT_FINISHED, sorted(counts.items()))


def _ended_row(item: FinishedJob) -> tuple[object, ...]:
    job, found = item.job, item.typed_result if isinstance(item.typed_result, Judgement) else None
    is_verdict = found is not None and found.verdict is not Verdict.SE
    outcome = "judged" if is_verdict else "canceled" if job.status is JobStatus.CANCELED else "failed"
    measured = (found.verdict.value, found.score, found.time_ms, found.mem_kb) if found else (None,) * 4
    return (job.rejudge_batch_id, job.submission_id, job.id, outcome, *measured)


async def _lock(tx: Tx, batch_id: str) -> RejudgeBatchRow:
    return or_not_found(await fetch_one(tx, sql.LOCK_BATCH, id=batch_id), "rejudge_batch", batch_id)


def _check_state(batch: RejudgeBatchRow, needed: str, target: str) -> None:
    if batch.state != needed:
        raise InvalidTransition(
            f"A rejudge batch that is {batch.state} cannot be {target}; it must be {needed}.",
            source=batch.state,
            target=target,
        )


async def _audit(tx: Tx, actor: str, action: str, batch_id: str, reason: str, **details: int) -> None:
    await audit_log.record(
        tx, actor=actor, action=action, object_kind="rejudge_batch", objects={batch_id: details}, reason=reason
    )


def _item_row(job: NewJob, row: SelectedSubmission) -> tuple[object, ...]:
    return (
        row.id,
        job.id,
        job.payload["revision_id"],
        row.version,
        row.verdict,
        row.score,
        row.time_ms,
        row.mem_kb,
        row.job_id,
    )


async def lock_batch_state(tx: Tx, batch_id: str) -> str | None:
    """Read the state of a batch and lock it against changes until the transaction ends."""
    row = await fetch_one(tx, sql.LOCK_BATCH_STATE, batch_id=batch_id)
    return str(row["state"]) if row else None
