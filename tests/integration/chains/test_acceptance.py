"""The acceptance cases of JobChain (§J), by their numbers, on both databases."""

from __future__ import annotations

import pytest

from adjudge.chains.dag_cache import check_dag
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import NewChainRun, NodeStopped
from tests.integration.chains.harness import ChainHarness, dag, line, node


class AnyNodeType:
    """Every type is known, every cfg is right."""

    def describe(self, type_name: str) -> object:
        return type_name

    def check(self, type_name: str, cfg: object, *, place: str = "cfg", templated: bool = False) -> None:
        return


async def test_j01_a_chain_is_created_at_version_1(harness: ChainHarness) -> None:
    chain = await harness.define(line(2), "nightly", description="All problems.")
    assert (chain.name, chain.version, chain.enabled) == ("nightly", 1, True)
    assert len(chain.id) == 36


async def test_j02_a_name_that_is_taken_is_refused(harness: ChainHarness) -> None:
    await harness.define(line(1), "nightly")
    with pytest.raises(InvalidInput, match="nightly") as refused:
        await harness.define(line(1), "nightly")
    assert refused.value.http_status == 400
    other = await harness.define(line(1), "weekly")
    with pytest.raises(InvalidInput, match="already exists"):
        await harness.store.transact(
            lambda tx: definitions.update(tx, other.id, version=1, name="nightly", dag=line(1), actor="ann")
        )


@pytest.mark.parametrize("document", [{}, {"nodes": []}, {"nodes": None}, [], None, "nodes"])
async def test_j03_a_dag_must_have_nodes(document: object) -> None:
    with pytest.raises(InvalidInput, match="dag must have nodes") as refused:
        check_dag(document, AnyNodeType())
    assert refused.value.http_status == 400


async def test_j04_an_update_by_the_right_version_grows_it(harness: ChainHarness) -> None:
    chain = await harness.define(line(1), "nightly")
    changed = await harness.store.transact(
        lambda tx: definitions.update(
            tx, chain.id, version=1, name="nightly", dag=line(3), actor="bob", description="x"
        )
    )
    assert (changed.version, len((changed.dag or {})["nodes"]), changed.description) == (2, 3, "x")
    versions = await harness.store.database.read(lambda tx: definitions.list_versions(tx, chain.id))
    assert [(item.version, item.actor, len(item.dag["nodes"])) for item in versions] == [(2, "bob", 3), (1, "ann", 1)]


async def test_j05_an_update_by_an_old_version_conflicts(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))
    for version in (1, 2):
        await harness.update(chain.id, version, line(version), chain.name)
    with pytest.raises(Conflict, match="version 3, not 1"):
        await harness.store.transact(
            lambda tx: definitions.update(tx, chain.id, version=1, name="x", dag=line(1), actor="ann")
        )
    with pytest.raises(NotFound):
        await harness.store.transact(
            lambda tx: definitions.update(tx, "none", version=1, name="x", dag=line(1), actor="ann")
        )


async def test_j06_a_disabled_chain_does_not_start(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))
    for _ in range(2):  # switching is idempotent
        off = await harness.store.transact(lambda tx: definitions.set_enabled(tx, chain.id, enabled=False, actor="ann"))
        assert (off.enabled, off.version) == (False, 1)
    with pytest.raises(Conflict, match="chain is disabled") as refused:
        await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun(chain.id)))
    assert refused.value.http_status == 409
    await harness.store.transact(lambda tx: definitions.set_enabled(tx, chain.id, enabled=True, actor="ann"))
    assert (await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun(chain.id)))).is_new
    audited = await harness.store.rows("SELECT action FROM audit_log WHERE object_kind = 'chain' ORDER BY id")
    assert [row["action"] for row in audited] == ["create", "disable", "enable"]


