"""What the engine does with a run besides the acceptance cases: rules, conditions, maps, limits."""

from __future__ import annotations

import pytest

from adjudge.chains.dag_cache import DagCache
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Conflict, NotFound
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import NodeExpanded
from adjudge.store.jobs import dead_letters
from tests.integration.chains.harness import ChainHarness, dag, done, line, node


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
    harness: ChainHarness, rule: str, after_success: str, after_failure: str
) -> None:
    for fails, wanted in ((False, after_success), (True, after_failure)):
        run_id = await harness.start(dag(node("a"), node("b"), node("c", "a", "b", when=rule)))
        jobs = await harness.claim("a", "b")
        await harness.finish(jobs["a"])
        assert (await harness.states(run_id))["c"] == "pending"
        await (harness.fail(jobs["b"]) if fails else harness.finish(jobs["b"]))
        await harness.drain(run_id)
        assert (await harness.states(run_id))["c"] == wanted
        assert (await harness.run(run_id)).status == ("failed" if fails else "success")


async def test_a_skip_says_why_and_cascades_to_the_end(harness: ChainHarness) -> None:
    """Further than the cascade is taken statement by statement."""
    run_id = await harness.start(dag(*line(40)["nodes"], node("last", "n39", when="all_done"), node("if", "n39")))
    await harness.fail((await harness.claim("n0"))["n0"])
    nodes = await harness.nodes(run_id)
    assert {nodes[f"n{index}"].status for index in range(1, 40)} == {"skipped"}
    assert nodes["n1"].reason == "when all_success: 0 succeeded, 1 failed, 0 skipped"
    assert nodes["n39"].reason == "when all_success: 0 succeeded, 0 failed, 1 skipped"
    assert nodes["last"].status == "pending"
    assert await harness.drain(run_id) == ["last"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_open, run.nodes_failed, run.nodes_total) == ("failed", 0, 1, 42)


async def test_a_condition_looks_at_artifacts_and_parameters(harness: ChainHarness) -> None:
    document = dag(
        node("count"),
        node("many", "count", **{"if": "artifacts.count.tests > 3 and parameters.mode in ['full', 'fast']"}),
        node("few", "count", **{"if": "not (artifacts.count.tests > 3)"}),
        node("odd", "count", **{"if": "artifacts.count.tests < 'x'"}),
        node("sure", "count", when="always", **{"if": "false"}),
        node("root", **{"if": "parameters.mode == 'none'"}),
        node("after", "root", when="none_failed"),
    )
    run_id = await harness.start(document, {"mode": "full"})
    states = await harness.states(run_id)
    assert (states["root"], states["after"]) == ("skipped", "pending")
    await harness.step("count", outcome=done('{"tests": 4}'))
    states = await harness.states(run_id)
    assert (states["many"], states["few"]) == ("pending", "skipped")
    assert (await harness.nodes(run_id))["few"].reason == "if: not (artifacts.count.tests > 3) is false"
    assert sorted(row["node_id"] for row in await harness.waiting_jobs()) == ["after", "many", "odd", "sure"]


async def test_a_run_of_skipped_nodes_ends_at_once(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a", **{"if": "parameters.go"}), node("b", "a")))
    assert await harness.states(run_id) == {"a": "skipped", "b": "skipped"}
    assert (await harness.run(run_id)).status == "success"


async def test_a_map_fans_out_and_joins(harness: ChainHarness) -> None:
    mapped = node("m", "list", map={"over": "{{ artifacts.list }}", "as": "x"})
    run_id = await harness.start(dag(node("list"), mapped, node("end", "m")))
    await harness.step("list", outcome=done('["p", "q", "r"]'))
    await harness.step("m", outcome=NodeExpanded(("p", "q", "r")))
    nodes = await harness.nodes(run_id)
    assert list(nodes) == ["list", "m", "m[0]", "m[1]", "m[2]", "end"]
    assert (nodes["m"].status, nodes["m[1]"].item, nodes["m[1]"].parent_id) == ("running", "q", "m")
    jobs = await harness.claim()
    assert sorted(jobs) == ["m[0]", "m[1]", "m[2]"]
    await harness.finish(jobs["m[2]"], outcome=done("3"))
    await harness.finish(jobs["m[0]"], jobs["m[1]"], outcome=done("1"))
    assert (await harness.states(run_id))["m"] == "success"
    joined = await harness.store.database.read(lambda tx: chain_queries.find_artifacts(tx, run_id, [], ["m"]))
    assert [item.text for item in joined["m"]] == ["1", "1", "3"]  # type: ignore[union-attr]
    assert await harness.drain(run_id) == ["end"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_total, run.nodes_open) == ("success", 6, 0)


async def test_a_map_over_nothing_is_done_at_once(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("m", map={"over": []}), node("end", "m")))
    await harness.step("m", outcome=NodeExpanded(()))
    assert await harness.states(run_id) == {"m": "success", "end": "pending"}
    assert (await harness.nodes(run_id))["m"].artifact == []


