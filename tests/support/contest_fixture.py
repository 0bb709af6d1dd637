"""A contest on a test store: problems, participants, submissions, verdicts, and the scoreboard recomputed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from adjudge.contests import lifecycle
from adjudge.contests.cell_json import EMPTY_CELL
from adjudge.domain.ids import new_id
from adjudge.domain.problem import PackageFormat, Problem
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.packages.problem_json import problem_to_json
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.contests import participants, queries, scoreboard_log
from adjudge.store.contests.models import ContestProblem, ContestRow, ContestSettings, NewParticipant
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.events import EventOffset
from adjudge.store.judging.models import Judgement, NewSubmission, SubmissionIds
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from tests.support.store_harness import NOON_US, StoreHarness, fence_of
from tests.support.stored_scoreboards import Board, recomputed_board, stored_board, without_empty_rows

T = TypeVar("T")
MINUTE_US = 60_000_000


def icpc_settings(**changes: Any) -> ContestSettings:
    """Five hours from noon, frozen in the last one."""
    settings = ContestSettings(
        title="Finals", duration_us=300 * MINUTE_US, starts_at=NOON_US, freeze_ct_us=240 * MINUTE_US
    )
    return replace(settings, **changes)


@dataclass
class ContestFixture:
    """A published contest."""

    store: StoreHarness
    contest_id: str
    problems: list[str]
    revisions: dict[str, str]
    participants: list[str]
    users: dict[str, str]
    """Participant → user."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Submission → its judge job."""

    async def transact(self, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """Run one transaction."""
        return await self.store.transact(operation)

    async def contest(self) -> ContestRow:
        """The contest as stored."""
        return await self.store.database.read(lambda tx: queries.find_contest(tx, self.contest_id))

    def new_submission(self, participant_id: str, problem_id: str) -> NewSubmission:
        """A submission that is not yet stored."""
        return NewSubmission(
            new_id(),
            self.users[participant_id],
            problem_id,
            self.revisions[problem_id],
            "cpp",
            source_digest="0" * 64,
            source_bytes=1,
            contest_id=self.contest_id,
            participant_id=participant_id,
        )

    async def submit_many(self, items: Sequence[tuple[str, str]]) -> list[str]:
        """Submit pairs (participant, problem) in one transaction; return the submissions."""
        new = [self.new_submission(*item) for item in items]
        made: list[SubmissionIds] = await self.transact(lambda tx: self.store.submissions.submit(tx, new))
        self.jobs |= {item.submission_id: item.job_id for item in made}
        return [item.submission_id for item in made]

    async def submit(self, participant: int = 0, problem: int = 0) -> str:
        """Submit once."""
        (made,) = await self.submit_many([(self.participants[participant], self.problems[problem])])
        return made

    async def judge(self, submission_id: str, verdict: Verdict, document: dict[str, Any] | None = None) -> None:
        """Claim the job of a submission and finish it with a verdict."""
        outcome = await self.store.claim(self.jobs[submission_id])
        await self.finish(fence_of(outcome.done[0]), verdict, document)

    async def finish(self, fence: Any, verdict: Verdict, document: dict[str, Any] | None = None) -> None:
        """Finish a claimed job with a verdict."""
        score = None if document is None else float(document["score"])
        result = JobResult(
            fence,
            JobStatus.FAILED if verdict is Verdict.SE else JobStatus.SUCCEEDED,
            result=document,
            typed_result=Judgement(verdict, score=score),
        )
        await self.transact(lambda tx: self.store.jobs.finish_and_claim_next(tx, [result]))

    async def stored(self, view: str) -> Board:
        """A view of the scoreboard as stored; rows without anything are left out."""
        return await self.store.database.read(lambda tx: stored_board(tx, self.contest_id, view))

    async def recomputed(self, view: str) -> Board:
        """A view of the scoreboard, computed from the submissions alone."""
        return await self.store.database.read(lambda tx: recomputed_board(tx, self.contest_id, view))

    async def check(self) -> None:
        """Assert that the stored scoreboard equals its recomputation, in both views."""
        for view in (JURY, PUBLIC):
            assert await self.stored(view) == await self.recomputed(view), view


class BoardReader:
    """Follows the log of a scoreboard as a server process does: a snapshot, then entries, each applied by version."""

    def __init__(self, fixture: ContestFixture, view: str) -> None:
        self.fixture, self.view = fixture, view
        self.offset: EventOffset | None = None
        self.keys: dict[str, tuple[int, tuple[int, int, int]]] = {}
        self.cells: dict[tuple[str, str], tuple[int, str]] = {}

    async def follow(self) -> list[str]:
        """Read what is new; return the kinds of the entries."""

        async def read(tx: Tx) -> list[str]:
            if self.offset is None:
                await self._read_snapshot(tx)
            end = await scoreboard_log.safe_offset(tx)
            entries = await scoreboard_log.read_between(tx, self.offset or end, end, limit=10_000)
            entries = [item for item in entries if item.view in (None, self.view)]
            if any(item.kind == "reset" for item in entries):
                await self._read_snapshot(tx)
            else:
                for item in entries:
                    self._apply(item)
                self.offset = end
            return [item.kind for item in entries]

        return await self.fixture.store.database.read(read)

    async def _read_snapshot(self, tx: Tx) -> None:
        found = await scoreboard_log.snapshot(tx, self.fixture.contest_id, self.view)
        self.offset = found.offset
        self.keys = {row.participant_id: (row.version, (row.k1, row.k2, row.k3)) for row in found.rows}
        self.cells = {(item.participant_id, item.problem_id): (item.version, item.cell) for item in found.cells}

    def _apply(self, entry: scoreboard_log.ScoreboardLogEntry) -> None:
        if entry.kind != "cells" or entry.participant_id is None or entry.payload is None:
            return
        found = json.loads(entry.payload)
        if entry.version > self.keys.get(entry.participant_id, (0, ()))[0]:
            self.keys[entry.participant_id] = entry.version, tuple(found["keys"])
        for problem_id, cell in found["cells"].items():
            text = json.dumps(cell, sort_keys=True, separators=(",", ":"))
            if entry.version > self.cells.get((entry.participant_id, problem_id), (0, ""))[0]:
                self.cells[entry.participant_id, problem_id] = entry.version, text

    def board(self) -> Board:
        """The scoreboard that this reader shows."""
        cells: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for (participant_id, problem_id), (_, text) in self.cells.items():
            if text != EMPTY_CELL:
                cells[participant_id][problem_id] = text
        everybody = {*self.keys, *cells}
        return without_empty_rows({item: (self.keys.get(item, (0, (0, 0, 0)))[1], cells[item]) for item in everybody})


async def make_contest(
    store: StoreHarness, *, problems: int = 3, people: int = 3, settings: ContestSettings | None = None
) -> ContestFixture:
    """Create and publish a contest of individuals."""
    contest_id, owner = new_id(), new_id()
    problem_ids, revision_ids = [new_id() for _ in range(problems)], [new_id() for _ in range(problems)]
    user_ids, participant_ids = [new_id() for _ in range(people)], [new_id() for _ in range(people)]

    async def operation(tx: Tx) -> None:
        for user_id in (owner, *user_ids):
            await users.insert(tx, users.NewUser(user_id, f"user-{user_id}"))
        for problem_id, revision_id in zip(problem_ids, revision_ids, strict=True):
            new = problem_models.NewProblem(problem_id, f"slug-{problem_id}", "A problem", owner)
            await problem_commands.insert(tx, new)
            package = problem_to_json(Problem("plain", PackageFormat("plain")))
            revision = problem_models.NewRevision(revision_id, problem_id, "plain", "0" * 64, owner, package)
            await problem_commands.add_revision(tx, revision)
        await lifecycle.create(tx, contest_id, contest_id, settings or icpc_settings(), created_by=owner)
        listed = [
            ContestProblem(contest_id, problem_id, revision_id, chr(65 + index), index)
            for index, (problem_id, revision_id) in enumerate(zip(problem_ids, revision_ids, strict=True))
        ]
        await lifecycle.set_problems(tx, contest_id, listed, actor=owner, reason="")
        new_people = [
            NewParticipant(participant_id, contest_id, f"p{index}", f"Participant {index}", user_id=user_id)
            for index, (participant_id, user_id) in enumerate(zip(participant_ids, user_ids, strict=True))
        ]
        await participants.insert(tx, new_people)
        await lifecycle.publish(tx, contest_id, actor=owner, reason="")

    await store.transact(operation)
    revisions = dict(zip(problem_ids, revision_ids, strict=True))
    owners = dict(zip(participant_ids, user_ids, strict=True))
    return ContestFixture(store, contest_id, problem_ids, revisions, participant_ids, owners)
