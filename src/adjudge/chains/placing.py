"""Starting nodes that may run: a job each, at once, or as soon as the run's limits have a place for it.

What runs is counted over the rows that hold a place, never in a counter kept apart from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.chains.standing import Standing
from adjudge.domain.chain import Dag, Node
from adjudge.domain.ids import NewId
from adjudge.store import chain_statements as sql
from adjudge.store.chain_values import NODE
from adjudge.store.driver import Tx
from adjudge.store.job_values import Job, NewJob, Offer
from adjudge.store.jobs import Jobs
from adjudge.store.statement import Row

_TIMEOUT_MARGIN_MS: Final = 10_000
"""A node's own deadline is kept by its handler; the worker's net hangs this much lower."""
_MANY: Final = 100_000

Offers = Mapping[str, Sequence[Offer]]
"""By run: places that workers keep for what follows from the nodes they have just ended."""


@dataclass(frozen=True, slots=True)
class Start:
    """A node that may run."""

    run_id: str
    node_id: str
    node: Node
    job_id: str | None = None
    """Set where its row has been given the job already."""
    attempts_before: int = 0
    """Attempts made by earlier jobs of the node."""


class Starter:
    """Turns nodes that may run into jobs."""

    def __init__(self, jobs: Jobs, mint: NewId) -> None:
        self._jobs = jobs
        self._mint = mint

    async def start(
        self,
        tx: Tx,
        runs: Mapping[str, Standing],
        dags: Mapping[str, Dag],
        starts: Sequence[Start],
        freed: set[str],
        *,
        offers: Offers,
    ) -> None:
        """Start what may run; where a run has limits, what fits. In ``freed`` runs a place may be free again.

        Nodes for which a worker has a place begin there at once, as many as there are such places.
        """
        limited = {start.run_id for start in starts if dags[start.run_id].is_limited}
        now = [start for start in starts if start.run_id not in limited]
        wanting = [start for start in starts if start.run_id in limited]
        if wanting:
            await tx.execute(sql.GIVE_JOBS, sorted((start.run_id, start.node_id, None, "wanted") for start in wanting))
        for run_id in sorted(limited | freed):
            now += await self._granted(tx, run_id, dags[run_id])
        await self._enqueue(tx, runs, dags, now, offers)

    async def _granted(self, tx: Tx, run_id: str, dag: Dag) -> list[Start]:
        """What the limits let through now, the most urgent first."""
        held = {(row["type"], row["parent_id"]): row["n"] for row in await tx.fetch(sql.HELD_PLACES, run_id=run_id)}
        free = _MANY if dag.max_parallel is None else dag.max_parallel - sum(held.values())
        if free <= 0:
            return []
        picky = bool(dag.max_parallel_by_type) or any(node.fan and node.fan.max_parallel for node in dag.nodes)
        wanted = await tx.fetch(sql.WANTED_PLACES, run_id=run_id, at_most=_MANY if picky else min(free, _MANY))
        return list(_fitting(run_id, dag, wanted, held, free))

    async def _enqueue(
        self, tx: Tx, runs: Mapping[str, Standing], dags: Mapping[str, Dag], starts: Sequence[Start], offers: Offers
    ) -> None:
        if not starts:
            return
        jobs = [self._job(runs[start.run_id], start) for start in starts]
        given = sorted(
            (start.run_id, start.node_id, job.id, "held" if dags[start.run_id].is_limited else None)
            for start, job in zip(starts, jobs, strict=True)
            if start.job_id is None
        )
        if given:
            await tx.execute(sql.GIVE_JOBS, given)
        matched = _matched(jobs, offers)
        await self._jobs.enqueue(tx, jobs, matched)
        begun = sorted(start_row(offer.taken) for offer in matched.values() if offer.taken is not None)
        if begun:
            await tx.execute(sql.START_NODES, begun)

    def _job(self, run: Standing, start: Start) -> NewJob:
        node = start.node
        return NewJob(
            id=start.job_id or self._mint(),
            kind=NODE,
            chain_run_id=run.id,
            node_id=start.node_id,
            max_attempts=node.retry.max_attempts,
            priority=node.priority,
            timeout_ms=None if node.timeout_ms is None else node.timeout_ms + _TIMEOUT_MARGIN_MS,
            payload={
                "run_id": run.id,
                "node_id": start.node_id,
                "type": node.type,
                "chain_id": run.chain_id,
                "chain_version": str(run.chain_version),
                "attempts_before": str(start.attempts_before),
                "backoff_ms": str(node.retry.backoff_ms),
                **({} if node.deps else {"is_root": "yes"}),
            },
            actor="engine",
            trace_id=run.trace_id,
        )


def start_row(job: Job) -> tuple[str, str, str, int, str, str]:
    """What ``chain_nodes.start`` is given for a claimed job."""
    attempt = int(job.payload.get("attempts_before", 0)) + job.attempt_id
    return job.chain_run_id or "", job.node_id or "", job.id, attempt, job.actor or "", job.reason or ""


def _matched(jobs: Sequence[NewJob], offers: Offers) -> dict[str, Offer]:
    """Which jobs go to which places."""
    spare = {run_id: list(found) for run_id, found in offers.items()}
    matched = {}
    for job in jobs:
        places = spare.get(job.chain_run_id or "")
        if places and places[-1].accepts(job):
            matched[job.id] = places.pop()
    return matched


def _fitting(
    run_id: str, dag: Dag, wanted: Sequence[Row], held: Mapping[tuple[str, str], int], free: int
) -> Iterator[Start]:
    by_type, by_parent = Counter[str](), Counter[str]()
    for (type_name, parent_id), number in held.items():
        by_type[type_name] += number
        by_parent[parent_id] += number
    for row in wanted:
        if free <= 0:
            return
        node, type_name, parent_id = dag.node(row["node_id"]), row["type"], row["parent_id"]
        most = dag.max_parallel_by_type.get(type_name, _MANY)
        siblings = (node.fan.max_parallel if node.fan and parent_id else None) or _MANY
        if by_type[type_name] >= most or (parent_id and by_parent[parent_id] >= siblings):
            continue
        free -= 1
        by_type[type_name] += 1
        by_parent[parent_id] += 1
        before = max(0, row["attempt"] - 1) if row["attempt"] else 0
        yield Start(run_id, row["node_id"], node, attempts_before=before)
