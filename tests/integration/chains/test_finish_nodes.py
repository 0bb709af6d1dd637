"""Finishing nodes by one script: the same rows whether PostgreSQL commits it by itself or not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import Capacity, FinishReport, Job, JobResult
from tests.integration.chains.harness import LEASE_MS, ChainHarness, dag, done, line, node
from tests.integration.chains.test_follow_up_claims import working
from tests.support.explicit_commit import with_explicit_commit
from tests.support.store_harness import StoreHarness, fence_of


def slots_for(wanted: set[str] | None) -> Capacity:
    """A worker with slots for some nodes, or for all."""
    return Capacity(
        "w1",
        LEASE_MS,
        slots=100,
        is_instant=lambda _: True,
        limits={"unwanted": 0},
        limit_keys=lambda job: () if wanted is None or job.node_id in wanted else ("unwanted",),
    )


async def take(
    harness: ChainHarness, *jobs: Job, wanted: set[str] | None = None, is_explicit: bool = False
) -> FinishReport:
    """Finish jobs well, with slots for the wanted follow-ups."""
    ends = [JobResult(fence_of(job), typed_result=done(f'"{job.node_id}"'), job=job) for job in jobs]

    async def finish(tx: Tx) -> FinishReport:
        tx = with_explicit_commit(tx) if is_explicit else tx
        return await harness.jobs.finish_and_claim_next(tx, ends, slots_for(wanted))

    return await harness.store.transact(finish)


def claimed(report: FinishReport) -> list[Job]:
    return [job for jobs in report.claimed.values() for job in jobs]


def ended(report: FinishReport) -> set[str]:
    return {job.id for job in report.done}


async def history(harness: ChainHarness, run_id: str) -> dict[str, list[Any]]:
    """Everything that the database remembers of a run, but for ids and timestamps."""
    tables = {
        "nodes": "SELECT node_id, status, prior_status, attempt, artifact, actor, reason, waiting_on, deps_success, "
        "job_id IS NULL AS idle, started_at IS NULL AS fresh, ended_at IS NULL AS open FROM chain_nodes "
        "WHERE run_id = :run_id ORDER BY node_id",
        "runs": "SELECT status, nodes_open, nodes_failed FROM chain_runs WHERE id = :run_id",
        "jobs": "SELECT node_id, status, prior_status, attempt_id, max_attempts, priority, lease_owner, actor, reason, "
        "trace_id IS NULL AS untraced FROM jobs WHERE chain_run_id = :run_id ORDER BY node_id",
        "log": "SELECT node_id, from_status, to_status, attempt, actor, reason FROM chain_status_log "
        "WHERE run_id = :run_id ORDER BY node_id, id",
        "job log": "SELECT node_id, from_status, to_status, l.attempt_id, l.actor, l.reason FROM job_status_log l "
        "JOIN jobs ON jobs.id = job_id WHERE chain_run_id = :run_id ORDER BY node_id, l.id",
        "attempts": "SELECT node_id, a.attempt_id, a.lease_owner, outcome, a.reason FROM job_attempts a "
        "JOIN jobs ON jobs.id = job_id WHERE chain_run_id = :run_id ORDER BY node_id",
        "outbox": "SELECT node_id, state FROM outbox JOIN jobs ON jobs.id = job_id WHERE chain_run_id = :run_id "
        "ORDER BY node_id",
    }
    return {
        name: [tuple(row.values()) for row in await harness.store.rows(sql, run_id=run_id)]
        for name, sql in tables.items()
    }


def lattice() -> dict[str, Any]:
    """Two that end, one that follows from both, one from each, one that waits for a third besides."""
    first = [node("a"), node("b"), node("c")]
    return dag(*first, node("ab", "a", "b"), node("a1", "a"), node("b1", "b"), node("bc", "b", "c"))


async def test_rows_are_the_same_however_the_script_is_committed(harness: ChainHarness) -> None:
    runs = []
    for is_explicit in (True, False):
        run_id = await harness.start(lattice())
        jobs = await harness.claim("a", "b")
        taken = await take(harness, jobs["a"], jobs["b"], wanted={"a1", "bc"}, is_explicit=is_explicit)
        assert [job.node_id for job in claimed(taken)] == ["a1"]  # bc waits for c
        assert ended(taken) == {jobs["a"].id, jobs["b"].id}
        runs.append(await history(harness, run_id))
        await harness.claim("c")
    explicit, by_itself = runs
    for name, rows in explicit.items():
        assert by_itself[name] == rows, name


async def test_line_is_claimed_node_by_node(harness: ChainHarness) -> None:
    run_id = await harness.start(line(4))
    (job,) = (await harness.claim()).values()
    for number in range(1, 4):
        (job,) = claimed(await take(harness, job))
        assert (job.node_id, job.attempt_id, job.actor) == (f"n{number}", 1, "w1")
        row = await harness.store.job(job.id)
        assert (row["status"], row["lease_until"], row["started_at"]) == ("running", job.lease_until, job.started_at)
    await harness.finish(job)
    assert (await harness.run(run_id)).status == "success"


async def test_an_end_that_the_fence_refuses_is_passed_over(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b"), node("a1", "a"), node("b1", "b"), node("both", "a", "b")))
    jobs = await harness.claim()
    await harness.release(jobs["a"])
    taken = await take(harness, jobs["a"], jobs["b"])
    assert (ended(taken), [job.node_id for job in claimed(taken)]) == ({jobs["b"].id}, ["b1"])
    assert await harness.states(run_id) == {
        "a": "retrying",
        "b": "success",
        "a1": "pending",
        "b1": "running",
        "both": "pending",
    }


async def test_rows_that_leave_something_undecided_are_decided_in_the_same_transaction(harness: ChainHarness) -> None:
    stopping = await harness.start(line(3))
    job = (await harness.claim())["n0"]
    await harness.stop(stopping)
    skipping = await harness.start(dag(node("good"), node("bad"), node("both", "good", "bad")))
    jobs = await harness.claim("good", "bad")
    await harness.fail(jobs["bad"])
    for finished in (job, jobs["good"]):
        assert claimed(await take(harness, finished)) == []
    assert ((await harness.run(stopping)).status, (await harness.run(skipping)).status) == ("stopped", "failed")
    assert (await harness.states(skipping))["both"] == "skipped"


async def test_follow_ups_that_the_rows_cannot_decide_are_claimed_too(harness: ChainHarness) -> None:
    documents = [
        dag(node("a"), node("b", "a", when="all_done")),
        dag(node("a"), node("b", "a", **{"if": "artifacts.a == 'a'"})),
        dag(node("a"), node("b", "a", map={"over": [1]})),
        dag(node("a"), node("b", "a"), max_parallel=1),
    ]
    for document in documents:
        run_id = await harness.start(document)
        (job,) = (await harness.claim()).values()
        assert [item.node_id for item in claimed(await take(harness, job))] == ["b"]
        assert (await harness.states(run_id))["b"] == "running"


async def test_a_job_that_was_born_running_is_announced_when_it_comes_back(harness: ChainHarness) -> None:
    run_id = await harness.start(line(3))
    (job,) = claimed(await take(harness, (await harness.claim())["n0"]))
    assert await harness.store.rows("SELECT 1 AS n FROM outbox WHERE job_id = :id", id=job.id) == []
    await harness.store.clock.advance(LEASE_MS + 1)
    await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
    assert (await harness.states(run_id))["n1"] == "retrying"
    row = await harness.store.row("SELECT state, priority FROM outbox WHERE job_id = :id", id=job.id)
    assert (row["state"], row["priority"]) == ("pending", 2)
    assert ended(await take(harness, job)) == set()


async def test_steps_of_one_run_at_once_start_their_join_once(postgres_store: StoreHarness) -> None:
    harness, width = ChainHarness(postgres_store), 16
    wide = [node(f"a{index}") for index in range(width)]
    deep = [node(f"b{index}", f"a{index}", f"a{(index + 1) % width}") for index in range(width)]
    run_id = await harness.start(dag(*wide, *deep, node("last", *(item["id"] for item in deep))))
    jobs = list((await harness.claim()).values())
    for layer in ("b", "last"):
        taken = await asyncio.gather(*(take(harness, job) for job in jobs))
        assert sum(len(ended(report)) for report in taken) == width
        jobs = [job for report in taken for job in claimed(report)]
        assert len(jobs) == len({job.node_id for job in jobs}) == (width if layer == "b" else 1)
    run = await harness.run(run_id)
    assert (run.status, run.nodes_open) == ("running", 1)


@dataclass
class InstantExecutor:
    """Counts who runs, in an instant node type."""

    type: str = "noop"
    cfg_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    is_instant: bool = True
    seen: list[str] = field(default_factory=list)

    async def execute(self, context: NodeContext) -> NodeResult:
        self.seen.append(context.node_id)
        return NodeResult({name: value["me"] for name, value in context.artifacts.items()} | {"me": context.node_id})


async def test_a_fan_of_light_nodes_stays_where_it_began(harness: ChainHarness, tmp_path: Path) -> None:
    fan = dag(
        node("root"),
        *(node(f"leaf{number}", "root") for number in range(5)),
        node("end", *(f"leaf{n}" for n in range(5))),
    )
    light = InstantExecutor()
    async with working(harness, tmp_path, slots=6, executor=light) as (handler_harness, _):
        run_id = await harness.start(fan)
        assert await handler_harness.ends(run_id) == "success"
    assert sorted(light.seen) == ["end", *(f"leaf{number}" for number in range(5)), "root"]
    assert len(await harness.store.rows("SELECT 1 AS n FROM outbox")) == 1  # the root's
    artifact = (await harness.nodes(run_id))["end"].artifact
    assert artifact == {f"leaf{number}": f"leaf{number}" for number in range(5)} | {"me": "end"}
