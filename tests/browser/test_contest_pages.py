"""A contest in the browser of a participant: countdown, problems, submission, freeze and end."""

from __future__ import annotations

import re
import time
from typing import Any

from playwright.async_api import expect

from adjudge.domain.timestamps import format_timestamp
from tests.browser.checked_tab import write
from tests.browser.conftest import OpenTab
from tests.browser.seed_data import SUM
from tests.support.installation import Installation

ROOT = "/api/v1/contests"
COUNTDOWN_US = 4_000_000


def act(installation: Installation, path: str, body: dict[str, Any] | None = None, method: str = "POST") -> Any:
    """A request of the organiser."""
    answer = installation.admin.request(method, f"{ROOT}{path}", json=body or {})
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def test_contest_from_countdown_to_final_results(embedded: Installation, open_tab: OpenTab) -> None:
    starts_at = format_timestamp(time.time_ns() // 1_000 + 600_000_000)
    body = {"slug": "live", "title": "Live contest", "duration_sec": 3_600, "starts_at": starts_at}
    act(embedded, "", body)
    act(embedded, "/live/problems", {"problems": [{"problem": "sum", "rgb": "#1d4ed8", "color": "blue"}]}, "PUT")
    act(embedded, "/live:publish")
    with embedded.client("contestant") as contestant:
        contestant.post(f"{ROOT}/live:register", json={}).raise_for_status()
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/contests")
    await page.get_by_role("link", name="Live contest").click()
    header = page.locator("#contest-header")
    await expect(header).to_contain_text(re.compile("Starts in 0:0[89]:"))
    await expect(header.get_by_role("link", name="Problems")).to_have_count(0)
    act(embedded, "/live:start", {"starts_at": format_timestamp(time.time_ns() // 1_000 + COUNTDOWN_US)})
    await tab.open("/contests/live")
    arrived = list(tab.navigations)
    await expect(header.get_by_role("link", name="Problems")).to_be_visible()
    await expect(header).to_contain_text("Ends in")
    assert tab.navigations == arrived, "the header changed without loading the page again"

    await header.get_by_role("link", name="Problems").click()
    await page.locator("tbody").get_by_role("link").click()
    await expect(page.locator("h1")).to_contain_text("A: Sum of two")
    await page.locator("#language").select_option("python3")
    await write(page, SUM)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/contests/live/submissions*")
    await expect(page.locator("tbody")).to_contain_text("Accepted")
    await tab.open("/contests/live/problems")
    await expect(page.locator("tbody")).to_contain_text("✓")

    act(embedded, "/live:freeze")
    await tab.open("/contests/live")
    await expect(header).to_contain_text("frozen")
    act(embedded, "/live:extend", {"extra_sec": -3_590, "reason": "the test is short"})
    await tab.open("/contests/live")
    await expect(header.locator(".badge")).to_have_text("Ended")
    act(embedded, "/live:thaw")
    act(embedded, "/live:finalize")
    await tab.open("/contests/live")
    await expect(header.locator(".badge")).to_have_text("Finalized")
    await tab.open("/contests")
    past = page.locator("section", has=page.get_by_role("heading", name="Past"))
    await expect(past.get_by_role("link", name="Live contest")).to_be_visible()
