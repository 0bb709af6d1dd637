"""Numbers of submissions and rejudge batches, on both databases."""

from __future__ import annotations

import asyncio
import random

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging import queries, rejudge
from adjudge.store.judging.models import (
    Judgement,
    NewRejudgeBatch,
    NewSubmission,
    RejudgeSelection,
    RevisionChoice,
    SubmissionIds,
    VerdictPolicy,
)
from tests.support.store_harness import StoreHarness, fence_of


async def copies(store: StoreHarness, count: int) -> list[NewSubmission]:
    """New submissions of the same user to the same problem as one that exists."""
    (known,) = await store.submit()
    row = await store.row("SELECT * FROM submissions WHERE id = :id", id=known.submission_id)
    names = ("user_id", "problem_id", "revision_id", "language", "source_digest", "source_bytes")
    fields = {name: row[name] for name in names}
    return [NewSubmission(id=new_id(), **fields) for _ in range(count)]


async def submit(store: StoreHarness, items: list[NewSubmission]) -> list[SubmissionIds]:
    return await store.transact(lambda tx: store.submissions.submit(tx, items))


async def test_numbers_of_a_batch_are_in_the_order_of_the_ids(store: StoreHarness) -> None:
    items = await copies(store, 500)
    random.Random(1).shuffle(items)
    made = await submit(store, items)
    assert [item.submission_id for item in made] == [item.id for item in items]
    numbers = [item.number for item in sorted(made, key=lambda item: item.submission_id)]
    assert numbers == [*range(numbers[0], numbers[0] + 500)]
    assert await store.database.read(lambda tx: queries.find_numbers(tx, [item.id for item in items[:2]])) == {
        item.submission_id: item.number for item in made[:2]
    }


async def test_numbers_increase_from_transaction_to_transaction(store: StoreHarness) -> None:
    first, second, third = await copies(store, 3)
    made = [(await submit(store, [item]))[0].number for item in (third, first, second)]
    assert made == sorted(set(made))


async def test_concurrent_transactions_get_distinct_numbers(store: StoreHarness) -> None:
    items = await copies(store, 40)
    made = await asyncio.gather(*(submit(store, items[start : start + 4]) for start in range(0, 40, 4)))
    assert len({item.number for batch in made for item in batch}) == 40


async def test_a_rolled_back_transaction_does_not_lead_to_a_number_twice(store: StoreHarness) -> None:
    first, second = await copies(store, 2)

    async def fail(tx: Tx) -> None:
        await store.submissions.submit(tx, [first])
        raise Unavailable("The test ends this transaction.")

    with pytest.raises(Unavailable):
        await store.transact(fail)
    made = await submit(store, [first, second])
    assert made[1].number == made[0].number + 1
    rows = await store.rows("SELECT number FROM submissions")
    assert len({row["number"] for row in rows}) == len(rows) == 3


async def test_a_submission_is_found_by_its_number(store: StoreHarness) -> None:
    (item,) = await store.submit()
    assert await store.database.read(lambda tx: queries.find_id(tx, item.number)) == item.submission_id
    assert await store.database.read(lambda tx: queries.find_id(tx, item.number + 1)) is None


async def test_rejudge_batches_and_their_submissions_are_numbered(store: StoreHarness) -> None:
    (item,) = await store.submit()
    (job,) = (await store.claim(item.job_id)).done
    result = JobResult(fence_of(job), typed_result=Judgement(Verdict.AC))
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [result]))
    user_id = (await store.row("SELECT user_id FROM submissions"))["user_id"]
    numbers = [await rejudge_batch(store, item, user_id) for _ in range(3)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    runs = await store.database.read(lambda tx: queries.list_judge_runs(tx, item.submission_id))
    assert [run.rejudge_batch_number for run in runs] == [*reversed(numbers), None]
    assert {run.submission_number for run in runs} == {item.number}


async def rejudge_batch(store: StoreHarness, item: SubmissionIds, user_id: str) -> int:
    """Rejudge one submission; return the number of the batch."""
    selection = RejudgeSelection(ids=(item.submission_id,))
    batch = NewRejudgeBatch(new_id(), user_id, selection, VerdictPolicy.LATEST, RevisionChoice.PINNED, "again")
    await store.transact(lambda tx: rejudge.RejudgeCommands(store.jobs).create(tx, batch))
    found = await store.database.read(lambda tx: rejudge.find(tx, batch.id))
    assert await store.database.read(lambda tx: rejudge.find_id(tx, found.number)) == batch.id
    (row,) = await store.database.read(lambda tx: rejudge.items(tx, batch.id, after="", limit=9, only_different=False))
    assert row.submission_number == item.number
    return found.number
