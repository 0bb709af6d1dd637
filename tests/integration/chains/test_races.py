"""Many transactions on one run at once, on PostgreSQL: nothing is counted twice, missed, or left hanging."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Conflict, NotFound
from adjudge.domain.states import NODE
from adjudge.store import Tx
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains.models import NewChainRun, NodeSuspended
from tests.integration.chains.harness import ChainHarness, dag, line, node
from tests.support.store_harness import StoreHarness

WIDTH = 24


@pytest.fixture
def harness(postgres_store: StoreHarness) -> ChainHarness:
    """An engine on PostgreSQL."""
    return ChainHarness(postgres_store)


async def check_counts(harness: ChainHarness, run_id: str) -> None:
    run, nodes = await harness.run(run_id), await harness.nodes(run_id)
    assert run.nodes_open == sum(item.status not in NODE.terminal for item in nodes.values())
    assert run.nodes_failed == sum(item.status in ("failed", "stopped") for item in nodes.values())


async def test_nodes_that_finish_at_once_start_their_join_once(harness: ChainHarness) -> None:
    wide = [node(f"a{index}") for index in range(WIDTH)]
    joins = [node(f"j{index}", *(item["id"] for item in wide)) for index in range(3)]
    run_id = await harness.start(dag(*wide, *joins))
    jobs = await harness.claim()
    await asyncio.gather(*(harness.finish(job) for job in jobs.values()))
    assert sorted(row["node_id"] for row in await harness.waiting_jobs()) == ["j0", "j1", "j2"]
    await check_counts(harness, run_id)
    last = await harness.claim()
    await asyncio.gather(*(harness.finish(job) for job in (*last.values(), *last.values())))
    assert (await harness.run(run_id)).status == "success"


async def test_a_run_that_is_being_deleted_is_not_opened_again_meanwhile(harness: ChainHarness) -> None:
    run_id = await harness.start(line(2))
    await harness.fail(*(await harness.claim()).values())
    await harness.store.clock.advance(ms=60_000)
    selected = asyncio.Event()

    async def delete(tx: Tx) -> int:
        rows = await tx.fetch(chain_commands.LOCK_OLD_RUNS, older_than_us=0, limit=10)
        selected.set()
        await asyncio.sleep(0.2)  # for as long as the retry needs to get to the run, or past it
        assert [row["id"] for row in rows] == [run_id]
        return await chain_commands.delete_old_runs(tx, older_than_ms=0)

    async def retry() -> None:
        await selected.wait()
        await harness.retry(run_id, "n0")

    deleted, retried = await asyncio.gather(harness.store.transact(delete), retry(), return_exceptions=True)
    assert (deleted, type(retried)) == (1, NotFound)


@pytest.mark.slow
async def test_people_and_workers_at_once_leave_a_run_that_ends(harness: ChainHarness) -> None:
    async def hand(run_id: str, node_id: str) -> None:
        with suppress(Conflict):
            await harness.complete(run_id, node_id)
        with suppress(Conflict):
            await harness.retry(run_id, node_id)

    async def stop(run_id: str) -> None:
        with suppress(Conflict):
            await harness.stop(run_id)

    housekeeping = ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    )
    for round_number in range(3):
        wide = [node(f"a{index}") for index in range(8)]
        deep = [node(f"b{index}", f"a{index}", f"a{(index + 1) % 8}") for index in range(8)]
        run_id = await harness.start(dag(*wide, *deep, node("end", *(item["id"] for item in deep))))
        jobs = await harness.claim()
        await asyncio.gather(
            *(harness.fail(job) if index % 3 == 0 else harness.finish(job) for index, job in enumerate(jobs.values())),
            *(hand(run_id, f"a{index}") for index in range(0, 8, 2)),
            *([stop(run_id)] if round_number else []),
        )
        await check_counts(harness, run_id)
        while await harness.drain(run_id) or await housekeeping.cancel_stopping_jobs():
            pass
        run = await harness.run(run_id)
        assert run.finished_at is not None, await harness.states(run_id)
        await check_counts(harness, run_id)


@pytest.mark.slow
async def test_a_wait_that_begins_as_its_thing_ends_is_not_missed(harness: ChainHarness) -> None:
    child_chain = await harness.define(line(1))
    for _ in range(8):
        run_id = await harness.start(line(1))
        wanted = NewChainRun(child_chain.id, parent_run_id=run_id, parent_node_id="n0")
        child = await harness.store.transact(lambda tx, wanted=wanted: harness.engine.start(tx, wanted))  # type: ignore[misc]
        jobs = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
        await asyncio.gather(
            harness.finish(jobs[run_id], outcome=NodeSuspended("run", child.run_id)),
            harness.finish(jobs[child.run_id]),
        )
        assert (await harness.run(run_id)).status == "success"
