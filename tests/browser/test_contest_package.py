"""A contest is exported in the browser, and imported from the file."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.test_contest_participants import publish
from tests.support.installation import Installation


async def test_contest_is_exported_and_imported(embedded: Installation, open_tab: OpenTab, tmp_path: Path) -> None:
    publish(embedded, "portable")
    tab = await open_tab(embedded, "admin")
    page = await tab.open("/contests/portable/settings/lifecycle")
    link = await page.get_by_role("link", name="Export the contest").get_attribute("href")
    answer = await page.request.get(f"{tab.origin}{link}")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''portable.zip"
    file = tmp_path / "portable.zip"
    file.write_bytes(await answer.body())

    await page.get_by_role("link", name="Contests", exact=True).first.click()
    await page.get_by_role("link", name="Import a contest").click()
    await page.get_by_label("Contest package").set_input_files(file)
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("main")).to_contain_text("there is nothing to import")

    await page.get_by_label("Contest package").set_input_files(file)
    await page.get_by_label("Slug").fill("carried")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("tbody tr").first).to_contain_text("carried")
    await page.get_by_role("button", name="Import", exact=True).click()
    await page.wait_for_url("**/contests/carried*")
    await expect(page.locator(".notice.good")).to_have_text("The contest was imported.")
