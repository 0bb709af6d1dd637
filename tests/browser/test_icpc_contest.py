"""An ICPC contest from its creation to the unfreezing ceremony: an organiser, a judge, two teams and a visitor."""

from __future__ import annotations

import json
import re

from playwright.async_api import Locator, Page, expect

from tests.browser.checked_tab import CheckedTab
from tests.browser.conftest import OpenTab
from tests.browser.contest_steps import act, board_row, create_contest, end_now, register, started_ago, submit
from tests.browser.seed_data import SUM
from tests.support.installation import Installation

SLUG = "finals"
HERE = f"/contests/{SLUG}"


async def test_icpc_contest_from_registration_to_unfreezing(embedded: Installation, open_tab: OpenTab) -> None:
    embedded.user("chief", "setter", display_name="The Chief")
    embedded.user("finals-judge", "judge", display_name="The Judge")
    for name in ("ada", "ben", "cleo"):
        embedded.user(name, display_name=name.title())
    names = ("chief", "finals-judge", "ada", "ben", "cleo")
    chief, judge, ada, ben, cleo = [await open_tab(embedded, name) for name in names]
    visitor = await open_tab(embedded)
    organiser = await prepare(chief)

    await register(ada, SLUG, "Null Pointers")
    page = await register(ben, SLUG, "Off By One")
    await join(cleo, await page.locator("#join-code").inner_text())
    board = await visitor.open(f"{HERE}/scoreboard")
    await start(organiser)

    await visitor.open(f"{HERE}/scoreboard")
    await expect(board.locator("[data-state=live]")).to_be_visible()
    loads = list(visitor.navigations)
    await submit(ada, SLUG, "A", "print(0)", "Wrong answer")
    await submit(ada, SLUG, "A", SUM)
    await submit(ben, SLUG, "A", SUM)
    await expect(cells(board, "Null Pointers").first).to_have_text(re.compile(r"★A, solved first: 223\d$"))
    await expect(cells(board, "Off By One").first).to_have_text(re.compile(r"✓A, solved: 123\d$"))
    await expect(board.locator("tbody[data-rows] .team-name")).to_have_text(["Off By One", "Null Pointers"])
    assert visitor.navigations == loads, "the scoreboard changed without loading the page again"

    await act(organiser, SLUG, "Freeze now")
    await submit(cleo, SLUG, "B", SUM)  # for the team
    await submit(ada, SLUG, "B", "print(0)", "Wrong answer")
    await visitor.open(f"{HERE}/scoreboard")
    await expect(board.get_by_text("The scoreboard was frozen")).to_be_visible()
    for team in ("Null Pointers", "Off By One"):
        await expect(cells(board, team).nth(1)).to_have_text("?B, pending: 0 + 1")
    truth = await judge.open(f"{HERE}/scoreboard?view=jury")
    await expect(cells(truth, "Off By One").nth(1)).to_contain_text("B, solved first: 1")
    await expect(cells(truth, "Null Pointers").nth(1)).to_contain_text("B, not solved: 1")

    await ask(ada)
    await remove_planned_freeze(organiser)
    await end_now(organiser, SLUG)
    await refused_to_finalize(chief)
    await answer_to_all(judge)
    await ben.open(HERE)
    await expect(ben.page.locator(".contest-tabs")).to_contain_text("1 unread")
    await ben.open(f"{HERE}/clarifications")
    await expect(ben.page.locator("#clarification-list")).to_contain_text("Read the statement again.")

    await unfreeze(chief)
    await add_award(judge)
    await act(organiser, SLUG, "Finalize")
    await act(organiser, SLUG, "Thaw")
    await visitor.open(f"{HERE}/scoreboard")
    await expect(cells(board, "Off By One").nth(1)).to_contain_text("B, solved first: 1")
    await expect(board.locator(".notice:visible")).to_have_count(0)
    await exports(visitor)


async def prepare(tab: CheckedTab) -> Page:
    """Create the contest with colours and a freeze, and make somebody a judge."""
    fields: dict[str, str | bool] = {
        "duration_us": "5:00:00",
        "freeze_ct_us": "4:00:00",
        "allows_individuals": False,
        "awards.gold": "1",
        "awards.silver": "1",
        "awards.bronze": "0",
        "clarification_categories": "Statement\nTechnical",
    }
    page = await create_contest(tab, SLUG, "Finals", ["sum", "hostile"], start="2100-01-01T12:00:00", fields=fields)
    await tab.open(f"{HERE}/settings/problems")
    for index, (color, rgb, alias) in enumerate([("red", "#dc2626", ""), ("blue", "#2563eb", "Sum again")]):
        await page.locator(f"#color-{index}").fill(color)
        await page.locator(f"#rgb-{index}").fill(rgb)
        await page.locator(f"#alias-{index}").fill(alias)
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")
    await page.get_by_role("link", name="Roles").click()
    await page.get_by_label("User", exact=True).fill("finals-judge")
    await page.get_by_label("Role", exact=True).select_option("judge")
    await page.get_by_role("button", name="Grant role").click()
    await expect(page.locator("tbody")).to_contain_text("finals-judge")
    return page


async def join(tab: CheckedTab, code: str) -> None:
    page = await tab.open(f"{HERE}/register")
    await page.get_by_label("Join code").fill(code)
    await page.get_by_role("button", name="Join a team").click()
    await expect(page.locator("main")).to_contain_text("You take part as Off By One.")


