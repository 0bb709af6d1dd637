"""Participants of a contest in the browser: an organiser adds a team, prints its account, and the team logs in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.async_api import expect

from tests.browser.checked_tab import write
from tests.browser.conftest import OpenTab
from tests.browser.seed_data import SUM
from tests.browser.test_contest_pages import ROOT, act
from tests.support.installation import Installation


def publish(embedded: Installation, slug: str) -> None:
    """A running contest with registration by invitation."""
    act(embedded, "", {"slug": slug, "title": slug, "duration_sec": 3_600, "registration": "invitation"})
    act(embedded, f"/{slug}/problems", {"problems": [{"problem": "sum"}]}, "PUT")
    act(embedded, f"/{slug}:start")
    act(embedded, f"/{slug}:publish")


async def test_organiser_adds_and_changes_a_team_with_group_and_organisation(
    embedded: Installation, open_tab: OpenTab
) -> None:
    publish(embedded, "people")
    tab = await open_tab(embedded, "admin")
    tab.agrees = True
    tab.expected.append("status of 4")
    page = await tab.open("/contests/people/participants")
    people = page.get_by_role("navigation", name="Participants")
    await people.get_by_role("link", name="Groups").click()
    await page.get_by_label("ID 1", exact=True).fill("north")
    await page.get_by_label("Name 1").fill("North")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Name 1")).to_have_value("North")
    await people.get_by_role("link", name="Organisations").click()
    await page.get_by_label("ID", exact=True).fill("un")
    await page.get_by_label("Name", exact=True).fill("University of North")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("tbody")).to_contain_text("University of North")

    await people.get_by_role("link", name="Add a participant").click()
    await page.get_by_label("Name", exact=True).fill("Null Pointers")
    await page.get_by_label("ID", exact=True).fill("t1")
    await page.get_by_label("Organisation", exact=True).fill("nowhere")
    await page.get_by_label("Groups").fill("north")
    await page.get_by_role("button", name="Add a participant").click()
    await expect(page.locator("#organization-error")).to_contain_text("there is no organisation")
    await page.get_by_label("Organisation", exact=True).fill("un")
    await page.get_by_role("button", name="Add a participant").click()
    await page.wait_for_url("**/contests/people/participants/t1*")
    await page.get_by_label("disqualified").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#reason-error")).to_contain_text("required")
    await page.get_by_label("Reason").fill("by mistake")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#changes")).to_contain_text("by mistake")
    await page.get_by_label("disqualified").uncheck()
    await page.get_by_label("Reason").fill("undone")
    await page.get_by_label("Extra time (minutes)").fill("15")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#changes tbody tr")).to_have_count(3)


async def test_accounts_and_invitations_let_people_in(embedded: Installation, open_tab: OpenTab) -> None:
    publish(embedded, "entrance")
    act(embedded, "/entrance/participants", {"code": "e1", "name": "Null Pointers"})
    tab = await open_tab(embedded, "admin")
    page = await tab.open("/contests/entrance/participants")
    people = page.get_by_role("navigation", name="Participants")
    await people.get_by_role("link", name="Accounts", exact=True).click()
    await page.get_by_role("button", name="Make accounts").click()
    card = page.locator(".account-card code")
    await expect(card).to_have_count(2)
    name, password = await card.nth(0).inner_text(), await card.nth(1).inner_text()
    team = await open_tab(embedded, None)
    entered = await team.open("/login?next=/contests/entrance")
    await entered.get_by_label("Username").fill(name)
    await entered.get_by_label("Password").fill(password)
    await entered.locator("main").get_by_role("button", name="Log in").click()
    await expect(entered.locator("main")).to_contain_text("Null Pointers")

    await people.get_by_role("link", name="Invitations").click()
    await page.get_by_label("Note").fill("guests")
    await page.get_by_role("button", name="Create an invitation").click()
    link = await page.locator("#invitation-link").inner_text()
    await expect(page.locator("#invitations")).to_contain_text("guests")
    guest = await open_tab(embedded, "contestant")
    joined = await guest.open(link[link.index("/contests") :].strip())
    await joined.get_by_role("button", name="Register").click()
    await expect(joined.locator(".notice.good")).to_have_text("Saved.")
    await page.reload()
    await expect(page.locator("#invitations")).to_contain_text("1 / 1")


async def test_virtual_participation_and_practice_after_the_end(embedded: Installation, open_tab: OpenTab) -> None:
    started = datetime.now(UTC) - timedelta(hours=2)
    body = {"slug": "past", "title": "Past contest", "duration_sec": 3_600, "starts_at": started.isoformat()}
    act(embedded, "", body)
    act(embedded, "/past/problems", {"problems": [{"problem": "sum"}]}, "PUT")
    act(embedded, "/past:publish")
    act(embedded, "/past/participants", {"code": "t1", "name": "Those of then"})
    tab = await open_tab(embedded, "contestant")
    tab.agrees = True
    page = await tab.open("/contests/past")
    await page.get_by_role("button", name="Start a virtual participation").click()
    header = page.locator("#contest-header")
    await expect(header).to_contain_text(re.compile(r"Ends in 0:59:|Ends in 1:00:00"))
    await header.get_by_role("link", name="Problems").click()
    await page.locator("tbody").get_by_role("link").click()
    await page.locator("#language").select_option("python3")
    await write(page, SUM)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/contests/past/submissions*")
    await expect(page.locator("tbody")).to_contain_text("Accepted")
    await header.get_by_role("link", name="Scoreboard").click()
    await expect(page.locator("main")).to_contain_text("Those of then")
    await expect(page.locator("main")).to_contain_text("virtual")
    with embedded.client("setter") as other:
        registered = other.post(f"{ROOT}/past:practise", json={})
        assert registered.is_success, registered.text
    practising = await open_tab(embedded, "setter")
    page = await practising.open("/contests/past/problems/A")
    await page.locator("#language").select_option("python3")
    await write(page, SUM)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/contests/past/submissions*")
    await expect(page.locator("tbody")).to_contain_text("Accepted")
