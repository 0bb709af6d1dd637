"""What the engine does with a run besides the acceptance cases: rules, conditions, maps, limits, waits, history."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.chains.engine import Engine
from adjudge.chains.executor import Awaited
from adjudge.chains.patrol import ChainPatrol, PatrolSettings
from adjudge.domain.errors import Conflict, FenceRefused
from adjudge.store import Tx, chain_runs, dead_letters
from adjudge.store.chain_values import Expanded, NewRun, RunEnded, Suspended
from adjudge.store.job_values import Burial, Fence
from tests.integration.chains.harness import Rig, dag, done, line, node
from tests.support.stores import NOON_US, Store, fence_of, figure

NOON_MS = NOON_US // 1_000


@pytest.mark.parametrize(
    ("rule", "after_success", "after_failure"),
    [
        ("all_success", "success", "skipped"),
        ("all_done", "success", "success"),
        ("one_success", "success", "success"),
        ("one_failed", "skipped", "success"),
        ("none_failed", "success", "skipped"),
        ("always", "success", "success"),
    ],
)
async def test_when_decides_once_all_dependencies_ended(
    rig: Rig, rule: str, after_success: str, after_failure: str
) -> None:
    for fails, wanted in ((False, after_success), (True, after_failure)):
        run_id = await rig.start(dag(node("a"), node("b"), node("c", "a", "b", when=rule)))
        jobs = await rig.claim("a", "b")
        await rig.finish(jobs["a"])
        assert (await rig.states(run_id))["c"] == "pending"
        await (rig.fail(jobs["b"]) if fails else rig.finish(jobs["b"]))
        await rig.drain(run_id)
        assert (await rig.states(run_id))["c"] == wanted
        assert (await rig.run(run_id)).status == ("failed" if fails else "success")


async def test_a_skip_says_why_and_cascades_to_the_end(rig: Rig) -> None:
    """Further than the cascade is taken statement by statement."""
    run_id = await rig.start(dag(*line(40)["nodes"], node("last", "n39", when="all_done"), node("if", "n39")))
    await rig.fail((await rig.claim("n0"))["n0"])
    nodes = await rig.nodes(run_id)
    assert {nodes[f"n{index}"].status for index in range(1, 40)} == {"skipped"}
    assert nodes["n1"].reason == "when all_success: 0 succeeded, 1 failed, 0 skipped"
    assert nodes["n39"].reason == "when all_success: 0 succeeded, 0 failed, 1 skipped"
    assert nodes["last"].status == "pending"
    assert await rig.drain(run_id) == ["last"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_open, run.nodes_failed, run.nodes_total) == ("failed", 0, 1, 42)


async def test_a_condition_looks_at_artifacts_and_parameters(rig: Rig) -> None:
    document = dag(
        node("count"),
        node("many", "count", **{"if": "artifacts.count.tests > 3 and parameters.mode in ['full', 'fast']"}),
        node("few", "count", **{"if": "not (artifacts.count.tests > 3)"}),
        node("odd", "count", **{"if": "artifacts.count.tests < 'x'"}),
        node("sure", "count", when="always", **{"if": "false"}),
        node("root", **{"if": "parameters.mode == 'none'"}),
        node("after", "root", when="none_failed"),
    )
    run_id = await rig.start(document, {"mode": "full"})
    states = await rig.states(run_id)
    assert (states["root"], states["after"]) == ("skipped", "pending")
    await rig.step("count", outcome=done('{"tests": 4}'))
    states = await rig.states(run_id)
    assert (states["many"], states["few"]) == ("pending", "skipped")
    assert (await rig.nodes(run_id))["few"].reason == "if: not (artifacts.count.tests > 3) is false"
    assert sorted(row["node_id"] for row in await rig.waiting_jobs()) == ["after", "many", "odd", "sure"]


async def test_a_run_of_skipped_nodes_ends_at_once(rig: Rig) -> None:
    run_id = await rig.start(dag(node("a", **{"if": "parameters.go"}), node("b", "a")))
    assert await rig.states(run_id) == {"a": "skipped", "b": "skipped"}
    assert (await rig.run(run_id)).status == "success"


async def test_a_map_fans_out_and_joins(rig: Rig) -> None:
    mapped = node("m", "list", map={"over": "{{ artifacts.list }}", "as": "x"})
    run_id = await rig.start(dag(node("list"), mapped, node("end", "m")))
    await rig.step("list", outcome=done('["p", "q", "r"]'))
    await rig.step("m", outcome=Expanded(("p", "q", "r")))
    nodes = await rig.nodes(run_id)
    assert list(nodes) == ["list", "m", "m[0]", "m[1]", "m[2]", "end"]
    assert (nodes["m"].status, nodes["m[1]"].item, nodes["m[1]"].parent_id) == ("running", "q", "m")
    jobs = await rig.claim()
    assert sorted(jobs) == ["m[0]", "m[1]", "m[2]"]
    await rig.finish(jobs["m[2]"], outcome=done("3"))
    await rig.finish(jobs["m[0]"], jobs["m[1]"], outcome=done("1"))
    assert (await rig.states(run_id))["m"] == "success"
    joined = await rig.store.database.read(lambda tx: chain_runs.artifacts(tx, run_id, [], ["m"]))
    assert [item.text for item in joined["m"]] == ["1", "1", "3"]  # type: ignore[union-attr]
    assert await rig.drain(run_id) == ["end"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_total, run.nodes_open) == ("success", 6, 0)


async def test_a_map_over_nothing_is_done_at_once(rig: Rig) -> None:
    run_id = await rig.start(dag(node("m", map={"over": []}), node("end", "m")))
    await rig.step("m", outcome=Expanded(()))
    assert await rig.states(run_id) == {"m": "success", "end": "pending"}
    assert (await rig.nodes(run_id))["m"].artifact == []


async def test_a_failed_instance_fails_the_map_and_is_retried_alone(rig: Rig) -> None:
    run_id = await rig.start(dag(node("m", map={"over": [1, 2]}), node("end", "m")))
    await rig.step("m", outcome=Expanded((1, 2)))
    jobs = await rig.claim()
    await rig.fail(jobs["m[0]"])
    assert (await rig.states(run_id))["m"] == "running"
    await rig.finish(jobs["m[1]"])
    assert await rig.states(run_id) == {"m": "failed", "m[0]": "failed", "m[1]": "success", "end": "skipped"}
    run = await rig.run(run_id)
    assert (run.status, run.nodes_failed) == ("failed", 1)
    await rig.retry(run_id, "m")
    assert await rig.states(run_id) == {"m": "running", "m[0]": "retrying", "m[1]": "success", "end": "pending"}
    assert await rig.drain(run_id) == ["m[0]", "end"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_an_instance_completed_by_hand_joins_the_map(rig: Rig) -> None:
    run_id = await rig.start(dag(node("m", map={"over": [1, 2]}), node("end", "m")))
    await rig.step("m", outcome=Expanded((1, 2)))
    with pytest.raises(Conflict, match="complete its instances"):
        await rig.complete(run_id, "m")
    jobs = await rig.claim()
    await rig.fail(*jobs.values())
    await rig.complete(run_id, "m[0]", artifact="by hand")
    assert (await rig.states(run_id))["m"] == "failed"
    await rig.complete(run_id, "m[1]")
    assert await rig.drain(run_id) == ["end"]
    assert (await rig.run(run_id)).status == "success"


async def test_limits_hold_for_runs_types_and_maps(rig: Rig) -> None:
    wide = [node(f"a{index}", type="http" if index % 2 else "noop", priority=index % 3) for index in range(8)]
    mapped = node("m", map={"over": [0], "max_parallel": 2})
    run_id = await rig.start(dag(*wide, mapped, max_parallel=4, max_parallel_by_type={"http": 1}))
    seen, peak = [], 0
    while jobs := await rig.claim():
        held = await rig.store.rows("SELECT type, parent_id FROM chain_nodes WHERE place = 'held'")
        peak = max(peak, len(held))
        assert len(held) <= 4
        assert sum(row["type"] == "http" for row in held) <= 1
        assert sum(row["parent_id"] == "m" for row in held) <= 2
        seen += list(jobs)
        for node_id, job in jobs.items():
            await rig.finish(job, outcome=Expanded(tuple(range(5))) if node_id == "m" else None)
    assert peak == 4
    assert len(seen) == len(set(seen)) == 8 + 1 + 5
    assert seen.index("a0") < seen.index("a2")  # the more urgent first
    assert (await rig.run(run_id)).status == "success"


async def test_a_retried_node_takes_its_place_like_any_other(rig: Rig) -> None:
    run_id = await rig.start(dag(node("a"), node("b"), max_parallel=1))
    (first,) = await rig.claim()
    assert first == "a"
    await rig.stop(run_id)
    await ChainPatrol(rig.store.database, rig.jobs, rig.engine, name="p", settings=PatrolSettings(0)).tick()
    assert await rig.states(run_id) == {"a": "stopped", "b": "stopped"}
    await rig.retry(run_id, "a")
    await rig.retry(run_id, "b")
    assert [row["node_id"] for row in await rig.waiting_jobs()] == ["a"]
    assert await rig.drain(run_id) == ["a", "b"]
    assert {item.attempt for item in (await rig.nodes(run_id)).values()} == {1, 2}


# Waiting.


async def test_a_waiting_node_holds_no_worker_and_is_resumed_once(store: Store) -> None:
    rig = Rig(store, Engine(probes={"thing": never}))
    run_id = await rig.start(line(2))
    await rig.step("n0", outcome=Suspended("thing", "t1", done('{"asked": true}').artifact))
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].wait_on, nodes["n0"].wait_key) == ("running", "thing", "t1")
    assert await rig.claim() == {}

    async def resume(key: str) -> int:
        return await rig.store.do(
            lambda tx: rig.engine.resume(tx, on="thing", key=key, success=True, artifact={"answer": 42})
        )

    assert await resume("t2") == 0
    assert await resume("t1") == 1
    assert await resume("t1") == 0
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].artifact, nodes["n0"].wait_on) == ("success", {"answer": 42}, None)
    assert await rig.drain(run_id) == ["n1"]


async def never(_tx: Tx, _key: str) -> Awaited | None:
    return None


async def test_what_ended_before_the_wait_was_recorded_is_not_missed(store: Store) -> None:
    async def probe(_tx: Tx, key: str) -> Awaited | None:
        return Awaited(success=key == "good", artifact=key, error="it went wrong")

    rig = Rig(store, Engine(probes={"thing": probe}))
    run_id = await rig.start(dag(node("a"), node("b"), node("c", "a"), node("d", "b")))
    jobs = await rig.claim()
    await rig.finish(jobs["a"], jobs["b"], a=Suspended("thing", "good"), b=Suspended("thing", "bad"))
    nodes = await rig.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "a": "success",
        "b": "failed",
        "c": "pending",
        "d": "skipped",
    }
    assert (nodes["a"].artifact, nodes["b"].last_error) == ("good", "it went wrong")


async def test_a_wait_that_nobody_can_end_fails_at_once(rig: Rig) -> None:
    run_id = await rig.start(line(1))
    await rig.step(outcome=Suspended("weather", "sun"))
    assert "weather" in ((await rig.nodes(run_id))["n0"].last_error or "")


async def test_timers_end_well_and_other_waits_time_out(store: Store) -> None:
    rig = Rig(store, Engine(probes={"thing": never}))
    run_id = await rig.start(dag(node("timer"), node("thing"), node("late")))
    jobs = await rig.claim()
    await rig.finish(
        *jobs.values(),
        timer=Suspended("timer", "t", until_ms=NOON_MS + 5_000),
        thing=Suspended("thing", "x", until_ms=NOON_MS + 6_000),
        late=Suspended("timer", "l", until_ms=NOON_MS + 60_000, timeout_ms=2_000),
    )
    patrol = ChainPatrol(rig.store.database, rig.jobs, rig.engine, name="p")
    assert await patrol.tick() == 0
    await rig.store.clock.advance(ms=2_500)
    assert await patrol.tick() == 1
    await rig.store.clock.advance(ms=5_000)
    assert await patrol.tick() == 2
    nodes = await rig.nodes(run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "timer": "success",
        "thing": "failed",
        "late": "success",
    }
    assert nodes["thing"].last_error == "Timed out waiting for thing x."
    assert await patrol.tick() == 0


async def test_a_missed_end_is_noticed_by_the_patrol(store: Store) -> None:
    ended: list[str] = []

    async def probe(_tx: Tx, key: str) -> Awaited | None:
        return Awaited(success=True) if key in ended else None

    rig = Rig(store, Engine(probes={"thing": probe}))
    run_id = await rig.start(line(1))
    await rig.step(outcome=Suspended("thing", "t"))
    patrol = ChainPatrol(store.database, rig.jobs, rig.engine, name="p", settings=PatrolSettings(look_again_ms=1_000))
    ended.append("t")
    assert await patrol.tick() == 0
    await store.clock.advance(ms=1_500)
    assert await patrol.tick() == 1
    assert (await rig.run(run_id)).status == "success"


async def test_a_sub_chain_ends_the_node_that_waits_for_it(rig: Rig) -> None:
    child_chain = await rig.define(line(1))
    for fails in (False, True):
        run_id = await rig.start(line(2))
        wanted = NewRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0")
        child = await rig.store.do(lambda tx, wanted=wanted: rig.engine.start(tx, wanted))  # type: ignore[misc]
        jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
        await rig.finish(jobs[run_id], outcome=Suspended("run", child.run_id))
        assert (await rig.states(run_id))["n0"] == "running"
        await (rig.fail(jobs[child.run_id]) if fails else rig.finish(jobs[child.run_id]))
        states = await rig.states(run_id)
        assert states == ({"n0": "failed", "n1": "skipped"} if fails else {"n0": "success", "n1": "pending"})
        artifact = (await rig.nodes(run_id))["n0"].artifact
        assert artifact == {"run_id": child.run_id, "status": "failed" if fails else "success"}
        await rig.drain(run_id)


async def test_a_sub_chain_stops_with_its_parent(rig: Rig) -> None:
    child_chain = await rig.define(line(2))
    run_id = await rig.start(line(1))
    child = await rig.store.do(
        lambda tx: rig.engine.start(tx, NewRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0"))
    )
    jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
    await rig.finish(jobs[run_id], outcome=Suspended("run", child.run_id))
    assert await rig.stop(run_id) == "stopped"  # a node that only waits needs no grace
    patrol = ChainPatrol(rig.store.database, rig.jobs, rig.engine, name="p", settings=PatrolSettings(0))
    await patrol.tick()
    await patrol.tick()
    assert (await rig.run(child.run_id)).status == "stopped"


# Stopping.


async def test_a_node_that_does_not_stop_is_killed_after_the_grace(rig: Rig) -> None:
    run_id = await rig.start(dag(node("a"), node("b"), node("c", "a")))
    jobs = await rig.claim()
    assert await rig.stop(run_id) == "stopping"
    patrol = ChainPatrol(
        rig.store.database, rig.jobs, rig.engine, name="p", settings=PatrolSettings(stop_grace_ms=5_000)
    )
    assert await patrol.tick() == 0
    await rig.release(jobs["b"])  # an attempt that failed meanwhile gets no other
    assert (await rig.states(run_id))["b"] == "retrying"
    assert await patrol.tick() == 1
    assert await rig.states(run_id) == {"a": "running", "b": "stopped", "c": "stopped"}
    await rig.store.clock.advance(ms=5_001)
    assert await patrol.tick() == 1
    assert (await rig.run(run_id)).status == "stopped"
    assert (await rig.finish(jobs["a"])).done == ()  # the killed worker's word comes too late


async def test_what_succeeds_while_a_run_stops_has_succeeded_but_starts_nothing(rig: Rig) -> None:
    run_id = await rig.start(line(2))
    job = (await rig.claim())["n0"]
    await rig.stop(run_id)
    await rig.finish(job)
    assert await rig.states(run_id) == {"n0": "success", "n1": "stopped"}
    assert (await rig.run(run_id)).status == "stopped"
    await rig.retry(run_id, "n1")
    await rig.drain(run_id)
    assert (await rig.run(run_id)).status == "success"


async def test_a_map_and_a_wait_that_begin_while_a_run_stops_are_stopped(rig: Rig) -> None:
    run_id = await rig.start(dag(node("m", map={"over": [1]}), node("w")))
    jobs = await rig.claim()
    await rig.stop(run_id)
    await rig.finish(jobs["m"], jobs["w"], m=Expanded((1,)), w=Suspended("timer", "t"))
    assert await rig.states(run_id) == {"m": "stopped", "w": "stopped"}
    assert (await rig.run(run_id)).status == "stopped"


async def test_retrying_one_side_of_a_stopped_diamond_then_the_other(rig: Rig) -> None:
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


async def test_a_job_that_nobody_claimed_is_taken_back_when_a_dependency_runs_again(rig: Rig) -> None:
    run_id = await rig.start(dag(node("a"), node("handler", "a", when="one_failed"), node("b", "a")))
    await rig.fail((await rig.claim("a"))["a"])
    assert [row["node_id"] for row in await rig.waiting_jobs()] == ["handler"]
    await rig.retry(run_id, "a")
    assert [row["node_id"] for row in await rig.waiting_jobs()] == ["a"]
    assert await rig.drain(run_id) == ["a", "b"]
    assert await rig.states(run_id) == {"a": "success", "handler": "skipped", "b": "success"}
    assert (await rig.run(run_id)).status == "success"


# Attempts.


async def test_attempts_are_shown_and_bounded_by_the_node(rig: Rig) -> None:
    run_id = await rig.start(line(2, retry={"max_attempts": 2, "backoff_ms": 1}))
    await rig.release((await rig.claim("n0"))["n0"])
    shown = (await rig.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.last_error) == ("retrying", 1, "a hiccup")
    await rig.release((await rig.claim("n0"))["n0"])
    shown = (await rig.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.last_error) == ("failed", 2, "a hiccup")
    assert (await rig.run(run_id)).status == "failed"
    letters = await rig.store.database.read(dead_letters.page)
    assert [letter.kind for letter in letters] == ["node"]
    await rig.retry(run_id, "n0")
    assert await rig.store.database.read(dead_letters.page) == []


async def test_a_replayed_dead_letter_is_another_attempt_of_its_node(rig: Rig) -> None:
    run_id = await rig.start(line(2))
    await rig.fail((await rig.claim("n0"))["n0"])
    (letter,) = await rig.store.database.read(dead_letters.page)
    await rig.store.do(lambda tx: dead_letters.replay(tx, rig.jobs, [letter.id], actor="ann", reason="again"))
    job = (await rig.claim())["n0"]
    assert await rig.states(run_id) == {"n0": "running", "n1": "pending"}
    assert (await rig.run(run_id)).status == "running"
    await rig.finish(job)
    assert await rig.drain(run_id) == ["n1"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_open, run.nodes_failed) == ("success", 0, 0)


async def test_a_lost_worker_costs_an_attempt_and_its_late_word_changes_nothing(rig: Rig) -> None:
    run_id = await rig.start(line(2))
    lost = (await rig.claim("n0"))["n0"]
    await rig.store.clock.advance(ms=20_000)
    await rig.store.do(lambda tx: rig.jobs.expire(tx, actor="watchdog"))
    assert (await rig.states(run_id))["n0"] == "retrying"
    await rig.store.clock.advance(ms=10_000)
    again = (await rig.claim("n0", worker="w2"))["n0"]
    assert (await rig.finish(lost)).done == ()
    assert (await rig.nodes(run_id))["n0"].attempt == 2
    await rig.finish(again)
    await rig.drain(run_id)
    assert (await rig.run(run_id)).status == "success"


async def test_a_reclaimed_node_runs_on_under_another_attempt(rig: Rig) -> None:
    run_id = await rig.start(line(1))
    lost = (await rig.claim())["n0"]
    await rig.store.clock.advance(ms=20_000)
    outcome = await rig.store.do(lambda tx: rig.jobs.reclaim(tx, [lost.id], worker="w2", lease_ms=15_000))
    shown = (await rig.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.actor) == ("running", 2, "w2")
    await rig.finish(*outcome.done)
    assert (await rig.run(run_id)).status == "success"


async def test_a_job_buried_unclaimed_fails_its_node(rig: Rig) -> None:
    run_id = await rig.start(line(2))
    (row,) = await rig.waiting_jobs()
    await rig.store.do(lambda tx: rig.jobs.bury(tx, [Burial(row["id"], "UNKNOWN_KIND", "no handler")], actor="w1"))
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].last_error, nodes["n1"].status) == ("failed", "no handler", "skipped")


async def test_checkpoints_survive_attempts_and_are_fenced(rig: Rig) -> None:
    run_id = await rig.start(line(1))

    async def save(fence: Fence, attempt: int, document: Any) -> None:
        await rig.store.do(lambda tx: chain_runs.save_checkpoint(tx, fence, attempt=attempt, document=document))

    first = (await rig.claim())["n0"]
    await save(fence_of(first), 1, {"step": 1})
    await save(fence_of(first), 1, {"step": 2})
    await rig.release(first)
    second = (await rig.claim(worker="w2"))["n0"]
    with pytest.raises(FenceRefused):
        await save(fence_of(first), 1, {"step": "late"})
    task = await rig.store.database.read(lambda tx: chain_runs.task(tx, run_id, "n0"))
    assert (task.checkpoint, task.attempt) == ({"step": 2}, 2)
    await rig.finish(second)
    with pytest.raises(FenceRefused):
        await save(fence_of(second), 2, {})


async def test_logs_of_a_node_are_kept_in_order(rig: Rig) -> None:
    run_id = await rig.start(line(1))
    for lines in (["one", "two"], ["three"]):
        await rig.store.do(
            lambda tx, lines=lines: chain_runs.append_log(tx, run_id, "n0", attempt=1, lines=lines)  # type: ignore[misc]
        )
    found = await rig.store.database.read(lambda tx: chain_runs.read_log(tx, run_id, "n0"))
    assert [item.text for item in found] == ["one", "two", "three"]
    rest = await rig.store.database.read(lambda tx: chain_runs.read_log(tx, run_id, "n0", after=found[1].id))
    assert [item.text for item in rest] == ["three"]


# History.


async def test_a_rerun_from_a_node_takes_over_what_stands(rig: Rig) -> None:
    mapped = node("m", map={"over": [1]})
    run_id = await rig.start(dag(node("a"), mapped, node("b", "a", "m"), node("c", "b"), node("x")), {"problem": "sum"})
    await rig.step("m", outcome=Expanded((1,)))
    await rig.drain(run_id, lambda node_id: False if node_id in ("c", "x") else done(json.dumps(node_id)))
    started = await rig.store.do(lambda tx: rig.engine.rerun(tx, run_id, actor="bob", from_node="c"))
    nodes = await rig.nodes(started.run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "a": "success",
        "m": "success",
        "m[0]": "success",
        "b": "success",
        "c": "pending",
        "x": "pending",
    }
    assert (nodes["b"].artifact, nodes["m[0]"].artifact) == ("b", "m[0]")
    assert sorted(await rig.drain(started.run_id)) == ["c", "x"]
    run = await rig.run(started.run_id)
    assert (run.status, run.origin_run_id, run.parameters, run.nodes_open) == ("success", run_id, {"problem": "sum"}, 0)
    assert (await rig.run(run_id)).status == "failed"


async def test_a_rerun_uses_the_snapshot_and_a_key_once(rig: Rig) -> None:
    chain = await rig.define(line(2))
    first = await rig.store.do(lambda tx: rig.engine.start(tx, NewRun(chain.id)))
    await rig.update(chain.id, 1, line(5), chain.name)
    again = [
        await rig.store.do(lambda tx: rig.engine.rerun(tx, first.run_id, actor="bob", idempotency_key="once"))
        for _ in range(2)
    ]
    assert (again[0].run_id, again[0].is_new, again[1].is_new) == (again[1].run_id, True, False)
    assert len(await rig.nodes(again[0].run_id)) == 2
    newest = await rig.store.do(lambda tx: rig.engine.start(tx, NewRun(chain.id)))
    assert len(await rig.nodes(newest.run_id)) == 5


async def test_old_runs_are_deleted_with_everything_of_theirs(rig: Rig) -> None:
    old = await rig.start(line(2))
    await rig.drain(old, lambda node_id: node_id != "n0")
    await rig.retry(old, "n0")
    await rig.drain(old)
    await rig.store.clock.advance(ms=60_000)
    young, going = await rig.start(line(1)), await rig.start(line(1))
    jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
    await rig.finish(jobs[young])
    await rig.store.clock.advance(ms=1_000)
    settings = PatrolSettings(keep_ms=30_000)
    await ChainPatrol(rig.store.database, rig.jobs, rig.engine, name="p", settings=settings).tick()
    left = await rig.store.rows("SELECT id FROM chain_runs")
    assert {row["id"] for row in left} == {young, going}
    for table in ("jobs WHERE chain_run_id", "chain_nodes WHERE run_id", "chain_status_log WHERE run_id"):
        assert await rig.store.rows(f"SELECT 1 FROM {table} = :run_id", run_id=old) == []


async def test_who_acts_on_a_runs_end_does_so_in_its_transaction(store: Store) -> None:
    seen: list[RunEnded] = []

    async def act(_tx: Tx, end: RunEnded) -> None:
        seen.append(end)

    rig = Rig(store, Engine(on_run_ended=[act]))
    before = figure("chain_runs_total", status="success")
    run_id = await rig.start(line(2))
    await rig.drain(run_id)
    assert [(end.run_id, end.status) for end in seen] == [(run_id, "success")]
    assert figure("chain_runs_total", status="success") == before + 1
    assert figure("chain_node_duration_seconds_count", type="noop", status="success") >= 2
