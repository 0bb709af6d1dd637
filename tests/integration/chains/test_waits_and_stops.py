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
    rig = ChainHarness(store, ChainEngine(probes={"thing": never}))
    run_id = await rig.start(line(2))
    await rig.step("n0", outcome=NodeSuspended("thing", "t1", done('{"asked": true}').artifact))
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].wait_on, nodes["n0"].wait_key) == ("running", "thing", "t1")
    assert await rig.claim() == {}

    async def resume(key: str) -> int:
        return await rig.store.transact(
            lambda tx: rig.engine.resume(tx, on="thing", key=key, success=True, artifact={"answer": 42})
        )

    assert await resume("t2") == 0
    assert await resume("t1") == 1
    assert await resume("t1") == 0
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].artifact, nodes["n0"].wait_on) == ("success", {"answer": 42}, None)
    assert await rig.drain(run_id) == ["n1"]


async def never(_tx: Tx, _key: str) -> WaitResult | None:
    return None


async def test_what_ended_before_the_wait_was_recorded_is_not_missed(store: StoreHarness) -> None:
    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        return WaitResult(success=key == "good", artifact=key, error="it went wrong")

    rig = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    run_id = await rig.start(dag(node("a"), node("b"), node("c", "a"), node("d", "b")))
    jobs = await rig.claim()
    await rig.finish(jobs["a"], jobs["b"], a=NodeSuspended("thing", "good"), b=NodeSuspended("thing", "bad"))
    nodes = await rig.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "a": "success",
        "b": "failed",
        "c": "pending",
        "d": "skipped",
    }
    assert (nodes["a"].artifact, nodes["b"].last_error) == ("good", "it went wrong")


async def test_a_wait_that_nobody_can_end_fails_at_once(rig: ChainHarness) -> None:
    run_id = await rig.start(line(1))
    await rig.step(outcome=NodeSuspended("weather", "sun"))
    assert "weather" in ((await rig.nodes(run_id))["n0"].last_error or "")


async def test_timers_end_well_and_other_waits_time_out(store: StoreHarness) -> None:
    rig = ChainHarness(store, ChainEngine(probes={"thing": never}))
    run_id = await rig.start(dag(node("timer"), node("thing"), node("late")))
    jobs = await rig.claim()
    await rig.finish(
        *jobs.values(),
        timer=NodeSuspended("timer", "t", until_ms=NOON_MS + 5_000),
        thing=NodeSuspended("thing", "x", until_ms=NOON_MS + 6_000),
        late=NodeSuspended("timer", "l", until_ms=NOON_MS + 60_000, timeout_ms=2_000),
    )
    patrol = ChainHousekeeping(rig.store.database, rig.jobs, rig.engine, name="p")
    assert await patrol.run_once() == 0
    await rig.store.clock.advance(ms=2_500)
    assert await patrol.run_once() == 1
    await rig.store.clock.advance(ms=5_000)
    assert await patrol.run_once() == 2
    nodes = await rig.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "timer": "success",
        "thing": "failed",
        "late": "success",
    }
    assert nodes["thing"].last_error == "Timed out waiting for thing x."
    assert await patrol.run_once() == 0


async def test_sleeps_and_questions_end_by_the_clock_of_the_database(store: StoreHarness) -> None:
    """The test's database is at noon of another day than the machine."""
    asleep = await SleepExecutor(store.database).execute(context_for("sleep", {"seconds": 5}))
    assert asleep.until_ms == NOON_MS + 5_000
    cfg = {"question": "Go?", "timeout_sec": 60}
    assert (
        await WaitApprovalExecutor(store.database).execute(context_for("wait_approval", cfg))
    ).until_ms == NOON_MS + 60_000


