"""Pages of the scoreboard: rows in the page, the frozen sentence, cells, projector and ceremony."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.domain.contest import ContestRole, ContestVisibility, ScoreboardVisibility
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import commands
from tests.support.asgi_app import AsgiApp
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest

MINUTE_MS = 60_000


async def frozen_contest(pages: AsgiApp, **settings: Any) -> ContestFixture:
    contest = await make_contest(pages.store, settings=icpc_settings(**settings))
    await pages.store.clock.advance(10 * MINUTE_MS)
    await contest.judge(await contest.submit(0, 0), Verdict.AC)
    await contest.judge(await contest.submit(1, 1), Verdict.WA)
    await pages.store.clock.advance(240 * MINUTE_MS)
    await contest.judge(await contest.submit(2, 2), Verdict.AC)
    await pages.services.scoreboards.feed.catch_up()
    return contest


async def judge_of(pages: AsgiApp, contest: ContestFixture) -> str:
    """A token of a new judge."""
    user_id, token = await pages.user("contestant")
    grants = [(user_id, ContestRole.JUDGE)]
    await pages.store.transact(lambda tx: commands.grant_roles(tx, contest.contest_id, grants, actor=user_id))
    return token


async def test_page_has_rows_and_the_frozen_sentence(pages: AsgiApp) -> None:
    contest = await frozen_contest(pages)
    path = f"/contests/{contest.contest_id}/scoreboard"
    async with pages.client() as visitor:
        page = (await visitor.get(path)).text
        assert "The scoreboard was frozen with 60 minutes remaining - submissions in the last 60 minutes of" in page
        assert page.count("<tr data-participant") == 3
        assert 'class="cell first"' in page
        assert 'class="cell pending"' in page
        assert 'class="cell tried"' in page
        assert "?view=jury" not in page
        projector = (await visitor.get(path, params={"projector": "1"})).text
        assert "data-projector" in projector
        assert "<nav" not in projector
        chinese = await visitor.get(path, headers={"Accept-Language": "zh"})
        assert "封榜" in chinese.text
        assert (await visitor.get(f"/contests/{contest.contest_id}/resolver")).status_code == 404


async def test_cell_leads_to_what_the_viewer_may_see(pages: AsgiApp) -> None:
    contest = await frozen_contest(pages)
    path = f"/contests/{contest.contest_id}/scoreboard"
    async with pages.client() as visitor:
        solved = (await visitor.get(f"{path}/{contest.participants[0]}/A")).text
        assert "Accepted" in solved
        assert "/submissions/" not in solved.split('class="contest-tabs"')[1].split("</nav>", 1)[1]
        hidden = (await visitor.get(f"{path}/{contest.participants[2]}/C")).text
        assert "pending" in hidden
        assert "Accepted" not in hidden
        assert (await visitor.get(f"{path}/nobody/A")).status_code == 404


async def test_jury_sees_its_view_and_the_ceremony(pages: AsgiApp) -> None:
    contest = await frozen_contest(pages)
    async with pages.client(await judge_of(pages, contest)) as judge:
        page = (await judge.get(f"/contests/{contest.contest_id}/scoreboard", params={"view": "jury"})).text
        assert 'class="cell pending"' not in page
        assert "frozen with 60" not in page
        ceremony = await judge.get(f"/contests/{contest.contest_id}/resolver")
        assert (ceremony.status_code, "data-resolver" in ceremony.text) == (200, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"visibility": ContestVisibility.PRIVATE},
        {"scoreboard_visibility": ScoreboardVisibility.PARTICIPANTS},
    ],
)
async def test_projector_of_the_jury_shows_the_frozen_rows(pages: AsgiApp, settings: dict[str, Any]) -> None:
    contest = await frozen_contest(pages, **settings)
    async with pages.client(await judge_of(pages, contest)) as judge:
        path = f"/contests/{contest.contest_id}/scoreboard"
        page = (await judge.get(path, params={"projector": "1"})).text
        assert "frozen with 60 minutes remaining" in page
        assert 'class="cell pending"' in page
        board = await judge.get(f"/api/v1{path}")
        assert (board.status_code, board.json()["view"], board.json()["frozen_min"]) == (200, "public", 60)


async def test_hidden_scoreboard_has_rows_in_the_jury_view_only(pages: AsgiApp) -> None:
    contest = await frozen_contest(pages, scoreboard_visibility=ScoreboardVisibility.HIDDEN)
    path = f"/contests/{contest.contest_id}/scoreboard"
    async with pages.client(await judge_of(pages, contest)) as judge:
        page = (await judge.get(path)).text
        assert "<tr data-participant" not in page
        assert "?view=jury" in page
        assert (await judge.get(path, params={"view": "jury"})).text.count("<tr data-participant") == 3
    async with pages.client() as visitor:
        assert (await visitor.get(path)).status_code == 404
