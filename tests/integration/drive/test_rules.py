"""The numbered rules that the drive was asked for, one test each, on both modes.

C2: reading and acknowledging. C3: fence and lease. C4: taking over. C5: finishing. D1: the outbox. The numbers are
those of the requirement. Where a rule was widened here, the test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from adjudge.domain.errors import RefusalReason, Unavailable
from adjudge.domain.ids import new_id
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.patrol import Watchdog
from adjudge.relay.pump import Pump
from adjudge.store import Database, Tx, dead_letters
from adjudge.store.driver import Operation
from adjudge.store.job_values import Fence, Finish, Job
from adjudge.store.statement import Statement
from adjudge.store.submissions import JUDGE, Judgement, NewSubmission, Submissions
from adjudge.stream import Hint, MemoryStream, Message, Published, Stream
from adjudge.worker.handler import Completion
from adjudge.worker.loop import Worker, WorkerSettings
from tests.integration.drive.conftest import QUICK, Drive
from tests.support.stores import figure

T = TypeVar("T")


class Away:
    """A database that can be told to be away."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.dialect = inner.dialect
        self.is_away = False

    def _check(self) -> None:
        if self.is_away:
            raise Unavailable("the database is away")

    async def transact(self, operation: Operation[T]) -> T:
        self._check()
        return await self._inner.transact(operation)

    async def read(self, operation: Operation[T]) -> T:
        self._check()
        return await self._inner.read(operation)

    def listen(self, channel: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._inner.listen(channel, callback)

    async def close(self) -> None:
        """The test's own is closed by whoever opened it."""


class Watched:
    """A stream that remembers acknowledgements with what the job's row said at that moment, and can be away."""

    def __init__(self, inner: Stream, drive: Drive) -> None:
        self._inner, self._drive = inner, drive
        self.acks: list[tuple[str | None, str | None]] = []
        self.failing_acks = 0
        self.tried_acks = 0
        self.publishes_fail = False

    async def publish(self, hints: Sequence[Hint]) -> list[Published]:
        if self.publishes_fail:
            raise Unavailable("the stream is away")
        return await self._inner.publish(hints)

    async def read(self, *, consumer: str, at_most: int, wait_ms: int) -> list[Message]:
        return await self._inner.read(consumer=consumer, at_most=at_most, wait_ms=wait_ms)

    async def ack(self, messages: Sequence[Message]) -> int:
        self.tried_acks += 1
        if self.failing_acks:
            self.failing_acks -= 1
            raise Unavailable("the stream is away")
        for message in messages:
            rows = await self._drive.rows("SELECT status FROM jobs WHERE id = :id", id=message.job_id or "")
            self.acks.append((message.job_id, rows[0]["status"] if rows else None))
        return await self._inner.ack(messages)

    async def autoclaim(self, *, consumer: str, idle_ms: int, at_most: int) -> list[Message]:
        return await self._inner.autoclaim(consumer=consumer, idle_ms=idle_ms, at_most=at_most)

    async def holds(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        return await self._inner.holds(entries)

    async def pending(self) -> dict[int, int]:
        return await self._inner.pending()

    async def depth(self) -> dict[int, int]:
        return await self._inner.depth()

    async def close(self) -> None:
        """The test's own is closed by whoever opened it."""


class Stage:
    """One worker that the test moves by hand, and what it sees."""

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        self.database = Away(drive.database)
        self.stream = Watched(drive.stream, drive)
        self.pump = Pump(drive.database, drive.jobs, self.stream, name="pump")

    @asynccontextmanager
    async def worker(self, name: str = "worker", **settings: Any) -> Any:
        """A worker whose loops for writing run, and whose reading is called by the test."""
        told = WorkerSettings(name, slots=4, retry=QUICK, **{"lease_ms": 10_000, "reclaim_grace_ms": 0, **settings})
        worker = Worker(self.database, self.drive.jobs, self.stream, {JUDGE: self.drive.handler}, told)
        loops = [asyncio.create_task(worker._finisher.run())]
        try:
            yield worker
        finally:
            for task in [*loops, *worker._running.values()]:
                task.cancel()
            await asyncio.gather(*loops, *worker._running.values(), return_exceptions=True)

    async def read(self, consumer: str = "worker") -> list[Message]:
        return await self.stream.read(consumer=consumer, at_most=8, wait_ms=200)

    async def job(self) -> dict[str, Any]:
        (row,) = await self.drive.rows("SELECT * FROM jobs")
        return dict(row)

    async def delivered(self) -> str:
        """Submit one and deliver it; its job."""
        await self.drive.submit()
        await self.pump.deliver()
        return str((await self.job())["id"])

    async def quiet(self, worker: Worker) -> None:
        async def over() -> bool:
            return worker.running == 0

        await self.drive.until(over, "the worker has finished")

    async def messages(self) -> int:
        return sum((await self.stream.depth()).values())

    async def write(self, sql: str, **parameters: object) -> None:
        await self.drive.database.transact(lambda tx: tx.execute(Statement(sql, "A test's.", sql), **parameters))


@pytest.fixture
def stage(drive: Drive) -> Stage:
    return Stage(drive)


def unusable(message: Message, problem: Any, *, job_id: str | None) -> Message:
    """The same message, come to harm."""
    return Message(message.entry_id, message.band, None, problem, job_id, message.deliveries, 1, message.receipt)


# C2: reading.


async def test_c2_1_a_message_without_its_fields_is_acknowledged_and_harms_nobody(stage: Stage) -> None:
    await stage.delivered()
    (message,) = await stage.read()
    before = figure("worker_claim_total", status="poison", reason="missing_field")
    async with stage.worker() as worker:
        await worker.take([unusable(message, "missing_field", job_id=None)])
    assert stage.stream.acks == [(None, None)]
    assert figure("worker_claim_total", status="poison", reason="missing_field") == before + 1
    assert (await stage.job())["status"] == "queued", "the reconciler will announce it again"


async def test_c2_2_a_missing_payload_does_not_bury_a_good_job_the_row_is_read(stage: Stage) -> None:
    """Widened: the requirement ends such a job as a system error; here the row is the truth."""
    job_id = await stage.delivered()
    (message,) = await stage.read()
    async with stage.worker() as worker:
        await worker.take([unusable(message, "payload_missing_or_invalid", job_id=job_id)])
        await stage.quiet(worker)
    assert (await stage.job())["status"] == "succeeded"
    assert figure("worker_claim_total", status="restored", reason="payload_missing_or_invalid") > 0
    assert await stage.messages() == 0


async def test_c2_2_what_the_row_makes_unusable_is_buried_with_a_code_and_acknowledged(stage: Stage) -> None:
    job_id = await stage.delivered()
    await stage.write("UPDATE jobs SET payload = '[1]' WHERE id = :id", id=job_id)
    (message,) = await stage.read()
    async with stage.worker() as worker:
        await worker.take([unusable(message, "payload_missing_or_invalid", job_id=job_id)])
    assert stage.stream.acks == [(job_id, "failed")], "buried first, then acknowledged"
    (letter,) = await stage.drive.database.read(dead_letters.page)
    assert letter.error_code == "PAYLOAD_MISSING_OR_INVALID"


async def test_c2_3_a_refused_claim_is_acknowledged_and_runs_nothing(stage: Stage) -> None:
    job_id = await stage.delivered()
    messages = await stage.read()
    (submission,) = await stage.drive.rows("SELECT id FROM submissions")
    await stage.drive.database.transact(
        lambda tx: Submissions(stage.drive.jobs).cancel(tx, submission["id"], actor="person", reason="no")
    )
    async with stage.worker() as worker:
        await worker.take(messages)
    assert stage.stream.acks == [(job_id, "canceled")]
    assert stage.drive.handler.runs == []
    assert figure("worker_claim_total", status="refused", reason="already_finished") > 0


async def test_c2_4_a_database_error_acknowledges_nothing(stage: Stage) -> None:
    await stage.delivered()
    messages = await stage.read()
    stage.database.is_away = True
    before = figure("worker_claim_total", status="failed", reason="db_error")
    async with stage.worker() as worker:
        with pytest.raises(Unavailable):
            await worker.take(messages)
    assert stage.stream.acks == []
    assert sum((await stage.stream.pending()).values()) == 1, "it stays pending, for whoever takes over"
    assert figure("worker_claim_total", status="failed", reason="db_error") == before + 1


async def test_c2_5_an_acknowledgement_that_fails_is_tried_once_more_and_no_oftener(stage: Stage) -> None:
    await stage.delivered()
    stage.stream.failing_acks = 100
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.quiet(worker)
        assert stage.stream.tried_acks == 2
        assert (await stage.job())["status"] == "succeeded"
        stage.stream.failing_acks = 0
        (again,) = await stage.stream.autoclaim(consumer="worker", idle_ms=0, at_most=1)
        await worker.take([again])
    assert len(stage.drive.handler.runs) == 1, "what comes twice is refused by the row"
    assert await stage.messages() == 0


# C3: fence and lease.


async def test_c3_1_a_claim_mints_an_attempt_and_a_lease_before_anything_runs(stage: Stage) -> None:
    seen: list[dict[str, Any]] = []

    async def look(job: Job) -> Completion:
        seen.append(await stage.job())
        return await stage.drive.handler._accept(job)

    stage.drive.handler.act = look
    await stage.delivered()
    async with stage.worker("w-1") as worker:
        await worker.take(await stage.read())
        await stage.quiet(worker)
    (row,) = seen
    assert (row["status"], row["attempt_id"], row["lease_owner"]) == ("running", 1, "w-1")
    assert row["lease_until"] == row["started_at"] + 10_000_000


async def test_c3_2_a_heartbeat_renews_the_lease(stage: Stage) -> None:
    go_on = asyncio.Event()

    async def wait(job: Job) -> Completion:
        await go_on.wait()
        return await stage.drive.handler._accept(job)

    stage.drive.handler.act = wait
    await stage.delivered()
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        before = (await stage.job())["lease_until"]
        await worker._keeper.beat()
        assert (await stage.job())["lease_until"] > before
        go_on.set()
        await stage.quiet(worker)
    assert figure("worker_lease_heartbeat_total", status="renewed", reason="ok") > 0


async def test_c3_3_the_work_is_given_the_attempt_that_was_claimed(stage: Stage) -> None:
    job_id = await stage.delivered()
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.quiet(worker)
    assert stage.drive.handler.runs == [(job_id, 1)]


async def test_c3_4_finish_requires_current_attempt(stage: Stage) -> None:
    """Attempt, owner, lease and status: each alone keeps a write out."""
    job_id = await stage.delivered()
    claim = await stage.drive.database.transact(
        lambda tx: stage.drive.jobs.claim(tx, [job_id], worker="holder", lease_ms=10_000)
    )
    assert claim.done[0].attempt_id == 1
    for fence in (Fence(job_id, 0, "holder"), Fence(job_id, 2, "holder"), Fence(job_id, 1, "somebody")):
        outcome = await _finish(stage, fence)
        assert not outcome.done, fence
    assert (await stage.job())["status"] == "running"
    assert (await _finish(stage, Fence(job_id, 1, "holder"))).done


async def test_c3_5_a_message_is_acknowledged_only_after_the_end_is_written(stage: Stage) -> None:
    job_id = await stage.delivered()
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.quiet(worker)
    assert stage.stream.acks == [(job_id, "succeeded")]


async def test_c3_lease_lost_stops_the_work_writes_nothing_and_acknowledges_nothing(stage: Stage) -> None:
    stopped = asyncio.Event()

    async def long(_: Job) -> Completion:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Completion()

    stage.drive.handler.act = long
    job_id = await stage.delivered()
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        reclaimed = await stage.drive.database.transact(
            lambda tx: stage.drive.jobs.reclaim(tx, [job_id], worker="other", lease_ms=10_000)
        )
        assert reclaimed.done
        await worker._keeper.beat()
        async with asyncio.timeout(10):
            await stopped.wait()
        await stage.quiet(worker)
    assert stage.stream.acks == []
    row = await stage.job()
    assert (row["status"], row["attempt_id"], row["lease_owner"]) == ("running", 2, "other")
    assert figure("worker_lease_heartbeat_total", status="refused", reason="stale_attempt") > 0


# C4: taking over.


async def _held_by_a_dead_worker(stage: Stage, *, lease_ms: int) -> str:
    """A job whose message somebody read, who claimed it and then said nothing more."""
    job_id = await stage.delivered()
    assert await stage.read("dead")
    await stage.drive.database.transact(
        lambda tx: stage.drive.jobs.claim(tx, [job_id], worker="dead", lease_ms=lease_ms)
    )
    return job_id


async def test_c4_1_what_came_to_harm_is_restored_from_its_row_when_it_is_taken_over(stage: Stage) -> None:
    if not isinstance(stage.drive.stream, MemoryStream):
        job_id = await stage.delivered()
        assert await stage.read("dead")
        client = stage.drive.stream._client  # type: ignore[attr-defined]  # the raw server, to do it harm
        for key in await client.keys(f"*payload:{job_id}:*"):
            await client.delete(key)
    else:
        await stage.drive.submit()
        job_id = str((await stage.job())["id"])
        stage.drive.stream.add_unusable(2, "payload_missing_or_invalid", job_id)
        assert await stage.read("dead")
    async with stage.worker() as worker:
        await _reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.drive.handler.runs == [(job_id, 1)]
    assert await stage.messages() == 0


async def test_c4_2_only_an_expired_lease_is_taken_over_and_the_attempt_grows(stage: Stage) -> None:
    job_id = await _held_by_a_dead_worker(stage, lease_ms=10_000)
    async with stage.worker(lease_ms=10_000) as worker:
        await _reclaim_now(stage, worker)
        assert (await stage.job())["lease_owner"] == "dead"
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await _reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.drive.handler.runs == [(job_id, 2)]
    assert (await stage.job())["status"] == "succeeded"


async def test_c4_3_claimed_is_acknowledged_only_once_it_is_finished(stage: Stage) -> None:
    job_id = await _held_by_a_dead_worker(stage, lease_ms=1)
    await asyncio.sleep(0.005)
    async with stage.worker() as worker:
        await _reclaim_now(stage, worker)
        await stage.quiet(worker)
    assert stage.stream.acks == [(job_id, "succeeded")]
    assert figure("worker_reclaim_total", status="claimed", reason="lease_expired") > 0


async def test_c4_3_done_or_stale_is_acknowledged(stage: Stage) -> None:
    job_id = await _held_by_a_dead_worker(stage, lease_ms=10_000)
    assert (await _finish(stage, Fence(job_id, 1, "dead"))).done
    async with stage.worker() as worker:
        await _reclaim_now(stage, worker)
    assert stage.stream.acks == [(job_id, "succeeded")]
    assert figure("worker_reclaim_total", status="done_or_stale", reason="already_finished") > 0


async def test_c4_3_not_found_is_acknowledged(stage: Stage) -> None:
    await stage.stream.publish([Hint("nobody-knows-it", 2, JUDGE)])
    assert await stage.read("dead")
    async with stage.worker() as worker:
        await _reclaim_now(stage, worker)
    assert stage.stream.acks == [("nobody-knows-it", None)]
    assert figure("worker_reclaim_total", status="not_found", reason="not_found") > 0


async def test_c4_3_a_valid_lease_is_left_alone_and_not_acknowledged(stage: Stage) -> None:
    await _held_by_a_dead_worker(stage, lease_ms=10_000)
    async with stage.worker() as worker:
        await _reclaim_now(stage, worker)
    assert (stage.stream.acks, stage.drive.handler.runs) == ([], [])
    assert figure("worker_reclaim_total", status="lease_still_valid", reason="lease_still_valid") > 0


async def test_c4_3_a_database_error_acknowledges_nothing(stage: Stage) -> None:
    await _held_by_a_dead_worker(stage, lease_ms=1)
    async with stage.worker() as worker:
        stage.database.is_away = True
        with pytest.raises(Unavailable):
            await _reclaim_now(stage, worker)
    assert stage.stream.acks == []
    assert figure("worker_reclaim_total", status="failed", reason="db_error") > 0


async def test_c4_4_a_result_of_an_older_attempt_is_refused_as_stale_and_acknowledged(stage: Stage) -> None:
    go_on = asyncio.Event()

    async def slow(_: Job) -> Completion:
        await go_on.wait()
        return Completion(result={}, outcome=Judgement(Verdict.WA))

    stage.drive.handler.act = slow
    job_id = await stage.delivered()
    stale = figure("worker_stale_attempt_total")
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        await stage.drive.database.transact(
            lambda tx: stage.drive.jobs.reclaim(tx, [job_id], worker="other", lease_ms=10_000)
        )
        go_on.set()
        await stage.quiet(worker)
    assert [job for job, _ in stage.stream.acks] == [job_id]
    assert figure("worker_stale_attempt_total") == stale + 1
    assert figure("worker_finalize_rejected_total", reason="stale_attempt") > 0
    assert (await stage.job())["attempt_id"] == 2


# C5: finishing.


async def _finish(stage: Stage, fence: Fence) -> Any:
    done = Finish(fence, JobStatus.SUCCEEDED, {}, Judgement(Verdict.AC, time_ms=1, mem_kb=1))
    return await stage.drive.database.transact(lambda tx: stage.drive.jobs.finish(tx, [done]))


async def test_c5_1_one_row_means_finished(stage: Stage) -> None:
    job_id = await _held_by_a_dead_worker(stage, lease_ms=10_000)
    outcome = await _finish(stage, Fence(job_id, 1, "dead"))
    assert [job.status for job in outcome.done] == [JobStatus.SUCCEEDED]
    row = await stage.job()
    assert (row["status"], row["lease_owner"], row["lease_until"]) == ("succeeded", None, None)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE jobs SET attempt_id = 2 WHERE id = :id", RefusalReason.STALE_ATTEMPT),
        ("finish", RefusalReason.ALREADY_FINISHED),
        ("release", RefusalReason.NOT_IN_EXPECTED_STATE),
        ("UPDATE jobs SET lease_owner = 'other' WHERE id = :id", RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH),
        ("UPDATE jobs SET lease_until = 1 WHERE id = :id", RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH),
    ],
    ids=["stale", "finished", "state", "owner", "expired"],
)
async def test_c5_2_no_row_is_explained(stage: Stage, damage: str, reason: RefusalReason) -> None:
    job_id = await _held_by_a_dead_worker(stage, lease_ms=10_000)
    fence = Fence(job_id, 1, "dead")
    if damage == "finish":
        await _finish(stage, fence)
    elif damage == "release":
        await stage.write("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job_id)
        assert await Watchdog(stage.drive.database, stage.drive.jobs, name="watchdog").tick() == 1
    else:
        await stage.write(damage, id=job_id)
    outcome = await _finish(stage, fence)
    assert [item.reason for item in outcome.refused] == [reason]


async def test_c5_2_a_database_error_while_finishing_is_counted_kept_and_sent_again(stage: Stage) -> None:
    async def pull_the_plug(job: Job) -> Completion:
        stage.database.is_away = True
        return await stage.drive.handler._accept(job)

    stage.drive.handler.act = pull_the_plug
    job_id = await stage.delivered()
    errors = figure("worker_finalize_errors_total")
    async with stage.worker() as worker:
        await worker.take(await stage.read())

        async def failed() -> bool:
            return figure("worker_finalize_errors_total") > errors

        await stage.drive.until(failed, "the write fails")
        assert stage.stream.acks == [], "nothing is acknowledged"
        stage.database.is_away = False
        await stage.quiet(worker)
    assert stage.stream.acks == [(job_id, "succeeded")]


# D1: the outbox.


async def test_d1_1_submission_job_and_outbox_row_commit_together_or_not_at_all(stage: Stage) -> None:
    drive = stage.drive
    new = NewSubmission(new_id(), drive.person, drive.problem, drive.revision, "cpp", "digest", 1)

    async def half(tx: Tx) -> None:
        await Submissions(drive.jobs).submit(tx, [new])
        raise RuntimeError("the process loses heart")

    async def counted() -> list[int]:
        tables = ("submissions", "jobs", "outbox")
        return [(await drive.rows(f"SELECT count(*) AS n FROM {table}"))[0]["n"] for table in tables]

    with pytest.raises(RuntimeError):
        await drive.database.transact(half)
    assert await counted() == [0, 0, 0]
    await drive.submit(3)
    assert await counted() == [3, 3, 3]


async def test_d1_2_submitting_needs_no_stream(stage: Stage) -> None:
    stage.stream.publishes_fail = True
    await stage.drive.submit()
    assert (await stage.job())["status"] == "pending"


async def test_d1_dispatch_1_only_due_rows_are_taken(stage: Stage) -> None:
    await stage.drive.submit()
    await stage.write("UPDATE outbox SET next_attempt_at = next_attempt_at + 60000000")
    assert await stage.pump.deliver() == 0
    await stage.write("UPDATE outbox SET next_attempt_at = 1")
    assert await stage.pump.deliver() == 1
    assert await stage.pump.deliver() == 0, "what is delivered is not taken again"


async def test_d1_dispatch_2_relays_share_rows_and_each_taking_backs_off(stage: Stage) -> None:
    await stage.drive.submit(20)
    stage.stream.publishes_fail = True
    taken = await asyncio.gather(
        stage.pump.deliver(), Pump(stage.drive.database, stage.drive.jobs, stage.stream, name="other").deliver()
    )
    assert sum(taken) == 20
    rows = await stage.drive.rows("SELECT attempts, next_attempt_at - created_at AS later_us FROM outbox")
    assert {row["attempts"] for row in rows} == {1}
    assert all(row["later_us"] >= 1_000_000 for row in rows)


async def test_d1_dispatch_3_a_payload_is_there_before_its_entry(stage: Stage) -> None:
    job_id = await stage.delivered()
    (message,) = await stage.read()
    assert message.hint is not None
    assert (message.job_id, message.hint.kind, message.hint.priority) == (job_id, JUDGE, 2)
    assert set(message.hint.payload) == {"submission_id", "revision_id", "language", "user_id"}, "identifiers only"


async def test_d1_dispatch_4_a_delivery_is_noted_with_its_entry(stage: Stage) -> None:
    await stage.delivered()
    (row,) = await stage.drive.rows("SELECT state, stream_entry_id, dispatched_at FROM outbox")
    (message,) = await stage.read()
    assert (row["state"], row["stream_entry_id"]) == ("delivered", message.entry_id)
    assert row["dispatched_at"] is not None
    assert (await stage.job())["status"] == "queued"


async def test_d1_dispatch_5_outbox_survives_enqueue_failure(stage: Stage) -> None:
    stage.stream.publishes_fail = True
    await stage.drive.submit()
    assert await stage.pump.deliver() == 1
    (row,) = await stage.drive.rows("SELECT state, last_error FROM outbox")
    assert (row["state"], row["last_error"]) == ("pending", "the stream is away")
    stage.stream.publishes_fail = False
    await stage.write("UPDATE outbox SET next_attempt_at = 1")
    assert await stage.pump.deliver() == 1
    async with stage.worker() as worker:
        await worker.take(await stage.read())
        await stage.quiet(worker)
    assert (await stage.job())["status"] == "succeeded"


async def _reclaim_now(stage: Stage, worker: Worker) -> None:
    """Take over whatever is pending, however short a time: the rows decide."""
    messages = await stage.stream.autoclaim(consumer="worker", idle_ms=0, at_most=8)
    usable = await worker._usable(messages)
    if usable:
        await worker._take_over(usable)