async def test_j07_chains_are_listed_by_keyword_and_switch(harness: ChainHarness) -> None:
    for name in ("alpha", "beta", "gamma_ray", "delta"):
        await harness.define(line(1), name, enabled=name != "beta", description="Gamma?" if name == "alpha" else None)

    async def listed(**filters: object) -> list[str]:
        page = await harness.store.database.read(lambda tx: definitions.page_number(tx, **filters))  # type: ignore[arg-type]
        assert page.total >= len(page.items)
        return [chain.name for chain in page.items]

    assert await listed() == ["alpha", "beta", "delta", "gamma_ray"]
    assert await listed(keyword="GAMMA") == ["alpha", "gamma_ray"]
    assert await listed(keyword="a_r") == ["gamma_ray"]
    assert await listed(keyword="%") == []
    assert await listed(enabled=False) == ["beta"]
    assert await listed(keyword="ta", enabled=True) == ["delta"]
    assert await listed(page=2, size=3) == ["gamma_ray"]
    after = await harness.store.database.read(lambda tx: definitions.page(tx, after="beta", limit=1))
    assert [chain.name for chain in after] == ["delta"]


async def test_j08_the_detail_has_the_dag(harness: ChainHarness) -> None:
    chain = await harness.define(line(2), "nightly")
    assert (await harness.store.database.read(lambda tx: definitions.find(tx, chain.id))).dag == line(2)
    assert (await harness.store.database.read(lambda tx: definitions.find_by_name(tx, "nightly"))).dag == line(2)
    with pytest.raises(NotFound) as missing:
        await harness.store.database.read(lambda tx: definitions.find(tx, "none"))
    assert missing.value.code == "CHAIN_NOT_FOUND"


async def test_j09_a_start_makes_a_run_and_a_known_key_answers_with_it(harness: ChainHarness) -> None:
    chain = await harness.define(line(2))
    wanted = NewChainRun(chain.id, {"problem": "sum"}, idempotency_key="k1", actor="ann")
    first = await harness.store.transact(lambda tx: harness.engine.start(tx, wanted))
    again = await harness.store.transact(lambda tx: harness.engine.start(tx, wanted))
    other = await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun(chain.id)))
    assert first.is_new
    assert (again.run_id, again.is_new) == (first.run_id, False)
    assert other.run_id != first.run_id
    run = await harness.run(first.run_id)
    assert (run.parameters, run.chain_version, run.started_by) == ({"problem": "sum"}, 1, "ann")
    with pytest.raises(NotFound):
        await harness.store.transact(lambda tx: harness.engine.start(tx, NewChainRun("none")))
    listed = await harness.store.database.read(lambda tx: chain_queries.page_runs(tx, chain_id=chain.id))
    assert [item.id for item in listed] == [other.run_id, first.run_id]


@pytest.mark.parametrize("last", ["success", "failed"])
async def test_j10_a_run_goes_from_pending_through_running_to_its_end(harness: ChainHarness, last: str) -> None:
    run_id = await harness.start(line(2))
    assert (await harness.run(run_id)).status == "pending"
    (job,) = (await harness.claim()).values()
    assert (await harness.run(run_id)).status == "running"
    await harness.finish(job)
    (job,) = (await harness.claim()).values()
    await (harness.finish(job) if last == "success" else harness.fail(job))
    run = await harness.run(run_id)
    assert (run.status, run.nodes_open) == (last, 0)
    assert run.finished_at
    log = await harness.store.database.read(lambda tx: chain_queries.status_log(tx, run_id))
    assert [(item.from_status, item.to_status) for item in log if item.node_id is None] == [
        ("pending", "running"),
        ("running", last),
    ]


async def test_j11_a_run_has_all_its_nodes_from_the_start(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("b", "a"), node("a"), node("c", "a", "b")))
    nodes = await harness.nodes(run_id)
    assert list(nodes) == ["b", "a", "c"]
    assert {item.status for item in nodes.values()} == {"pending"}
    assert [nodes[key].waiting_on for key in ("a", "b", "c")] == [0, 1, 2]


