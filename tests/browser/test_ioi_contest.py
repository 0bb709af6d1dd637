"""An IOI contest: the best score of each subtask counts, and feedback shows what it must and nothing else."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.contest_steps import board_row, create_contest, end_now, register, started_ago, submit
from tests.support.installation import Installation
from tests.support.problem_packages import YAML, icpc_package, zip_files

POSITIVE = "a, b = map(int, input().split())\nprint(a + b if a > 0 else 0)\n"
NEGATIVE = "a, b = map(int, input().split())\nprint(a + b if a < 0 else 0)\n"


@pytest.fixture(scope="session")
def signs(embedded: Installation) -> Installation:
    """An installation with a problem of two subtasks, and people."""
    embedded.user("ioi-host", "setter", display_name="The Committee")
    embedded.user("ioi-contestant", display_name="The Contestant")
    subtasks = {"1-positive": (40, "5 6\n", "11\n"), "2-negative": (60, "-5 -6\n", "-11\n")}
    files = {
        "problem.yaml": YAML.format(title="Signs") + "type: scoring\nlimits:\n  time_limit: 60.0\n",
        "data/secret/test_group.yaml": "max_score: 100\n",
    }
    for name, (points, given, answer) in subtasks.items():
        files[f"data/secret/{name}/test_group.yaml"] = f"max_score: {points}\nscore_aggregation: pass-fail\n"
        files |= {f"data/secret/{name}/1.in": given, f"data/secret/{name}/1.ans": answer}
    package = icpc_package("Signs", **files)
    del package["data/secret/1.in"], package["data/secret/1.ans"]
    embedded.publish(zip_files(package), slug="signs", title="Signs")
    return embedded


async def test_best_score_of_each_subtask_counts_with_partial_feedback(signs: Installation, open_tab: OpenTab) -> None:
    host, contestant = await open_tab(signs, "ioi-host"), await open_tab(signs, "ioi-contestant")
    fields: dict[str, str | bool] = {
        "duration_us": "5:00:00",
        "format": "ioi",
        "feedback": "partial",
        "scoreboard_visibility": "hidden",
        "allows_teams": False,
    }
    jury = await create_contest(host, "day-1", "Day 1", ["signs"], start=started_ago(minutes=5), fields=fields)
    page = await register(contestant, "day-1")
    for source, score, total in ((POSITIVE, 40, "40"), (NEGATIVE, 60, "100"), (POSITIVE, 40, "100")):
        await submit(contestant, "day-1", "A", source, f"Partial score {score} / 100")
        await contestant.open("/contests/day-1/problems")
        await expect(page.locator("tbody .badge")).to_have_text(total)
    await contestant.open("/contests/day-1/submissions")
    await page.locator("tbody").get_by_role("link", name="2", exact=True).click()
    await expect(page.locator(".verdict")).to_contain_text("60 / 100")
    await expect(page.locator("caption")).to_have_text(["Test groups"])
    await expect(page.get_by_text("secret/2-negative/1")).to_have_count(0)

    visitor = await open_tab(signs)
    visitor.expected.append("status of 404")
    await visitor.open("/contests/day-1/scoreboard")
    await expect(visitor.page.locator("tbody[data-rows] tr")).to_have_count(0)
    await host.open("/contests/day-1/scoreboard?view=jury")
    await expect(board_row(jury, "The Contestant").locator(".total")).to_have_text("100")
    await end_now(jury, "day-1")
    await visitor.open("/contests/day-1/scoreboard")
    await expect(board_row(visitor.page, "The Contestant").locator(".total")).to_have_text("100")


async def test_without_feedback_results_are_hidden_until_the_end(signs: Installation, open_tab: OpenTab) -> None:
    host, contestant = await open_tab(signs, "ioi-host"), await open_tab(signs, "ioi-contestant")
    fields: dict[str, str | bool] = {"duration_us": "5:00:00", "format": "ioi", "feedback": "none"}
    jury = await create_contest(host, "day-2", "Day 2", ["signs"], start=started_ago(minutes=5), fields=fields)
    page = await register(contestant, "day-2")
    await submit(contestant, "day-2", "A", POSITIVE, "Received")
    await host.open("/contests/day-2/scoreboard?view=jury")
    await expect(board_row(jury, "The Contestant").locator(".total")).to_have_text("40")  # it is judged

    await page.reload()
    await expect(page.locator("tbody tr")).to_contain_text("Received")
    await page.locator("tbody tr").get_by_role("link").first.click()
    await expect(page.locator("main")).to_contain_text("print(a + b if a > 0 else 0)")
    for hidden in ("Partial score", "40", "Test groups"):
        await expect(page.locator("main")).not_to_contain_text(hidden)
    await contestant.open("/contests/day-2/problems")
    await expect(page.locator("tbody")).not_to_contain_text("40")
    await contestant.open("/submissions")
    await expect(page.locator("tbody tr").first).not_to_contain_text("Partial score")
    await contestant.open("/contests/day-2")
    await expect(page.get_by_role("link", name="Scoreboard")).to_have_count(0)
    await expect(page.locator("main")).to_contain_text("The scoreboard is hidden during the contest.")

    await end_now(jury, "day-2")
    await contestant.open("/contests/day-2/submissions")
    await expect(page.locator("tbody tr")).to_contain_text("Partial score")
    await contestant.open("/contests/day-2/scoreboard")
    await expect(board_row(page, "The Contestant").locator(".total")).to_have_text("40")
