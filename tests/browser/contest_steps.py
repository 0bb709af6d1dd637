"""What organisers and participants do on contest pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.async_api import Locator, Page, expect

from tests.browser.checked_tab import CheckedTab, write


def started_ago(**units: float) -> str:
    """The start of a contest that began some time ago, as the form takes it."""
    return (datetime.now(UTC) - timedelta(**units)).strftime("%Y-%m-%dT%H:%M:%S")


async def create_contest(
    tab: CheckedTab, slug: str, title: str, problems: list[str], *, start: str, fields: dict[str, str | bool]
) -> Page:
    """Create a contest in the editor and publish it; ``fields`` by the names of the form's fields."""
    tab.agrees = True
    page = await tab.open("/contests")
    await page.get_by_role("link", name="New contest").click()
    for name, value in {"slug": slug, "title": title, "starts_at": start, **fields}.items():
        await _set(page.locator(f"[id='{name}']"), value)
    await page.get_by_role("button", name="Create contest").click()
    await expect(page.locator(".contest-name .badge")).to_have_text("Draft")
    for problem in problems:
        await page.get_by_label("Add a problem by slug").fill(problem)
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("fieldset legend code").last).to_have_text(problem)
    await act(page, slug, "Publish")
    return page


async def _set(field: Locator, value: str | bool) -> None:
    """Fill in, select or check a field."""
    if isinstance(value, bool):
        await field.set_checked(value)
    elif await field.evaluate("item => item.tagName") == "SELECT":
        await field.select_option(value)
    else:
        await field.fill(value)


async def act(page: Page, slug: str, action: str) -> None:
    """Press a button of the page of state and clock."""
    await page.goto(_address(page, f"/contests/{slug}/settings/lifecycle"))
    await page.get_by_role("button", name=action, exact=True).click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")


async def shorten(page: Page, slug: str, by: timedelta) -> None:
    """Make the contest shorter."""
    await page.goto(_address(page, f"/contests/{slug}/settings/lifecycle"))
    await page.get_by_label("Time", exact=True).fill(_duration(by))
    await page.get_by_label("Direction").select_option("shorter")
    await page.get_by_role("button", name="Change the duration").click()
    await expect(page.locator(".notice.good")).to_have_text("Saved.")


async def end_now(page: Page, slug: str) -> None:
    """Make the contest so much shorter that it ends in a few seconds, and wait for the end."""
    await page.goto(_address(page, f"/contests/{slug}/settings/lifecycle"))
    left_ms = await page.locator("[data-countdown]").get_attribute("data-countdown")
    await shorten(page, slug, timedelta(milliseconds=int(left_ms or 0)) - timedelta(seconds=3))
    await expect(page.locator(".contest-name .badge")).to_contain_text("Ended")


def _duration(time: timedelta) -> str:
    """Hours, minutes and seconds."""
    minutes, seconds = divmod(int(time.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


async def register(tab: CheckedTab, slug: str, team: str = "") -> Page:
    """Take part alone, or with a new team."""
    page = await tab.open(f"/contests/{slug}")
    await page.get_by_role("link", name="Register").click()
    if team:
        await page.get_by_label("Team name").fill(team)
        await page.get_by_role("button", name="Create team").click()
        await expect(page.locator(".notice.good")).to_contain_text(team)
    else:
        await page.get_by_role("button", name="Register", exact=True).click()
        await page.wait_for_url("**/contests/*?done=saved")
    return page


async def submit(tab: CheckedTab, slug: str, label: str, source: str, result: str | None = "Accepted") -> Page:
    """Submit to a problem from its page and wait for the result on the page of own submissions."""
    page = await tab.open(f"/contests/{slug}/problems")
    await page.locator("tbody tr", has=page.locator("strong", has_text=label)).get_by_role("link").click()
    await page.locator("#language").select_option("python3")
    await write(page, source)
    await page.locator("#submit button").click()
    await page.wait_for_url(f"**/contests/{slug}/submissions*")
    if result is not None:
        await expect(page.locator("tbody tr").first).to_contain_text(result)
    return page


def board_row(page: Page, name: str) -> Locator:
    """The row of a participant on a scoreboard, not the repeated own one."""
    return page.locator("tbody[data-rows] tr", has=page.locator(".team-name", has_text=name))


def _address(page: Page, path: str) -> str:
    return page.url.split("/contests", maxsplit=1)[0] + path