async def start(page: Page) -> None:
    """Let the contest have started 3 hours and 50 minutes ago."""
    await page.goto(page.url.partition("/contests")[0] + f"{HERE}/settings/lifecycle")
    await page.locator("#starts_at").fill(started_ago(hours=3, minutes=50))
    await page.get_by_role("button", name="Set the start").click()
    await expect(page.locator(".contest-name .badge")).to_have_text("Running")


def cells(page: Page, team: str) -> Locator:
    return board_row(page, team).locator("td.cell")


async def ask(tab: CheckedTab) -> None:
    page = await tab.open(f"{HERE}/clarifications")
    await page.get_by_label("About").select_option("B")
    await page.get_by_label("Category").select_option("Statement")
    await page.get_by_label("Text").fill("Are the numbers positive?")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("#clarification-list")).to_contain_text("Are the numbers positive?")


async def remove_planned_freeze(page: Page) -> None:
    """A contest cannot end before its planned freeze; it is frozen already."""
    await page.goto(page.url.partition("/contests")[0] + f"{HERE}/settings")
    await page.locator("#freeze_ct_us").fill("")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")


async def refused_to_finalize(tab: CheckedTab) -> None:
    tab.expected.append("status of 409")
    page = await tab.open(f"{HERE}/settings/lifecycle")
    await expect(page.locator("#blockers li")).to_have_count(1)
    await expect(page.locator("#blockers")).to_contain_text("clarification")
    await page.get_by_role("button", name="Finalize", exact=True).click()
    await expect(page.locator("form .notice.bad")).to_contain_text("cannot be finalized")


async def answer_to_all(tab: CheckedTab) -> None:
    page = await tab.open(f"{HERE}/jury")
    await page.get_by_role("link", name="Are the numbers positive?").click()
    await page.get_by_role("button", name="Claim").click()
    await expect(page.locator("main")).to_contain_text("Claimed by")
    await page.get_by_label("Recipients").select_option("all")
    await page.get_by_label("Text").fill("Read the statement again.")
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator("main")).to_contain_text("Read the statement again.")


async def unfreeze(tab: CheckedTab) -> None:
    """The ceremony, forwards by key and one step back."""
    page = await tab.open(f"{HERE}/resolver")
    rows, progress = page.locator(".resolver-row"), page.locator("[data-progress]")
    await expect(rows.first).to_contain_text("Off By One")
    await expect(rows.first).to_contain_text("B ?1")
    done, _, total = (await progress.inner_text()).partition(" / ")
    assert (done, int(total) > 3) == ("0", True), total
    seen = []
    for _ in range(int(total)):
        await page.keyboard.press("Space")
        if await page.locator("[data-award]").is_visible():
            seen.append(await page.locator("[data-award]").inner_text())
    await expect(progress).to_have_text(f"{total} / {total}")
    assert [text.splitlines()[0] for text in seen] == ["Null Pointers", "Off By One"]
    assert "Gold" in seen[1], seen
    await expect(rows.first).to_contain_text("B ✓1")
    await expect(rows.last).to_contain_text("B ✗1")
    await page.keyboard.press("ArrowLeft")
    await expect(progress).to_have_text(f"{int(total) - 1} / {total}")


async def add_award(tab: CheckedTab) -> None:
    """An award that no rule computes."""
    page = await tab.open(f"{HERE}/scoreboard?view=jury")
    await page.get_by_role("link", name="Awards").click()
    await expect(page.locator("[data-award-id=gold-medal]")).to_contain_text("Off By One")
    await page.locator("#new-award").fill("best-question")
    await page.locator("#new-citation").fill("Asked the best question")
    await page.locator("#new-added").fill("Null Pointers")
    await page.get_by_role("button", name="Create").click()
    await expect(page.locator("[data-award-id=best-question]")).to_contain_text("Null Pointers")


async def exports(tab: CheckedTab) -> None:
    """The exports that the page of the scoreboard offers."""
    await tab.page.get_by_text("Export", exact=True).click()
    texts = {}
    for name in ("scoreboard.json", "awards.json", "results.tsv", "scoreboard.csv", "scoreboard.html"):
        href = await tab.page.get_by_role("link", name=name).get_attribute("href")
        answer = await tab.context.request.get(f"{tab.origin}{href}")
        assert answer.status == 200, name
        texts[name] = await answer.text()
    assert "Off By One" in texts["scoreboard.csv"]
    assert "Off By One" in texts["scoreboard.html"]
    results = [line.split("\t")[1:4] for line in texts["results.tsv"].splitlines()[1:]]
    assert results == [["1", "Gold Medal", "2"], ["2", "Silver Medal", "1"]]
    awards = {item["id"]: item for item in json.loads(texts["awards.json"])}
    first = json.loads(texts["scoreboard.json"])["rows"][0]
    assert [first["team_id"]] == awards["winner"]["team_ids"] == awards["gold-medal"]["team_ids"]
    assert awards["best-question"]["team_ids"] == awards["silver-medal"]["team_ids"]
    firsts = [item["team_ids"] for name, item in awards.items() if name.startswith("first-to-solve-")]
    assert sorted(firsts) == sorted([[first["team_id"]], awards["silver-medal"]["team_ids"]])
    assert first["score"]["num_solved"] == 2
