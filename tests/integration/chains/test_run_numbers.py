"""Runs are numbered by chain, on both databases."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.store import Tx
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import NewChainRun, StartedChainRun
from tests.integration.chains.harness import ChainHarness, line
from tests.support.store_harness import StoreHarness


async def start(harness: ChainHarness, chain_id: str, key: str | None = None) -> StartedChainRun:
    wanted = NewChainRun(chain_id, idempotency_key=key, actor="ann")
    return await harness.store.transact(lambda tx: harness.engine.start(tx, wanted))


async def test_each_chain_numbers_its_runs_from_one(harness: ChainHarness) -> None:
    one, other = await harness.define(line(1)), await harness.define(line(1))
    started = [await start(harness, chain.id) for chain in (one, other, one, one, other)]
    assert [item.number for item in started] == [1, 1, 2, 3, 2]
    assert [(await harness.run(item.run_id)).number for item in started] == [1, 1, 2, 3, 2]
    found = await harness.store.database.read(lambda tx: chain_queries.find_run_id(tx, one.id, 3))
    assert found == started[3].run_id
    assert await harness.store.database.read(lambda tx: chain_queries.find_run_id(tx, other.id, 3)) is None


async def test_a_repeated_idempotency_key_returns_the_number_and_takes_none(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))
    first, again = await start(harness, chain.id, "k"), await start(harness, chain.id, "k")
    assert (again.run_id, again.number, again.is_new) == (first.run_id, 1, False)
    assert (await start(harness, chain.id)).number == 2


async def test_a_rerun_gets_the_next_number(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))
    first = await start(harness, chain.id)
    again = await harness.store.transact(lambda tx: harness.engine.rerun(tx, first.run_id, actor="ann"))
    assert again.number == 2


async def test_a_start_that_is_rolled_back_takes_no_number(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))

    async def fail(tx: Tx) -> None:
        await harness.engine.start(tx, NewChainRun(chain.id, actor="ann"))
        raise Unavailable("The test ends this transaction.")

    with pytest.raises(Unavailable):
        await harness.store.transact(fail)
    assert (await start(harness, chain.id)).number == 1


async def test_numbers_of_deleted_runs_are_not_used_again(harness: ChainHarness) -> None:
    chain = await harness.define(line(1))
    started = await start(harness, chain.id)
    await harness.finish(*(await harness.claim()).values())
    assert (await harness.run(started.run_id)).status == "success"
    await harness.store.clock.advance(ms=60_000)
    assert await harness.store.transact(lambda tx: chain_commands.delete_old_runs(tx, older_than_ms=1)) == 1
    assert (await start(harness, chain.id)).number == 2


async def test_concurrent_starts_of_one_chain_get_consecutive_numbers(harness: ChainHarness) -> None:
    chain = await harness.define(line(2))
    started = await asyncio.gather(*(start(harness, chain.id) for _ in range(20)))
    assert sorted(item.number for item in started) == [*range(1, 21)]


async def test_a_start_waits_for_one_of_the_same_chain_and_not_for_others(postgres_store: StoreHarness) -> None:
    harness = ChainHarness(postgres_store)
    one, other = await harness.define(line(1)), await harness.define(line(1))
    inserted, release = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> StartedChainRun:
        started = await harness.engine.start(tx, NewChainRun(one.id, actor="ann"))
        inserted.set()
        await release.wait()
        return started

    first = asyncio.create_task(harness.store.transact(hold))
    await inserted.wait()
    second = asyncio.create_task(start(harness, one.id))
    assert (await start(harness, other.id)).number == 1
    assert not second.done()
    release.set()
    assert [(await first).number, (await second).number] == [1, 2]
