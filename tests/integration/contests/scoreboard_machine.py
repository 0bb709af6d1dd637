"""Random histories of a contest, driven by Hypothesis: after every step the scoreboard equals its recomputation."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adjudge.contests import jury, lifecycle
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.contest import ContestFormat
from adjudge.domain.errors import Conflict, InvalidInput, InvalidTransition, NotFound
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.contests import participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from adjudge.store.schema import METADATA
from tests.support.contest_fixture import MINUTE_US, BoardReader, ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import NOON_US, StoreHarness, adhoc_statement, fence_of

OFTEN = {
    "submit": 8,
    "judge": 10,
    "advance": 5,
    "rejudge": 3,
    "decide": 4,
    "cancel": 1,
    "change_manually": 1,
    "change_clock": 3,
    "change_participant": 2,
    "remove_interval": 2,
    "pause": 1,
    "resume": 2,
    "undo_interval": 1,
    "freeze_now": 1,
    "change_settings": 2,
    "change_points": 1,
    "thaw": 1,
}
"""What happens, and how often."""
VERDICTS = [Verdict.AC, Verdict.WA, Verdict.PA, Verdict.CE, Verdict.TLE, Verdict.SE]
REFUSED = (Conflict, InvalidInput, InvalidTransition, NotFound)
"""What a step may be refused with; the scoreboard must be right all the same."""


_PATIENCE_SEC = 30


async def _follow_until(reader: BoardReader, stored: object) -> None:
    """Read the log until the reader is up to date.

    On PostgreSQL it reads no further than the oldest open transaction of the whole server, which other tests share.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_SEC):
            await reader.follow()
            while reader.board() != stored:
                await asyncio.sleep(0.02)
                await reader.follow()