async def test_a_failed_instance_fails_the_map_and_is_retried_alone(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("m", map={"over": [1, 2]}), node("end", "m")))
    await harness.step("m", outcome=NodeExpanded((1, 2)))
    jobs = await harness.claim()
    await harness.fail(jobs["m[0]"])
    assert (await harness.states(run_id))["m"] == "running"
    await harness.finish(jobs["m[1]"])
    assert await harness.states(run_id) == {"m": "failed", "m[0]": "failed", "m[1]": "success", "end": "skipped"}
    run = await harness.run(run_id)
    assert (run.status, run.nodes_failed) == ("failed", 1)
    await harness.retry(run_id, "m")
    assert await harness.states(run_id) == {"m": "running", "m[0]": "retrying", "m[1]": "success", "end": "pending"}
    assert await harness.drain(run_id) == ["m[0]", "end"]
    run = await harness.run(run_id)
    assert (run.status, run.nodes_failed, run.nodes_open) == ("success", 0, 0)


async def test_instances_of_a_manually_completed_map_are_finished(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("m", map={"over": [1, 2]})))
    await harness.step("m", outcome=NodeExpanded((1, 2)))
    await harness.fail(*(await harness.claim()).values())
    await harness.complete(run_id, "m", ["by hand"])
    for act in (harness.retry, harness.complete):
        with pytest.raises(Conflict, match="its mapped node 'm'"):
            await act(run_id, "m[0]")
    assert (await harness.run(run_id)).status == "success"
    assert await harness.store.database.read(dead_letters.page) == [], "nothing is left to be done"


async def test_manually_completed_instance_counts_for_the_mapped_node(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("m", map={"over": [1, 2]}), node("end", "m")))
    await harness.step("m", outcome=NodeExpanded((1, 2)))
    with pytest.raises(Conflict, match="complete its instances"):
        await harness.complete(run_id, "m")
    jobs = await harness.claim()
    await harness.fail(*jobs.values())
    await harness.complete(run_id, "m[0]", artifact="by hand")
    assert (await harness.states(run_id))["m"] == "failed"
    await harness.complete(run_id, "m[1]")
    assert await harness.drain(run_id) == ["end"]
    assert (await harness.run(run_id)).status == "success"


async def test_limits_hold_for_runs_types_and_maps(harness: ChainHarness) -> None:
    wide = [node(f"a{index}", type="http" if index % 2 else "noop", priority=index % 3) for index in range(8)]
    mapped = node("m", map={"over": [0], "max_parallel": 2})
    run_id = await harness.start(dag(*wide, mapped, max_parallel=4, max_parallel_by_type={"http": 1}))
    seen, peak = [], 0
    while jobs := await harness.claim():
        held = await harness.store.rows("SELECT type, parent_id FROM chain_nodes WHERE slot = 'held'")
        peak = max(peak, len(held))
        assert len(held) <= 4
        assert sum(row["type"] == "http" for row in held) <= 1
        assert sum(row["parent_id"] == "m" for row in held) <= 2
        seen += list(jobs)
        for node_id, job in jobs.items():
            await harness.finish(job, outcome=NodeExpanded(tuple(range(5))) if node_id == "m" else None)
    assert peak == 4
    assert len(seen) == len(set(seen)) == 8 + 1 + 5
    assert seen.index("a0") < seen.index("a2")  # the more urgent first
    assert (await harness.run(run_id)).status == "success"


async def test_a_retried_node_takes_its_place_like_any_other(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b"), max_parallel=1))
    (first,) = await harness.claim()
    assert first == "a"
    await harness.stop(run_id)
    await ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    ).run_once()
    assert await harness.states(run_id) == {"a": "stopped", "b": "stopped"}
    await harness.retry(run_id, "a")
    await harness.retry(run_id, "b")
    assert [row["node_id"] for row in await harness.waiting_jobs()] == ["a"]
    assert await harness.drain(run_id) == ["a", "b"]
    assert {item.attempt for item in (await harness.nodes(run_id)).values()} == {1, 2}


async def test_cache_loads_the_dag_of_the_requested_version(harness: ChainHarness) -> None:
    """A chain may change between the read of its version and the read of its DAG."""
    chain = await harness.define(dag(node("old")))
    await harness.update(chain.id, chain.version, dag(node("new")), chain.name)
    read, dags = harness.store.database.read, DagCache()
    first = await read(lambda tx: dags.load(tx, chain.id, 1))
    second = await read(lambda tx: dags.load(tx, chain.id, 2))
    assert ([*first.by_id], [*second.by_id]) == (["old"], ["new"])
    with pytest.raises(NotFound):
        await read(lambda tx: dags.load(tx, chain.id, 3))


async def test_rerun_counts_copied_dependencies(harness: ChainHarness) -> None:
    """The rule of a node sees the dependencies that were copied from the origin run."""
    document = dag(node("a"), node("b"), node("c", "a", "b", when="one_success"))
    origin = await harness.start(document)
    jobs = await harness.claim("a", "b")
    await harness.finish(jobs["a"])
    await harness.fail(jobs["b"])
    await harness.drain(origin)
    again = await harness.store.database.transact(
        lambda tx: harness.engine.rerun(tx, origin, actor="ann", from_node="b")
    )
    assert (await harness.states(again.run_id))["a"] == "success"
    await harness.fail((await harness.claim("b"))["b"])
    await harness.drain(again.run_id)
    assert (await harness.states(again.run_id))["c"] == "success"
