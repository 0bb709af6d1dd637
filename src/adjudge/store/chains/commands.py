"""Writes of runs and nodes: created, counted, started, finished and deleted; checkpoints and logs of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from adjudge.domain.authority import authority_to_json
from adjudge.domain.chain import DependencyCounts, count_statuses, is_failed
from adjudge.domain.errors import FenceRefused, NotFound, RefusalReason
from adjudge.domain.ids import trace_id_from
from adjudge.domain.states import ChainRunStatus, JobStatus, NodeStatus
from adjudge.domain.strict_json import encode_json
from adjudge.store.chains import statements as sql
from adjudge.store.chains.models import (
    ChainRunFinished,
    CountedNode,
    FinishedNode,
    LockedChainRun,
    LockedRuns,
    NewChainRun,
    NewNode,
    NodeClosing,
    NodeCountDelta,
    NodeKey,
    NodeState,
    NumberedRun,
    SlotState,
    node_attempt,
)
from adjudge.store.chains.queries import CHANGED
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Dialect, Statement
from adjudge.store.jobs.models import Fence, Job

APPEND_LOG = Statement(
    "chain_node_logs.append",
    "Append log lines of a node.",
    """
    INSERT INTO chain_node_logs (run_id, node_id, attempt, text, at)
    SELECT :run_id, :node_id, :attempt, given_text, {now} FROM {given}
    """,
    input_columns={"given_text": "text"},
)

SAVE_CHECKPOINT = Statement(
    "chain_checkpoints.save",
    "Save a node's checkpoint if the writing attempt still holds the lease.",
    """
    INSERT INTO chain_checkpoints (run_id, node_id, attempt_id, checkpoint, updated_at)
    SELECT chain_run_id, jobs.node_id, :attempt, given_checkpoint, {now}
    FROM {given} JOIN jobs ON id = given_id
    WHERE attempt_id = given_attempt AND lease_owner = given_owner AND COALESCE(jobs.status, '') = 'running'
      AND lease_until > {now}
    ON CONFLICT (run_id, node_id) DO UPDATE SET attempt_id = excluded.attempt_id, checkpoint = excluded.checkpoint,
        updated_at = excluded.updated_at
    RETURNING run_id
    """,
    input_columns={"given_id": "text", "given_attempt": "bigint", "given_owner": "text", "given_checkpoint": "jsonb"},
)

LOCK_OLD_RUNS = Statement(
    "chain_runs.lock_old",
    "Lock runs past their retention so that nobody reopens one before it is deleted.",
    """
    SELECT id FROM chain_runs WHERE finished_at IS NOT NULL AND finished_at < {now} - :older_than_us
    ORDER BY finished_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """,
)

DELETE_DEAD_LETTERS = Statement(
    "chain_runs.delete_dead_letters",
    "Delete the dead letters of jobs of expired runs.",
    """
    DELETE FROM dead_letters WHERE id IN (
        SELECT dead_letters.id FROM {given}
        JOIN jobs ON chain_run_id = given_id AND chain_run_id IS NOT NULL
        JOIN dead_letters ON job_id = jobs.id)
    """,
    input_columns={"given_id": "text"},
)

DELETE_JOBS = Statement(
    "chain_runs.delete_jobs",
    "Delete the jobs of expired runs with their attempts and logs.",
    """
    DELETE FROM jobs WHERE id IN (
        SELECT jobs.id FROM {given} JOIN jobs ON chain_run_id = given_id AND chain_run_id IS NOT NULL)
    """,
    input_columns={"given_id": "text"},
)

DELETE_RUNS = Statement(
    "chain_runs.delete",
    "Delete expired runs with their nodes, checkpoints and logs.",
    "DELETE FROM chain_runs WHERE id IN (SELECT given_id FROM {given}) AND finished_at IS NOT NULL",
    input_columns={"given_id": "text"},
)


async def lock_runs(tx: Tx, run_ids: Iterable[str]) -> LockedRuns:
    """Lock runs until the transaction ends, newest first; one that does not exist is left out."""
    rows = [(run_id,) for run_id in sorted(set(run_ids), reverse=True)]
    return {run.id: run for run in await tx.fetch(sql.LOCK_RUNS, rows)} if rows else {}


async def lock_run(tx: Tx, run_id: str) -> LockedChainRun:
    """Lock a run until the transaction ends."""
    runs = await lock_runs(tx, [run_id])
    if run_id not in runs:
        raise NotFound("run", run_id)
    return runs[run_id]


async def update_counts(tx: Tx, deltas: Mapping[str, NodeCountDelta]) -> LockedRuns:
    """Update the node counts of runs, and lock the runs until the transaction ends, newest first."""
    rows = [(run_id, item.total, item.open, item.failed) for run_id, item in sorted(deltas.items(), reverse=True)]
    return {run.id: run for run in await tx.fetch(sql.UPDATE_NODE_COUNTS, rows)} if rows else {}


async def count_finished(tx: Tx, nodes: Sequence[FinishedNode]) -> LockedRuns:
    """Count finished nodes in their runs, which are locked until the transaction ends."""
    return await update_counts(tx, delta_of_finished(nodes))


def delta_of_finished(nodes: Sequence[FinishedNode]) -> dict[str, NodeCountDelta]:
    """The changes by finished nodes: instances count as open nodes, but only the mapped node can fail its run."""
    ended, failed = Counter[str](), Counter[str]()
    for node in nodes:
        ended[node.run_id] += 1
        failed[node.run_id] += node.parent_id is None and is_failed(node.status)
    return {run_id: NodeCountDelta(0, -number, failed[run_id]) for run_id, number in ended.items()}


async def insert_run(
    tx: Tx,
    run_id: str,
    new: NewChainRun,
    *,
    version: int,
    nodes_total: int,
    nodes_open: int,
    origin_run_id: str | None,
    slot: SlotState | None,
) -> int | None:
    """Insert a run with the DAG of a version of its chain and the next number of the chain; return the number.

    None if the idempotency key or the version is refused. The chain is locked until the transaction ends, so that its
    runs are numbered in the order of their commits.
    """
    row = (
        run_id,
        new.chain_id,
        version,
        new.idempotency_key,
        encode_json(new.parameters, "parameters"),
        new.trigger_kind,
        new.actor,
        new.reason,
        new.trace_id or trace_id_from(run_id),
        nodes_total,
        nodes_open,
        new.parent_run_id,
        new.parent_node_id,
        origin_run_id,
        slot,
        authority_to_json(new.authority),
    )
    for inserted in await tx.fetch(sql.INSERT_RUN, [row]):
        number = int(inserted["number"])
        if tx.dialect is Dialect.SQLITE:
            await tx.execute(sql.COUNT_RUN, chain_id=new.chain_id, number=number)
        return number
    return None


async def find_run_by_key(tx: Tx, chain_id: str, idempotency_key: str | None) -> NumberedRun | None:
    """The run of a chain that was started with an idempotency key."""
    if idempotency_key is None:
        return None
    return await fetch_one(tx, sql.FIND_BY_KEY, chain_id=chain_id, idempotency_key=idempotency_key)


async def start_runs(tx: Tx, run_ids: Iterable[str]) -> None:
    """Set pending runs to running."""
    if rows := sorted((run_id,) for run_id in run_ids):
        await tx.execute(sql.START_RUNS, rows)


async def finish_runs(tx: Tx, ends: Iterable[tuple[str, ChainRunStatus, str]]) -> list[ChainRunFinished]:
    """Finish runs without an open node, each with its status and reason."""
    return await tx.fetch(sql.FINISH_RUNS, sorted((run_id, str(status), reason) for run_id, status, reason in ends))


async def insert_nodes(tx: Tx, nodes: Sequence[NewNode]) -> None:
    """Insert nodes of runs."""
    rows = [
        (
            node.run_id,
            node.node_id,
            node.type,
            node.ordinal,
            node.priority,
            node.waiting_on,
            node.deps_success,
            node.job_id,
            node.parent_id,
            node.item,
            node.pool,
        )
        for node in nodes
    ]
    if rows:
        await tx.execute(sql.INSERT_NODES, rows)


async def copy_nodes(tx: Tx, run_id: str, node_ids: Collection[str], *, origin_run_id: str, pool: str | None) -> None:
    """Copy succeeded nodes and their instances from another run."""
    rows = [(node_id,) for node_id in sorted(node_ids)]
    if rows:
        await tx.execute(sql.COPY_NODES, rows, run_id=run_id, origin_run_id=origin_run_id, pool=pool)


async def list_states(tx: Tx, run_id: str) -> list[NodeState]:
    """Read all nodes of a run in the order of its DAG."""
    return await tx.fetch(sql.SELECT_STATES, run_id=run_id)


async def start_claimed(tx: Tx, jobs: Sequence[Job]) -> None:
    """Set the nodes of claimed jobs to running, and runs whose root node starts."""
    root_runs = sorted({job.chain_run_id or "" for job in jobs if job.payload.get("is_root")}, reverse=True)
    claims = sorted(_start_row(job) for job in jobs)
    await tx.run(sql.START_CLAIMED, {"root_run": [(run_id,) for run_id in root_runs], "claim": claims})


async def release_nodes(tx: Tx, jobs: Iterable[Job]) -> None:
    """Set the running nodes of released jobs to retrying."""
    rows = sorted(
        (job.chain_run_id or "", job.node_id or "", job.id, job.actor, job.reason)
        for job in jobs
        if job.prior_status is JobStatus.RUNNING
    )
    if rows:
        await tx.execute(sql.RELEASE_NODES, rows)


async def finish_with_jobs(tx: Tx, jobs: Sequence[Job]) -> list[FinishedNode]:
    """Finish the nodes of jobs that failed or were canceled without a result of their worker."""
    unclaimed = sorted(
        _start_row(job) for job in jobs if job.status is JobStatus.FAILED and job.prior_status is not JobStatus.RUNNING
    )
    if unclaimed:  # a pending node may become running, but not failed
        await tx.execute(sql.START_NODES, unclaimed)
    return await tx.fetch(sql.FINISH_NODES, sorted(_finish_row(job) for job in jobs))


async def close_nodes(tx: Tx, closings: Sequence[NodeClosing]) -> list[FinishedNode]:
    """Finish nodes without a running job; a node in another state is left out."""
    rows = [
        (
            item.run_id,
            item.node_id,
            str(item.source),
            str(item.status),
            item.actor,
            item.reason,
            item.error,
            item.artifact.text,
            item.artifact.digest,
            item.artifact.size_bytes,
            *(item.wait or (None, None)),
        )
        for item in sorted(closings, key=lambda item: (item.run_id, item.node_id))
    ]
    return await tx.fetch(sql.CLOSE_NODES, rows) if rows else []


async def skip_nodes(tx: Tx, reasons: Mapping[NodeKey, str]) -> None:
    """Skip pending nodes, each with its reason."""
    if reasons:
        await tx.execute(sql.SKIP_NODES, [(*key, reason) for key, reason in sorted(reasons.items())])


async def count_dependencies(
    tx: Tx, ended: Mapping[NodeKey, Sequence[NodeStatus]], job_ids: Mapping[NodeKey, str | None]
) -> list[CountedNode]:
    """Count finished dependencies, by dependent; return the dependents.

    A dependent whose dependencies have all succeeded gets the job of ``job_ids``, if there is one.
    """
    rows = [(*_ended_row(key, statuses), job_ids[key]) for key, statuses in sorted(ended.items())]
    return await tx.fetch(sql.COUNT_DEPS, rows) if rows else []


async def count_instances(tx: Tx, ended: Mapping[NodeKey, Sequence[NodeStatus]]) -> list[CountedNode]:
    """Count finished instances, by mapped node; return the mapped nodes."""
    rows = [_ended_row(key, statuses) for key, statuses in sorted(ended.items())]
    return await tx.fetch(sql.COUNT_INSTANCES, rows) if rows else []


async def set_counts(tx: Tx, run_id: str, counts: Mapping[str, DependencyCounts]) -> None:
    """Write recomputed dependency counts of pending nodes."""
    rows = [counts_row((run_id, node_id), item) for node_id, item in sorted(counts.items())]
    if rows:
        await tx.execute(sql.SET_COUNTS, rows)


async def append_log(tx: Tx, run_id: str, node_id: str, *, attempt: int, lines: Sequence[str]) -> None:
    """Insert log lines of a node, and notify readers."""
    if lines:
        rows = [(line,) for line in lines]
        await tx.execute(APPEND_LOG, rows, run_id=run_id, node_id=node_id, attempt=attempt)
        tx.notify(CHANGED)


async def save_checkpoint(tx: Tx, fence: Fence, *, attempt: int, document: Any) -> None:
    """Store a checkpoint for the next attempt; refused if the attempt was superseded."""
    row = (fence.job_id, fence.attempt_id, fence.lease_owner, encode_json(document, "checkpoint"))
    if not await tx.fetch(SAVE_CHECKPOINT, [row], attempt=attempt):
        raise FenceRefused(fence.job_id, RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH)


async def delete_old_runs(tx: Tx, *, older_than_ms: int, limit: int = 100) -> int:
    """Delete runs that ended more than ``older_than_ms`` ago, and everything that belongs to them; return how many."""
    rows = [(row["id"],) for row in await tx.fetch(LOCK_OLD_RUNS, older_than_us=older_than_ms * 1_000, limit=limit)]
    if not rows:
        return 0
    await tx.execute(DELETE_DEAD_LETTERS, rows)
    await tx.execute(DELETE_JOBS, rows)
    return await tx.execute(DELETE_RUNS, rows)


def counts_row(key: NodeKey, counts: DependencyCounts) -> tuple[object, ...]:
    """The input row of a statement that writes counts."""
    return (*key, counts.waiting, counts.success, counts.failed, counts.skipped)


def _ended_row(key: NodeKey, statuses: Sequence[NodeStatus]) -> tuple[object, ...]:
    counts = count_statuses(statuses)
    return (*key, len(statuses), counts.success, counts.failed, counts.skipped)


def _start_row(job: Job) -> tuple[str, str, str, int, str, str]:
    return job.chain_run_id or "", job.node_id or "", job.id, node_attempt(job), job.actor or "", job.reason or ""


def _finish_row(job: Job) -> tuple[object, ...]:
    status = NodeStatus.FAILED if job.status is JobStatus.FAILED else NodeStatus.STOPPED
    return job.chain_run_id or "", job.node_id or "", job.id, str(status), job.actor, job.reason
