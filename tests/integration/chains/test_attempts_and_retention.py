"""Attempts and history of runs: what is tried again, what is kept, what is deleted."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from adjudge.chains.engine import ChainEngine
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Conflict, FenceRefused
from adjudge.observe import tracing
from adjudge.observe.tracing import Span
from adjudge.store import Tx
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import ChainRunFinished, NewChainRun, NodeExpanded, NodeStopped
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import Fence, PoisonJob
from tests.integration.chains.harness import ChainHarness, dag, done, line, node
from tests.support.store_harness import StoreHarness, fence_of, metric_value


async def test_attempts_are_shown_and_bounded_by_the_node(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2, retry={"max_attempts": 2, "backoff_ms": 1}))
    await harness.release((await harness.claim("n0"))["n0"])
    shown = (await harness.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.last_error) == ("retrying", 1, "a hiccup")
    await harness.release((await harness.claim("n0"))["n0"])
    shown = (await harness.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.last_error) == ("failed", 2, "a hiccup")
    assert (await harness.run(run_id)).status == "failed"
    letters = await harness.store.database.read(dead_letters.page)
    assert [letter.kind for letter in letters] == ["node"]
    await harness.retry(run_id, "n0")
    assert await harness.store.database.read(dead_letters.page) == []


async def test_a_replayed_dead_letter_is_another_attempt_of_its_node(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    await harness.fail((await harness.claim("n0"))["n0"])
    (letter,) = await harness.store.database.read(dead_letters.page)
    await harness.store.transact(
        lambda tx: dead_letters.replay(tx, harness.jobs, [letter.id], actor="ann", reason="again")
    )
    job = (await harness.claim())["n0"]
    assert await harness.states(run_id) == {"n0": "running", "n1": "pending"}
    assert (await harness.run(run_id)).status == "running"
    await harness.finish(job)
    assert await harness.drain(run_id) == ["n1"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_open, run.nodes_failed) == ("success", 0, 0)


async def test_a_letter_is_replayed_as_long_as_its_node_stands_where_it_failed(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b")))
    await harness.fail((await harness.claim("a"))["a"])
    (letter,) = await harness.store.database.read(dead_letters.page)
    replay = partial(dead_letters.replay, jobs=harness.jobs, letter_ids=[letter.id], actor="ann", reason="again")
    running = await harness.claim("b")
    await harness.stop(run_id)
    with pytest.raises(Conflict, match="is stopping"):
        await harness.store.transact(replay)
    await harness.finish(running["b"], outcome=NodeStopped("stopped"))
    made = await harness.store.transact(replay)
    assert made == {letter.id: (await harness.nodes(run_id))["a"].job_id}


async def test_a_lost_worker_costs_an_attempt_and_its_late_word_changes_nothing(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    lost = (await harness.claim("n0"))["n0"]
    await harness.store.clock.advance(ms=20_000)
    await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
    assert (await harness.states(run_id))["n0"] == "retrying"
    await harness.store.clock.advance(ms=10_000)
    again = (await harness.claim("n0", worker="w2"))["n0"]
    assert (await harness.finish(lost)).done == ()
    assert (await harness.nodes(run_id))["n0"].attempt == 2
    await harness.finish(again)
    await harness.drain(run_id)
    assert (await harness.run(run_id)).status == "success"


async def test_a_reclaimed_node_runs_on_under_another_attempt(harness: ChainHarness) -> None:
    run_id = await harness.start(line(1))
    lost = (await harness.claim())["n0"]
    await harness.store.clock.advance(ms=20_000)
    outcome = await harness.store.transact(lambda tx: harness.jobs.claim(tx, [lost.id], worker="w2", lease_ms=15_000))
    shown = (await harness.nodes(run_id))["n0"]
    assert (shown.status, shown.attempt, shown.actor) == ("running", 2, "w2")
    await harness.finish(*outcome.done)
    assert (await harness.run(run_id)).status == "success"


async def test_dead_letter_of_an_unclaimed_job_fails_its_node(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    (row,) = await harness.waiting_jobs()
    await harness.store.transact(
        lambda tx: harness.jobs.dead_letter(tx, [PoisonJob(row["id"], "UNKNOWN_KIND", "no handler")], actor="w1")
    )
    nodes = await harness.nodes(run_id)
    assert (nodes["n0"].status, nodes["n0"].last_error, nodes["n1"].status) == ("failed", "no handler", "skipped")


async def test_checkpoints_survive_attempts_and_are_fenced(harness: ChainHarness) -> None:
    run_id = await harness.start(line(1))

    async def save(fence: Fence, attempt: int, document: Any) -> None:
        await harness.store.transact(
            lambda tx: chain_commands.save_checkpoint(tx, fence, attempt=attempt, document=document)
        )

    first = (await harness.claim())["n0"]
    await save(fence_of(first), 1, {"step": 1})
    await save(fence_of(first), 1, {"step": 2})
    await harness.release(first)
    second = (await harness.claim(worker="w2"))["n0"]
    with pytest.raises(FenceRefused):
        await save(fence_of(first), 1, {"step": "late"})
    tasks = await harness.store.database.read(lambda tx: chain_queries.find_node_tasks(tx, [(run_id, "n0")]))
    task = tasks[run_id, "n0"]
    assert (task.checkpoint, task.attempt) == ({"step": 2}, 2)
    await harness.finish(second)
    with pytest.raises(FenceRefused):
        await save(fence_of(second), 2, {})


async def test_logs_of_a_node_are_kept_in_order(harness: ChainHarness) -> None:
    run_id = await harness.start(line(1))
    for lines in (["one", "two"], ["three"]):
        await harness.store.transact(
            lambda tx, lines=lines: chain_commands.append_log(tx, run_id, "n0", attempt=1, lines=lines)  # type: ignore[misc]
        )
    found = await harness.store.database.read(lambda tx: chain_queries.read_log(tx, run_id, "n0"))
    assert [item.text for item in found] == ["one", "two", "three"]
    rest = await harness.store.database.read(lambda tx: chain_queries.read_log(tx, run_id, "n0", after=found[1].id))
    assert [item.text for item in rest] == ["three"]


async def test_a_rerun_from_a_node_takes_over_what_stands(harness: ChainHarness) -> None:
    mapped = node("m", map={"over": [1]})
    run_id = await harness.start(
        dag(node("a"), mapped, node("b", "a", "m"), node("c", "b"), node("x")), {"problem": "sum"}
    )
    await harness.step("m", outcome=NodeExpanded((1,)))
    await harness.drain(run_id, lambda node_id: False if node_id in ("c", "x") else done(json.dumps(node_id)))
    started = await harness.store.transact(lambda tx: harness.engine.rerun(tx, run_id, actor="bob", from_node="c"))
    nodes = await harness.nodes(started.run_id)
    assert {key: str(item.status) for key, item in nodes.items()} == {
        "a": "success",
        "m": "success",
        "m[0]": "success",
        "b": "success",
        "c": "pending",
        "x": "pending",
    }
    assert (nodes["b"].artifact, nodes["m[0]"].artifact) == ("b", "m[0]")
    assert sorted(await harness.drain(started.run_id)) == ["c", "x"]
    run = await harness.run(started.run_id)
    assert (run.status, run.origin_run_id, run.parameters, run.nodes_open) == ("success", run_id, {"problem": "sum"}, 0)
    assert (await harness.run(run_id)).status == "failed"


async def test_a_rerun_takes_over_no_approval_that_comes_before_what_runs(harness: ChainHarness) -> None:
    """Not even over nodes in between, and not where it runs only because of another approval."""
    ask = {"type": "wait_approval"}
    run_id = await harness.start(
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
    await harness.drain(run_id)
    started = await harness.store.transact(
        lambda tx: harness.engine.rerun(tx, run_id, actor="bob", from_node="publish")
    )
    states = await harness.states(started.run_id)
    assert sorted(key for key, state in states.items() if state == "success") == ["apart", "build", "tell"]
    assert sorted(await harness.claim()) == ["ask", "other"]


async def test_a_rerun_uses_the_snapshot_and_a_key_once(harness: ChainHarness) -> None:
    chain = await harness.define(line(2))
    first = await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun(chain.id)))
    await harness.update(chain.id, 1, line(5), chain.name)
    again = [
        await harness.store.transact(
            lambda tx: harness.engine.rerun(tx, first.run_id, actor="bob", idempotency_key="once")
        )
        for _ in range(2)
    ]
    assert (again[0].run_id, again[0].is_new, again[1].is_new) == (again[1].run_id, True, False)
    assert len(await harness.nodes(again[0].run_id)) == 2
    newest = await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun(chain.id)))
    assert len(await harness.nodes(newest.run_id)) == 5


async def test_old_runs_are_deleted_with_everything_of_theirs(harness: ChainHarness) -> None:
    old = await harness.start(line(2))
    await harness.drain(old, lambda node_id: node_id != "n0")
    await harness.retry(old, "n0")
    await harness.drain(old)
    await harness.store.clock.advance(ms=60_000)
    young, going = await harness.start(line(1)), await harness.start(line(1))
    jobs = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
    await harness.finish(jobs[young])
    await harness.store.clock.advance(ms=1_000)
    settings = HousekeepingOptions(retention_ms=30_000)
    await ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=settings
    ).run_once()
    left = await harness.store.rows("SELECT id FROM chain_runs")
    assert {row["id"] for row in left} == {young, going}
    for table in ("jobs WHERE chain_run_id", "chain_nodes WHERE run_id", "chain_status_log WHERE run_id"):
        assert await harness.store.rows(f"SELECT 1 FROM {table} = :run_id", run_id=old) == []


async def test_who_acts_on_a_runs_end_does_so_in_its_transaction(store: StoreHarness) -> None:
    seen: list[ChainRunFinished] = []

    async def act(_tx: Tx, end: ChainRunFinished) -> None:
        seen.append(end)

    harness = ChainHarness(store, ChainEngine(on_run_ended=[act]))
    before, started = (
        metric_value("chain_runs_total", status="success"),
        metric_value("chain_runs_total", status="started"),
    )
    run_id = await harness.start(line(2))
    await harness.drain(run_id)
    assert [(end.run_id, end.status) for end in seen] == [(run_id, "success")]
    assert metric_value("chain_runs_total", status="success") == before + 1
    assert metric_value("chain_runs_total", status="started") == started + 1
    assert metric_value("chain_node_duration_seconds_count", type="noop", status="success") >= 2


async def test_a_run_is_one_trace_with_a_span_for_each_node(harness: ChainHarness) -> None:
    spans: list[Span] = []
    tracing.configure(spans.append)
    try:
        run_id = await harness.start(line(3))
        await harness.drain(run_id)
    finally:
        tracing.configure(None)
    assert {span.trace_id for span in spans} == {run_id.replace("-", "")}
    (run,) = [span for span in spans if span.name == "chain run"]
    nodes = [span for span in spans if span.name.startswith("node ")]
    assert [span.name for span in nodes] == ["node n0", "node n1", "node n2"]
    assert {span.parent_id for span in nodes} == {run.span_id}
    claims = [span for span in spans if span.name == "claim"]
    assert [span.parent_id for span in claims] == [span.span_id for span in nodes]
