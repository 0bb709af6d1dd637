"""The jury of a contest in the browser: its list of submissions, decisions, penalties and paused judging."""

from __future__ import annotations

import asyncio

from playwright.async_api import Locator, Page, expect

from tests.browser.board_contest import BoardContest
from tests.browser.conftest import OpenTab
from tests.browser.contest_steps import board_row, submit
from tests.browser.seed_data import SUM
from tests.support.installation import PASSWORD, Installation


def make_contest(installation: Installation, slug: str, **settings: object) -> BoardContest:
    """A running contest with the participants Alpha and Beta and a judge."""
    contest = BoardContest(installation, slug, **settings)
    contest.enter("contestant", "Alpha", code="alpha")
    contest.enter("setter", "Beta", code="beta")
    contest.grant("judge", "judge")
    return contest


def form(page: Page, action: str) -> Locator:
    """The form of an action on a submission."""
    return page.locator(f"form[action$='/{action}']")


async def decide(page: Page, action: str, reason: str = "") -> None:
    """Take an action on the shown submission."""
    if reason:
        await form(page, action).get_by_label("Reason").fill(reason)
    await form(page, action).get_by_role("button").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")


async def expect_solved(board: Page, **solved: int) -> None:
    """The scoreboard follows by itself."""
    for name, count in solved.items():
        await expect(board_row(board, name).locator("td.total")).to_have_text(str(count))


async def test_list_is_filtered_and_leads_to_a_submission(embedded: Installation, open_tab: OpenTab) -> None:
    contest = make_contest(embedded, "jury-list")
    await asyncio.to_thread(contest.submit, "contestant", is_right=False)
    await asyncio.to_thread(contest.submit, "setter", "B")
    await asyncio.to_thread(contest.submit, "contestant")
    page = await (await open_tab(embedded, "judge")).open(f"/contests/{contest.slug}/jury")
    await page.get_by_label("Pages of the jury").get_by_role("link", name="All submissions").click()
    numbers = page.locator("#jury-submissions tbody td.number")
    await expect(numbers).to_have_text(["3", "2", "1"])
    for field, value, found in (("problem", "A", ["3", "1"]), ("verdict", "WA", ["1"]), ("verdict", "", ["3", "1"])):
        await page.locator(f"#{field}").select_option(value)
        await page.get_by_role("button", name="Search").click()
        await expect(numbers).to_have_text(found)
    await page.locator("#problem").select_option("")
    await page.locator("#participant").fill("beta")
    await page.get_by_role("button", name="Search").click()
    await expect(numbers).to_have_text(["2"])
    await page.locator("#participant").fill("")
    await page.get_by_label("Without a verdict").check()
    await page.get_by_role("button", name="Search").click()
    await expect(numbers).to_have_count(0)
    await page.goto(page.url.partition("?")[0])
    await numbers.nth(0).get_by_role("link").click()
    await expect(page.locator("#judgement .verdict")).to_contain_text("Accepted")
    await expect(page.locator(".jury-run tbody tr")).not_to_have_count(0)
    await expect(page.locator("#diff ins", has_text="sum(map")).to_be_visible()
    await expect(page.locator("#diff del", has_text="print(0)")).to_be_visible()


async def test_override_asks_for_password_and_reason(embedded: Installation, open_tab: OpenTab) -> None:
    contest = make_contest(embedded, "jury-override")
    await asyncio.to_thread(contest.submit, "contestant", is_right=False)
    board = await (await open_tab(embedded)).open(contest.path)
    await expect_solved(board, Alpha=0)
    tab = await open_tab(embedded, "judge")
    tab.expected += ["status of 400", "status of 401"]
    page = await tab.open(f"/contests/{contest.slug}/jury/submissions/1")
    override = form(page, "override")
    await override.get_by_label("Verdict").select_option("AC")
    await override.get_by_label("Reason").fill("wrong answer file")
    arrived = len(tab.navigations)
    await override.get_by_role("button").click()
    await expect(page.locator("#override-password:invalid")).to_have_count(1)
    assert len(tab.navigations) == arrived, "the form is not sent without a password"
    for password, reason, refused in (
        ("incorrect horse", "wrong answer file", "wrong password"),
        (PASSWORD, "  ", "reason: required"),
    ):
        await override.get_by_label("Password").fill(password)
        await override.get_by_label("Reason").fill(reason)
        await override.get_by_role("button").click()
        await expect(override.get_by_role("alert")).to_contain_text(refused)
        await expect(page.locator("#judgement .verdict")).to_have_text("Wrong answer")
        await expect(override.get_by_label("Password")).to_have_value("")
    await expect_solved(board, Alpha=0)
    await override.get_by_label("Password").fill(PASSWORD)
    await decide(page, "override", "wrong answer file")
    await expect(page.locator("#judgement .verdict")).to_contain_text("Overridden")
    log = page.locator("#judgement .timeline li")
    await expect(log).to_have_count(1)
    await expect(log).to_contain_text("decided about a submission: wrong answer file")
    await expect(log).to_contain_text("verdict AC")
    await expect_solved(board, Alpha=1)


