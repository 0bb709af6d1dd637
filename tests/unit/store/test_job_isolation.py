"""A job whose owner fails stops no other job, and ends with a dead letter that says why."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.watchdog import Watchdog
from adjudge.store import Tx
from adjudge.store.jobs import outbox
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import ROUNDS_ALL_FAILED, TRIES, JobIsolation
from adjudge.store.jobs.models import FinishedJob, Job
from adjudge.stream.driver import MessageBody, PublishResult
from adjudge.stream.memory import MemoryStream
from tests.support.store_harness import StoreHarness, adhoc_statement


class Poisoned:
    """A listener that fails whenever it is called for certain jobs."""

    def __init__(self) -> None:
        self.poison: set[str] = set()

    def _look(self, job_ids: Sequence[str]) -> None:
        if found := self.poison.intersection(job_ids):
            raise KeyError(f"a bug that {sorted(found)} met")

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        self._look([job.id for job in jobs])

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        self._look([job.id for job in jobs])

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        self._look([item.job.id for item in ended])


@pytest.fixture
def owner(store: StoreHarness) -> Poisoned:
    owner = Poisoned()
    store.jobs = JobCommands({"fragile": owner}, random_unit=lambda: 0.0)
    return owner


async def current(store: StoreHarness) -> dict[str, tuple[str, str | None]]:
    rows = await store.rows("SELECT id, status, error_code FROM jobs")
    return {row["id"]: (row["status"], row["error_code"]) for row in rows}


async def test_the_watchdog_frees_the_neighbours_of_a_poisoned_job(store: StoreHarness, owner: Poisoned) -> None:
    fragile = await store.enqueue_many(3, "fragile")
    others = await store.enqueue_many(2, "sturdy")
    await store.claim(*fragile, *others)
    await store.clock.advance(ms=15_000)
    owner.poison = {fragile[1]}
    watchdog = Watchdog(store.database, store.jobs, name="watchdog")
    assert await watchdog.run_once() == 4
    found = await current(store)
    assert found.pop(fragile[1]) == ("running", None), "it is tried again a few times"
    assert set(found.values()) == {("pending", None)}
    for _ in range(TRIES - 1):
        await watchdog.run_once()
    assert (await current(store))[fragile[1]] == ("failed", "LISTENER_FAILED")
    letter = await store.row("SELECT job_id, error_code, error, state FROM dead_letters")
    assert (letter["job_id"], letter["error_code"], letter["state"]) == (fragile[1], "LISTENER_FAILED", "open")
    assert "a bug that" in letter["error"]
    assert await watchdog.run_once() == 0


async def test_a_kind_that_fails_wholly_is_not_given_up_and_stops_no_other_kind(
    store: StoreHarness, owner: Poisoned
) -> None:
    """Where every job of a kind fails, the jobs are not at fault: none of them is given up."""
    fragile, sturdy = await store.enqueue_many(3, "fragile"), await store.enqueue("sturdy")
    await store.claim(*fragile, sturdy)
    await store.clock.advance(ms=15_000)
    owner.poison = set(fragile)
    watchdog = Watchdog(store.database, store.jobs, name="watchdog")
    assert [await watchdog.run_once() for _ in range(TRIES + 1)] == [1, *[0] * TRIES]
    found = await current(store)
    assert found[sturdy] == ("pending", None)
    assert {found[job_id] for job_id in fragile} == {("running", None)}


async def test_poisoned_jobs_that_remain_alone_in_a_batch_are_set_aside_after_many_rounds(
    store: StoreHarness, owner: Poisoned
) -> None:
    fragile = await store.enqueue_many(2, "fragile")
    await store.claim(*fragile)
    await store.clock.advance(ms=15_000)
    owner.poison = set(fragile)
    watchdog = Watchdog(store.database, store.jobs, name="watchdog")
    for _ in range(ROUNDS_ALL_FAILED - 1):
        assert await watchdog.run_once() == 0
    assert set((await current(store)).values()) == {("running", None)}
    await watchdog.run_once()
    assert set((await current(store)).values()) == {("failed", "LISTENER_FAILED")}
    letters = await store.rows("SELECT job_id FROM dead_letters WHERE state = 'open'")
    assert sorted(row["job_id"] for row in letters) == sorted(fragile)


async def test_rounds_of_a_general_fault_do_not_count_as_failures_of_one_job(
    store: StoreHarness, owner: Poisoned
) -> None:
    fragile = await store.enqueue_many(3, "fragile")
    await store.claim(*fragile)
    await store.clock.advance(ms=15_000)
    owner.poison = set(fragile)
    watchdog = Watchdog(store.database, store.jobs, name="watchdog")
    for _ in range(ROUNDS_ALL_FAILED - 1):
        await watchdog.run_once()
    owner.poison = {fragile[0]}
    assert await watchdog.run_once() == 2
    assert (await current(store))[fragile[0]] == ("running", None)
    owner.poison = set()
    assert await watchdog.run_once() == 1


async def test_a_success_in_a_batch_clears_the_failures_before_it(store: StoreHarness, owner: Poisoned) -> None:
    fragile = await store.enqueue_many(2, "fragile")
    isolation = JobIsolation(store.database, store.jobs, actor="test")

    async def check(_tx: Tx, job_ids: Sequence[str]) -> Sequence[str]:
        owner._look(job_ids)
        return job_ids

    for _ in range(2):
        owner.poison = set(fragile)
        for _ in range(ROUNDS_ALL_FAILED - 1):
            assert await isolation.run(fragile, check) == []
        owner.poison = set()
        assert await isolation.run(fragile, check) == fragile
    assert await store.rows("SELECT id FROM dead_letters") == []


async def test_expired_jobs_behind_a_whole_batch_of_failing_ones_are_freed(
    store: StoreHarness, owner: Poisoned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.relay.watchdog._BATCH", 2)
    fragile = sorted(await store.enqueue_many(4, "fragile"))
    sturdy = await store.enqueue("sturdy")
    await store.claim(*fragile, sturdy)
    await store.clock.advance(ms=15_000)
    owner.poison = set(fragile)
    watchdog = Watchdog(store.database, store.jobs, name="watchdog")
    assert await watchdog.run_once() == 1
    assert (await current(store))[sturdy] == ("pending", None)
    owner.poison = set()
    assert await watchdog.run_once() == 4


async def test_the_reconciler_requeues_the_neighbours_of_a_poisoned_job(store: StoreHarness, owner: Poisoned) -> None:
    jobs = await store.enqueue_many(3, "fragile")
    stream = MemoryStream()
    await Dispatcher(store.database, store.jobs, stream, name="dispatcher").dispatch_batch()
    stream.flush()
    await store.clock.advance(ms=60_000)
    owner.poison = {jobs[0]}
    reconciler = Reconciler(store.database, store.jobs, stream, name="reconciler")
    assert await reconciler.run_once() == 2
    for _ in range(TRIES - 1):
        await reconciler.run_once()
    assert (await current(store))[jobs[0]] == ("failed", "LISTENER_FAILED")


@pytest.mark.parametrize("poisoned", [False, True])
async def test_row_that_can_never_be_delivered_becomes_a_dead_letter(
    store: StoreHarness, owner: Poisoned, *, poisoned: bool
) -> None:
    bad, good = await store.enqueue("fragile"), await store.enqueue("fragile")
    await store.database.transact(
        lambda tx: tx.execute(adhoc_statement("UPDATE jobs SET payload = '[1]' WHERE id = :id"), id=bad)
    )
    owner.poison = {bad} if poisoned else set()
    dispatcher = Dispatcher(store.database, store.jobs, MemoryStream(), name="dispatcher")
    for _ in range(8):
        await dispatcher.dispatch_batch()
        await store.clock.advance(ms=3_600_000)
    found = await current(store)
    assert found[good][0] == str(JobStatus.QUEUED)
    assert found[bad] == ("failed", "LISTENER_FAILED" if poisoned else "UNDELIVERABLE")
    letter = await store.row("SELECT job_id, error FROM dead_letters")
    assert letter["job_id"] == bad
    assert poisoned or "payload is not an object" in letter["error"]
    await store.clock.advance(ms=3_600_000)
    assert bad not in [row.job_id for row in await store.transact(lambda tx: outbox.take_due(tx, limit=100))]
    assert (await store.row("SELECT state FROM outbox WHERE job_id = :id", id=bad))["state"] == "dropped"


async def test_failing_dead_letters_do_not_stop_the_dispatcher(store: StoreHarness, owner: Poisoned) -> None:
    bad, good = await store.enqueue_many(2, "fragile"), await store.enqueue("fragile")
    await store.write("UPDATE jobs SET payload = '[1]' WHERE id <> :id", id=good)
    owner.poison = set(bad)
    dispatcher = Dispatcher(store.database, store.jobs, MemoryStream(), name="dispatcher")
    for _ in range(6):
        await dispatcher.dispatch_batch()
        await store.clock.advance(ms=3_600_000)
    found = await current(store)
    assert found[good] == ("queued", None)
    assert {found[job_id] for job_id in bad} == {("pending", None)}


async def test_a_stream_that_is_away_buries_nothing(store: StoreHarness) -> None:
    class Away(MemoryStream):
        async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
            raise Unavailable("the stream is away")

    job_id = await store.enqueue("sturdy")
    dispatcher = Dispatcher(store.database, store.jobs, Away(), name="dispatcher")
    for _ in range(6):
        await dispatcher.dispatch_batch()
        await store.clock.advance(ms=3_600_000)
    assert (await current(store))[job_id] == ("pending", None)