async def test_a_missed_end_is_noticed_by_the_patrol(store: StoreHarness) -> None:
    ended, looks, seconds = list[str](), list[str](), [0.0]

    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        looks.append(key)
        return WaitResult(success=True) if key in ended else None

    rig = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    run_id = await rig.start(line(1))
    await rig.step(outcome=NodeSuspended("thing", "t"))
    settings = HousekeepingOptions(recheck_interval_ms=1_000)
    patrol = ChainHousekeeping(
        store.database, rig.jobs, rig.engine, name="p", settings=settings, clock=lambda: seconds[0]
    )

    async def tick_after(ms: int) -> int:
        await store.clock.advance(ms=ms)
        seconds[0] += ms / 1_000
        return await patrol.run_once()

    ended.append("t")
    assert await patrol.run_once() == 0
    assert await tick_after(1_500) == 1
    assert (await rig.run(run_id)).status == "success"


async def test_long_waits_are_looked_at_once_in_a_while_and_not_in_every_round(store: StoreHarness) -> None:
    looks, seconds = list[str](), [0.0]

    async def probe(_tx: Tx, key: str) -> WaitResult | None:
        looks.append(key)
        return None

    rig = ChainHarness(store, ChainEngine(probes={"thing": probe}))
    await rig.start(dag(node("a"), node("b")))
    jobs = await rig.claim()
    await rig.finish(
        *jobs.values(), a=NodeSuspended("thing", "t"), b=NodeSuspended("timer", "x", until_ms=NOON_MS + 10**9)
    )
    patrol = ChainHousekeeping(store.database, rig.jobs, rig.engine, name="p", clock=lambda: seconds[0])
    looks.clear()
    for _ in range(180):  # ninety seconds of the scheduler's rounds
        await store.clock.advance(ms=500)
        seconds[0] += 0.5
        await patrol.recheck_waits()
    assert looks == ["t", "t"]


async def test_a_sub_chain_ends_the_node_that_waits_for_it(rig: ChainHarness) -> None:
    child_chain = await rig.define(line(1))
    for fails in (False, True):
        run_id = await rig.start(line(2))
        wanted = NewChainRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0")
        child = await rig.store.transact(lambda tx, wanted=wanted: rig.engine.start(tx, wanted))  # type: ignore[misc]
        jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
        await rig.finish(jobs[run_id], outcome=NodeSuspended("run", child.run_id))
        assert (await rig.states(run_id))["n0"] == "running"
        await (rig.fail(jobs[child.run_id]) if fails else rig.finish(jobs[child.run_id]))
        states = await rig.states(run_id)
        assert states == ({"n0": "failed", "n1": "skipped"} if fails else {"n0": "success", "n1": "pending"})
        artifact = (await rig.nodes(run_id))["n0"].artifact
        assert artifact == {"run_id": child.run_id, "status": "failed" if fails else "success"}
        await rig.drain(run_id)


async def test_a_sub_chain_stops_with_its_parent(rig: ChainHarness) -> None:
    child_chain = await rig.define(line(2))
    run_id = await rig.start(line(1))
    child = await rig.store.transact(
        lambda tx: rig.engine.start(tx, NewChainRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0"))
    )
    jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
    await rig.finish(jobs[run_id], outcome=NodeSuspended("run", child.run_id))
    assert await rig.stop(run_id) == "stopped"  # a node that only waits needs no grace
    patrol = ChainHousekeeping(rig.store.database, rig.jobs, rig.engine, name="p", settings=HousekeepingOptions(0))
    await patrol.run_once()
    await patrol.run_once()
    assert (await rig.run(child.run_id)).status == "stopped"


# Stopping.


async def test_a_node_that_does_not_stop_is_killed_after_the_grace(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("a"), node("b"), node("c", "a")))
    jobs = await rig.claim()
    assert await rig.stop(run_id) == "stopping"
    patrol = ChainHousekeeping(
        rig.store.database, rig.jobs, rig.engine, name="p", settings=HousekeepingOptions(stop_grace_ms=5_000)
    )
    assert await patrol.run_once() == 0
    await rig.release(jobs["b"])  # an attempt that failed meanwhile gets no other
    assert (await rig.states(run_id))["b"] == "retrying"
    assert await patrol.run_once() == 1
    assert await rig.states(run_id) == {"a": "running", "b": "stopped", "c": "stopped"}
    await rig.store.clock.advance(ms=5_001)
    assert await patrol.run_once() == 1
    assert (await rig.run(run_id)).status == "stopped"
    assert (await rig.finish(jobs["a"])).done == ()  # the killed worker's word comes too late


