"""Ratings follow the final ranks of rated contests exactly, also after a contest was reopened and changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjudge.contests import jury, lifecycle
from adjudge.contests.rating import RatedContest, compute_ratings
from adjudge.domain.errors import NotFound
from adjudge.domain.verdict import Verdict
from adjudge.relay.rating_updater import RatingUpdater
from adjudge.services.ratings import RatingService
from adjudge.services.viewer import VISITOR
from adjudge.store.contests import participants, ratings
from tests.support.contest_fixture import MINUTE_US, ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import NOON_US, StoreHarness


async def finished_contest(store: StoreHarness, **settings: object) -> ContestFixture:
    """A rated contest of an hour in which the first participant wins, the second fails, the third never submits."""
    values = {"duration_us": 60 * MINUTE_US, "freeze_ct_us": None, "rated": True, "starts_at": NOON_US, **settings}
    contest = await make_contest(store, problems=1, settings=icpc_settings(**values))
    await contest.judge(await contest.submit(0), Verdict.AC)
    await contest.judge(await contest.submit(1), Verdict.WA)
    await store.clock.advance(61 * 60_000)
    return contest


async def finalize(contest: ContestFixture) -> None:
    await contest.transact(lambda tx: lifecycle.finalize(tx, contest.contest_id, actor="eva", reason=""))


def expected(contest: ContestFixture, *ranks: int) -> dict[str, int]:
    """The ratings of a single contest with these ranks, by user."""
    people = [contest.users[item] for item in contest.participants]
    history = compute_ratings([RatedContest("c", dict(zip(people, ranks, strict=False)))])
    return {user: changes[-1].after.rating_milli for user, changes in history.items()}


async def stored(store: StoreHarness) -> dict[str, int]:
    rows = await store.database.read(ratings.list_ratings)
    return {row.user_id: row.rating_milli for row in rows}


async def test_ratings_follow_finalization_reopening_and_changes(store: StoreHarness) -> None:
    updater, contest = RatingUpdater(store.database), await finished_contest(store)
    assert await updater.run_once() == 0
    await finalize(contest)
    assert await updater.run_once() == 2
    assert await updater.run_once() == 0
    assert await stored(store) == expected(contest, 1, 2)
    await contest.transact(lambda tx: lifecycle.reopen(tx, contest.contest_id, actor="eva", reason="a mistake"))
    await updater.run_once()
    assert await stored(store) == {}
    row = await store.database.read(lambda tx: participants.find(tx, contest.participants[0]))
    await contest.transact(
        lambda tx: jury.update_participant(tx, replace(row, hidden=True), actor="eva", reason="not official")
    )
    await finalize(contest)
    await updater.run_once()
    assert await stored(store) == {}, "one rated participant says nothing"
    assert await RatingUpdater(store.database).run_once() == 0


async def test_frozen_results_are_not_rated_before_the_thaw(store: StoreHarness) -> None:
    contest, updater = await finished_contest(store, freeze_ct_us=0), RatingUpdater(store.database)
    await finalize(contest)
    await updater.run_once()
    assert await stored(store) == {}
    await contest.transact(lambda tx: lifecycle.thaw(tx, contest.contest_id, actor="eva", reason=""))
    await updater.run_once()
    assert await stored(store) == expected(contest, 1, 2)


async def test_ranking_list_and_history(store: StoreHarness) -> None:
    contest, service = await finished_contest(store, visibility="private"), RatingService(store.database)
    await finalize(contest)
    await RatingUpdater(store.database).run_once()
    winner, loser = (contest.users[item] for item in contest.participants[:2])
    first = await service.list_ranking(after=None, limit=1)
    assert [(item.user_id, item.rank, item.contests) for item in first] == [(winner, 1, 1)]
    second = await service.list_ranking(after=(first[0].rating_milli, first[0].user_id), limit=5)
    assert [(item.user_id, item.rank) for item in second] == [(loser, 2)]
    history = await service.find_history(VISITOR, winner)
    assert [row.rank for row in history.rows] == [1]
    assert history.contests == {}, "the title of a private contest is hidden"
    with pytest.raises(NotFound):
        await service.find_history(VISITOR, contest.users[contest.participants[2]])
