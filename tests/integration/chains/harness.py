"""A chain engine on either database, with workers that do as the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.chains.artifacts import inline_artifact
from adjudge.chains.engine import ChainEngine
from adjudge.domain.states import ChainRunStatus, JobStatus, NodeStatus
from adjudge.store import Tx
from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import (
    JOB_KIND_NODE,
    Artifact,
    ChainNodeRow,
    ChainRow,
    ChainRunRow,
    NewChainRun,
    NodeDone,
)
from adjudge.store.engine.script import Inputs, Returned, Script
from adjudge.store.engine.statement import Rows, RowT, Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import BatchResult, Capacity, FinishReport, Job, JobResult
from tests.support.explicit_commit import with_explicit_commit
from tests.support.store_harness import StoreHarness, fence_of

LEASE_MS = 15_000


def line(count: int, **fields: Any) -> dict[str, Any]:
    """Nodes one after the other."""
    return {
        "nodes": [
            {"id": f"n{index}", "type": "noop", "deps": [f"n{index - 1}"] if index else [], **fields}
            for index in range(count)
        ]
    }


def node(node_id: str, *deps: str, **fields: Any) -> dict[str, Any]:
    """One node."""
    return {"id": node_id, "type": "noop", "deps": list(deps), **fields}


def dag(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A DAG of nodes."""
    return {"nodes": list(nodes), **fields}


def done(artifact: str | None = None) -> NodeDone:
    """An outcome with an artifact in JSON."""
    return NodeDone(Artifact(artifact, None, len(artifact or "")))


def _unchanged(tx: Tx) -> Tx:
    return tx


