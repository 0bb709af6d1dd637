"""A contest from its creation to its final results, in the browser."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.conftest import OpenTab
from tests.support.installation import Installation


async def test_contest_is_created_run_and_finalized(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "admin")
    tab.agrees = True
    tab.expected.append("status of 4")
    page = await tab.open("/contests")
    await page.get_by_role("link", name="New contest").click()
    await page.get_by_label("Slug").fill("browser-cup")
    await page.get_by_label("Title", exact=True).fill("Browser Cup")
    await page.get_by_label("Start", exact=True).fill("2100-01-01T12:00:00")
    await page.get_by_label("Duration", exact=True).fill("five hours")
    await page.get_by_role("button", name="Create contest").click()
    await expect(page.locator("[id='duration_us-error']")).to_contain_text("Expected hours")
    await expect(page.get_by_label("Title", exact=True)).to_have_value("Browser Cup")
    await page.get_by_label("Duration", exact=True).fill("5:00:00")
    await expect(page.get_by_label("Deadline after")).to_be_hidden()
    await page.get_by_role("button", name="Create contest").click()

    await page.get_by_label("Search problems").fill("sum")
    await page.get_by_role("button", name="Search", exact=True).click()
    await page.locator("button[name=add][value=sum]").click()
    await page.get_by_label("Add a problem by slug").fill("hostile")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("fieldset legend code")).to_have_text(["sum", "hostile"])
    await page.get_by_label("Position").first.fill("3")
    await page.get_by_label("Points").first.fill("50")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("fieldset legend code")).to_have_text(["hostile", "sum"])

    await page.get_by_role("link", name="State and clock").click()
    for action, status in (("Publish", "Not started"), ("Start now", "Running"), ("Freeze now", "scoreboard frozen")):
        await page.get_by_role("button", name=action, exact=True).click()
        await expect(page.locator(".contest-name .badge")).to_contain_text(status)
    await change_duration(page, "0:10:00", "longer")
    await expect(page.get_by_role("button", name="Finalize", exact=True)).to_have_count(0)
    await page.get_by_role("button", name="End now", exact=True).click()
    await expect(page.locator(".contest-name .badge")).to_contain_text("Ended")
    await expect(page.locator("#blockers")).to_have_count(0)
    await page.get_by_role("button", name="Finalize", exact=True).click()
    await expect(page.locator(".contest-name .badge")).to_have_text("Finalized")


async def change_duration(page: Page, time: str, direction: str) -> None:
    await page.get_by_label("Time", exact=True).fill(time)
    await page.get_by_label("Direction").select_option(direction)
    await page.get_by_role("button", name="Change the duration").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")
