"""A small model of jobs, driven against the store by Hypothesis.

The model knows only what DESIGN says: who holds which attempt until when. After every step the whole of the database is
held against it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from adjudge.domain.states import JOB, JobStatus
from adjudge.store import Tx
from adjudge.store.engine.statement import Row
from adjudge.store.jobs import outbox
from adjudge.store.jobs.models import DispatchedMessage, Fence, JobResult, PoisonJob
from tests.support.store_harness import NOON_US, StoreHarness, adhoc_statement

LEASE_MS = 1_000
FEW = 3
"""So that the same job meets many events."""
WORKERS = st.sampled_from(["w1", "w2", "w3"])
EVERYTHING = (
    "SELECT * FROM jobs",
    "SELECT * FROM job_status_log ORDER BY id",
    "SELECT * FROM dead_letters",
    "SELECT job_id, state FROM outbox",
)
TABLES = ("dead_letters", "outbox", "job_status_log", "job_attempts", "jobs")


@dataclass
class ModelJob:
    """What the model believes of one job."""

    status: str = "pending"
    attempt: int = 0
    max_attempts: int = 3
    owner: str | None = None
    lease_until: int = 0
    started: bool = False
    """Whether the claimant confirmed the attempt by a heartbeat."""
    refunds: int = 0
    available_at: int = 0
    replay_of: str | None = None
    taking: int | None = None
    """Which taking of its outbox row may still note its delivery."""


class JobStateMachine(RuleBasedStateMachine):
    """Claimants, lost leases, late writers, cancels, retries, replays, deliveries, in any order."""

    jobs = Bundle("jobs")
    fences = Bundle("fences")
    deliveries_taken = Bundle("takings")

    def __init__(self, store: StoreHarness, runner: asyncio.Runner) -> None:
        super().__init__()
        self.store = store
        self.run = runner.run
        self.model: dict[str, ModelJob] = {}

    @initialize(target=jobs)
    def begin(self) -> MultipleResults[str]:
        """An empty database with two jobs in it."""

        async def clean(tx: Tx) -> None:
            for table in TABLES:
                await tx.execute(adhoc_statement(f"DELETE FROM {table}"))

        self.run(self.store.transact(clean))
        self.store.clock.now_us = NOON_US
        self.run(self.store.clock.advance(ms=0))
        return multiple(self.enqueue(4, 0), self.enqueue(2, 0))

    @property
    def now(self) -> int:
        return self.store.clock.now_us

    def live(self) -> int:
        return sum(JobStatus(job.status) not in JOB.terminal for job in self.model.values())

    def holds(self, fence: Fence) -> bool:
        job = self.model[fence.job_id]
        mine = (job.status, job.attempt, job.owner) == ("running", fence.attempt_id, fence.lease_owner)
        return mine and job.lease_until > self.now

    def end(self, job_id: str, status: str) -> None:
        job = self.model[job_id]
        job.status, job.owner = status, None
        if status in ("canceled", "failed"):
            job.taking = None

    @precondition(lambda self: self.live() < FEW)
    @rule(target=jobs, max_attempts=st.sampled_from([4, 3, 2, 1]), delay_ms=st.sampled_from([0, 0, 500]))
    def another(self, max_attempts: int, delay_ms: int) -> str:
        return self.enqueue(max_attempts, delay_ms)

    def enqueue(self, max_attempts: int, delay_ms: int) -> str:
        job_id = self.run(self.store.enqueue(max_attempts=max_attempts, delay_ms=delay_ms))
        self.model[job_id] = ModelJob(max_attempts=max_attempts, available_at=self.now + delay_ms * 1_000)
        return job_id

    @rule(ms=st.sampled_from([1, 1, 400, LEASE_MS]))
    def time_passes(self, ms: int) -> None:
        self.run(self.store.clock.advance(ms))

    @rule(target=fences, job_id=jobs, worker=WORKERS, again=WORKERS)
    def fight_over(self, job_id: str, worker: str, again: str) -> MultipleResults[Fence]:
        """Two claims in a row; the loser gets a fence as well, and will try to write with it."""
        return multiple(self.claim(job_id, worker), self.claim(job_id, again))

    @rule(target=fences, job_id=jobs, worker=WORKERS)
    def claims(self, job_id: str, worker: str) -> Fence:
        return self.claim(job_id, worker)

    def claim(self, job_id: str, worker: str) -> Fence:
        job = self.model[job_id]
        waits = job.status in ("pending", "queued") and job.available_at <= self.now
        is_lost = job.status == "running" and job.lease_until <= self.now
        wins = (waits or is_lost) and job.attempt < job.max_attempts
        outcome = self.run(self.store.claim(job_id, worker=worker, lease_ms=LEASE_MS))
        assert bool(outcome.done) == wins, outcome
        if wins:
            self.take(job_id, worker)
        return Fence(job_id, job.attempt, worker)

    def take(self, job_id: str, worker: str) -> None:
        job = self.model[job_id]
        job.status, job.owner, job.attempt = "running", worker, job.attempt + 1
        job.lease_until, job.started = self.now + LEASE_MS * 1_000, False

    @rule(fence=fences, again=st.booleans(), delay_ms=st.sampled_from([0, 500]), uses_attempt=st.booleans())
    def release_or_renew(self, fence: Fence, again: bool, delay_ms: int, uses_attempt: bool) -> None:
        """The worker renews its lease or releases the job, without knowing whether the lease has expired."""
        if again:
            self.release(fence, delay_ms, uses_attempt)
        else:
            self.renew(fence)

    def renew(self, fence: Fence) -> None:
        granted = self.holds(fence)
        outcome = self.run(self.store.transact(lambda tx: self.store.jobs.renew(tx, [fence], lease_ms=LEASE_MS)))
        assert bool(outcome.done) == granted, outcome
        if granted:
            job = self.model[fence.job_id]
            job.lease_until, job.started = self.now + LEASE_MS * 1_000, True

    @rule(fence=fences, status=st.sampled_from([JobStatus.SUCCEEDED, JobStatus.FAILED]))
    def finish(self, fence: Fence, status: JobStatus) -> None:
        granted = self.holds(fence)
        outcome = self.run(
            self.store.transact(lambda tx: self.store.jobs.finish_and_claim_next(tx, [JobResult(fence, status)]))
        )
        assert bool(outcome.done) == granted, outcome
        if granted:
            self.end(fence.job_id, str(status))

    def release(self, fence: Fence, delay_ms: int, uses_attempt: bool) -> None:
        granted = self.holds(fence)
        item = JobResult(fence, JobStatus.PENDING, reason="again", delay_ms=delay_ms, refund=not uses_attempt)
        outcome = self.run(self.store.transact(lambda tx: self.store.jobs.finish_and_claim_next(tx, [item])))
        assert bool(outcome.done) == granted, outcome
        if granted:
            job = self.model[fence.job_id]
            job.max_attempts += 0 if uses_attempt else 1
            self.back(fence.job_id, delay_ms)

    def back(self, job_id: str, delay_ms: int) -> None:
        job = self.model[job_id]
        if job.attempt >= job.max_attempts:
            self.end(job_id, "failed")
        else:
            job.status, job.owner, job.available_at = "pending", None, self.now + delay_ms * 1_000
            job.taking = None

    @rule(job_id=jobs, poisoned=st.booleans(), for_good=st.sampled_from([False, False, False, True]))
    def end_manually(self, job_id: str, poisoned: bool, for_good: bool) -> None:
        """Seldom, so that most jobs live long enough to be fought over."""
        if for_good and poisoned:
            self.dead_letter(job_id)
        elif for_good:
            self.cancel(job_id)

    def cancel(self, job_id: str) -> None:
        alive = JobStatus(self.model[job_id].status) not in JOB.terminal
        outcome = self.run(
            self.store.transact(lambda tx: self.store.jobs.cancel(tx, [job_id], actor="ada", reason="unwanted"))
        )
        assert bool(outcome.done) == alive, outcome
        if alive:
            self.end(job_id, "canceled")

    def dead_letter(self, job_id: str) -> None:
        waiting = self.model[job_id].status in ("pending", "queued")
        poison_jobs = [PoisonJob(job_id, "POISON", "unusable")]
        outcome = self.run(self.store.transact(lambda tx: self.store.jobs.dead_letter(tx, poison_jobs, actor="relay")))
        assert bool(outcome.done) == waiting, outcome
        if waiting:
            self.end(job_id, "failed")

    @rule(flushed=st.booleans())
    def repair(self, flushed: bool) -> None:
        """The watchdog's round, or the reconciler's after the stream was flushed."""
        if flushed:
            self.requeue_all()
        else:
            self.expire()

    def expire(self) -> None:
        lost = {key for key, job in self.model.items() if job.status == "running" and job.lease_until <= self.now}
        freed = self.run(self.store.transact(lambda tx: self.store.jobs.release_expired(tx, actor="watchdog")))
        assert {job.id for job in freed} == lost
        for job_id in lost:
            job = self.model[job_id]
            if not job.started and job.refunds < 3:
                job.refunds, job.max_attempts = job.refunds + 1, job.max_attempts + 1
            self.back(job_id, 2_000 * 2 ** (job.attempt - 1))

    @rule(target=deliveries_taken)
    def take_due(self) -> list[DispatchedMessage]:
        """A relay takes what is due and tells the stream; it may die before it can say so here."""
        due = self.run(self.store.transact(lambda tx: outbox.take_due(tx, limit=100)))
        ended = [row.job_id for row in due if JobStatus(self.model[row.job_id].status) in JOB.terminal]
        assert ended == [], "nothing is announced in vain"
        for row in due:
            self.model[row.job_id].taking = row.dispatch_seq
        return [DispatchedMessage(row.job_id, f"entry-{row.attempts}", row.dispatch_seq) for row in due]

    @rule(deliveries=deliveries_taken)
    def mark(self, deliveries: list[DispatchedMessage]) -> None:
        """It says so, however late: only the last taking of a job that was not put back meanwhile counts."""
        self.run(self.store.transact(lambda tx: self.store.jobs.mark_queued(tx, deliveries, actor="relay")))
        for item in deliveries:
            job = self.model[item.job_id]
            if job.taking == item.dispatch_seq:
                job.taking = None
                job.status = "queued" if job.status == "pending" else job.status

    def requeue_all(self) -> None:
        queued = [key for key, job in self.model.items() if job.status == "queued"]
        self.run(self.store.transact(lambda tx: self.store.jobs.requeue(tx, queued, actor="reconciler")))
        for job_id in queued:
            self.back(job_id, 0)

    @rule(target=jobs)
    def replay(self) -> str | MultipleResults[str]:
        letters = self.run(self.store.rows("SELECT id, job_id FROM dead_letters WHERE state = 'open' ORDER BY id"))
        if not letters:
            return multiple()
        letter = letters[0]
        made = self.run(
            self.store.transact(lambda tx: self.store.jobs.replay(tx, [letter["id"]], actor="ops", note="fixed"))
        )
        job_id = made[letter["id"]] or ""
        self.model[job_id] = ModelJob(max_attempts=4, available_at=self.now, replay_of=letter["job_id"])
        return job_id

    @invariant()
    def the_database_agrees(self) -> None:
        self.run(self.check())

    async def check(self) -> None:
        """Read everything in one snapshot and hold it against the model."""

        async def look(tx: Tx) -> list[list[Row]]:
            return [await tx.fetch(adhoc_statement(sql)) for sql in EVERYTHING]

        jobs, logs, letters, messages = await self.store.database.read(look)
        rows = {row["id"]: row for row in jobs}
        assert rows.keys() == self.model.keys(), "no job is lost, none appears"
        replayed = dict.fromkeys(rows, ("pending", 0))
        for entry in logs:
            status, attempt = replayed[entry["job_id"]]
            source, target = JobStatus(entry["from_status"]), JobStatus(entry["to_status"])
            assert source == status, "the log has no gap"
            assert JOB.allows(source, target), "no illegal edge, and so no second terminal write"
            assert entry["attempt_id"] == attempt + (target is JobStatus.RUNNING), "attempts strictly grow"
            replayed[entry["job_id"]] = (str(target), entry["attempt_id"])
        for key, row in rows.items():
            job = self.model[key]
            assert (row["status"], row["attempt_id"], row["lease_owner"]) == (job.status, job.attempt, job.owner)
            assert replayed[key] == (job.status, job.attempt), "replaying the log gives the row"
            assert row["origin_job_id"] == job.replay_of
        self.check_letters(letters)
        self.check_outbox({row["job_id"]: row["state"] for row in messages})

    def check_letters(self, letters: list[Row]) -> None:
        assert all(self.model[letter["job_id"]].status == "failed" for letter in letters)
        replayed = {
            letter["replayed_by_job_id"]: letter["job_id"] for letter in letters if letter["state"] == "replayed"
        }
        assert replayed == {key: job.replay_of for key, job in self.model.items() if job.replay_of}

    def check_outbox(self, messages: dict[str, str]) -> None:
        for key, job in self.model.items():
            if job.status == "pending":
                assert messages[key] == "pending", "whatever waits is announced"
            elif job.status == "queued":
                assert messages[key] == "delivered"