@dataclass
class ChainHarness:
    """A store with a chain engine on it."""

    store: StoreHarness
    engine: ChainEngine = field(default_factory=ChainEngine)
    counter: int = 0
    claims: int = 0
    finishes: int = 0

    @property
    def jobs(self) -> JobCommands:
        """Jobs, with the nodes they belong to."""
        return JobCommands({JOB_KIND_NODE: self.engine.job_listener}, random_unit=lambda: 0.0)

    async def define(self, document: Mapping[str, Any], name: str | None = None, **fields: Any) -> ChainRow:
        """Create a chain."""
        self.counter += 1
        called = name or f"chain-{self.counter}"
        return await self.store.transact(
            lambda tx: definitions.create(tx, name=called, dag=document, actor="ann", **fields)
        )

    async def start(self, document: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> str:
        """Create a chain and start it; return the run's id."""
        chain = await self.define(document)
        wanted = NewChainRun(chain.id, parameters or {}, actor="ann")
        return (await self.store.transact(lambda tx: self.engine.start(tx, wanted))).run_id

    async def stop(self, run_id: str, reason: str = "") -> ChainRunStatus:
        """Stop a run."""
        return await self.store.transact(lambda tx: self.engine.stop(tx, run_id, actor="ann", reason=reason))

    async def retry(self, run_id: str, node_id: str, reason: str = "") -> ChainNodeRow:
        """Retry a node by hand."""
        return await self.store.transact(lambda tx: self.engine.retry(tx, run_id, node_id, actor="ann", reason=reason))

    async def complete(self, run_id: str, node_id: str, artifact: Any = None) -> ChainNodeRow:
        """Complete a node by hand."""
        return await self.store.transact(
            lambda tx: self.engine.complete(tx, run_id, node_id, actor="ann", artifact=inline_artifact(artifact))
        )

    async def update(self, chain_id: str, version: int, document: Mapping[str, Any], name: str) -> ChainRow:
        """Change a chain."""
        return await self.store.transact(
            lambda tx: definitions.update(tx, chain_id, version=version, name=name, dag=document, actor="bob")
        )

    async def run(self, run_id: str) -> ChainRunRow:
        """The run as it stands."""
        return await self.store.database.read(lambda tx: chain_queries.find_run(tx, run_id))

    async def nodes(self, run_id: str) -> dict[str, ChainNodeRow]:
        """Its nodes by id."""
        found = await self.store.database.read(lambda tx: chain_queries.list_nodes(tx, run_id))
        return {item.node_id: item for item in found}

    async def states(self, run_id: str) -> dict[str, str]:
        """How its nodes stand."""
        return {node_id: str(item.status) for node_id, item in (await self.nodes(run_id)).items()}

    async def waiting_jobs(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """Jobs that a worker could claim now."""
        rows = await self.store.rows(
            "SELECT id, node_id, chain_run_id, priority FROM jobs WHERE status IN ('pending', 'queued') "
            "ORDER BY priority, id"
        )
        return [row for row in rows if run_id in (None, row["chain_run_id"])]

    async def claim(self, *node_ids: str, worker: str = "w1") -> dict[str, Job]:
        """Claim the waiting jobs of nodes, or all that wait."""
        wanted = [row["id"] for row in await self.waiting_jobs() if not node_ids or row["node_id"] in node_ids]
        outcome = await self.claim_ids(wanted, worker=worker)
        return {job.node_id or "": job for job in outcome.done}

    async def claim_all(self) -> dict[str, Job]:
        """Claim everything that waits, in whatever run; by job."""
        outcome = await self.claim_ids([row["id"] for row in await self.waiting_jobs()])
        return {job.id: job for job in outcome.done}

    async def claim_ids(self, job_ids: Sequence[str], *, worker: str = "w1") -> BatchResult[Job]:
        """Claim jobs."""
        return await self.store.transact(lambda tx: self.jobs.claim(tx, job_ids, worker=worker, lease_ms=LEASE_MS))

    async def finish(
        self, *jobs: Job, outcome: object = None, capacity: Capacity | None = None, **by_node: object
    ) -> FinishReport:
        """End jobs well, together: every other time in a transaction that may not commit by itself."""
        ends = [
            JobResult(fence_of(job), typed_result=by_node.get(job.node_id or "", outcome) or done(), job=job)
            for job in jobs
        ]
        self.finishes += 1
        wrap = with_explicit_commit if self.finishes % 2 else _unchanged
        return await self.store.transact(lambda tx: self.jobs.finish_and_claim_next(wrap(tx), ends, capacity))

    async def fail(self, *jobs: Job, error: str = "broken") -> BatchResult[Job]:
        """End jobs badly, for good."""
        ends = [JobResult(fence_of(job), JobStatus.FAILED, error_code="BROKEN", error=error) for job in jobs]
        return await self.store.transact(lambda tx: self.jobs.finish_and_claim_next(tx, ends))

    async def release(self, *jobs: Job, delay_ms: int = 0) -> BatchResult[Job]:
        """Hand jobs back after a failed attempt."""
        ends = [
            JobResult(
                fence_of(job),
                JobStatus.PENDING,
                reason="retry",
                error_code="HICCUP",
                error="a hiccup",
                delay_ms=delay_ms,
            )
            for job in jobs
        ]
        return await self.store.transact(lambda tx: self.jobs.finish_and_claim_next(tx, ends))

    async def step(self, *node_ids: str, outcome: object = None) -> list[str]:
        """Claim and finish what waits; return which nodes that were."""
        jobs = await self.claim(*node_ids)
        await self.finish(*jobs.values(), outcome=outcome)
        return sorted(jobs)

    async def drain(self, run_id: str, act: Callable[[str], object] | None = None) -> list[str]:
        """Run everything to its end, node by node in order of appearance; ``act`` says how a node ends."""
        order: list[str] = []
        while jobs := await self.claim():
            for node_id, job in jobs.items():
                order.append(node_id)
                result = act(node_id) if act else None
                if result is False:
                    await self.fail(job)
                else:
                    await self.finish(job, outcome=result)
        return order


def ended(states: Mapping[str, str]) -> bool:
    """Whether every node has ended."""
    return all(NodeStatus(item) in {"success", "failed", "stopped", "skipped"} for item in states.values())


class RecordingTx:
    """A transaction that records the names of its statements."""

    def __init__(self, tx: Tx, statements: list[str]) -> None:
        self._tx, self._statements, self.dialect = tx, statements, tx.dialect
        self.on_commit, self.notify = tx.on_commit, tx.notify

    async def fetch(self, statement: Statement[RowT], rows: Rows | None = None, /, **parameters: object) -> list[RowT]:
        self._statements.append(statement.name)
        return await self._tx.fetch(statement, rows, **parameters)

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        """Run a script."""
        self._statements.append(script.name)
        return await self._tx.run(script, inputs, last=last, **parameters)

    async def execute(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> int:
        self._statements.append(statement.name)
        return await self._tx.execute(statement, rows, **parameters)
