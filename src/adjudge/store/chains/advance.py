"""Steps: nodes that ended well and the nodes that follow from them, written together.

This is the short way for what happens nearly always: nodes that succeeded, in runs that go on, whose dependents ask
for nothing but success. It does what ``jobs.finish``, ``chain_nodes.finish``, ``chain_runs.count_nodes``,
``chain_nodes.count_deps``, ``jobs.insert``, ``jobs.claim`` and ``chain_nodes.start`` do one after another, with the
same fence, locks in the same order and the same history. Rows that ask for more make it ``Unfit``, and nothing of it
happens: a run that is to stop or would end, a dependent that would be skipped.

A job whose worker takes it on is born running: leased, with its attempt, and without a row in the outbox, because there
is nothing to deliver. Should it come back, it gets its row then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.domain.states import ChainRunStatus, JobStatus, NodeStatus
from adjudge.store.chains import advance_statements as sql
from adjudge.store.chains import statements as nodes
from adjudge.store.engine.driver import Tx, Unfit
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.statement import Dialect, Row
from adjudge.store.jobs import outbox, scripts
from adjudge.store.jobs.models import JobResult, NewJob, finish_row


class FinishedStep(NamedTuple):
    """A node that succeeded: how its job ends, and what it leaves behind."""

    finish: JobResult
    run_id: str
    node_id: str
    artifact: str | None
    digest: str | None
    size_bytes: int
    follows: tuple[int, ...]
    """Which of the step's followers depend on it."""


class FollowUpNode(NamedTuple):
    """A node that depends on ended ones: its job, and who takes it on, should they have been the last."""

    job: NewJob
    payload: str
    """The job's, in JSON."""
    worker: str | None = None

    @property
    def row(self) -> tuple[object, ...]:
        """What a born job's row is made of."""
        job = self.job
        return (
            job.chain_run_id,
            job.node_id,
            job.id,
            self.worker,
            job.max_attempts,
            job.priority,
            job.timeout_ms,
            self.payload,
            job.effective_trace_id,
        )


class FinishedStepJob(NamedTuple):
    """A job that a step has ended; of a node that had moved on, there are no moments."""

    started_at: int | None
    ended_at: int | None


class FollowUpJob(NamedTuple):
    """A job that a step has created."""

    status: JobStatus
    started_at: int | None
    lease_until: int | None


@dataclass(frozen=True, slots=True)
class AdvanceResult:
    """What a step came to. A job that was to end and is not among those ended was refused by its fence."""

    ended: dict[str, FinishedStepJob]
    born: dict[str, FollowUpJob]


async def finish_and_claim_next(
    tx: Tx, ends: Sequence[FinishedStep], followers: Sequence[FollowUpNode], *, lease_ms: int
) -> AdvanceResult:
    """Write a step as the whole of a transaction; ``Unfit`` where it takes the long way."""
    ends = sorted(ends, key=lambda end: end.finish.fence.job_id)
    if tx.dialect is Dialect.SQLITE:
        stepped = await _in_turn(tx, ends, followers, lease_ms * 1_000)
    else:
        stepped = await _at_once(tx, ends, followers, lease_ms * 1_000)
    if any(born.status is JobStatus.PENDING for born in stepped.born.values()):
        tx.notify(CHANNEL_OUTBOX)
    return stepped


async def _at_once(
    tx: Tx, ends: Sequence[FinishedStep], followers: Sequence[FollowUpNode], lease_us: int
) -> AdvanceResult:
    rows = [_end_row(end) for end in ends]
    if len(ends) == len(followers) == 1:
        only = dict(zip(sql.FOLLOW, followers[0].row, strict=True))
        return _stepped(await tx.fetch_last(sql.TAKE_ONE, rows, lease_us=lease_us, **only))
    after: list[list[str]] = [[] for _ in followers]
    for end in ends:
        for number in end.follows:
            after[number].append(end.finish.fence.job_id)
    follow = [(*follower.row, f"{{{','.join(job_ids)}}}") for follower, job_ids in zip(followers, after, strict=True)]
    columns = dict(zip(sql.FOLLOW_AFTER, map(list, zip(*follow, strict=True)), strict=True))
    return _stepped(await tx.fetch_last(sql.FINISH_AND_CLAIM_NEXT, rows, lease_us=lease_us, **columns))


