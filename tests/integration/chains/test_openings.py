"""The short way to claim what runs begin with: the same rows as by the long one, and nothing that is not one's own."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store import Database
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.chains.queries import NodeTask
from adjudge.store.engine.driver import Operation
from adjudge.store.engine.statement import Dialect
from adjudge.store.jobs.models import Job
from adjudge.stream.driver import Message, MessageBody
from adjudge.worker.claimer import Claimer
from tests.integration.chains.harness import LEASE_MS, ChainHarness, dag, node
from tests.integration.chains.test_steps import history
from tests.support.store_harness import StoreHarness

T = TypeVar("T")


class FailingDatabase:
    """A database that is there for one more transaction."""

    dialect = Dialect.POSTGRES

    def __init__(self, database: Database) -> None:
        self._database: Database | None = database

    async def transact(self, operation: Operation[T]) -> T:
        database, self._database = self._database, None
        if database is None:
            raise Unavailable("The database went away.")
        return await database.transact(operation)


def message(job_id: str, **payload: str) -> Message:
    return Message("0-1", 2, MessageBody(job_id, 2, JOB_KIND_NODE, payload=payload), None, job_id, 1)


async def opened(harness: ChainHarness, *job_ids: str) -> tuple[Job, ...]:
    return await harness.store.transact(
        lambda tx: harness.jobs.open(tx, JOB_KIND_NODE, job_ids, worker="w1", lease_ms=LEASE_MS)
    )


async def waiting(harness: ChainHarness, run_id: str) -> list[str]:
    return [row["id"] for row in await harness.waiting_jobs(run_id)]


def three() -> dict[str, Any]:
    return dag(node("a"), node("b"), node("c", "a", "b"))


async def claimed(harness: ChainHarness, run_id: str, *, short: bool) -> tuple[Job, ...]:
    ids = await waiting(harness, run_id)
    if short:
        return await opened(harness, *ids)
    return (await harness.store.transact(lambda tx: harness.jobs.claim(tx, ids, worker="w1", lease_ms=LEASE_MS))).done


async def test_it_leaves_what_the_long_way_does(postgres_store: StoreHarness) -> None:
    harness = ChainHarness(postgres_store)
    histories = []
    for short in (True, False):
        run_id = await harness.start(three(), {"size": 7})
        assert {job.node_id for job in await claimed(harness, run_id, short=short)} == {"a", "b"}
        assert (await harness.run(run_id)).status is ChainRunStatus.RUNNING
        histories.append(await history(harness, run_id))
    assert histories[0] == histories[1]


async def test_each_job_brings_what_its_node_needs_to_know(postgres_store: StoreHarness) -> None:
    harness = ChainHarness(postgres_store)
    run_id = await harness.start(three(), {"size": 7})
    jobs = await claimed(harness, run_id, short=True)
    briefs = {(run_id, job.node_id or ""): job.preloaded for job in jobs}
    assert briefs == await harness.store.database.read(lambda tx: chain_queries.find_node_tasks(tx, briefs))
    assert {
        (job.preloaded.status, job.preloaded.run_status) for job in jobs if isinstance(job.preloaded, NodeTask)
    } == {(NodeStatus.RUNNING, ChainRunStatus.RUNNING)}


async def test_it_claims_nothing_twice_and_nothing_that_has_ended(postgres_store: StoreHarness) -> None:
    harness = ChainHarness(postgres_store)
    run_id = await harness.start(three())
    ids = await waiting(harness, run_id)
    assert len(await opened(harness, *ids)) == 2
    assert await opened(harness, *ids) == ()
    stopped = await harness.start(three())
    ids = await waiting(harness, stopped)
    await harness.stop(stopped)
    assert await opened(harness, *ids) == ()
    assert (await harness.run(stopped)).status is ChainRunStatus.STOPPED


async def test_a_job_whose_node_has_moved_on_knows_nothing_of_it(postgres_store: StoreHarness) -> None:
    """It is claimed all the same, as by the long way: the worker reads the node up and sees that it is not its own."""
    harness = ChainHarness(postgres_store)
    run_id = await harness.start(three())
    ids = await waiting(harness, run_id)
    await harness.store.write("UPDATE chain_nodes SET job_id = NULL WHERE node_id = 'a'")
    jobs = {job.node_id: job for job in await opened(harness, *ids)}
    assert jobs["a"].preloaded is None
    assert isinstance(jobs["b"].preloaded, NodeTask)
    assert (await harness.states(run_id)) == {"a": "pending", "b": "running", "c": "pending"}


async def test_a_node_that_was_tried_before_counts_on(postgres_store: StoreHarness) -> None:
    harness = ChainHarness(postgres_store)
    run_id = await harness.start(three())
    await harness.fail(*(await harness.claim("a")).values())
    await harness.retry(run_id, "a")
    (job,) = await opened(harness, *[row["id"] for row in await harness.waiting_jobs(run_id) if row["node_id"] == "a"])
    assert isinstance(job.preloaded, NodeTask)
    assert (job.attempt_id, job.preloaded.attempt, (await harness.nodes(run_id))["a"].attempt) == (1, 2, 2)


async def test_what_was_won_is_told_before_the_rest_is_asked_for(postgres_store: StoreHarness) -> None:
    """Else it would lie under this worker's lease with nobody running it, should the rest never be answered."""
    harness = ChainHarness(postgres_store)
    ids = await waiting(harness, await harness.start(three()))
    messages = {job_id: message(job_id, is_root="yes") for job_id in ids} | {"later": message("later")}
    database = cast("Database", FailingDatabase(postgres_store.database))
    outcomes = aiter(Claimer(database, harness.jobs, {}, name="w1", lease_ms=LEASE_MS).claim(messages, ()))
    assert {job.id for job in (await anext(outcomes)).done} == set(ids)
    with pytest.raises(Unavailable):
        await anext(outcomes)
