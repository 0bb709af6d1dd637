"""Awards: edited one by one, reset to what is computed, and never for those whom the public does not see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import jury, lifecycle, scoreboard
from adjudge.domain.contest import ContestRole
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests import commands, participants
from adjudge.store.contests.activity_models import AwardRow
from adjudge.store.contests.models import ContestGroupRow
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import StoreHarness

MINUTE_MS = 60_000


@dataclass
class Ended:
    """A contest that has been thawed, in which the first participant solved two problems and the second one."""

    api: AsgiApp
    contest: ContestFixture
    judge: httpx.AsyncClient
    path: str

    async def awards(self, client: httpx.AsyncClient, **query: Any) -> dict[str, tuple[list[str], bool]]:
        await self.api.services.scoreboards.feed.catch_up()
        found = await client.get(f"{self.path}/awards", params=query)
        assert found.status_code == 200, found.text
        return {item["id"]: (item["participant_ids"], item["is_managed"]) for item in found.json()["items"]}

    async def edit(self, award: str, citation: str, ids: list[str]) -> httpx.Response:
        body = {"citation": citation, "participant_ids": ids}
        return await self.judge.put(f"{self.path}/awards/{award}", json=body)


@pytest.fixture
async def ended(store: StoreHarness, tmp_path: Path) -> AsyncIterator[Ended]:
    settings = icpc_settings(awards_cfg={"gold": 1, "silver": 1, "bronze": 0})
    async with make_app(store, tmp_path) as api:
        contest = await make_contest(store, people=4, settings=settings)
        await store.clock.advance(10 * MINUTE_MS)
        for person, problem in ((0, 0), (0, 1), (1, 0)):
            await contest.judge(await contest.submit(person, problem), Verdict.AC)
        await store.clock.advance(300 * MINUTE_MS)
        await contest.transact(lambda tx: lifecycle.thaw(tx, contest.contest_id, actor="x", reason=""))
        user_id, token = await api.user("contestant")
        grants = [(user_id, ContestRole.JUDGE)]
        await store.transact(lambda tx: commands.grant_roles(tx, contest.contest_id, grants, actor=user_id))
        async with api.client(token) as judge:
            yield Ended(api, contest, judge, f"/api/v1/contests/{contest.contest_id}")


async def test_one_award_is_edited_and_reset(ended: Ended) -> None:
    first, second, third, _ = ended.contest.participants
    async with ended.api.client() as visitor:
        computed = await ended.awards(visitor)
        assert computed["gold-medal"] == ([first], True)
        assert computed["silver-medal"] == ([second], True)
        assert (await ended.edit("gold-medal", "Gold", [first, third])).status_code == 200
        assert (await ended.edit("best-newcomer", "Best newcomer", [third])).status_code == 200
        assert (await ended.edit("winner", "Nobody wins", [])).status_code == 200
        assert await ended.awards(visitor) == computed | {
            "gold-medal": ([first, third], False),
            "winner": ([], False),
            "best-newcomer": ([third], False),
        }
        for award in ("gold-medal", "best-newcomer", "winner"):
            assert (await ended.judge.delete(f"{ended.path}/awards/{award}")).status_code == 204
        assert await ended.awards(visitor) == computed
        assert (await ended.judge.delete(f"{ended.path}/awards/gold-medal")).status_code == 404
        refused = await visitor.put(f"{ended.path}/awards/x", json={"citation": "x", "participant_ids": []})
        assert refused.status_code in (401, 403)
    unknown = await ended.edit("gold-medal", "Gold", ["nobody"])
    assert (unknown.status_code, "no participant 'nobody'" in unknown.text) == (400, True)


async def test_hidden_participants_and_groups_have_no_award_anywhere(ended: Ended) -> None:
    """Neither computed nor edited, in no view: an award of the jury becomes public with the thaw."""
    contest = ended.contest
    first, second, third, _ = contest.participants
    hidden_group = ContestGroupRow("g-hidden", contest.contest_id, "secret", "Secret group", hidden=True)

    async def hide(tx: Tx) -> None:
        await participants.upsert_groups(tx, [hidden_group])
        await participants.set_groups(tx, [second], [("g-hidden", second)])
        row = await participants.find(tx, first)
        await jury.update_participant(tx, replace(row, hidden=True), actor="x", reason="")
        edited = [
            AwardRow(contest.contest_id, "both", "Both", (first, third), managed=False, ordinal=0),
            AwardRow(contest.contest_id, "alone", "Alone", (first,), managed=False, ordinal=1),
            AwardRow(contest.contest_id, "group-winner-g-hidden", "Winner", (second,), managed=False, ordinal=2),
        ]
        await award_store.upsert_awards(tx, edited)
        await scoreboard.reset(tx, contest.contest_id)

    await contest.transact(hide)
    async with ended.api.client() as visitor:
        public = await ended.awards(visitor)
        document = (await visitor.get(f"{ended.path}/awards.json")).json()
    assert public == await ended.awards(ended.judge, view="jury")
    assert public["gold-medal"] == ([second], True)
    assert public["both"] == ([third], False)
    assert not {"alone", "group-winner-g-hidden"} & set(public)
    codes = {code for item in document for code in item["team_ids"]}
    assert {"p1", "p2"} <= codes <= {"p1", "p2", "p3"}, "by codes, without the hidden p0"
    assert (await ended.edit("both", "Both", [first])).status_code == 400
    assert (await ended.edit("group-winner-g-hidden", "Winner", [second])).status_code == 400
