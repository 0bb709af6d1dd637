"""A small model of submissions, driven against the store by Hypothesis.

The model follows DESIGN: a submission's status is decided by its judge runs, by an operator, or by applying a rejudge
batch. After every step the rows are compared with it, and the status log is replayed.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adjudge.domain.errors import Conflict, InvalidInput, InvalidStatus, InvalidTransition, VersionConflict
from adjudge.domain.ids import new_id
from adjudge.domain.states import SUBMISSION, JobStatus, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.engine.statement import Row
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import BatchResult, Fence, JobResult, PoisonJob
from adjudge.store.judging import commands as submission_commands
from adjudge.store.judging.models import (
    Judgement,
    NewRejudgeBatch,
    NewSubmission,
    RejudgeSelection,
    RevisionChoice,
    SubmissionUpdate,
    VerdictPolicy,
)
from adjudge.store.judging.rejudge import RejudgeCommands
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.store.schema import METADATA
from tests.support.store_harness import StoreHarness, adhoc_statement

FEW = 3
"""So that the same submission meets many events."""
ATTEMPTS = 4
OFTEN = {
    "submit": 3,
    "claim": 3,
    "finish": 4,
    "judge": 8,
    "retry": 2,
    "end_unjudged": 4,
    "cancel": 1,
    "change_manually": 3,
    "write_by_an_old_version": 1,
    "replay": 6,
    "rejudge": 4,
    "apply": 5,
    "drop_batch": 1,
}
"""What happens, and how often: most submissions and batches live long enough to be judged more than once."""
MANUAL: list[tuple[str, str | None]] = [
    ("judging", None),
    ("accepted", "AC"),
    ("wrong_answer", "PA"),
    ("error", "RE"),
    ("canceled", None),
    ("pending", None),
    ("accepted", "WA"),
    ("judging", "AC"),
    ("done", None),
]


@dataclass
class Modelled:
    """What the model believes of one submission."""

    status: SubmissionStatus = SubmissionStatus.PENDING
    version: int = 1
    verdict: str | None = None
    judged_by: str | None = None
    path: list[tuple[str, str, int, str | None]] = field(default_factory=list)

    def go(self, status: SubmissionStatus, verdict: str | None, job_id: str | None) -> None:
        self.path.append((self.status, status, self.version + 1, verdict))
        self.status, self.version, self.verdict, self.judged_by = status, self.version + 1, verdict, job_id


@dataclass
class Run:
    """What the model believes of one judge run."""

    submission_id: str
    batch_id: str | None = None
    status: str = "waiting"
    attempt: int = 0
    has_letter: bool = False


@dataclass
class Batch:
    """What the model believes of one rejudge batch: its items are version, outcome, verdict and run."""

    policy: VerdictPolicy
    items: dict[str, tuple[int, str | None, str | None, str]]
    state: str = "running"

    def ended(self, submission_id: str, outcome: str, verdict: str | None, job_id: str) -> None:
        version, known, _, _ = self.items[submission_id]
        if known is None or (known == "failed" and self.state in ("running", "ready")):
            self.items[submission_id] = (version, outcome, verdict, job_id)
        if self.state == "running" and all(item[1] for item in self.items.values()):
            self.state = "ready"


class SubmissionMachine(RuleBasedStateMachine):
    """Verdicts, retries, cancels, changes by hand, replays and rejudges, in any order, also by old versions."""

    def __init__(self, store: StoreHarness, runner: asyncio.Runner) -> None:
        super().__init__()
        self.store, self.run, self.rejudging = store, runner.run, RejudgeCommands(store.jobs)
        self.model: dict[str, Modelled] = {}
        self.runs: dict[str, Run] = {}
        self.batches: dict[str, Batch] = {}
        self.ids = new_id(), new_id(), new_id()

    def attempt(self, operation: Callable[[Tx], Awaitable[Any]], error: type[Exception] | None = None) -> Any:
        """One transaction that must succeed, or be refused with exactly this error."""
        if error is None:
            return self.run(self.store.transact(operation))
        with pytest.raises(error) as refused:
            self.run(self.store.transact(operation))
        assert refused.type is error
        return None

    @initialize()
    def begin(self) -> None:
        """An empty database but for a problem and one submission to it."""
        person, problem, revision = self.ids

        async def set_up(tx: Tx) -> None:
            for table in reversed(METADATA.sorted_tables):
                await tx.execute(adhoc_statement(f"DELETE FROM {table}"))
            await users.insert(tx, users.NewUser(person, "ada"))
            await problem_commands.insert(tx, problem_models.NewProblem(problem, "sum", "Sum", person))
            await problem_commands.add_revision(
                tx, problem_models.NewRevision(revision, problem, "plain", "0" * 64, person)
            )

        self.attempt(set_up)
        self.submit()

    @rule(seed=st.integers(0, 2**32))
    def step(self, seed: int) -> None:
        """Anything, drawn from a seed: Hypothesis' own draws are too much alike to reach rare combinations."""
        chosen = random.Random(seed)
        act = getattr(self, chosen.choices(list(OFTEN), list(OFTEN.values()))[0])
        given = {
            "pick": chosen.randrange(64),
            "verdict": chosen.choice([*Verdict, Verdict.SE]),
            "wanted": chosen.choice(MANUAL),
            "policy": chosen.choice(list(VerdictPolicy)),
            "late": chosen.choice([0, 0, 0, 1, -1]),
            "is_stale": chosen.random() < 0.2,
            "is_dead_letter": chosen.random() < 0.5,
            "skip_changed": chosen.random() < 0.5,
            "is_cancel": chosen.random() < 0.5,
        }
        act(**{name: given[name] for name in inspect.signature(act).parameters})

    def submit(self) -> None:
        if len(self.model) >= 3 * FEW or len(self.open()) >= FEW:
            return
        new = NewSubmission(new_id(), *self.ids, "cpp", source_digest="0" * 64, source_bytes=1)
        (made,) = self.attempt(lambda tx: self.store.submissions.submit(tx, [new]))
        self.model[new.id] = Modelled()
        self.runs[made.job_id] = Run(new.id)

    def picked(self, pick: int, status: str | None = None) -> str:
        """One of the runs; those with the status first, so that most steps are legal and some are not."""
        wanted = [key for key, run in self.runs.items() if run.status == status]
        known = wanted if wanted and pick % 8 else list(self.runs)
        return known[pick % len(known)]

    def end(self, job_id: str, status: str, verdict: str | None) -> None:
        """A run ended: with a verdict, canceled, or given up."""
        run = self.runs[job_id]
        run.status, run.has_letter = "ended", status == "failed"
        if run.batch_id is not None:
            outcome = "judged" if verdict not in (None, "SE") else status
            self.batches[run.batch_id].ended(run.submission_id, outcome, verdict, job_id)
            return
        item = self.model[run.submission_id]
        if status == "canceled":
            if item.status not in SUBMISSION.terminal:
                item.go(SubmissionStatus.CANCELED, None, job_id)
            return
        if item.status is SubmissionStatus.PENDING:
            item.go(SubmissionStatus.JUDGING, None, job_id)
        found = Verdict(verdict or "SE")
        item.go(found.status, found, job_id)

    def fenced(self, job_id: str, is_stale: bool, act: Callable[[Tx, Fence], Awaitable[BatchResult[Any]]]) -> bool:
        """A write by the holder of a claim, or by somebody whose claim is an old one; whether it counted."""
        run = self.runs[job_id]
        fence = Fence(job_id, run.attempt - is_stale, "w1")
        outcome = self.attempt(lambda tx: act(tx, fence))
        holds = run.status == "running" and not is_stale
        assert bool(outcome.done) == holds, outcome
        return holds

    def claim(self, pick: int) -> None:
        job_id = self.picked(pick, "waiting")
        run = self.runs[job_id]
        outcome = self.run(self.store.claim(job_id))
        assert bool(outcome.done) == (run.status == "waiting"), outcome
        if outcome.done:
            run.status, run.attempt = "running", run.attempt + 1
            item = self.model[run.submission_id]
            if run.batch_id is None and item.status is SubmissionStatus.PENDING:
                item.go(SubmissionStatus.JUDGING, None, job_id)

    def finish(self, pick: int, verdict: Verdict, is_stale: bool) -> None:
        job_id = self.picked(pick, "running")
        status = JobStatus.FAILED if verdict is Verdict.SE else JobStatus.SUCCEEDED

        async def write(tx: Tx, fence: Fence) -> BatchResult[Any]:
            return await self.store.jobs.finish_and_claim_next(
                tx, [JobResult(fence, status, typed_result=Judgement(verdict))]
            )

        if self.fenced(job_id, is_stale, write):
            self.end(job_id, str(status), verdict)

    def retry(self, pick: int, is_stale: bool) -> None:
        job_id = self.picked(pick, "running")

        async def write(tx: Tx, fence: Fence) -> BatchResult[Any]:
            return await self.store.jobs.finish_and_claim_next(
                tx, [JobResult(fence, JobStatus.PENDING, reason="again")]
            )

        if self.fenced(job_id, is_stale, write):
            run = self.runs[job_id]
            run.status = "waiting"
            if run.attempt >= ATTEMPTS:
                self.end(job_id, "failed", None)

    def judge(self, pick: int, verdict: Verdict) -> None:
        """A run from claim to verdict."""
        self.claim(pick)
        self.finish(pick, verdict, is_stale=False)

    def end_unjudged(self, pick: int, is_dead_letter: bool) -> None:
        """A run is buried because nobody can run it, or canceled by its own id."""
        job_id, jobs = self.picked(pick, "waiting"), self.store.jobs
        status = self.runs[job_id].status
        if is_dead_letter:
            outcome = self.attempt(
                lambda tx: jobs.dead_letter(tx, [PoisonJob(job_id, "POISON", "unusable")], actor="relay")
            )
        else:
            outcome = self.attempt(lambda tx: jobs.cancel(tx, [job_id], actor="ops", reason="unwanted"))
        assert bool(outcome.done) == (status == "waiting" or (status == "running" and not is_dead_letter)), outcome
        if outcome.done:
            self.end(job_id, "failed" if is_dead_letter else "canceled", None)

    def end_open_runs(self, submission_id: str) -> None:
        for job_id, run in self.runs.items():
            if (run.submission_id, run.batch_id) == (submission_id, None) and run.status != "ended":
                self.end(job_id, "canceled", None)

    def open(self) -> list[str]:
        return [key for key, item in self.model.items() if item.status not in SUBMISSION.terminal]

    def picked_submission(self, pick: int) -> tuple[str, Modelled]:
        """One of the submissions, mostly one that has not ended."""
        known = (self.open() if pick % 4 else []) or list(self.model)
        key = known[pick % len(known)]
        return key, self.model[key]

    def cancel(self, pick: int) -> None:
        key, item = self.picked_submission(pick)
        allowed = SUBMISSION.allows(item.status, SubmissionStatus.CANCELED)
        self.attempt(
            lambda tx: self.store.submissions.cancel(tx, key, actor="ada", reason="typo"),
            None if allowed else InvalidTransition,
        )
        if allowed:
            self.end_open_runs(key)

    def change_manually(self, pick: int, wanted: tuple[str, str | None], late: int) -> None:
        key, item = self.picked_submission(pick)
        status, verdict = wanted
        error: type[Exception] | None = None
        if status == "done":
            error = InvalidStatus
        elif late:
            error = VersionConflict
        elif not SUBMISSION.allows(item.status, SubmissionStatus(status)):
            error = InvalidTransition
        elif wanted in (("accepted", "WA"), ("judging", "AC")):
            error = InvalidInput
        self.attempt(
            lambda tx: self.store.submissions.change_status(
                tx, key, version=item.version - late, status=status, actor="ops", reason="by hand", verdict=verdict
            ),
            error,
        )
        if error is None:
            item.go(SubmissionStatus(status), verdict, item.judged_by)
            if item.status in SUBMISSION.terminal:
                self.end_open_runs(key)

    def write_by_an_old_version(self, pick: int, verdict: Verdict) -> None:
        key, item = self.picked_submission(pick)
        change = SubmissionUpdate(key, item.version - 1, verdict.status, "ops", "late", judgement=Judgement(verdict))
        self.attempt(lambda tx: submission_commands.update(tx, [change]), VersionConflict)

    def replay(self) -> None:
        letters = self.run(self.store.rows("SELECT id, job_id FROM dead_letters WHERE state = 'open' ORDER BY id"))
        assert {row["job_id"] for row in letters} == {key for key, run in self.runs.items() if run.has_letter}
        if letters:
            letter, old = letters[0]["id"], self.runs[letters[0]["job_id"]]
            made = self.attempt(
                lambda tx: dead_letters.replay(tx, self.store.jobs, [letter], actor="ops", reason="fixed")
            )
            old.has_letter = False
            self.runs[made[letter]] = Run(old.submission_id, old.batch_id)

    def rejudge(self, policy: VerdictPolicy) -> None:
        if len(self.batches) >= 2 * FEW:
            return
        wanted = {key: item.version for key, item in self.model.items() if item.verdict is not None}
        batch = NewRejudgeBatch(new_id(), self.ids[0], RejudgeSelection(), policy, RevisionChoice.PINNED, "again")
        self.attempt(lambda tx: self.rejudging.create(tx, batch), None if wanted else InvalidInput)
        if wanted:
            made = self.run(
                self.store.rows("SELECT id, submission_id FROM jobs WHERE rejudge_batch_id = :b", b=batch.id)
            )
            assert {row["submission_id"] for row in made} == wanted.keys()
            self.runs |= {row["id"]: Run(row["submission_id"], batch.id) for row in made}
            self.batches[batch.id] = Batch(policy, {key: (wanted[key], None, None, "") for key in wanted})

    def apply(self, pick: int, skip_changed: bool) -> None:
        if not self.batches:
            return
        ready = [key for key, batch in self.batches.items() if batch.state == "ready"]
        known = ready if ready and pick % 4 else list(self.batches)
        batch_id = known[pick % len(known)]
        batch = self.batches[batch_id]
        late = {key for key, item in batch.items.items() if self.model[key].version != item[0]}
        error = InvalidTransition if batch.state != "ready" else Conflict if late and not skip_changed else None
        self.attempt(lambda tx: self.rejudging.apply(tx, batch_id, actor="ops", skip_changed=skip_changed), error)
        if error is None:
            batch.state = "applied"
            for key in batch.items.keys() - late:
                self.apply_one(batch, key)

    def apply_one(self, batch: Batch, key: str) -> None:
        item, (_, outcome, verdict, job_id) = self.model[key], batch.items[key]
        replaces = {
            VerdictPolicy.LATEST: True,
            VerdictPolicy.BEST: verdict == "AC" != item.verdict,
            VerdictPolicy.FIRST_ACCEPTED_STAYS: item.verdict != "AC",
        }
        if outcome == "judged" and verdict and replaces[batch.policy]:
            item.go(Verdict(verdict).status, verdict, job_id)

    def drop_batch(self, pick: int, is_cancel: bool) -> None:
        if not self.batches:
            return
        batch_id, batch = list(self.batches.items())[pick % len(self.batches)]
        act = self.rejudging.cancel if is_cancel else self.rejudging.discard
        allowed = batch.state == ("running" if is_cancel else "ready")
        self.attempt(lambda tx: act(tx, batch_id, actor="ops", reason="no"), None if allowed else InvalidTransition)
        if allowed:
            batch.state = "canceled" if is_cancel else "discarded"
            for job_id, run in self.runs.items():
                if is_cancel and run.batch_id == batch_id and run.status != "ended":
                    self.end(job_id, "canceled", None)

    @invariant()
    def the_database_agrees(self) -> None:
        async def look(tx: Tx) -> list[list[Row]]:
            tables = ("submissions", "submission_status_log ORDER BY id", "rejudge_batches")
            return [await tx.fetch(adhoc_statement(f"SELECT * FROM {table}")) for table in tables]

        rows, log, batches = self.run(self.store.database.read(look))
        assert {row["id"] for row in rows} == self.model.keys(), "no submission is lost, none appears"
        assert {row["id"]: row["state"] for row in batches} == {key: item.state for key, item in self.batches.items()}
        for row in rows:
            item = self.model[row["id"]]
            assert (row["status"], row["version"]) == (item.status, item.version)
            assert (row["verdict"], row["judged_by_job_id"]) == (item.verdict, item.judged_by)
            assert (row["finished_at"] is not None) == (item.status in SUBMISSION.terminal)
            entries = [entry for entry in log if entry["submission_id"] == row["id"]]
            path = [(entry["from_status"], entry["to_status"], entry["version"], entry["verdict"]) for entry in entries]
            assert path == item.path, "the log is the path that was taken"
            self.replayed(row, entries)

    def replayed(self, row: Row, entries: list[Row]) -> None:
        """Follow the log from the beginning: it has no gap, no illegal edge, and ends where the row stands."""
        status, version, judged_by = SUBMISSION.initial, 1, None
        for entry in entries:
            target = SubmissionStatus(entry["to_status"])
            assert (entry["from_status"], entry["version"]) == (status, version + 1), "the log has no gap"
            is_new_verdict = {status, target} <= SUBMISSION.terminal and entry["job_id"] != judged_by
            assert SUBMISSION.allows(status, target) or is_new_verdict, "only another run replaces a verdict"
            status, version, judged_by = target, entry["version"], entry["job_id"]
        assert (row["status"], row["version"], row["judged_by_job_id"]) == (status, version, judged_by)
