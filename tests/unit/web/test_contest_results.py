"""Pages of awards, statistics and team photos."""

from __future__ import annotations

import httpx

from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestRole
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import commands
from tests.support.asgi_app import AsgiApp
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest

MINUTE_MS = 60_000


async def make_ended(pages: AsgiApp) -> tuple[ContestFixture, str]:
    """A contest after its end, before the thaw; and a token of its judge."""
    contest = await make_contest(pages.store, settings=icpc_settings())
    await pages.store.clock.advance(10 * MINUTE_MS)
    await contest.judge(await contest.submit(0, 0), Verdict.WA)
    await contest.judge(await contest.submit(0, 0), Verdict.AC)
    await pages.store.clock.advance(240 * MINUTE_MS)
    await contest.judge(await contest.submit(1, 0), Verdict.AC)
    await pages.store.clock.advance(60 * MINUTE_MS)
    user_id, token = await pages.user("contestant")
    grants = [(user_id, ContestRole.JUDGE)]
    await pages.store.transact(lambda tx: commands.grant_roles(tx, contest.contest_id, grants, actor=user_id))
    await pages.services.scoreboards.feed.catch_up()
    return contest, token


async def thaw(pages: AsgiApp, contest: ContestFixture) -> None:
    await contest.transact(lambda tx: lifecycle.thaw(tx, contest.contest_id, actor="x", reason=""))
    await pages.services.scoreboards.feed.catch_up()


async def test_statistics_are_for_the_jury_until_the_thaw(pages: AsgiApp) -> None:
    contest, token = await make_ended(pages)
    path = f"/contests/{contest.contest_id}"
    async with pages.client(token) as judge, pages.client() as visitor:
        for each in (f"{path}/statistics", f"/api/v1{path}/statistics"):
            assert (await visitor.get(each)).status_code == 404
            assert (await judge.get(each)).status_code == 200
        assert f"{path}/statistics" not in (await visitor.get(f"{path}/scoreboard")).text
        await thaw(pages, contest)
        page = (await visitor.get(f"{path}/statistics")).text
        assert "minute 10, Participant 0" in page
        assert page.count('<rect class="submitted"') == 4, "two stretches of time, for all problems and for A"
        assert f"{path}/statistics" in (await visitor.get(f"{path}/scoreboard")).text
        counts = (await visitor.get(f"/api/v1{path}/statistics")).json()["problems"][0]
    assert (counts["submissions"], counts["participants"], counts["solved"]) == (3, 2, 2)
    assert (counts["first_solved_sec"], counts["first_solved_by"]) == (600, "Participant 0")
    assert counts["languages"] == [{"language": "cpp", "submissions": 3, "accepted": 2, "participants": 2}]
    times = [(item["from_sec"], item["submissions"], item["accepted"]) for item in counts["timeline"]]
    assert [item for item in times if item[1]] == [(600, 2, 1), (15_000, 1, 1)]


async def test_awards_page_edits_and_resets(pages: AsgiApp) -> None:
    contest, token = await make_ended(pages)
    await thaw(pages, contest)
    path = f"/contests/{contest.contest_id}/awards"

    async def post(client: httpx.AsyncClient, to: str, **fields: str | list[str]) -> httpx.Response:
        return await client.post(f"{path}{to}", data=fields)

    async with pages.client(token) as judge, pages.client() as visitor:
        assert (await visitor.get(path)).status_code in (303, 401, 403)
        page = (await judge.get(path)).text
        assert "Gold medal winner" in page
        assert "edited" not in page.split("<main")[1].split("data-award-id")[1].split("</h2>")[0]
        first = contest.participants[0]
        saved = await post(judge, "", award="gold-medal", citation="Gold", participant=[first], added="participant 2")
        assert saved.status_code == 303, saved.text
        gold = await _award(pages, contest, "gold-medal")
        assert gold == {"citation": "Gold", "participant_ids": [first, contest.participants[2]], "is_managed": False}
        wrong = await post(judge, "", award="gold-medal", citation="Gold", added="nobody")
        assert (wrong.status_code, "no participant on the public scoreboard" in wrong.text) == (400, True)
        assert (await _award(pages, contest, "gold-medal")) == gold
        assert (await post(judge, "/reset", award="gold-medal")).status_code == 303
        assert (await _award(pages, contest, "gold-medal"))["is_managed"]


async def _award(pages: AsgiApp, contest: ContestFixture, award: str) -> dict[str, object]:
    async with pages.client() as visitor:
        items = (await visitor.get(f"/api/v1/contests/{contest.contest_id}/awards")).json()["items"]
    found = next(item for item in items if item["id"] == award)
    return {name: value for name, value in found.items() if name != "id"}