async def test_submission_is_verified_ignored_and_judged_again(embedded: Installation, open_tab: OpenTab) -> None:
    contest = make_contest(embedded, "jury-decisions", verify_required=True)
    await asyncio.to_thread(contest.submit, "contestant")
    board = await (await open_tab(embedded)).open(contest.path)
    page = await (await open_tab(embedded, "judge")).open(f"/contests/{contest.slug}/jury/submissions/1")
    verdict = page.locator("#judgement .verdict")
    await expect(page.get_by_text("It counts after the jury has verified its verdict.")).to_be_visible()
    await expect_solved(board, Alpha=0)
    await decide(page, "verify")
    await expect(verdict).to_contain_text("Verified")
    await expect_solved(board, Alpha=1)
    await decide(page, "ignore", "sent by mistake")
    await expect(verdict).to_contain_text("Ignored")
    await expect_solved(board, Alpha=0)
    await decide(page, "ignore", "no mistake")
    await expect(verdict).not_to_contain_text("Ignored")
    await expect_solved(board, Alpha=1)
    await decide(page, "rejudge", "new machine")
    await page.get_by_role("button", name="Apply the new verdict").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")
    runs = page.locator(".jury-run")
    await expect(runs).to_have_count(2)
    await expect(runs.filter(has=page.locator("summary .badge", has_text="Counts"))).to_contain_text("new machine")
    await expect(verdict).to_contain_text("Accepted")


async def test_added_penalty_changes_the_scoreboard(embedded: Installation, open_tab: OpenTab) -> None:
    contest = make_contest(embedded, "jury-penalty")
    for user in ("contestant", "setter"):
        await asyncio.to_thread(contest.submit, user)
    board = await (await open_tab(embedded)).open(contest.path)
    await expect_solved(board, Alpha=1, Beta=1)
    await expect(board_row(board, "Alpha").locator("td.penalty")).to_have_text("0")
    tab = await open_tab(embedded, "judge")
    tab.expected.append("status of 401")
    page = await tab.open(f"/contests/{contest.slug}/jury/penalties")
    for password, notice in (("incorrect horse", "wrong password"), (PASSWORD, "Saved.")):
        await page.get_by_label("Code of the participant").fill("alpha")
        await page.get_by_label("Minutes").fill("20")
        await page.get_by_label("Reason").fill("used a phone")
        await page.get_by_label("Password").fill(password)
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice").filter(has_text=notice)).to_be_visible()
    await expect(page.locator("tbody tr")).to_contain_text("+20")
    await expect(board_row(board, "Alpha").locator("td.penalty")).to_have_text("20")
    await expect(board_row(board, "Alpha").locator("[data-rank]")).to_have_text("2")
    await page.get_by_label("Pages of the jury").get_by_role("link", name="Jury dashboard").click()
    await expect(page.locator("#jury-dashboard .timeline")).to_contain_text("used a phone")


async def test_submission_waits_while_judging_is_paused(embedded: Installation, open_tab: OpenTab) -> None:
    contest = make_contest(embedded, "jury-pause")
    jury = await (await open_tab(embedded, "judge")).open(f"/contests/{contest.slug}/jury")
    await jury.get_by_role("button", name="Pause the judging of A").click()
    await expect(jury.get_by_role("button", name="Resume the judging of A")).to_be_visible()
    tab = await open_tab(embedded, "contestant")
    page = await tab.open(f"/contests/{contest.slug}/problems/A")
    await expect(page.get_by_role("status").filter(has_text="Judging of this problem is paused.")).to_be_visible()
    await submit(tab, contest.slug, "A", SUM, "Judging paused")
    await asyncio.to_thread(contest.submit, "contestant", "B")  # judged after it was received
    await expect(page.locator("tbody tr").nth(1)).to_contain_text("Judging paused")
    await jury.get_by_role("button", name="Resume the judging of A").click()
    await expect(page.locator("tbody tr").nth(1)).to_contain_text("Accepted")
    await tab.open(f"/contests/{contest.slug}/problems/A")
    await expect(page.get_by_text("Judging of this problem is paused.")).to_have_count(0)
