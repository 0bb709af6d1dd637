"""The preview of a rejudge batch is what the scoreboard becomes when it is applied."""

from __future__ import annotations

import pytest

from adjudge.contests import rejudge_preview
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.contests.load_board import load_board
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from tests.support.contest_fixture import ContestFixture, make_contest
from tests.support.store_harness import StoreHarness, fence_of


async def rejudge(fixture: ContestFixture, verdicts: dict[str, Verdict], policy: VerdictPolicy) -> str:
    """Judge submissions again in a batch that is not applied yet."""
    store, batch_id, person = fixture.store, new_id(), fixture.users[fixture.participants[0]]
    selection = RejudgeSelection(ids=tuple(verdicts))
    batch = NewRejudgeBatch(batch_id, person, selection, policy, RevisionChoice.PINNED, "wrong data")
    await fixture.transact(lambda tx: RejudgeCommands(store.jobs).create(tx, batch))
    rows = await store.rows("SELECT id, submission_id FROM jobs WHERE rejudge_batch_id = :id", id=batch_id)
    for row in rows:
        claimed = await store.claim(row["id"])
        document = {"score": 1, "max_score": 1, "groups": []}
        await fixture.finish(fence_of(claimed.done[0]), verdicts[row["submission_id"]], document)
    return batch_id


@pytest.mark.parametrize("policy", [VerdictPolicy.LATEST, VerdictPolicy.FIRST_ACCEPTED_STAYS])
async def test_preview_shows_what_applying_changes(store: StoreHarness, policy: VerdictPolicy) -> None:
    fixture = await make_contest(store, people=3)
    await store.clock.advance(60_000)
    first, second = await fixture.submit(0), await fixture.submit(1)
    await fixture.judge(first, Verdict.AC)
    await fixture.judge(second, Verdict.WA)
    batch_id = await rejudge(fixture, {first: Verdict.WA, second: Verdict.AC}, policy)
    stored = await fixture.stored(JURY)
    (found,) = await store.database.read(lambda tx: rejudge_preview.preview(tx, batch_id))
    assert await fixture.stored(JURY) == stored, "a preview writes nothing"
    one, two, _ = fixture.participants
    ranks = {item.participant_id: (item.old_rank, item.new_rank) for item in found.row_differences()}
    if policy is VerdictPolicy.LATEST:
        assert ranks == {one: (1, 2), two: (2, 1)}
        assert found.first_solve_differences() == {fixture.problems[0]: (one, two)}
    else:
        assert ranks == {two: (2, 1), fixture.participants[2]: (2, 3)}
        assert found.first_solve_differences() == {}
    rejudging = RejudgeCommands(store.jobs, listener=CONTEST_LISTENER)
    await fixture.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ada"))
    contest = await fixture.contest()
    loaded = await store.database.read(lambda tx: load_board(tx, contest, JURY))
    assert loaded.board == found.after
    assert await store.database.read(lambda tx: rejudge_preview.preview(tx, batch_id)) == []


async def test_batch_without_contest_submissions_has_no_preview(store: StoreHarness) -> None:
    assert await store.database.read(lambda tx: rejudge_preview.preview(tx, new_id())) == []
