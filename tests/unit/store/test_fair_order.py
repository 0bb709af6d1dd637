"""Within a band, due jobs are taken by turns: the many jobs of one owner do not delay the few of another."""

from __future__ import annotations

from adjudge.domain.ids import new_id
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs import outbox
from adjudge.store.jobs.models import HELD_DELAY_MS, NewJob
from tests.support.store_harness import StoreHarness

_MINUTE_US = 60_000_000


async def _enqueue(
    store: StoreHarness, owner: str | None, count: int = 1, *, delay_ms: int = 0, priority: int = 2
) -> list[str]:
    jobs = [NewJob(id=new_id(), kind="node", actor=owner, delay_ms=delay_ms, priority=priority) for _ in range(count)]
    return await store.transact(lambda tx: store.jobs.enqueue(tx, jobs))


async def _take(store: StoreHarness, limit: int) -> list[str]:
    return [row.job_id for row in await store.transact(lambda tx: outbox.take_due(tx, limit=limit))]


async def _move_turns(store: StoreHarness, by_us: int) -> None:
    text = f"UPDATE outbox SET turn_at = turn_at + ({by_us})"
    await store.transact(lambda tx: tx.execute(Statement(text, "Asked by a test.", text)))


async def test_thousand_jobs_of_one_owner_do_not_delay_one_of_another(store: StoreHarness) -> None:
    many = await _enqueue(store, "ann", 1_000)
    one = await _enqueue(store, "bob")
    assert await _take(store, 3) == [many[0], *one, many[1]]


async def test_jobs_of_one_owner_keep_their_order(store: StoreHarness) -> None:
    first = await _enqueue(store, "ann", 5)
    second = await _enqueue(store, "ann", 5)
    assert await _take(store, 10) == [*first, *second]


async def test_single_jobs_of_many_owners_are_taken_first_come_first_served(store: StoreHarness) -> None:
    jobs = [(await _enqueue(store, owner))[0] for owner in ("dan", "ann", "cem", "bob")]
    assert await _take(store, 4) == jobs


async def test_owners_with_many_jobs_take_turns(store: StoreHarness) -> None:
    ann, bob = await _enqueue(store, "ann", 3), await _enqueue(store, "bob", 3)
    taken = await _take(store, 6)
    assert taken == [ann[0], bob[0], ann[1], bob[1], ann[2], bob[2]]


async def test_turn_passes_so_that_newcomers_delay_nobody_for_ever(store: StoreHarness) -> None:
    waiting = await _enqueue(store, "ann", 3)
    await _move_turns(store, -_MINUTE_US)
    newcomers = [(await _enqueue(store, f"user-{number}"))[0] for number in range(3)]
    assert await _take(store, 6) == [*waiting, *newcomers]


async def test_owner_without_waiting_jobs_starts_anew(store: StoreHarness) -> None:
    assert len(await _take(store, 10)) == 0
    finished = await _enqueue(store, "ann", 50)
    text = "UPDATE outbox SET state = 'delivered'"
    await store.transact(lambda tx: tx.execute(Statement(text, "Asked by a test.", text)))
    ann, bob = await _enqueue(store, "ann"), await _enqueue(store, "bob")
    assert finished
    assert await _take(store, 2) == [*ann, *bob]


async def test_held_job_does_not_delay_later_jobs_of_its_owner(store: StoreHarness) -> None:
    await _enqueue(store, "ann", delay_ms=HELD_DELAY_MS)
    ann, bob = await _enqueue(store, "ann"), await _enqueue(store, "bob")
    assert await _take(store, 2) == [*ann, *bob]


async def test_jobs_without_an_owner_are_taken_in_order_of_creation(store: StoreHarness) -> None:
    first, second = await _enqueue(store, None, 20), await _enqueue(store, None, 20)
    assert await _take(store, 40) == [*first, *second]


async def test_bands_have_turns_of_their_own(store: StoreHarness) -> None:
    low = await _enqueue(store, "ann", 10, priority=3)
    ann, bob = await _enqueue(store, "ann", priority=1), await _enqueue(store, "bob", priority=1)
    taken = await _take(store, 2)
    assert [job for job in taken if job not in low] == [*ann, *bob]
