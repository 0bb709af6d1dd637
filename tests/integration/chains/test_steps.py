"""The short way from nodes that ended well to what follows: the same rows as by the long one, or none at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.store.engine.driver import Unfit
from adjudge.store.jobs.models import Job, JobResult, NewJob, Offer, StepTaken
from tests.integration.chains.harness import LEASE_MS, ChainHarness, dag, done, line, node
from tests.integration.chains.test_follow_up_claims import working
from tests.support.store_harness import StoreHarness, fence_of


@dataclass
class FollowUpSlotsStub:
    """A worker with room for some nodes, or for all."""

    wanted: set[str] | None = None
    worker: str = "w1"
    lease_ms: int = LEASE_MS

    def reserve(self, _ended: Job, job: NewJob) -> bool:
        return self.wanted is None or job.node_id in self.wanted


async def take(harness: ChainHarness, *jobs: Job, wanted: set[str] | None = None) -> StepTaken:
    """End jobs well, the short way."""
    ends = [JobResult(fence_of(job), typed_result=done(f'"{job.node_id}"'), job=job) for job in jobs]
    step = harness.jobs.plan(ends, FollowUpSlotsStub(wanted))
    assert step is not None
    return await harness.store.transact(step.take)


async def history(harness: ChainHarness, run_id: str) -> dict[str, list[Any]]:
    """Everything that the database remembers of a run, but for ids and moments."""
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


async def test_batched_steps_leave_the_same_rows_as_single_ones(harness: ChainHarness) -> None:
    runs = []
    for short in (True, False):
        run_id = await harness.start(lattice())
        jobs = await harness.claim("a", "b")
        if short:
            taken = await take(harness, jobs["a"], jobs["b"], wanted={"a1", "bc"})
            assert [job.node_id for job in taken.born] == ["a1"]  # bc waits for c
            assert taken.ended == {jobs["a"].id, jobs["b"].id}
        else:
            offer = Offer("w1", LEASE_MS, lambda job: job.node_id == "a1")
            ends = [
                JobResult(
                    fence_of(job), typed_result=done(f'"{job.node_id}"'), offer=offer if job is jobs["a"] else None
                )
                for job in jobs.values()
            ]
            ends.sort(key=lambda end: end.offer is None)
            await harness.store.transact(partial(harness.jobs.finish_and_claim_next, finishes=ends))
        runs.append(await history(harness, run_id))
        await harness.claim("c")
    batched, single = runs
    for name, rows in single.items():
        assert batched[name] == rows, name


async def test_run_advances_in_batched_steps_to_its_last_node(harness: ChainHarness) -> None:
    run_id = await harness.start(line(4))
    (job,) = (await harness.claim()).values()
    for number in range(1, 4):
        (job,) = (await take(harness, job)).born
        assert (job.node_id, job.attempt_id, job.actor) == (f"n{number}", 1, "w1")
        row = await harness.store.job(job.id)
        assert (row["status"], row["lease_until"], row["started_at"]) == ("running", job.lease_until, job.started_at)
    assert (
        harness.jobs.plan([JobResult(fence_of(job), typed_result=done(), job=job)], FollowUpSlotsStub()) is None
    )  # it ends the run
    await harness.finish(job)
    assert (await harness.run(run_id)).status == "success"


async def test_an_end_that_the_fence_refuses_is_passed_over(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b"), node("a1", "a"), node("b1", "b"), node("both", "a", "b")))
    jobs = await harness.claim()
    await harness.release(jobs["a"])
    taken = await take(harness, jobs["a"], jobs["b"])
    assert (set(taken.ended), [job.node_id for job in taken.born]) == ({jobs["b"].id}, ["b1"])
    assert await harness.states(run_id) == {
        "a": "retrying",
        "b": "success",
        "a1": "pending",
        "b1": "running",
        "both": "pending",
    }


async def test_rows_that_ask_for_more_make_it_unfit_and_nothing_happens(harness: ChainHarness) -> None:
    stopping = await harness.start(line(3))
    job = (await harness.claim())["n0"]
    await harness.stop(stopping)
    skipping = await harness.start(dag(node("good"), node("bad"), node("both", "good", "bad")))
    jobs = await harness.claim("good", "bad")
    await harness.fail(jobs["bad"])
    for run_id, doomed in ((stopping, job), (skipping, jobs["good"])):
        before = await history(harness, run_id)
        with pytest.raises(Unfit):
            await take(harness, doomed)
        assert await history(harness, run_id) == before
        await harness.finish(doomed)
    assert ((await harness.run(stopping)).status, (await harness.run(skipping)).status) == ("stopped", "failed")
    assert (await harness.states(skipping))["both"] == "skipped"


async def test_nodes_that_cannot_be_batched_advance_one_by_one(harness: ChainHarness) -> None:
    picky = [
        dag(node("a"), node("b", "a", when="all_done")),
        dag(node("a"), node("b", "a", **{"if": "artifacts.a == 1"})),
        dag(node("a"), node("b", "a", map={"over": [1]})),
        dag(node("a"), node("b", "a"), max_parallel=1),
        dag(node("a")),
    ]
    for document in picky:
        await harness.start(document)
        (job,) = (await harness.claim()).values()
        assert harness.jobs.plan([JobResult(fence_of(job), typed_result=done(), job=job)], FollowUpSlotsStub()) is None
        await harness.finish(job)
        await harness.drain("")


async def test_a_job_that_was_born_running_is_announced_when_it_comes_back(harness: ChainHarness) -> None:
    run_id = await harness.start(line(3))
    (job,) = (await take(harness, (await harness.claim())["n0"])).born
    assert await harness.store.rows("SELECT 1 AS n FROM outbox WHERE job_id = :id", id=job.id) == []
    await harness.store.clock.advance(LEASE_MS + 1)
    await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
    assert (await harness.states(run_id))["n1"] == "retrying"
    row = await harness.store.row("SELECT state, priority FROM outbox WHERE job_id = :id", id=job.id)
    assert (row["state"], row["priority"]) == ("pending", 2)
    assert (await take(harness, job)).ended == frozenset()


async def test_steps_of_one_run_at_once_start_their_join_once(postgres_store: StoreHarness) -> None:
    harness, width = ChainHarness(postgres_store), 16
    wide = [node(f"a{index}") for index in range(width)]
    deep = [node(f"b{index}", f"a{index}", f"a{(index + 1) % width}") for index in range(width)]
    run_id = await harness.start(dag(*wide, *deep, node("last", *(item["id"] for item in deep))))
    jobs = list((await harness.claim()).values())
    for layer in ("b", "last"):
        taken = await asyncio.gather(*(take(harness, job) for job in jobs))
        assert sum(len(step.ended) for step in taken) == width
        jobs = [job for step in taken for job in step.born]
        assert len(jobs) == len({job.node_id for job in jobs}) == (width if layer == "b" else 1)
    run = await harness.run(run_id)
    assert (run.status, run.nodes_open) == ("running", 1)


@dataclass
class InstantExecutor:
    """Counts who runs, in a type that is over in a moment."""

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