async def test_what_succeeds_while_a_run_stops_has_succeeded_but_starts_nothing(rig: ChainHarness) -> None:
    run_id = await rig.start(line(2))
    job = (await rig.claim())["n0"]
    await rig.stop(run_id)
    await rig.finish(job)
    assert await rig.states(run_id) == {"n0": "success", "n1": "stopped"}
    assert (await rig.run(run_id)).status == "stopped"
    await rig.retry(run_id, "n1")
    await rig.drain(run_id)
    assert (await rig.run(run_id)).status == "success"


async def test_a_map_and_a_wait_that_begin_while_a_run_stops_are_stopped(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("m", map={"over": [1]}), node("w")))
    jobs = await rig.claim()
    await rig.stop(run_id)
    await rig.finish(jobs["m"], jobs["w"], m=NodeExpanded((1,)), w=NodeSuspended("timer", "t"))
    assert await rig.states(run_id) == {"m": "stopped", "w": "stopped"}
    assert (await rig.run(run_id)).status == "stopped"


async def test_retrying_one_side_of_a_stopped_diamond_then_the_other(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c")))
    await rig.step("a")
    await rig.stop(run_id)
    assert await rig.states(run_id) == {"a": "success", "b": "stopped", "c": "stopped", "d": "stopped"}
    await rig.retry(run_id, "b")
    assert (await rig.states(run_id))["d"] == "pending"
    await rig.drain(run_id)
    assert await rig.states(run_id) == {"a": "success", "b": "success", "c": "stopped", "d": "skipped"}
    assert (await rig.run(run_id)).status == "failed"
    await rig.retry(run_id, "c")
    assert await rig.drain(run_id) == ["c", "d"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_a_job_that_nobody_claimed_is_taken_back_when_a_dependency_runs_again(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("a"), node("handler", "a", when="one_failed"), node("b", "a")))
    await rig.fail((await rig.claim("a"))["a"])
    assert [row["node_id"] for row in await rig.waiting_jobs()] == ["handler"]
    await rig.retry(run_id, "a")
    assert [row["node_id"] for row in await rig.waiting_jobs()] == ["a"]
    assert await rig.drain(run_id) == ["a", "b"]
    assert await rig.states(run_id) == {"a": "success", "handler": "skipped", "b": "success"}
    assert (await rig.run(run_id)).status == "success"


async def test_retrying_a_stopped_mapped_node_whose_instances_all_succeeded_ends_it(rig: ChainHarness) -> None:
    """The mapped node is stopped at once; its instances run on within the grace, and nothing of it is left to run."""
    run_id = await rig.start(dag(node("m", map={"over": [1, 2]}), node("after", "m")))
    await rig.step("m", outcome=NodeExpanded((1, 2)))
    jobs = await rig.claim()
    await rig.stop(run_id)
    await rig.finish(*jobs.values())
    assert await rig.states(run_id) == {"m": "stopped", "m[0]": "success", "m[1]": "success", "after": "stopped"}
    await rig.retry(run_id, "m")
    assert (await rig.states(run_id))["m"] == "success"
    assert await rig.drain(run_id) == ["after"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_retrying_a_stopped_mapped_node_runs_only_the_instances_that_did_not_succeed(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("m", map={"over": [1, 2]})))
    await rig.step("m", outcome=NodeExpanded((1, 2)))
    job = (await rig.claim("m[0]"))["m[0]"]
    await rig.stop(run_id)
    await rig.finish(job)
    await rig.retry(run_id, "m")
    assert await rig.drain(run_id) == ["m[1]"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)