async def test_j12_a_running_run_stops(harness: ChainHarness) -> None:
    run_id = await harness.start(dag(node("a"), node("b"), node("c", "a")))
    job = (await harness.claim("a"))["a"]
    status = await harness.stop(run_id, "enough")
    assert status == "stopping"
    assert await harness.states(run_id) == {"a": "running", "b": "stopped", "c": "stopped"}
    assert await harness.stop(run_id) == "stopping"
    await harness.finish(job, outcome=NodeStopped())
    assert await harness.states(run_id) == {"a": "stopped", "b": "stopped", "c": "stopped"}
    assert (await harness.run(run_id)).status == "stopped"
    assert await harness.claim() == {}


async def test_j12_an_ended_run_cannot_be_stopped(harness: ChainHarness) -> None:
    run_id = await harness.start(line(1))
    await harness.drain(run_id)
    with pytest.raises(Conflict, match="success"):
        await harness.stop(run_id)
    with pytest.raises(NotFound):
        await harness.stop("none")


async def test_j13_only_failed_and_stopped_nodes_are_retried(harness: ChainHarness) -> None:
    run_id = await harness.start(line(3))
    await harness.step("n0")
    for node_id, status in (("n0", "success"), ("n1", "pending")):
        with pytest.raises(Conflict, match=status) as refused:
            await harness.retry(run_id, node_id)
        assert refused.value.http_status == 409
    job = (await harness.claim("n1"))["n1"]
    with pytest.raises(Conflict, match="running"):
        await harness.retry(run_id, "n1")
    await harness.fail(job)
    assert await harness.states(run_id) == {"n0": "success", "n1": "failed", "n2": "skipped"}
    assert (await harness.run(run_id)).status == "failed"

    view = await harness.retry(run_id, "n1", "disk was full")
    assert (view.status, view.attempt) == ("retrying", 2)
    assert await harness.states(run_id) == {"n0": "success", "n1": "retrying", "n2": "pending"}
    assert (await harness.run(run_id)).status == "running"
    assert await harness.drain(run_id) == ["n1", "n2"]
    nodes = await harness.nodes(run_id)
    assert (nodes["n1"].attempt, nodes["n2"].attempt, nodes["n1"].last_error) == (2, 1, None)
    assert (await harness.run(run_id)).status == "success"
    with pytest.raises(NotFound):
        await harness.retry(run_id, "none")


async def test_j13_a_stopped_node_is_retried_and_what_follows_runs(harness: ChainHarness) -> None:
    run_id = await harness.start(line(3))
    await harness.stop(run_id)
    assert (await harness.run(run_id)).status == "stopped"
    view = await harness.retry(run_id, "n0")
    assert (view.status, view.attempt) == ("retrying", 1)
    assert await harness.drain(run_id) == ["n0", "n1", "n2"]
    assert (await harness.run(run_id)).status == "success"


async def test_j14_only_failed_stopped_and_running_nodes_are_completed(harness: ChainHarness) -> None:
    run_id = await harness.start(line(4))
    with pytest.raises(Conflict, match="pending") as refused:
        await harness.complete(run_id, "n0")
    assert refused.value.http_status == 409

    running = (await harness.claim("n0"))["n0"]
    view = await harness.complete(run_id, "n0", {"by": "hand"})
    assert (view.status, view.attempt, view.artifact) == ("success", 1, {"by": "hand"})
    assert (await harness.finish(running)).done == ()
    with pytest.raises(Conflict, match="success"):
        await harness.complete(run_id, "n0")

    await harness.fail((await harness.claim("n1"))["n1"])
    assert await harness.states(run_id) == {"n0": "success", "n1": "failed", "n2": "skipped", "n3": "skipped"}
    await harness.complete(run_id, "n1")
    assert await harness.states(run_id) == {"n0": "success", "n1": "success", "n2": "pending", "n3": "pending"}

    await harness.stop(run_id)
    assert (await harness.run(run_id)).status == "stopped"
    await harness.complete(run_id, "n2")
    assert await harness.drain(run_id) == ["n3"]
    assert (await harness.run(run_id)).status == "success"
    audited = await harness.store.rows(
        "SELECT action, reason FROM audit_log WHERE object_kind = 'chain_run' ORDER BY id"
    )
    assert [row["action"] for row in audited] == ["complete", "complete", "stop", "complete"]
