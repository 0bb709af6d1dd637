"""The unfreezing ceremony and the awards in the browser."""

from __future__ import annotations

import asyncio
import struct
import zlib

from playwright.async_api import Page, expect

from tests.browser.board_contest import BoardContest
from tests.browser.conftest import OpenTab
from tests.support.installation import Installation


def png(width: int, height: int) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


_IS_HONOURED_ROW_SEEN = """() => {
  const [row, list, panel] = [".current", ".resolver-list", "[data-award]"]
    .map((selector) => document.querySelector(selector).getBoundingClientRect());
  const isInList = row.top >= list.top - 1 && row.bottom <= list.bottom + 1;
  return isInList && row.bottom <= panel.top && panel.bottom <= innerHeight;
}"""
"""Whether the row that gets an award is in sight, and the panel does not cover it."""


async def seen(page: Page) -> tuple[list[str], str]:
    """The rows with their cells, and the award that is announced."""
    rows = await page.locator(".resolver-row").all_inner_texts()
    panel = page.locator("[data-award]")
    return rows, await panel.inner_text() if await panel.is_visible() else ""


async def test_ceremony_goes_forwards_and_backwards_with_awards_and_photos(
    embedded: Installation, open_tab: OpenTab
) -> None:
    contest = BoardContest(embedded, "ceremony", awards_cfg={"gold": 1, "silver": 1, "bronze": 1})
    ids = contest.enter_teams()
    contest.set_photo(ids["Alpha"], png(8, 4))
    await asyncio.to_thread(contest.submit, "setter")
    contest.act("freeze")
    for label, is_right in (("A", True), ("B", True)):
        await asyncio.to_thread(contest.submit, "contestant", label, is_right=is_right)
    await asyncio.to_thread(contest.submit, "judge", is_right=False)
    contest.end()
    page = await (await open_tab(embedded, "admin")).open("/contests/ceremony/resolver")
    progress = page.locator("[data-progress]")
    await expect(progress).to_have_text(f"0 / {len(contest.get('/resolver')['steps'])}")
    states = [await seen(page)]
    assert "A ?" in states[0][0][-1]
    count = int((await progress.inner_text()).rpartition(" ")[2])
    for number in range(1, count + 1):
        await page.keyboard.press((" ", "ArrowRight", "PageDown")[number % 3])
        await expect(progress).to_have_text(f"{number} / {count}")
        states.append(await seen(page))
        if states[-1][1]:
            await page.wait_for_function(_IS_HONOURED_ROW_SEEN)
        photo = page.locator("[data-award] img")
        assert await photo.count() == int("Alpha" in states[-1][1]), "only this team has a photo"
        if await photo.count():
            await page.wait_for_function("document.querySelector('[data-award] img').naturalWidth === 8")
    names = [line.split("\n")[1] for line in states[-1][0]]
    assert names == [row["name"] for row in contest.get("/scoreboard?view=jury")["rows"]] == ["Alpha", "Beta", "Gamma"]
    assert not any("?" in line for line in states[-1][0]), "everything is revealed"
    announced = [panel for _, panel in states if panel]
    assert ["Beta" in panel or "Alpha" in panel for panel in announced] == [True, True]
    assert "Gold medal winner" in announced[-1]
    await page.keyboard.press("ArrowRight")
    await expect(progress).to_have_text(f"{count} / {count}")
    for number in reversed(range(count)):
        await page.keyboard.press(("ArrowLeft", "PageUp")[number % 2])
        await expect(progress).to_have_text(f"{number} / {count}")
        assert await seen(page) == states[number]
    await page.keyboard.press("ArrowLeft")
    await expect(progress).to_have_text(f"0 / {count}")


async def test_photo_and_awards_are_edited_on_pages(embedded: Installation, open_tab: OpenTab) -> None:
    contest = BoardContest(embedded, "prizes", awards_cfg={"gold": 1, "silver": 0, "bronze": 0})
    contest.enter_teams()
    await asyncio.to_thread(contest.submit, "contestant")
    tab = await open_tab(embedded, "admin")
    tab.agrees = True
    page = await tab.open("/contests/prizes/participants/prizes-setter")
    await page.get_by_role("link", name="Team photo").click()
    await page.set_input_files("#photo", {"name": "team.png", "mimeType": "image/png", "buffer": png(8, 4)})
    await page.get_by_role("button", name="Upload").click()
    await page.wait_for_function("document.querySelector('.team-photo').naturalWidth === 8")
    await page.set_input_files("#photo", {"name": "team.png", "mimeType": "image/png", "buffer": b"<svg/>"})
    tab.expected.append("400")
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("[role=alert]")).to_contain_text("PNG, JPEG or WebP")
    await tab.open("/contests/prizes/scoreboard")
    await page.get_by_role("link", name="Awards", exact=True).click()
    gold = page.locator('[data-award-id="gold-medal"]')
    await expect(gold).to_contain_text("Alpha")
    await gold.locator("summary").click()
    await gold.get_by_label("Add a participant").fill("Beta")
    await gold.get_by_role("button", name="Save").click()
    await expect(gold.locator("h2")).to_contain_text("edited")
    await expect(gold.locator("h2 + p")).to_have_text("Alpha, Beta")
    await gold.locator("summary").click()
    await gold.get_by_role("button", name="Reset to computed").click()
    await expect(gold.locator("h2")).to_contain_text("computed")
    await expect(gold.locator("h2 + p")).to_have_text("Alpha")
