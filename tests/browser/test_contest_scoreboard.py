"""The scoreboard in the browser: live rows, freeze, filters, keyboard, projector, phone and dark theme."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.board_contest import BoardContest
from tests.browser.conftest import OpenTab
from tests.browser.tcp_proxy import TcpProxy
from tests.support.installation import Installation

LOST = r"net::ERR|Failed to load resource"
TEAMS, ORGANIZATIONS = 240, 320


@pytest.fixture(scope="module")
def large(embedded: Installation) -> BoardContest:
    """Many teams; nobody has submitted."""
    contest = BoardContest(embedded, "large")
    contest.import_teams(TEAMS, TEAMS)
    contest.import_teams(ORGANIZATIONS, ORGANIZATIONS)
    return contest


def rows(page: Page) -> Locator:
    """The rows of everybody, without the own one."""
    return page.locator("tbody[data-rows] tr")


async def names(page: Page) -> list[str]:
    """The names in the order of the rows."""
    return await page.locator("tbody[data-rows] .team-name").all_text_contents()


async def ranks(page: Page) -> list[str]:
    """The ranks in the order of the rows."""
    return await page.locator("tbody[data-rows] [data-rank]").all_text_contents()


async def wait_live(page: Page) -> None:
    """Wait until the page follows the changes."""
    await expect(page.locator("[data-scoreboard]")).to_have_attribute("data-state", "live")


async def test_row_moves_with_a_verdict_and_after_a_lost_connection(
    installation: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(installation, "moves")
    contest.enter_people()
    async with TcpProxy(installation.url) as wire:
        tab = await open_tab(installation, origin=wire.origin)
        tab.expected.append(LOST)
        page = await tab.open(contest.path)
        await wait_live(page)
        assert await names(page) == ["Alpha", "Beta", "Gamma"]
        arrived = list(tab.navigations)
        await asyncio.to_thread(contest.submit, "setter")
        await expect(rows(page).first).to_contain_text("Beta")
        await expect(rows(page).first.locator("td.first")).to_contain_text("★")
        assert await ranks(page) == ["1", "2", "2"]
        await wire.block()
        await expect(page.locator("[data-scoreboard]")).to_have_attribute("data-state", "reconnecting")
        await asyncio.to_thread(contest.submit, "judge", is_right=False)
        await asyncio.to_thread(contest.submit, "judge", "B")
        assert await ranks(page) == ["1", "2", "2"]
        wire.unblock()
        await expect(rows(page).nth(1)).to_contain_text("Gamma")
        await expect(rows(page).nth(1).locator("td.tried")).to_contain_text("✗")
        await expect(rows(page).nth(1).locator("td.first")).to_contain_text("★")
        assert (await names(page), (await ranks(page))[2]) == (["Beta", "Gamma", "Alpha"], "3")
        assert tab.navigations == arrived, "without loading the page again"
        await page.goto("about:blank")


async def test_freeze_thaw_and_final_results_are_shown_without_reload(
    embedded: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(embedded, "frozen")
    contest.enter_people()
    await asyncio.to_thread(contest.submit, "setter")
    own_tab, tab = await open_tab(embedded, "contestant"), await open_tab(embedded)
    own, page = await own_tab.open(contest.path), await tab.open(contest.path)
    for each in (own, page):
        await wait_live(each)
    frozen, warning = page.locator("[data-frozen]"), page.locator("[data-not-final]")
    await expect(frozen).to_be_hidden()
    await expect(own.locator("tbody[data-own] [data-rank]")).to_have_text("2")
    arrived = list(tab.navigations)
    contest.act("freeze")
    await expect(frozen).to_have_text(
        "The scoreboard was frozen with 299 minutes remaining - submissions in the last 299 minutes of the contest are "
        "still shown as pending."
    )
    await expect(warning).to_be_hidden()
    await asyncio.to_thread(contest.submit, "contestant")
    await expect(page.locator("tr", has_text="Alpha").locator("td.pending")).to_have_count(1)
    await expect(own.locator("tbody[data-own] td.solved")).to_have_count(1)
    await expect(own.locator("tbody[data-own] [data-rank]")).to_have_text("")
    await expect(own.locator("tbody[data-rows] td.pending")).to_have_count(1)
    contest.end()
    await expect(warning).to_be_visible()
    await expect(frozen).to_be_visible()
    contest.act("thaw")
    await expect(frozen).to_be_hidden()
    await expect(page.locator("td.pending")).to_have_count(0)
    await expect(own.locator("tbody[data-own] [data-rank]")).not_to_have_text("")
    contest.act("finalize")
    await expect(warning).to_be_hidden()
    assert tab.navigations == arrived, "without loading the page again"


async def test_cell_leads_to_the_submissions_that_one_may_see(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "cells")
    contest.enter_people()
    submission = await asyncio.to_thread(contest.submit, "contestant")
    for user, links in (("contestant", 1), ("setter", 0)):
        page = await (await open_tab(embedded, user)).open(contest.path)
        await page.locator("tbody[data-rows] td.first a").click()
        await expect(page.get_by_role("heading", name="Submissions of Alpha to A")).to_be_visible()
        await expect(page.locator("tbody")).to_contain_text("Accepted")
        await expect(page.locator(f'a[href="/submissions/{submission}"]')).to_have_count(links)


async def test_filters_by_group_and_by_searched_organisation(
    embedded: Installation, open_tab: OpenTab, large: BoardContest
) -> None:
    tab = await open_tab(embedded)
    page = await tab.open(large.path)
    await wait_live(page)
    await page.locator("#board-group").select_option(label="North")
    await page.wait_for_url("**group=*")
    await expect(page.locator("[data-status]")).to_have_text(f"100 of {ORGANIZATIONS // 2} rows")
    assert (await names(page))[:2] == ["Team 001", "Team 003"]
    await tab.open(large.path)
    await wait_live(page)
    await page.keyboard.press("/")
    await expect(page.locator("#board-group")).to_be_focused()
    search = page.locator("#board-organization")
    await expect(page.locator("#board-organization option")).to_have_count(0)
    await search.press_sequentially("sity 31")
    await expect(page.locator("#board-organizations option")).to_have_count(11)
    await search.fill("University 31")
    await page.wait_for_url("**organization=University*")
    await expect(rows(page)).to_have_count(1)
    assert await names(page) == ["Team 031"]
    await expect(search).to_have_value("University 31")


async def test_arrow_keys_move_between_cells_and_enter_opens_one(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "keyboard")
    contest.enter_people()
    for user, label in (("contestant", "A"), ("setter", "A"), ("setter", "B")):
        await asyncio.to_thread(contest.submit, user, label)
    page = await (await open_tab(embedded)).open(contest.path)
    await wait_live(page)
    cell = rows(page).nth(0).locator("td.cell a")
    await cell.nth(0).focus()
    await page.keyboard.press("ArrowRight")
    await expect(cell.nth(1)).to_be_focused()
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("ArrowDown")
    await expect(rows(page).nth(1).locator("td.cell a")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"/scoreboard/[^/]+/A$"))


async def test_projector_goes_through_all_rows(embedded: Installation, open_tab: OpenTab, large: BoardContest) -> None:
    tab = await open_tab(embedded, reduced_motion="reduce", viewport={"width": 1280, "height": 720})
    page = await tab.open(f"{large.path}?projector=1")
    await wait_live(page)
    await expect(page.locator("nav, footer")).to_have_count(0)
    area = page.locator("[data-scroll]")
    assert await area.evaluate("it => it.getBoundingClientRect().bottom <= innerHeight"), "it fits on the screen"
    assert await area.evaluate("it => it.clientHeight > innerHeight * 0.6"), "and fills it"
    await page.wait_for_function("document.querySelector('[data-scroll]').scrollTop > 0")  # it turns pages by itself
    while await rows(page).count() < ORGANIZATIONS:  # faster than its pauses
        shown = await page.locator("[data-status]").inner_text()  # before the next rows can arrive
        await area.evaluate("it => { it.scrollTop = it.scrollHeight; }")
        await expect(page.locator("[data-status]")).not_to_have_text(shown)
    header = page.locator("thead th").first
    assert await header.evaluate("it => it.getBoundingClientRect().top < 300"), "the header stays"


async def test_phone_and_dark_theme(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "phone")
    name = "Universities and universities of applied sciences of the north-western region (2)"
    contest.set("/groups", {"groups": [{"code": "long", "name": name}]})
    contest.import_teams(60, 20)
    contest.enter_people()
    await asyncio.to_thread(contest.submit, "contestant")
    await asyncio.to_thread(contest.submit, "setter")
    tab = await open_tab(embedded, "setter", viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = await tab.open(contest.path)
    await wait_live(page)
    await page.evaluate("for (const cell of document.querySelectorAll('td.cell')) cell.style.minWidth = '20rem'")
    root = "document.documentElement"
    assert await page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), "only the table scrolls"
    area, own = page.locator("[data-scroll]"), page.locator("tbody[data-own] th")
    await area.scroll_into_view_if_needed()
    for top in (0, 400):
        await area.evaluate("(it, top) => { it.scrollTop = top; }", top)
        box, frame = await own.bounding_box(), await area.bounding_box()
        assert box is not None
        assert frame is not None
        assert frame["y"] < box["y"] <= frame["y"] + frame["height"], "the own row stays in sight"
    assert await own.locator(".team-name").inner_text() == "Beta"
    background = await page.evaluate("getComputedStyle(document.querySelector('.board thead th')).backgroundColor")
    text = await page.evaluate("getComputedStyle(document.querySelector('.board thead th')).color")
    assert _brightness(background) < 100 < _brightness(text)


def _brightness(color: str) -> float:
    return sum(map(float, re.findall(r"\d+", color)[:3])) / 3


async def test_hidden_scoreboard_shows_the_own_row_only(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "secret", scoreboard_visibility="hidden")
    contest.enter_people()
    await asyncio.to_thread(contest.submit, "contestant")
    page = await (await open_tab(embedded, "contestant")).open(contest.path)
    await expect(page.locator("[data-own] tr")).to_contain_text("Alpha")
    await expect(page.locator("[data-own] td.solved")).to_have_count(1)
    await expect(rows(page)).to_have_count(0)
    await expect(page.get_by_text("The scoreboard is hidden")).to_be_visible()
    visitor = await open_tab(embedded)
    visitor.expected.append("404")
    other = await visitor.open(contest.path)
    await expect(other.locator("[data-scoreboard]")).to_have_count(0)
    jury = await (await open_tab(embedded, "admin")).open(contest.path)
    await expect(rows(jury)).to_have_count(0)
    await jury.get_by_role("link", name="Jury view").click()
    await expect(rows(jury)).to_have_count(3)
