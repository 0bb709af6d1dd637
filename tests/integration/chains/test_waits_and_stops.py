"""Waits and stops of runs: what holds no worker, what does not end by itself."""

from __future__ import annotations

from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import WaitResult
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.executors.approval import WaitApprovalExecutor
from adjudge.executors.basic import SleepExecutor
from adjudge.store import Tx
from adjudge.store.chains.models import NewChainRun, NodeExpanded, NodeSuspended
from tests.integration.chains.harness import ChainHarness, dag, done, line, node
from tests.support.node_context import context_for
from tests.support.store_harness import NOON_US, StoreHarness

NOON_MS = NOON_US // 1_000


async def test_a_waiting_node_holds_no_worker_and_is_resumed_once(store: StoreHarness) -> None:
    harness = ChainHarness(store, ChainEngine(probes={"thing": never}))
    run_id = await harness.start(line(2))
    await harness.step("n0", outcome=NodeSuspended("thing", "t1", done('{"asked": true}').artifact))
    nodes = await harness.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].wait_on, nodes["n0"].wait_key) == ("running", "thing", "t1")
    assert await harness.claim() == {}

    async def resume(key: str) -> int:
        return await harness.store.transact(
            lambda tx: harness.engine.resume(tx, on="thing", key=key, success=True, artifact={"answer": 42})
        )

    assert await resume("t2") == 0
    assert await resume("t1") == 1
    assert await resume("t1") == 0
    nodes = await harness.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].artifact, nodes["n0"].wait_on) == ("success", {"answer": 42}, None)
    assert await harness.drain(run_id) == ["n1"]


async def never(_tx: Tx, _key: str) -> WaitResult | None:
    return None


async def test_what_ended_before_the_wait_was_recorded_is_not_missed(store: StoreHarness) -> None:
    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        return WaitResult(success=key == "good", artifact=key, error="it went wrong")

    harness = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    run_id = await harness.start(dag(node("a"), node("b"), node("c", "a"), node("d", "b")))
    jobs = await harness.claim()
    await harness.finish(jobs["a"], jobs["b"], a=NodeSuspended("thing", "good"), b=NodeSuspended("thing", "bad"))
    nodes = await harness.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "a": "success",
        "b": "failed",
        "c": "pending",
        "d": "skipped",
    }
    assert (nodes["a"].artifact, nodes["b"].last_error) == ("good", "it went wrong")


async def test_a_wait_that_nobody_can_end_fails_at_once(harness: ChainHarness) -> None:
    run_id = await harness.start(line(1))
    await harness.step(outcome=NodeSuspended("weather", "sun"))
    assert "weather" in ((await harness.nodes(run_id))["n0"].last_error or "")


async def test_timers_end_well_and_other_waits_time_out(store: StoreHarness) -> None:
    harness = ChainHarness(store, ChainEngine(probes={"thing": never}))
    run_id = await harness.start(dag(node("timer"), node("thing"), node("late")))
    jobs = await harness.claim()
    await harness.finish(
        *jobs.values(),
        timer=NodeSuspended("timer", "t", until_ms=NOON_MS + 5_000),
        thing=NodeSuspended("thing", "x", until_ms=NOON_MS + 6_000),
        late=NodeSuspended("timer", "l", until_ms=NOON_MS + 60_000, timeout_ms=2_000),
    )
    housekeeping = ChainHousekeeping(harness.store.database, harness.jobs, harness.engine, name="p")
    assert await housekeeping.run_once() == 0
    await harness.store.clock.advance(ms=2_500)
    assert await housekeeping.run_once() == 1
    await harness.store.clock.advance(ms=5_000)
    assert await housekeeping.run_once() == 2
    nodes = await harness.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "timer": "success",
        "thing": "failed",
        "late": "success",
    }
    assert nodes["thing"].last_error == "Timed out waiting for thing x."
    assert await housekeeping.run_once() == 0


