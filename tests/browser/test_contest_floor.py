"""Balloons and prints of a contest in the browser, between participants and staff."""

from __future__ import annotations

import asyncio

from playwright.async_api import expect

from tests.browser.board_contest import BoardContest
from tests.browser.conftest import OpenTab
from tests.browser.seed_data import HOSTILE
from tests.support.installation import Installation


async def test_balloon_arrives_and_is_delivered(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "balloons", balloons_enabled=True)
    contest.enter("contestant", "Alpha", location="Room 7")
    contest.grant("judge", "balloon")
    page = await (await open_tab(embedded, "judge")).open(f"/contests/{contest.slug}")
    await page.locator("#contest-header").get_by_role("link", name="Balloons", exact=True).click()
    queue = page.locator("#balloon-queue")
    await expect(queue).to_contain_text("No balloons to deliver.")
    await asyncio.to_thread(contest.submit, "contestant")
    row = queue.locator("tbody tr")
    for text in ("A", "Alpha", "Room 7", "First in contest", "waiting"):
        await expect(row).to_contain_text(text)
    await row.get_by_role("button", name="Delivered: Alpha, A").click()
    await expect(queue).to_contain_text("No balloons to deliver.")
    await page.get_by_role("link", name="All", exact=True).click()
    await expect(row).to_contain_text("delivered")
    await expect(row).to_contain_text("judge")
    await row.get_by_role("button", name="Undo: Alpha, A").click()
    await expect(row).to_contain_text("waiting")


async def test_text_is_sent_claimed_and_printed(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "prints", printing_enabled=True)
    contest.enter("contestant", "Alpha", location="Room 7")
    contest.grant("judge", "print")
    staff = await (await open_tab(embedded, "judge")).open(f"/contests/{contest.slug}/prints")
    await expect(staff.locator("#print-queue")).to_contain_text("No print jobs.")
    page = await (await open_tab(embedded, "contestant")).open(f"/contests/{contest.slug}")
    await page.locator("#contest-header").get_by_role("link", name="Prints", exact=True).click()
    await page.get_by_label("Or text").fill(f"{HOSTILE}\nint main() {{}}\n")
    await page.get_by_label("File name").fill("main.c")
    await page.get_by_role("button", name="Print", exact=True).click()
    await expect(page.locator(".notice.good")).to_be_visible()
    await page.get_by_role("link", name="All", exact=True).click()
    own = page.locator("#print-queue tbody tr")
    await expect(own).to_contain_text("pending")

    row = staff.locator("#print-queue tbody tr")
    for text in ("main.c", "Alpha", "Room 7", "pending"):
        await expect(row).to_contain_text(text)
    await row.get_by_role("button", name="Claim: 1").click()
    sheet = staff.locator(".print-sheet")
    await expect(sheet.locator(".print-title")).to_contain_text("#1 Alpha, Room 7")
    await expect(sheet.locator("pre")).to_have_text(f"{HOSTILE}\nint main() {{}}\n")
    await expect(own).to_contain_text("printing")
    await staff.get_by_role("button", name="Printed").click()
    await expect(staff.locator("#print-queue")).to_contain_text("No print jobs.")
    await expect(own).to_contain_text("printed")
