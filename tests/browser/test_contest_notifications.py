"""Verdicts, answers and messages in a contest: unread marks in the header and notifications of the browser."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Page, expect

from tests.browser.board_contest import ROOT, BoardContest
from tests.browser.conftest import OpenTab
from tests.support.installation import Installation

RECORDER: Final = """
const Real = window.Notification;
window.shown = [];
window.asked = 0;
window.Notification = class {
  constructor(title, { body, tag }) { window.shown.push({ title, body, tag }); }
  static get permission() { return Real.permission; }
  static requestPermission() { window.asked += 1; return Real.requestPermission(); }
};
"""
"""Records notifications instead of showing them; the permission is that of the browser."""
REFRESH: Final = "document.dispatchEvent(new Event('adjudge:refresh'))"


async def shown(page: Page, count: int) -> list[str]:
    """The texts of the notifications, when there are this many."""
    await page.evaluate(REFRESH)
    await page.wait_for_function("count => window.shown.length >= count", arg=count)
    return list(await page.evaluate("window.shown.map((item) => `${item.title}: ${item.body}`)"))


async def test_verdicts_answers_and_messages_notify_participants_who_enabled_it(
    embedded: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(embedded, "notified")
    contest.enter_people()
    here = f"/contests/{contest.slug}"
    tab = await open_tab(embedded, "contestant")
    await tab.context.grant_permissions(["notifications"], origin=tab.origin)
    await tab.context.add_init_script(RECORDER)
    contest.submit("contestant", is_right=False)
    page = await tab.open(here)
    await expect(page.locator(".contest-tabs")).to_contain_text("1 new verdict")
    button = page.locator("[data-notify] button")
    await expect(button).to_have_text("Notify me of verdicts and messages")
    assert await page.evaluate("[window.asked, window.shown.length]") == [0, 0], "nothing happens unasked"
    await button.click()
    await expect(button).to_have_text("Stop notifying me")
    assert await page.evaluate("[window.asked, window.shown.length]") == [1, 0], "what the page shows is not new"

    contest.submit("contestant")
    contest.submit("judge")
    assert await shown(page, 1) == ["Contest notified: Submission 2, problem A: Accepted"]
    await expect(page.locator(".contest-tabs")).to_contain_text("2 new verdicts")
    with embedded.client("contestant") as client:
        asked = client.post(f"{ROOT}/{contest.slug}/clarifications", json={"body": "Is n > 0?"}).json()
    answer = {"body": "Yes.", "audience": "participant"}
    root = f"{ROOT}/{contest.slug}"
    embedded.admin.post(f"{root}/clarifications/{asked['id']}:answer", json=answer).raise_for_status()
    assert (await shown(page, 2))[1:] == ["Contest notified: Answer to your question: Yes."]
    embedded.admin.post(f"{root}/announcements", json={"body": "Lunch is at noon."}).raise_for_status()
    assert (await shown(page, 3))[2:] == ["Contest notified: Message from the jury: Lunch is at noon."]

    await tab.open(f"{here}/problems")
    await expect(button).to_have_text("Stop notifying me")
    contest.submit("contestant")
    assert await shown(page, 1) == ["Contest notified: Submission 4, problem A: Accepted"], "each one once"
    await button.click()
    await expect(button).to_have_text("Notify me of verdicts and messages")
    contest.submit("contestant")
    await page.evaluate(REFRESH)
    await expect(page.locator(".contest-tabs")).to_contain_text("4 new verdicts")
    assert await page.evaluate("window.shown.length") == 1


async def test_verdicts_are_marked_as_read_on_the_page_that_shows_them(
    embedded: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(embedded, "marked")
    contest.enter_people()
    contest.submit("contestant")
    tab = await open_tab(embedded, "contestant")
    page = await tab.open(f"/contests/{contest.slug}")
    tabs = page.locator(".contest-tabs")
    await expect(tabs).to_contain_text("1 new verdict")
    await tab.open(f"/contests/{contest.slug}/submissions")
    await expect(tabs).not_to_contain_text("new verdict")
    contest.submit("contestant")
    await expect(page.locator("tbody tr")).to_have_count(2)  # the page refreshes itself
    await expect(page.get_by_role("button", name="Mark verdicts as read")).to_have_count(0)
    await page.evaluate(REFRESH)
    await expect(tabs).not_to_contain_text("new verdict")

    plain = await open_tab(embedded, "judge", java_script_enabled=False)
    contest.submit("judge")
    page = await plain.open(f"/contests/{contest.slug}/submissions")
    await expect(page.locator(".contest-tabs")).to_contain_text("1 new verdict")
    await expect(page.locator("[data-notify]")).to_be_hidden()
    await page.get_by_role("button", name="Mark verdicts as read").click()
    await expect(page.locator(".contest-tabs")).not_to_contain_text("new verdict")


async def test_message_that_arrives_on_the_open_page_is_marked_as_read(
    embedded: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(embedded, "messages")
    contest.enter_people()
    page = await (await open_tab(embedded, "contestant")).open(f"/contests/{contest.slug}/clarifications")
    found = page.locator("#clarification-list")
    await expect(found).not_to_contain_text("Lunch")
    message = {"body": "Lunch is at noon."}
    embedded.admin.post(f"{ROOT}/{contest.slug}/announcements", json=message).raise_for_status()
    await expect(found).to_contain_text("Lunch is at noon.", timeout=20_000)
    await expect(found.locator(".badge", has_text="New")).to_have_count(0, timeout=20_000)
    await expect(page.locator(".contest-tabs .count")).to_have_count(0)