async def test_sleeps_and_questions_end_by_the_clock_of_the_database(store: StoreHarness) -> None:
    """The test's database is at noon of another day than the machine."""
    asleep = await SleepExecutor(store.database).execute(context_for("sleep", {"seconds": 5}))
    assert asleep.until_ms == NOON_MS + 5_000
    cfg = {"question": "Go?", "timeout_sec": 60}
    assert (
        await WaitApprovalExecutor(store.database).execute(context_for("wait_approval", cfg))
    ).until_ms == NOON_MS + 60_000


async def test_housekeeping_finds_a_missed_end(store: StoreHarness) -> None:
    ended, looks, seconds = list[str](), list[str](), [0.0]

    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        looks.append(key)
        return WaitResult(success=True) if key in ended else None

    harness = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    run_id = await harness.start(line(1))
    await harness.step(outcome=NodeSuspended("thing", "t"))
    settings = HousekeepingOptions(recheck_interval_ms=1_000)
    housekeeping = ChainHousekeeping(
        store.database, harness.jobs, harness.engine, name="p", settings=settings, clock=lambda: seconds[0]
    )

    async def tick_after(ms: int) -> int:
        await store.clock.advance(ms=ms)
        seconds[0] += ms / 1_000
        return await housekeeping.run_once()

    ended.append("t")
    assert await housekeeping.run_once() == 0
    assert await tick_after(1_500) == 1
    assert (await harness.run(run_id)).status == "success"


async def test_long_waits_are_looked_at_once_in_a_while_and_not_in_every_round(store: StoreHarness) -> None:
    looks, seconds = list[str](), [0.0]

    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        looks.append(key)
        return None

    harness = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    await harness.start(dag(node("a"), node("b")))
    jobs = await harness.claim()
    await harness.finish(
        *jobs.values(), a=NodeSuspended("thing", "t"), b=NodeSuspended("timer", "x", until_ms=NOON_MS + 10**9)
    )
    housekeeping = ChainHousekeeping(store.database, harness.jobs, harness.engine, name="p", clock=lambda: seconds[0])
    looks.clear()
    for _ in range(180):  # ninety seconds of the scheduler's rounds
        await store.clock.advance(ms=500)
        seconds[0] += 0.5
        await housekeeping.recheck_waits()
    assert looks == ["t", "t"]


async def test_a_sub_chain_ends_the_node_that_waits_for_it(harness: ChainHarness) -> None:
    child_chain = await harness.define(line(1))
    for fails in (False, True):
        run_id = await harness.start(line(2))
        wanted = NewChainRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0")
        child = await harness.store.transact(lambda tx, wanted=wanted: harness.engine.start(tx, wanted))  # type: ignore[misc]
        jobs = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
        await harness.finish(jobs[run_id], outcome=NodeSuspended("run", child.run_id))
        assert (await harness.states(run_id))["n0"] == "running"
        await (harness.fail(jobs[child.run_id]) if fails else harness.finish(jobs[child.run_id]))
        states = await harness.states(run_id)
        assert states == ({"n0": "failed", "n1": "skipped"} if fails else {"n0": "success", "n1": "pending"})
        artifact = (await harness.nodes(run_id))["n0"].artifact
        assert artifact == {"run_id": child.run_id, "status": "failed" if fails else "success"}
        await harness.drain(run_id)


async def test_a_sub_chain_stops_with_its_parent(harness: ChainHarness) -> None:
    child_chain = await harness.define(line(2))
    run_id = await harness.start(line(1))
    child = await harness.store.transact(
        lambda tx: harness.engine.start(tx, NewChainRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0"))
    )
    jobs = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
    await harness.finish(jobs[run_id], outcome=NodeSuspended("run", child.run_id))
    assert await harness.stop(run_id) == "stopped"  # a node that only waits needs no grace
    housekeeping = ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    )
    await housekeeping.run_once()
    await housekeeping.run_once()
    assert (await harness.run(child.run_id)).status == "stopped"


# Stopping.


