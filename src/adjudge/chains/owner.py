"""Keeps nodes in step with their jobs: what a claim, a release and an end mean for the run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.chains.artifacts import in_row
from adjudge.chains.control import Control
from adjudge.chains.node_jobs import SHARES
from adjudge.chains.placing import Start, start_row
from adjudge.chains.progress import Progress
from adjudge.chains.sharing import lock_chains
from adjudge.chains.standing import Closing, Delta, EndedNode, Runs, close, count, ended_delta, ended_node
from adjudge.chains.stepping import Step, Stepper
from adjudge.domain.chain import instance_id
from adjudge.domain.ids import NewId
from adjudge.domain.states import JobStatus, NodeStatus
from adjudge.store import chain_openings
from adjudge.store import chain_statements as sql
from adjudge.store.chain_values import Artifact, Done, Expanded, Halted, Suspended
from adjudge.store.driver import Tx
from adjudge.store.job_values import Ended, Finish, Job, NewJob, Offer, Room
from adjudge.store.statement import Dialect


@dataclass(frozen=True, slots=True)
class _Fan:
    run_id: str
    node_id: str
    items: tuple[Any, ...]


class NodeOwner:
    """The owner of jobs of kind ``node``."""

    def __init__(self, progress: Progress, control: Control, stepper: Stepper, mint: NewId) -> None:
        self._progress = progress
        self._control = control
        self._stepper = stepper
        self._mint = mint

    def plan(self, finishes: Sequence[Finish], room: Room) -> Step | None:
        """The short way for nodes that ended well, where there is one."""
        return self._stepper.plan(finishes, room)

    def opens(self, payload: Mapping[str, Any], dialect: Dialect) -> bool:
        """Whether a run begins with the node, and a statement costs a round trip."""
        return dialect is Dialect.POSTGRES and "is_root" in payload

    async def open(self, tx: Tx, job_ids: Sequence[str], *, worker: str, lease_ms: int) -> tuple[Job, ...]:
        """Claim first nodes by one statement."""
        return await chain_openings.claim(tx, job_ids, worker=worker, lease_ms=lease_ms)

    async def started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A node runs from its claim on, and its run from its first node on."""
        roots = {(job.chain_run_id,) for job in jobs if job.payload.get("is_root") and job.chain_run_id}
        fresh = sorted(start_row(job) for job in jobs if job.prior_status is not JobStatus.RUNNING)
        if roots and fresh and tx.dialect is Dialect.POSTGRES:
            await tx.execute(sql.START_FIRST, fresh)
        else:
            if roots:
                await tx.execute(sql.BEGIN_RUNS, sorted(roots, reverse=True))
            if fresh:
                await tx.execute(sql.START_NODES, fresh)
        again = sorted(start_row(job) for job in jobs if job.prior_status is JobStatus.RUNNING)
        if again:
            await tx.execute(sql.TAKE_OVER_NODES, again)

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> dict[str, str | None]:
        """The replay of a node's dead letter is another attempt of the node, within all limits."""
        return {
            job.id: await self._control.replay(tx, job, reason=reason)
            for job in sorted(jobs, key=lambda job: job.chain_run_id or "", reverse=True)
        }

    async def released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A node that ran waits for another attempt; one that had not begun just goes on waiting."""
        rows = sorted(
            (job.chain_run_id or "", job.node_id or "", job.id, job.actor, job.reason)
            for job in jobs
            if job.prior_status is JobStatus.RUNNING
        )
        if rows:
            await tx.execute(sql.RELEASE_NODES, rows)

    async def ended(self, tx: Tx, ended: Sequence[Ended]) -> None:
        """End the nodes, and advance their runs in the same transaction."""
        suspended = [item for item in ended if _is(item, Suspended)]
        awaited = await self._progress.probe_all(
            tx, {(item.outcome.on, item.outcome.key) for item in suspended if isinstance(item.outcome, Suspended)}
        )
        await lock_chains(tx, [item.job.payload["chain_id"] for item in ended if SHARES in item.job.payload])
        unclaimed = sorted(
            start_row(item.job)
            for item in ended
            if item.job.status is JobStatus.FAILED and item.job.prior_status is not JobStatus.RUNNING
        )
        if unclaimed:  # buried before anybody claimed it: a node fails through running
            await tx.execute(sql.START_NODES, unclaimed)
        waits = await self._suspend(tx, suspended)
        fans = await self._fan_out(tx, [item for item in ended if _is(item, Expanded)])
        rest = sorted(_end_row(item) for item in ended if not _is(item, Suspended) and not _is(item, Expanded))
        over = [ended_node(row) for row in await tx.fetch(sql.END_NODES, rest)] if rest else []
        touched = {node[0]: Delta() for node in waits} | {fan.run_id: Delta() for fan in fans}
        runs = await count(tx, touched | ended_delta(over))
        if not runs:
            return
        late = await self._too_late(tx, runs, [*waits, *((fan.run_id, fan.node_id) for fan in fans)])
        going = {node: wait for node, wait in waits.items() if runs[node[0]].goes_on}
        late += await self._progress.look(tx, going, awaited)
        starts, empty = await self._instances(tx, runs, [fan for fan in fans if runs[fan.run_id].goes_on])
        late += empty
        if late:
            runs.update(await count(tx, ended_delta(late)))
        yielding = {run_id for run_id, _ in waits}
        await self._progress.proceed(tx, runs, [*over, *late], starts, _offers(ended), yielding=yielding)

    async def _suspend(self, tx: Tx, items: Sequence[Ended]) -> dict[tuple[str, str], tuple[str, str]]:
        if not items:
            return {}
        rows = await tx.fetch(sql.SUSPEND_NODES, sorted(_suspend_row(item.job, item.outcome) for item in items))
        return {(row["run_id"], row["node_id"]): (row["wait_on"], row["wait_key"]) for row in rows}

    async def _fan_out(self, tx: Tx, items: Sequence[Ended]) -> list[_Fan]:
        if not items:
            return []
        lists = {
            (item.job.chain_run_id or "", item.job.node_id or ""): (item.job.id, item.outcome.items)
            for item in items
            if isinstance(item.outcome, Expanded)
        }
        rows = [(*key, job_id, len(found)) for key, (job_id, found) in sorted(lists.items())]
        return [
            _Fan(row["run_id"], row["node_id"], lists[row["run_id"], row["node_id"]][1])
            for row in await tx.fetch(sql.FAN_OUT, rows)
        ]

    async def _too_late(self, tx: Tx, runs: Runs, nodes: Sequence[tuple[str, str]]) -> list[EndedNode]:
        """Stop nodes that would go on, because their run stops."""
        return await close(
            tx,
            [
                Closing(*node, status=NodeStatus.STOPPED, reason="run_stopping")
                for node in nodes
                if not runs[node[0]].goes_on
            ],
        )

    async def _instances(self, tx: Tx, runs: Runs, fans: Sequence[_Fan]) -> tuple[list[Start], list[EndedNode]]:
        """Make the instances of mapped nodes; a list without items is done at once."""
        starts, rows, made = [], [], dict[str, int]()
        for fan in fans:
            dag = await self._progress.advance.dag_of(tx, runs[fan.run_id])
            node = dag.by_id[fan.node_id]
            made[fan.run_id] = made.get(fan.run_id, 0) + len(fan.items)
            for index, item in enumerate(fan.items):
                node_id, job_id = instance_id(fan.node_id, index), None if dag.is_limited else self._mint()
                text = json.dumps(item)
                pool = runs[fan.run_id].chain_id if dag.shares else None
                rows.append((fan.run_id, node_id, node.type, index, node.priority, 0, job_id, fan.node_id, text, pool))
                starts.append(Start(fan.run_id, node_id, node, job_id))
        if rows:
            await tx.execute(sql.INSERT_NODES, rows)
            runs.update(await count(tx, {run_id: Delta(number, number, 0) for run_id, number in made.items()}))
        empty = [
            Closing(fan.run_id, fan.node_id, NodeStatus.SUCCESS, "nothing to map", artifact=in_row([]))
            for fan in fans
            if not fan.items
        ]
        return starts, await close(tx, empty)


def _is(item: Ended, kind: type) -> bool:
    return item.job.status is JobStatus.SUCCEEDED and isinstance(item.outcome, kind)


def _offers(ended: Sequence[Ended]) -> dict[str, list[Offer]]:
    """The places that are kept for what follows, by run."""
    found: dict[str, list[Offer]] = defaultdict(list)
    for item in ended:
        if item.offer is not None:
            found[item.job.chain_run_id or ""].append(item.offer)
    return found


def _end_row(item: Ended) -> tuple[object, ...]:
    job, status, artifact = item.job, NodeStatus.STOPPED, Artifact()
    reason = job.reason
    if job.status is JobStatus.FAILED:
        status = NodeStatus.FAILED
    elif job.status is JobStatus.SUCCEEDED and isinstance(item.outcome, Halted):
        reason = item.outcome.reason
    elif job.status is JobStatus.SUCCEEDED:
        status = NodeStatus.SUCCESS
        artifact = item.outcome.artifact if isinstance(item.outcome, Done) else artifact
    return (
        job.chain_run_id or "",
        job.node_id or "",
        job.id,
        str(status),
        job.actor,
        reason,
        artifact.text,
        artifact.digest,
        artifact.size_bytes,
    )


def _suspend_row(job: Job, outcome: object) -> tuple[object, ...]:
    if not isinstance(outcome, Suspended):
        raise TypeError("only a suspended node waits")
    return (
        job.chain_run_id or "",
        job.node_id or "",
        job.id,
        outcome.on,
        outcome.key,
        None if outcome.until_ms is None else outcome.until_ms * 1_000,
        None if outcome.timeout_ms is None else outcome.timeout_ms * 1_000,
        outcome.artifact.text,
        outcome.artifact.size_bytes,
        f"waits for {outcome.on}",
    )