class ScoreboardMachine(RuleBasedStateMachine):
    """Submissions, verdicts, rejudges, decisions, clocks, intervals, freezes and rules, in any order."""

    def __init__(self, store: StoreHarness, runner: asyncio.Runner) -> None:
        super().__init__()
        self.store, self.run = store, runner.run
        self.rejudging = RejudgeCommands(store.jobs, listener=CONTEST_LISTENER)
        self.fixture: ContestFixture
        self.readers: list[BoardReader] = []
        self.submissions: list[str] = []
        self.unjudged: list[str] = []

    @initialize(scoring=st.sampled_from(list(ContestFormat)), is_verified=st.booleans())
    def begin(self, scoring: ContestFormat, is_verified: bool) -> None:
        """An empty database but for a contest."""

        async def empty(tx: Tx) -> None:
            for table in reversed(METADATA.sorted_tables):
                await tx.execute(adhoc_statement(f"DELETE FROM {table}"))

        self.run(self.store.transact(empty))
        self.run(self.store.clock.advance((NOON_US - self.store.clock.now_us) // 1_000))
        settings = icpc_settings(format=scoring, verify_required=is_verified)
        self.fixture = self.run(make_contest(self.store, problems=2, people=2, settings=settings))
        self.readers = [BoardReader(self.fixture, view) for view in (JURY, PUBLIC)]
        self.submissions, self.unjudged = [], []

    def attempt(self, operation: Callable[[Tx], Awaitable[Any]]) -> None:
        """One transaction, which may be refused."""
        with suppress(*REFUSED):
            self.run(self.store.transact(operation))

    @rule(seed=st.integers(0, 2**32))
    def step(self, seed: int) -> None:
        """Anything, drawn from a seed: Hypothesis' own draws are too much alike to reach rare combinations."""
        chosen = random.Random(seed)
        act = getattr(self, chosen.choices(list(OFTEN), list(OFTEN.values()))[0])
        act(**dict.fromkeys(inspect.signature(act).parameters, chosen))

    @invariant()
    def is_as_recomputed(self) -> None:
        """The stored scoreboard equals its recomputation, and a reader of the log shows the same."""
        if not self.readers:
            return
        self.run(self.fixture.check())
        for reader in self.readers:
            stored = self.run(self.fixture.stored(reader.view))
            self.run(_follow_until(reader, stored))
            assert reader.board() == stored

    def submit(self, chosen: random.Random) -> None:
        pairs = [
            (chosen.choice(self.fixture.participants), chosen.choice(self.fixture.problems))
            for _ in range(chosen.choice([1, 1, 2, 3]))
        ]
        made = self.run(self.fixture.submit_many(pairs))
        self.submissions += made
        self.unjudged += made

    def advance(self, chosen: random.Random) -> None:
        self.run(self.store.clock.advance(chosen.choice([1, 1_000, 60_000, 1_200_000, 3_600_000])))

    def document(self, chosen: random.Random) -> dict[str, Any]:
        """A result document with two subtasks."""
        scores = [chosen.choice([0, 33.33, 50]) for _ in range(2)]
        groups = [{"path": f"secret/{index}", "score": score} for index, score in enumerate(scores)]
        return {"score": sum(scores), "max_score": 100, "groups": [{"path": "secret", "score": sum(scores)}, *groups]}

    def judge(self, chosen: random.Random) -> None:
        if self.unjudged:
            submission = self.unjudged.pop(chosen.randrange(len(self.unjudged)))
            self.run(self.fixture.judge(submission, chosen.choice(VERDICTS), self.document(chosen)))

    def rejudge(self, chosen: random.Random) -> None:
        """A batch from its creation to its application."""
        ids = tuple(chosen.sample(self.submissions, min(3, len(self.submissions))))
        batch_id, person = new_id(), next(iter(self.fixture.users.values()))
        batch = NewRejudgeBatch(
            batch_id, person, RejudgeSelection(ids=ids), VerdictPolicy.LATEST, RevisionChoice.PINNED, "again"
        )
        self.attempt(lambda tx: self.rejudging.create(tx, batch))
        for row in self.run(self.store.rows("SELECT id FROM jobs WHERE rejudge_batch_id = :id", id=batch_id)):
            claimed = self.run(self.store.claim(row["id"]))
            verdict = chosen.choice(VERDICTS)
            self.run(self.fixture.finish(fence_of(claimed.done[0]), verdict, self.document(chosen)))
        self.attempt(lambda tx: self.rejudging.apply(tx, batch_id, actor=person))

    def decide(self, chosen: random.Random) -> None:
        if not self.submissions:
            return
        submission, judge = chosen.choice(self.submissions), next(iter(self.fixture.users.values()))
        row = self.run(self.store.database.read(lambda tx: contest_submissions.find(tx, submission)))
        verdict = chosen.choice([None, None, Verdict.AC, Verdict.WA])
        decision = JuryDecision(
            official=chosen.random() < 0.3,
            is_ignored=chosen.random() < 0.3,
            verified_by=judge if chosen.random() < 0.7 else None,
            override_verdict=verdict,
            override_score_micro=chosen.choice([None, 12_500_000]) if verdict else None,
            overridden_by=judge if verdict else None,
        )
        self.attempt(lambda tx: jury.decide(tx, submission, decision, version=row.version, actor="ada", reason=""))

    def cancel(self, chosen: random.Random) -> None:
        if self.unjudged:
            submission = self.unjudged.pop(chosen.randrange(len(self.unjudged)))
            self.attempt(lambda tx: self.store.submissions.cancel(tx, submission, actor="ada", reason="broken"))

    def change_manually(self, chosen: random.Random) -> None:
        if not self.unjudged:
            return
        submission = self.unjudged.pop(chosen.randrange(len(self.unjudged)))
        changes: list[tuple[str, str | None]] = [
            ("judging", None),
            chosen.choice([("accepted", "AC"), ("error", "RE")]),
        ]
        for version, (status, verdict) in enumerate(changes, 1):
            self.attempt(
                lambda tx, version=version, status=status, verdict=verdict: self.store.submissions.change_status(  # type: ignore[misc]  # defaults bind the loop variables
                    tx, submission, version=version, status=status, verdict=verdict, actor="ada", reason="manual"
                )
            )

    def change_clock(self, chosen: random.Random) -> None:
        minutes = [None, 0, 5, 90]
        row = (
            chosen.choice(self.fixture.participants),
            *((value if value is None else value * MINUTE_US) for value in chosen.sample(minutes, 2)),
        )
        self.attempt(lambda tx: jury.set_clocks(tx, self.fixture.contest_id, [row], actor="ada", reason=""))  # type: ignore[list-item]  # three values

    def change_participant(self, chosen: random.Random) -> None:
        """Disqualified or not, with or without an added penalty."""
        participant_id = chosen.choice(self.fixture.participants)
        row = self.run(self.store.database.read(lambda tx: participants.find(tx, participant_id)))
        changed = replace(
            row, disqualified_at=chosen.choice([None, None, 1]), penalty_adjust_sec=chosen.choice([0, 0, 60, -90])
        )
        self.attempt(lambda tx: jury.update_participant(tx, changed, actor="ada", reason=""))

    def remove_interval(self, chosen: random.Random) -> None:
        from_at = NOON_US + chosen.randrange(300) * MINUTE_US
        to_at = from_at + chosen.choice([1, 7, 45]) * MINUTE_US
        self.attempt(
            lambda tx: lifecycle.remove_interval(
                tx, self.fixture.contest_id, new_id(), from_at=from_at, to_at=to_at, actor="ada"
            )
        )

    def pause(self) -> None:
        now = self.store.clock.now_us
        self.attempt(
            lambda tx: lifecycle.remove_interval(
                tx, self.fixture.contest_id, new_id(), from_at=now, to_at=None, actor="ada"
            )
        )

    def resume(self) -> None:
        self.attempt(lambda tx: lifecycle.resume(tx, self.fixture.contest_id, actor="ada", reason=""))

    def undo_interval(self, chosen: random.Random) -> None:
        rows = self.run(self.store.database.read(lambda tx: queries.intervals(tx, [self.fixture.contest_id])))
        if rows:
            interval_id = chosen.choice(rows).id
            self.attempt(
                lambda tx: lifecycle.undo_interval(tx, self.fixture.contest_id, interval_id, actor="ada", reason="")
            )

    def freeze_now(self) -> None:
        self.attempt(lambda tx: lifecycle.freeze_now(tx, self.fixture.contest_id, actor="ada", reason=""))

    def thaw(self) -> None:
        self.attempt(lambda tx: lifecycle.thaw(tx, self.fixture.contest_id, actor="ada", reason=""))

    def change_settings(self, chosen: random.Random) -> None:
        """Another end, freeze or start."""
        contest = self.run(self.fixture.contest())
        duration = chosen.choice([200, 300, 400]) * MINUTE_US
        settings = replace(
            contest.settings,
            duration_us=duration,
            freeze_ct_us=chosen.choice([None, 60 * MINUTE_US, duration]),
            starts_at=NOON_US + chosen.choice([0, 0, 10, -10]) * MINUTE_US,
            verify_required=chosen.random() < 0.3,
        )
        self.attempt(
            lambda tx: lifecycle.update(
                tx, contest.id, settings, version=contest.version, slug=contest.slug, actor="ada", reason=""
            )
        )

    def change_points(self, chosen: random.Random) -> None:
        rows = self.run(self.store.database.read(lambda tx: queries.problems(tx, self.fixture.contest_id)))
        listed = [replace(row.problem, points_micro=chosen.choice([100, 7, 1]) * 1_000_000) for row in rows]
        self.attempt(lambda tx: lifecycle.set_problems(tx, self.fixture.contest_id, listed, actor="ada", reason=""))