def _stepped(rows: Sequence[Row]) -> AdvanceResult:
    found = AdvanceResult({}, {})
    for job_id, status, started_at, until in rows:
        if status == "succeeded":
            found.ended[job_id] = FinishedStepJob(started_at, until)
        else:
            found.born[job_id] = FollowUpJob(JobStatus(status), started_at, until)
    return found


def _end_row(end: FinishedStep) -> tuple[object, ...]:
    job_id, attempt, owner, _, result, *_ = finish_row(end.finish)
    return job_id, attempt, owner, result, end.run_id, end.node_id, end.artifact, end.digest, end.size_bytes


async def _in_turn(
    tx: Tx, ends: Sequence[FinishedStep], followers: Sequence[FollowUpNode], lease_us: int
) -> AdvanceResult:
    """The same by several statements, where each costs no round trip."""
    by_job = {end.finish.fence.job_id: end for end in ends}
    finished = await tx.run(scripts.FINISH, {"result": [finish_row(end.finish) for end in ends]})
    over = [row[0] for row in finished["finished_job"]]
    rows = [_node_row(by_job[job_id]) for job_id in over]
    ended = {(row["run_id"], row["node_id"]): row for row in await tx.fetch(nodes.FINISH_NODES, rows)} if rows else {}
    counted: dict[str, int] = {}
    for run_id, _ in ended:
        counted[run_id] = counted.get(run_id, 0) + 1
    counts = [(run_id, 0, -number, 0) for run_id, number in sorted(counted.items(), reverse=True)]
    for row in await tx.fetch(nodes.UPDATE_NODE_COUNTS, counts) if counts else []:
        if row["status"] != ChainRunStatus.RUNNING or row["nodes_open"] <= 0:
            raise Unfit("a run is to stop, or would end")
    born = await _follow(tx, [end for end in ends if (end.run_id, end.node_id) in ended], followers, lease_us)
    found = AdvanceResult({}, born)
    for job_id in over:
        node = ended.get((by_job[job_id].run_id, by_job[job_id].node_id))
        found.ended[job_id] = (
            FinishedStepJob(None, None) if node is None else FinishedStepJob(node["started_at"], node["ended_at"])
        )
    return found


async def _follow(
    tx: Tx, ends: Sequence[FinishedStep], followers: Sequence[FollowUpNode], lease_us: int
) -> dict[str, FollowUpJob]:
    counted = dict[int, int]()
    for end in ends:
        for number in end.follows:
            counted[number] = counted.get(number, 0) + 1
    moves = [
        (item.job.chain_run_id, item.job.node_id, number, item.job.id, item.worker)
        for item, number in ((followers[index], number) for index, number in counted.items())
    ]
    ready = set()
    for row in await tx.fetch(sql.COUNT_SUCCESS, moves) if moves else []:
        if row["waiting_on"] == 0 and row["deps_failed"] + row["deps_skipped"]:
            raise Unfit("a dependent would be skipped")
        ready.add(row["job_id"])
    born = [follower for follower in followers if follower.job.id in ready]
    rows = await tx.fetch(sql.INSERT_CLAIMED_JOBS, [item.row for item in born], lease_us=lease_us) if born else []
    running = [(row["id"], row["lease_owner"], row["started_at"]) for row in rows if row["status"] == JobStatus.RUNNING]
    if running:
        await tx.execute(sql.LOG_CLAIMS, running)
    await outbox.insert(tx, [(item.job.id, item.job.priority, 0) for item in born if item.worker is None])
    return {row["id"]: FollowUpJob(JobStatus(row["status"]), row["started_at"], row["lease_until"]) for row in rows}


def _node_row(end: FinishedStep) -> tuple[object, ...]:
    fence = end.finish.fence
    return (
        end.run_id,
        end.node_id,
        fence.job_id,
        str(NodeStatus.SUCCESS),
        fence.lease_owner,
        end.finish.reason,
        end.artifact,
        end.digest,
        end.size_bytes,
    )
