"""After a contest: a virtual participation with its own clock and a replay, then practice without a row."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.contest_steps import act, board_row, create_contest, end_now, register, started_ago, submit
from tests.browser.seed_data import SUM
from tests.support.installation import Installation

SLUG = "last-year"


async def test_virtual_participation_and_practice(embedded: Installation, open_tab: OpenTab) -> None:
    embedded.user("host", "setter", display_name="The Host")
    embedded.user("on-time", display_name="On Time")
    embedded.user("next-year", display_name="Next Year")
    host, first, later = [await open_tab(embedded, name) for name in ("host", "on-time", "next-year")]
    start = started_ago(minutes=50)
    fields: dict[str, str | bool] = {"duration_us": "2:00:00", "allows_virtual": True, "allows_practice": True}
    jury = await create_contest(host, SLUG, "Last year", ["sum", "hostile"], start=start, fields=fields)
    await register(first, SLUG)
    await submit(first, SLUG, "A", SUM)
    await end_now(jury, SLUG)
    await act(jury, SLUG, "Finalize")

    page = await later.open(f"/contests/{SLUG}")
    header = page.locator("#contest-header")
    await expect(header.locator(".badge")).to_have_text("Finalized")
    await page.get_by_role("link", name="Your participation").click()
    later.agrees = True
    await page.get_by_role("button", name="Start a virtual participation").click()
    await expect(header).to_contain_text(re.compile(r"Ends in 0:(49|5\d):"))
    await expect(header.locator(".badge")).to_have_text("Running")
    await expect(page.locator("main")).to_contain_text("You take part as Next Year. (virtual)")
    await submit(later, SLUG, "A", "print(0)", "Wrong answer")
    await submit(later, SLUG, "A", SUM)
    await later.open(f"/contests/{SLUG}/scoreboard")
    row = board_row(page, "Next Year")
    await expect(row).to_contain_text("virtual")
    await expect(row.locator("td.cell").first).to_contain_text("2")
    await expect(row.locator("td.cell small")).to_have_text([re.compile(r"^\d$")])  # minutes of its own clock
    await expect(row.locator("td.rank")).to_have_text("1")
    await expect(page.locator("[data-replay]")).to_contain_text("Replay")
    await expect(board_row(page, "On Time").locator("td.rank")).to_have_text("2")
    await expect(board_row(page, "On Time").locator("td.cell a")).to_have_count(0)
    seen = await jury.context.new_page()
    await seen.goto(page.url)
    await expect(board_row(seen, "On Time").locator("td.rank")).to_have_text("1")
    await expect(board_row(seen, "On Time").locator("td.cell.first small")).to_have_text(re.compile(r"^5\d$"))
    await expect(board_row(seen, "Next Year").locator("td.rank")).to_have_text("")
    await expect(seen.locator("[data-replay]")).to_be_hidden()
    await seen.close()

    practising = await first.open(f"/contests/{SLUG}/register")
    await practising.get_by_role("button", name="Practise").click()
    await submit(first, SLUG, "B", SUM)
    await first.open(f"/contests/{SLUG}/scoreboard")
    await expect(practising.locator("tbody[data-rows] tr")).to_have_count(2)
    await expect(board_row(practising, "On Time").locator(".total")).to_have_text("1")


async def test_replay_is_live_and_ends_in_the_final_scoreboard(embedded: Installation, open_tab: OpenTab) -> None:
    embedded.user("second-host", "setter")
    embedded.user("early", display_name="Early")
    embedded.user("spectator", display_name="Spectator")
    host, first, later = [await open_tab(embedded, name) for name in ("second-host", "early", "spectator")]
    fields: dict[str, str | bool] = {"duration_us": "2:00:00", "allows_virtual": True}
    jury = await create_contest(host, "sprint", "Sprint", ["sum"], start=started_ago(seconds=1), fields=fields)
    await register(first, "sprint")
    await submit(first, "sprint", "A", SUM)
    await end_now(jury, "sprint")

    page = await later.open("/contests/sprint/register")
    later.agrees = True
    await page.get_by_role("button", name="Start a virtual participation").click()
    await expect(page.locator("main")).to_contain_text("You take part as Spectator. (virtual)")
    await later.open("/contests/sprint/scoreboard")
    await expect(page.locator("[data-scoreboard]")).to_have_attribute("data-state", "live")
    early, own = board_row(page, "Early"), board_row(page, "Spectator")
    await expect(early.locator("td.cell a")).to_have_count(0)
    await expect(own.locator("td.rank")).to_have_text("1")
    await expect(early.locator("td.cell.first")).to_have_count(1, timeout=90_000)
    await expect(own.locator("td.rank")).to_have_text("2")
    await expect(page.locator("[data-replay]")).to_be_visible()
    await expect(page.locator("[data-replay]")).to_be_hidden(timeout=90_000)
    await expect(own.locator("td.rank")).to_have_text("")
    await expect(page.locator("tbody[data-own] td.rank")).to_have_text("2")
