"""A homework: a late submission loses points for each day, and an extension gives them back."""

from __future__ import annotations

from datetime import timedelta

from playwright.async_api import Page, expect

from tests.browser.conftest import OpenTab
from tests.browser.contest_steps import board_row, create_contest, register, shorten, started_ago, submit
from tests.browser.seed_data import SUM
from tests.support.installation import Installation

SLUG = "sheet-1"


async def test_late_submission_loses_points_until_the_deadline_is_extended(
    embedded: Installation, open_tab: OpenTab
) -> None:
    embedded.user("teacher", "setter", display_name="The Teacher")
    embedded.user("late-student", display_name="Late Student")
    embedded.user("idle-student", display_name="Idle Student")
    teacher, student = await open_tab(embedded, "teacher"), await open_tab(embedded, "late-student")
    fields: dict[str, str | bool] = {
        "duration_us": "9 d 0:00:00",
        "format": "homework",
        "homework.deadline_sec": "7 d 0:00:00",
        "homework.late_penalty_percent_per_day": "20",
        "scoreboard_visibility": "hidden",
    }
    page = await create_contest(teacher, SLUG, "Sheet 1", ["sum"], start=started_ago(days=8.5), fields=fields)
    idle = await open_tab(embedded, "idle-student")
    await register(idle, SLUG)
    own = await register(student, SLUG)
    await expect(own.locator("main")).to_contain_text("Each day begun after the deadline costs 20 % of the points")
    await expect(own.get_by_role("term").filter(has_text="Deadline")).to_be_visible()

    await submit(student, SLUG, "A", SUM)
    await student.open(f"/contests/{SLUG}/problems")
    await expect(own.locator("tbody .badge")).to_have_text("60")  # two days begun after the deadline
    await student.open(f"/contests/{SLUG}/scoreboard")
    await expect(own.get_by_text("only your own row")).to_be_visible()
    await expect(own.locator("tbody tr")).to_have_count(1)

    await teacher.open(f"/contests/{SLUG}/scoreboard?view=jury")
    row = board_row(page, "Late Student")
    await expect(row.locator(".total")).to_have_text("60")
    await expect(page.locator("[data-state=live]")).to_be_visible()
    staff = await teacher.context.new_page()
    await extend(staff, embedded, hours=24)
    await expect(row.locator(".total")).to_have_text("80")  # without loading the page again
    await extend(staff, embedded, hours=48)
    await expect(row.locator(".total")).to_have_text("100")
    await student.open(f"/contests/{SLUG}")
    await expect(own.locator("main")).to_contain_text("2 d 0:00:00 extra time")
    await student.open(f"/contests/{SLUG}/problems")
    await expect(own.locator("tbody .badge")).to_have_text("100")

    await shorten(page, SLUG, timedelta(hours=13))
    await idle.open(f"/contests/{SLUG}/problems/A")
    await expect(idle.page.locator("#submit button")).to_have_count(0)
    await expect(page.get_by_role("button", name="Finalize", exact=True)).to_have_count(0)  # it goes on for one
    await submit(student, SLUG, "A", SUM)  # the extension also moves the end


async def extend(page: Page, installation: Installation, hours: int) -> None:
    """Give the participant extra time."""
    await page.goto(f"{installation.url}/contests/{SLUG}/participants")
    await page.get_by_role("link", name="late-student").click()
    await page.get_by_label("Extra time").fill(str(hours * 60))
    await page.get_by_label("Reason").fill("was ill")
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/participants/late-student?done=saved")
