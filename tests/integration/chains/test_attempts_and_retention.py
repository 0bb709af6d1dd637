"""Attempts and history of runs: what is tried again, what is kept, what is deleted."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from adjudge.chains.engine import ChainEngine
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Conflict, FenceRefused
from adjudge.store import Tx
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import ChainRunFinished, NewChainRun, NodeExpanded, NodeStopped
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import Fence, PoisonJob
from tests.integration.chains.harness import ChainHarness, dag, done, line, node
from tests.support.store_harness import StoreHarness, fence_of, metric_value


async def test_attempts_are_shown_and_bounded_by_the_node(rig: ChainHarness) -> None:
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


async def test_a_replayed_dead_letter_is_another_attempt_of_its_node(rig: ChainHarness) -> None:
    run_id = await rig.start(line(2))
    await rig.fail((await rig.claim("n0"))["n0"])
    (letter,) = await rig.store.database.read(dead_letters.page)
    await rig.store.transact(lambda tx: dead_letters.replay(tx, rig.jobs, [letter.id], actor="ann", reason="again"))
    job = (await rig.claim())["n0"]
    assert await rig.states(run_id) == {"n0": "running", "n1": "pending"}
    assert (await rig.run(run_id)).status == "running"
    await rig.finish(job)
    assert await rig.drain(run_id) == ["n1"]
    run = await rig.run(run_id)
    assert (run.status, run.nodes_open, run.nodes_failed) == ("success", 0, 0)


async def test_a_letter_is_replayed_as_long_as_its_node_stands_where_it_failed(rig: ChainHarness) -> None:
    run_id = await rig.start(dag(node("a"), node("b")))
    await rig.fail((await rig.claim("a"))["a"])
    (letter,) = await rig.store.database.read(dead_letters.page)
    replay = partial(dead_letters.replay, jobs=rig.jobs, letter_ids=[letter.id], actor="ann", reason="again")
    running = await rig.claim("b")
    await rig.stop(run_id)
    with pytest.raises(Conflict, match="is stopping"):
        await rig.store.transact(replay)
    await rig.finish(running["b"], outcome=NodeStopped("stopped"))
    made = await rig.store.transact(replay)
    assert made == {letter.id: (await rig.nodes(run_id))["a"].job_id}


async def test_a_lost_worker_costs_an_attempt_and_its_late_word_changes_nothing(rig: ChainHarness) -> None:
    run_id = await rig.start(line(2))
    lost = (await rig.claim("n0"))["n0"]
    await rig.store.clock.advance(ms=20_000)
    await rig.store.transact(lambda tx: rig.jobs.release_expired(tx, actor="watchdog"))
    assert (await rig.states(run_id))["n0"] == "retrying"
    await rig.store.clock.advance(ms=10_000)
    again = (await rig.claim("n0", worker="w2"))["n0"]
    assert (await rig.finish(lost)).done == ()
    assert (await rig.nodes(run_id))["n0"].attempt == 2
    await rig.finish(again)
    await rig.drain(run_id)
    assert (await rig.run(run_id)).status == "success"


async def test_a_reclaimed_node_runs_on_under_another_attempt(rig: ChainHarness) -> None:
    run_id = await rig.start(line(1))
    lost = (await rig.claim())["n0"]
    await rig.store.clock.advance(ms=20_000)
    outcome = await rig.store.transact(lambda tx: rig.jobs.reclaim(tx, [lost.id], worker="w2", lease_ms=15_000))
    shown = (await rig.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.actor) == ("running", 2, "w2")
    await rig.finish(*outcome.done)
    assert (await rig.run(run_id)).status == "success"


async def test_a_job_buried_unclaimed_fails_its_node(rig: ChainHarness) -> None:
    run_id = await rig.start(line(2))
    (row,) = await rig.waiting_jobs()
    await rig.store.transact(
        lambda tx: rig.jobs.dead_letter(tx, [PoisonJob(row["id"], "UNKNOWN_KIND", "no handler")], actor="w1")
    )
    nodes = await rig.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].last_error, nodes["n1"].status) == ("failed", "no handler", "skipped")


async def test_checkpoints_survive_attempts_and_are_fenced(rig: ChainHarness) -> None:
    run_id = await rig.start(line(1))

    async def save(fence: Fence, attempt: int, document: Any) -> None:
        await rig.store.transact(
            lambda tx: chain_commands.save_checkpoint(tx, fence, attempt=attempt, document=document)
        )

    first = (await rig.claim())["n0"]
    await save(fence_of(first), 1, {"step": 1})
    await save(fence_of(first), 1, {"step": 2})
    await rig.release(first)
    second = (await rig.claim(worker="w2"))["n0"]
    with pytest.raises(FenceRefused):
        await save(fence_of(first), 1, {"step": "late"})
    tasks = await rig.store.database.read(lambda tx: chain_queries.find_node_tasks(tx, [(run_id, "n0")]))
    task = tasks[run_id, "n0"]
    assert (task.checkpoint, task.attempt) == ({"step": 2}, 2)
    await rig.finish(second)
    with pytest.raises(FenceRefused):
        await save(fence_of(second), 2, {})


async def test_logs_of_a_node_are_kept_in_order(rig: ChainHarness) -> None:
    run_id = await rig.start(line(1))
    for lines in (["one", "two"], ["three"]):
        await rig.store.transact(
            lambda tx, lines=lines: chain_commands.append_log(tx, run_id, "n0", attempt=1, lines=lines)  # type: ignore[misc]
        )
    found = await rig.store.database.read(lambda tx: chain_queries.read_log(tx, run_id, "n0"))
    assert [item.text for item in found] == ["one", "two", "three"]
    rest = await rig.store.database.read(lambda tx: chain_queries.read_log(tx, run_id, "n0", after=found[1].id))
    assert [item.text for item in rest] == ["three"]


async def test_a_rerun_from_a_node_takes_over_what_stands(rig: ChainHarness) -> None:
    mapped = node("m", map={"over": [1]})
    run_id = await rig.start(dag(node("a"), mapped, node("b", "a", "m"), node("c", "b"), node("x")), {"problem": "sum"})
    await rig.step("m", outcome=NodeExpanded((1,)))
    await rig.drain(run_id, lambda node_id: False if node_id in ("c", "x") else done(json.dumps(node_id)))
    started = await rig.store.transact(lambda tx: rig.engine.rerun(tx, run_id, actor="bob", from_node="c"))
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


async def test_a_rerun_takes_over_no_approval_that_comes_before_what_runs(rig: ChainHarness) -> None:
    """Not even over nodes in between, and not where it runs only because of another approval."""
    ask = {"type": "wait_approval"}
    run_id = await rig.start(
        dag(
            node("build"),
            node("ask", "build", **ask),
            node("between", "ask"),
            node("publish", "between"),
            node("other", **ask),
            node("both", "ask", "other"),
            node("apart", **ask),
            node("tell", "apart"),
        )
    )
    await rig.drain(run_id)
    started = await rig.store.transact(lambda tx: rig.engine.rerun(tx, run_id, actor="bob", from_node="publish"))
    states = await rig.states(started.run_id)
    assert sorted(key for key, state in states.items() if state == "success") == ["apart", "build", "tell"]
    assert sorted(await rig.claim()) == ["ask", "other"]


async def test_a_rerun_uses_the_snapshot_and_a_key_once(rig: ChainHarness) -> None:
    chain = await rig.define(line(2))
    first = await rig.store.transact(lambda tx: rig.engine.start(tx, NewChainRun(chain.id)))
    await rig.update(chain.id, 1, line(5), chain.name)
    again = [
        await rig.store.transact(lambda tx: rig.engine.rerun(tx, first.run_id, actor="bob", idempotency_key="once"))
        for _ in range(2)
    ]
    assert (again[0].run_id, again[0].is_new, again[1].is_new) == (again[1].run_id, True, False)
    assert len(await rig.nodes(again[0].run_id)) == 2
    newest = await rig.store.transact(lambda tx: rig.engine.start(tx, NewChainRun(chain.id)))
    assert len(await rig.nodes(newest.run_id)) == 5


async def test_old_runs_are_deleted_with_everything_of_theirs(rig: ChainHarness) -> None:
    old = await rig.start(line(2))
    await rig.drain(old, lambda node_id: node_id != "n0")
    await rig.retry(old, "n0")
    await rig.drain(old)
    await rig.store.clock.advance(ms=60_000)
    young, going = await rig.start(line(1)), await rig.start(line(1))
    jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
    await rig.finish(jobs[young])
    await rig.store.clock.advance(ms=1_000)
    settings = HousekeepingOptions(retention_ms=30_000)
    await ChainHousekeeping(rig.store.database, rig.jobs, rig.engine, name="p", settings=settings).run_once()
    left = await rig.store.rows("SELECT id FROM chain_runs")
    assert {row["id"] for row in left} == {young, going}
    for table in ("jobs WHERE chain_run_id", "chain_nodes WHERE run_id", "chain_status_log WHERE run_id"):
        assert await rig.store.rows(f"SELECT 1 FROM {table} = :run_id", run_id=old) == []


async def test_who_acts_on_a_runs_end_does_so_in_its_transaction(store: StoreHarness) -> None:
    seen: list[ChainRunFinished] = []

    async def act(_tx: Tx, end: ChainRunFinished) -> None:
        seen.append(end)

    rig = ChainHarness(store, ChainEngine(on_run_ended=[act]))
    before, started = (
        metric_value("chain_runs_total", status="success"),
        metric_value("chain_runs_total", status="started"),
    )
    run_id = await rig.start(line(2))
    await rig.drain(run_id)
    assert [(end.run_id, end.status) for end in seen] == [(run_id, "success")]
    assert metric_value("chain_runs_total", status="success") == before + 1
    assert metric_value("chain_runs_total", status="started") == started + 1
    assert metric_value("chain_node_duration_seconds_count", type="noop", status="success") >= 2