async def test_a_node_that_does_not_stop_is_killed_after_the_grace(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b"), node("c", "a")))
    jobs = await harness.claim()
    assert await harness.stop(run_id) == "stopping"
    housekeeping = ChainHousekeeping(
        harness.store.database,
        harness.jobs,
        harness.engine,
        name="p",
        settings=HousekeepingOptions(stop_grace_ms=5_000),
    )
    assert await housekeeping.run_once() == 0
    await harness.release(jobs["b"])  # an attempt that failed meanwhile gets no other
    assert (await harness.states(run_id))["b"] == "retrying"
    assert await housekeeping.run_once() == 1
    assert await harness.states(run_id) == {"a": "running", "b": "stopped", "c": "stopped"}
    await harness.store.clock.advance(ms=5_001)
    assert await housekeeping.run_once() == 1
    assert (await harness.run(run_id)).status == "stopped"
    assert (await harness.finish(jobs["a"])).done == ()  # the killed worker's word comes too late


async def test_what_succeeds_while_a_run_stops_has_succeeded_but_starts_nothing(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    job = (await harness.claim())["n0"]
    await harness.stop(run_id)
    await harness.finish(job)
    assert await harness.states(run_id) == {"n0": "success", "n1": "stopped"}
    assert (await harness.run(run_id)).status == "stopped"
    await harness.retry(run_id, "n1")
    await harness.drain(run_id)
    assert (await harness.run(run_id)).status == "success"


async def test_a_map_and_a_wait_that_begin_while_a_run_stops_are_stopped(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("m", map={"over": [1]}), node("w")))
    jobs = await harness.claim()
    await harness.stop(run_id)
    await harness.finish(jobs["m"], jobs["w"], m=NodeExpanded((1,)), w=NodeSuspended("timer", "t"))
    assert await harness.states(run_id) == {"m": "stopped", "w": "stopped"}
    assert (await harness.run(run_id)).status == "stopped"


async def test_retrying_one_side_of_a_stopped_diamond_then_the_other(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")))
    await harness.step("a")
    await harness.stop(run_id)
    assert await harness.states(run_id) == {"a": "success", "b": "stopped", "c": "stopped", "d": "stopped"}
    await harness.retry(run_id, "b")
    assert (await harness.states(run_id))["d"] == "pending"
    await harness.drain(run_id)
    assert await harness.states(run_id) == {"a": "success", "b": "success", "c": "stopped", "d": "skipped"}
    assert (await harness.run(run_id)).status == "failed"
    await harness.retry(run_id, "c")
    assert await harness.drain(run_id) == ["c", "d"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_a_job_that_nobody_claimed_is_taken_back_when_a_dependency_runs_again(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("handler", "a", when="one_failed"), node("b", "a")))
    await harness.fail((await harness.claim("a"))["a"])
    assert [row["node_id"] for row in await harness.waiting_jobs()] == ["handler"]
    await harness.retry(run_id, "a")
    assert [row["node_id"] for row in await harness.waiting_jobs()] == ["a"]
    assert await harness.drain(run_id) == ["a", "b"]
    assert await harness.states(run_id) == {"a": "success", "handler": "skipped", "b": "success"}
    assert (await harness.run(run_id)).status == "success"


async def test_retrying_a_stopped_mapped_node_whose_instances_all_succeeded_ends_it(harness: ChainHarness) -> None:
    """The mapped node is stopped at once; its instances run on within the grace, and nothing of it is left to run."""
    run_id = await harness.start(dag(node("m", map={"over": [1, 2]}), node("after", "m")))
    await harness.step("m", outcome=NodeExpanded((1, 2)))
    jobs = await harness.claim()
    await harness.stop(run_id)
    await harness.finish(*jobs.values())
    assert await harness.states(run_id) == {"m": "stopped", "m[0]": "success", "m[1]": "success", "after": "stopped"}
    await harness.retry(run_id, "m")
    assert (await harness.states(run_id))["m"] == "success"
    assert await harness.drain(run_id) == ["after"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_retrying_a_stopped_mapped_node_runs_only_the_instances_that_did_not_succeed(
    harness: ChainHarness,
) -> None:
    run_id = await harness.start(dag(node("m", map={"over": [1, 2]})))
    await harness.step("m", outcome=NodeExpanded((1, 2)))
    job = (await harness.claim("m[0]"))["m[0]"]
    await harness.stop(run_id)
    await harness.finish(job)
    await harness.retry(run_id, "m")
    assert await harness.drain(run_id) == ["m[1]"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)
