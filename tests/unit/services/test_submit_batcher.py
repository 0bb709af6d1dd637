"""Group commit of submissions: concurrent requests are committed together, and an invalid one fails alone."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from adjudge.domain.errors import InvalidInput, OutcomeUnknown, Unavailable
from adjudge.domain.ids import new_id
from adjudge.observe import logs
from adjudge.services.submit import SubmissionRulesCache
from adjudge.store import Database
from adjudge.store.engine.driver import Operation
from adjudge.store.judging import submit_batch as batchers
from adjudge.store.judging.models import NewSubmission
from adjudge.store.judging.submit_batch import BatchedSubmit, SubmitBatcher
from adjudge.store.ops.idempotency_keys import StoredResponse
from tests.support.log_capture import capture_logs
from tests.support.store_harness import StoreHarness


class CountingDatabase:
    """A database that counts its transactions, and fails on request, before or after the commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.transactions = 0
        self.fails: list[Exception] = []
        self.loses_answers = 0

    async def transact(self, operation: Operation[Any]) -> Any:
        self.transactions += 1
        if self.fails:
            raise self.fails.pop()
        done = await self._database.transact(operation)
        if self.loses_answers:
            self.loses_answers -= 1
            raise OutcomeUnknown
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class BlockedDatabase:
    """A database that is slow to begin: it continues when released."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._under_way = asyncio.Semaphore(0)
        self.continues = asyncio.Event()
        self.now = self.most = 0

    async def transact(self, operation: Operation[Any]) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        self._under_way.release()
        await self.continues.wait()
        try:
            return await self._database.transact(operation)
        finally:
            self.now -= 1

    async def is_busy(self, transactions: int) -> None:
        for _ in range(transactions):
            await self._under_way.acquire()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def orders_of(store: StoreHarness, count: int) -> list[BatchedSubmit]:
    await store.submit()
    row = await store.row("SELECT user_id, problem_id, revision_id FROM submissions")
    made = []
    for _ in range(count):
        item = NewSubmission(
            id=new_id(),
            **row,
            language="cpp20",
            source_digest="0" * 64,
            source_bytes=1,
            source_text="x",
            job_id=new_id(),
        )
        made.append(BatchedSubmit((item,), StoredResponse("digest", 202, {"id": item.id})))
    return made


async def test_orders_that_wait_go_together(sqlite_store: StoreHarness) -> None:
    database = CountingDatabase(sqlite_store.database)
    batcher = SubmitBatcher(database, sqlite_store.jobs)
    orders = await orders_of(sqlite_store, 50)
    answers = await asyncio.gather(*(batcher.submit(order) for order in orders))
    assert answers == [order.answer for order in orders]
    assert database.transactions <= 2


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    with capture_logs() as stream:
        yield stream


async def test_each_job_is_logged_with_its_own_request(sqlite_store: StoreHarness, lines: io.StringIO) -> None:
    """However many requests a commit is for, and whichever of them woke the clerk."""
    batcher = SubmitBatcher(sqlite_store.database, sqlite_store.jobs)

    async def ask(order: BatchedSubmit) -> str:
        request_id = new_id()
        with logs.context(request_id=request_id):
            await batcher.submit(replace(order, submissions=(order.submissions[0]._replace(request_id=request_id),)))
        return request_id

    orders = await orders_of(sqlite_store, 5)
    asked = await asyncio.gather(*(ask(order) for order in orders))
    said = [event for event in map(json.loads, lines.getvalue().splitlines()) if event["event"] == "job_enqueued"]
    requests = {event["submission_id"]: event.get("request_id") for event in said}
    assert [requests[order.submissions[0].id] for order in orders] == asked


async def test_a_transactions_fill_does_not_wait_for_the_one_before(
    store: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batchers, "_TOGETHER", 10)
    database = BlockedDatabase(store.database)
    batcher = SubmitBatcher(database, store.jobs)
    singles = await orders_of(store, 21)
    fills = [
        BatchedSubmit(tuple(order.submissions[0] for order in part), part[0].answer)
        for part in (singles[:10], singles[10:20])
    ]
    orders = [*fills, singles[20]]
    placing = [asyncio.create_task(batcher.submit(order)) for order in orders]
    await database.is_busy(2)
    database.continues.set()
    assert await asyncio.gather(*placing) == [order.answer for order in orders]
    assert database.most == 2, "a single one fills nothing: it waits for one of the two"
    assert len(await store.rows("SELECT id FROM submissions")) == 22


async def test_an_order_that_cannot_be_placed_takes_no_other_along(store: StoreHarness) -> None:
    batcher = SubmitBatcher(store.database, store.jobs)
    orders = await orders_of(store, 5)
    orders[2] = replace(orders[2], submissions=(orders[2].submissions[0]._replace(problem_id="nowhere"),))
    answers = await asyncio.gather(*(batcher.submit(order) for order in orders), return_exceptions=True)
    assert [isinstance(answer, InvalidInput) for answer in answers] == [False, False, True, False, False]
    rows = await store.rows("SELECT id FROM submissions")
    assert len(rows) == 5


async def test_an_outcome_that_is_unknown_is_looked_up(sqlite_store: StoreHarness) -> None:
    database = CountingDatabase(sqlite_store.database)
    batcher = SubmitBatcher(database, sqlite_store.jobs)
    *orders, again = await orders_of(sqlite_store, 4)
    database.loses_answers = 1
    answers = await asyncio.gather(*(batcher.submit(order) for order in orders))
    assert answers == [order.answer for order in orders]
    database.fails = [OutcomeUnknown()]
    assert await batcher.submit(again) == again.answer
    rows = await sqlite_store.rows("SELECT id FROM jobs WHERE kind = 'judge'")
    assert len(rows) == 5, "each exactly once, beside the one that was there"


async def test_unavailable_database_fails_the_batch_and_the_next_batch_succeeds(sqlite_store: StoreHarness) -> None:
    database = CountingDatabase(sqlite_store.database)
    batcher = SubmitBatcher(database, sqlite_store.jobs)
    (order,) = await orders_of(sqlite_store, 1)
    database.fails = [Unavailable()]
    with pytest.raises(Unavailable):
        await batcher.submit(order)
    assert await batcher.submit(order) == order.answer


@pytest.mark.parametrize("first", [Unavailable(), OutcomeUnknown()])
async def test_outage_tries_a_batch_no_more_than_twice(sqlite_store: StoreHarness, first: Exception) -> None:
    """The requests that wait are not tried one after the other: each try may last as long as the outage."""
    database = CountingDatabase(sqlite_store.database)
    batcher = SubmitBatcher(database, sqlite_store.jobs)
    orders = await orders_of(sqlite_store, 20)
    database.fails = [Unavailable(), first]
    answers = await asyncio.gather(*(batcher.submit(order) for order in orders), return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}
    assert database.transactions == (1 if type(first) is Unavailable else 2)


async def test_requests_missing_after_an_unknown_commit_are_inserted_together(sqlite_store: StoreHarness) -> None:
    database = CountingDatabase(sqlite_store.database)
    batcher = SubmitBatcher(database, sqlite_store.jobs)
    orders = await orders_of(sqlite_store, 20)
    orders[3] = replace(orders[3], submissions=(orders[3].submissions[0]._replace(problem_id="nowhere"),))
    database.fails = [OutcomeUnknown()]
    answers = await asyncio.gather(*(batcher.submit(order) for order in orders[:3]))
    assert (len(answers), database.transactions) == (3, 2)
    database.fails = [OutcomeUnknown()]
    mixed = await asyncio.gather(*(batcher.submit(order) for order in orders[3:]), return_exceptions=True)
    assert [type(answer) for answer in mixed] == [InvalidInput, *[StoredResponse] * 16]


async def test_problems_asked_for_at_the_same_time_are_read_together(sqlite_store: StoreHarness) -> None:
    await sqlite_store.submit()
    row = await sqlite_store.row("SELECT id, slug FROM problems")
    reads = 0

    class Counted:
        async def read(self, operation: Operation[Any]) -> Any:
            nonlocal reads
            reads += 1
            return await sqlite_store.database.read(operation)

    rules_cache = SubmissionRulesCache(Counted())  # type: ignore[arg-type]  # it only reads
    found = await asyncio.gather(
        *(rules_cache.find_problem(ref) for ref in (row["slug"], row["id"], row["slug"], "none"))
    )
    assert [None if ref is None else ref.id for ref in found] == [row["id"], row["id"], row["id"], None]
    assert reads == 1
    assert await rules_cache.find_problem("none") is None
    assert reads == 2, "nothing is remembered"
