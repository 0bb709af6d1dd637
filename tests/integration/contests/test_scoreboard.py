"""The scoreboard follows submissions, verdicts and decisions of the jury in their own transactions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjudge.cli.wiring.jobs import make_jobs
from adjudge.contests import jury, lifecycle
from adjudge.contests.cell_json import decode_cell
from adjudge.contests.formats.base import Cell
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.contest import ContestFormat
from adjudge.domain.errors import Conflict, InvalidInput, InvalidTransition
from adjudge.domain.ids import new_id
from adjudge.domain.states import ContestState
from adjudge.domain.verdict import Verdict
from adjudge.settings import load
from adjudge.store.contests import balloons, participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from tests.support.contest_fixture import MINUTE_US, BoardReader, ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import NOON_US, StoreHarness, fence_of

MINUTE_MS = 60_000


async def cell(fixture: ContestFixture, view: str = JURY, participant: int = 0, problem: int = 0) -> Cell:
    board = await fixture.stored(view)
    _, cells = board.get(fixture.participants[participant], ((0, 0, 0), {}))
    return decode_cell(cells.get(fixture.problems[problem], "{}"))


async def keys(fixture: ContestFixture, view: str = JURY, participant: int = 0) -> tuple[int, ...]:
    return (await fixture.stored(view)).get(fixture.participants[participant], ((0, 0, 0), {}))[0]


async def test_submission_is_pending_then_solved(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(10 * MINUTE_MS)
    wrong = await fixture.submit()
    assert (await cell(fixture)).pending == 1
    await fixture.judge(wrong, Verdict.WA)
    await store.clock.advance(5 * MINUTE_MS)
    right = await fixture.submit()
    await fixture.judge(right, Verdict.AC)
    found = await cell(fixture)
    assert (found.attempts, found.pending, found.solved_us, found.first_accepted_number) == (2, 0, 15 * MINUTE_US, 2)
    assert await keys(fixture) == (1, -(15 + 20) * 60, -15 * 60)
    await fixture.check()


async def test_numbers_increase_and_time_never_goes_back(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    pairs = [(participant, problem) for participant in fixture.participants for problem in fixture.problems]
    first = await fixture.submit_many(pairs)
    store.clock.now_us -= 30_000_000  # the clock of the database goes back
    await store.clock.advance(0)
    second = await fixture.submit_many(pairs[:2])
    rows = await store.rows("SELECT submission_id, number, received_at FROM contest_submissions ORDER BY number")
    assert [row["submission_id"] for row in rows] == [*first, *second]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["received_at"] for row in rows} == {NOON_US + MINUTE_US}


async def test_verdicts_after_the_freeze_change_no_public_byte(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    reader = BoardReader(fixture, PUBLIC)
    await store.clock.advance(250 * MINUTE_MS)
    late = await fixture.submit()
    await reader.follow()
    before, jury_before = await fixture.stored(PUBLIC), await fixture.stored(JURY)
    await fixture.judge(late, Verdict.AC)
    assert await fixture.stored(PUBLIC) == before
    assert await fixture.stored(JURY) != jury_before
    assert await reader.follow() == []
    assert (await cell(fixture, PUBLIC)).pending == 1
    with pytest.raises(Conflict, match="still runs"):
        await fixture.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="ada", reason=""))
    await store.clock.advance(60 * MINUTE_MS)
    assert await fixture.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="ada", reason=""))
    assert await reader.follow() == ["reset"]


async def test_timeline_change_after_the_freeze_keeps_it(store: StoreHarness) -> None:
    """A removed interval gives submissions since the freeze an earlier contest time; they stay hidden."""
    fixture = await make_contest(store)
    await store.clock.advance(245 * MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    await fixture.transact(
        lambda tx: lifecycle.remove_interval(
            tx, fixture.contest_id, new_id(), from_at=NOON_US, to_at=NOON_US + 60 * MINUTE_US, actor="ada"
        )
    )
    assert (await cell(fixture)).solved_us == 185 * MINUTE_US
    assert (await cell(fixture, PUBLIC)).solved_us is None
    assert (await fixture.contest()).frozen_at == NOON_US + 240 * MINUTE_US
    await fixture.check()


async def test_jury_decisions(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(10 * MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.WA)

    async def decide(decision: JuryDecision) -> None:
        row = await store.database.read(lambda tx: contest_submissions.find(tx, submission))
        await fixture.transact(
            lambda tx: jury.decide(tx, submission, decision, version=row.version, actor="ada", reason="appeal")
        )
        await fixture.check()

    judge = fixture.users[fixture.participants[0]]
    await decide(JuryDecision(override_verdict=Verdict.AC, overridden_by=judge, override_reason="appeal"))
    assert (await cell(fixture)).is_solved
    await decide(JuryDecision(is_ignored=True))
    assert await cell(fixture) == Cell()
    await decide(JuryDecision())
    assert (await cell(fixture)).attempts == 1
    with pytest.raises(InvalidInput, match="override_score"):
        await decide(JuryDecision(override_score_micro=5))


async def test_verify_before_it_counts(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=icpc_settings(verify_required=True))
    await store.clock.advance(10 * MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.AC)
    assert (await cell(fixture)).pending == 1
    judge = fixture.users[fixture.participants[1]]
    await fixture.transact(
        lambda tx: jury.decide(tx, submission, JuryDecision(verified_by=judge), version=1, actor="ada", reason="")
    )
    assert (await cell(fixture)).is_solved
    await fixture.check()


async def test_late_submission_counts_when_made_official_or_with_extra_time(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(310 * MINUTE_MS)
    submission, other = await fixture.submit(0), await fixture.submit(1)
    await fixture.judge(submission, Verdict.AC)
    await fixture.judge(other, Verdict.AC)
    assert (await fixture.stored(JURY)) == {}
    await fixture.transact(
        lambda tx: jury.decide(tx, submission, JuryDecision(official=True), version=1, actor="ada", reason="")
    )
    assert await keys(fixture) == (1, -310 * 60, -310 * 60)
    extra = [(fixture.participants[1], None, 20 * MINUTE_US)]
    await fixture.transact(lambda tx: jury.set_clocks(tx, fixture.contest_id, extra, actor="ada", reason=""))
    assert await keys(fixture, participant=1) == (1, -310 * 60, -310 * 60)
    await fixture.check()


async def test_official_submission_before_a_moved_start_has_time_zero(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=icpc_settings(format=ContestFormat.ATCODER))
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.AC, {"score": 100, "max_score": 100})
    contest = await fixture.contest()
    moved = replace(contest.settings, starts_at=NOON_US + 10 * MINUTE_US)
    await fixture.transact(
        lambda tx: lifecycle.update(
            tx, contest.id, moved, version=contest.version, slug=contest.slug, actor="ada", reason=""
        )
    )
    assert await fixture.stored(JURY) == {}
    await fixture.transact(
        lambda tx: jury.decide(tx, submission, JuryDecision(official=True), version=1, actor="ada", reason="")
    )
    assert await keys(fixture) == (100_000_000, 0, 0)
    await fixture.check()


async def test_disqualification_is_reversible(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    before = await fixture.stored(JURY)

    async def change(**fields: object) -> None:
        row = await store.database.read(lambda tx: participants.find(tx, fixture.participants[0]))
        changed = replace(row, **fields)  # type: ignore[arg-type]  # fields of a participant
        await fixture.transact(lambda tx: jury.update_participant(tx, changed, actor="ada", reason="copied"))
        await fixture.check()

    await change(disqualified_at=1)
    assert await fixture.stored(JURY) == {}
    await change(disqualified_at=None)
    assert await fixture.stored(JURY) == before
    await change(penalty_adjust_sec=-30)
    assert await keys(fixture) == (1, -30, -60)


async def test_applied_rejudge_changes_the_scoreboard(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.AC)
    rejudging, batch_id = RejudgeCommands(store.jobs, listener=CONTEST_LISTENER), new_id()
    batch = NewRejudgeBatch(
        batch_id,
        fixture.users[fixture.participants[0]],
        RejudgeSelection(ids=(submission,)),
        VerdictPolicy.LATEST,
        RevisionChoice.PINNED,
        "wrong data",
    )
    await fixture.transact(lambda tx: rejudging.create(tx, batch))
    (job,) = await store.rows("SELECT id FROM jobs WHERE rejudge_batch_id = :id", id=batch_id)
    claimed = await store.claim(job["id"])
    await fixture.finish(fence_of(claimed.done[0]), Verdict.WA)
    assert (await cell(fixture)).is_solved
    await fixture.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ada"))
    assert not (await cell(fixture)).is_solved
    await fixture.check()


async def test_changed_points_and_problems_reset_the_scoreboard(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    reader = BoardReader(fixture, JURY)
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(problem=0), Verdict.AC)
    await fixture.judge(await fixture.submit(problem=1), Verdict.AC)
    await reader.follow()
    rows = await store.database.read(lambda tx: queries.problems(tx, fixture.contest_id))
    swapped = [
        replace(rows[0].problem, label="B", ordinal=1),
        replace(rows[2].problem, label="A", ordinal=0),
    ]
    await fixture.transact(
        lambda tx: lifecycle.set_problems(tx, fixture.contest_id, swapped, actor="ada", reason="problem B is broken")
    )
    assert await keys(fixture) == (1, -60, -60)
    assert await reader.follow() == ["reset"]
    assert reader.board() == await fixture.stored(JURY)
    await fixture.check()


async def test_subtask_scores_are_stored_as_integers(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    groups = [
        {"path": "", "score": 33.34, "max_score": 100},
        {"path": "sample", "score": 0, "max_score": 0},
        {"path": "secret", "score": 33.34, "max_score": 100},
        {"path": "secret/1", "score": 33.33, "max_score": 50},
        {"path": "secret/2", "score": 0.01, "max_score": 50},
    ]
    await fixture.judge(submission, Verdict.PA, {"score": 33.34, "max_score": 100, "groups": groups})
    row = await store.database.read(lambda tx: contest_submissions.find(tx, submission))
    assert (row.score_micro, row.max_score_micro) == (33_340_000, 100_000_000)
    assert row.subtasks == {"secret/1": 33_330_000, "secret/2": 10_000}


async def test_balloons_are_added_once(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=icpc_settings(balloons_enabled=True))
    await store.clock.advance(MINUTE_MS)
    for _ in range(2):
        await fixture.judge(await fixture.submit(), Verdict.AC)
    rows = await store.database.read(lambda tx: balloons.page(tx, fixture.contest_id, limit=10))
    assert [(row.participant_id, row.problem_id, row.number) for row in rows] == [
        (fixture.participants[0], fixture.problems[0], 1)
    ]


async def test_finalize_names_what_is_open(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()

    async def finalize() -> None:
        await fixture.transact(lambda tx: lifecycle.finalize(tx, fixture.contest_id, actor="ada", reason="done"))

    with pytest.raises(Conflict, match=r"not ended.*without a verdict that counts: 1\."):
        await finalize()
    await fixture.judge(submission, Verdict.AC)
    await store.clock.advance(400 * MINUTE_MS)
    await finalize()
    assert (await fixture.contest()).state is ContestState.FINALIZED


async def test_nothing_changes_after_the_end_of_updates(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.WA)
    await store.clock.advance(400 * MINUTE_MS)
    for act in (lifecycle.finalize, lifecycle.thaw, lifecycle.close_updates):
        await fixture.transact(lambda tx, act=act: act(tx, fixture.contest_id, actor="ada", reason="done"))  # type: ignore[misc]  # a default binds the loop variable
    ignored = JuryDecision(is_ignored=True)
    with pytest.raises(Conflict, match="finalized"):
        await fixture.transact(lambda tx: jury.decide(tx, submission, ignored, version=1, actor="ada", reason=""))
    with pytest.raises(InvalidTransition, match="final"):
        await fixture.transact(lambda tx: contest_submissions.decide(tx, submission, 1, ignored))
    with pytest.raises(InvalidTransition, match="final"):
        await fixture.transact(lambda tx: lifecycle.reopen(tx, fixture.contest_id, actor="ada", reason="no"))
    with pytest.raises(InvalidTransition, match="final"):
        await fixture.submit()


@pytest.mark.parametrize("to_at", [NOON_US + 3 * MINUTE_US, None])
async def test_overlapping_intervals_are_refused(store: StoreHarness, to_at: int | None) -> None:
    fixture = await make_contest(store)
    await store.clock.advance(10 * MINUTE_MS)

    async def remove(from_min: int, end: int | None) -> None:
        from_at = NOON_US + from_min * MINUTE_US
        await fixture.transact(
            lambda tx: lifecycle.remove_interval(
                tx, fixture.contest_id, new_id(), from_at=from_at, to_at=end, actor="ada"
            )
        )

    await remove(1, NOON_US + 5 * MINUTE_US)
    with pytest.raises(InvalidInput, match="overlaps"):
        await remove(2, to_at)


async def test_jobs_of_every_role_update_the_scoreboard(store: StoreHarness) -> None:
    """Workers, schedulers, servers and commands finish jobs through the same wiring."""
    fixture = await make_contest(store)
    store.jobs = make_jobs(load(environ={}))
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    assert (await cell(fixture)).is_solved
