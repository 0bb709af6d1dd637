"""Live results with interrupted connections."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.checked_tab import write
from tests.browser.conftest import OpenTab
from tests.browser.paused_solution import PausedSolution
from tests.browser.tcp_proxy import TcpProxy
from tests.support.installation import Installation

LOST = r"net::ERR|Failed to load resource"


async def _submit(page: Page, gate: PausedSolution) -> None:
    await page.locator("#language").select_option("python3")
    await write(page, gate.source)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/submissions/*")


async def test_dropped_stream_is_resumed(installation: Installation, open_tab: OpenTab) -> None:
    async with TcpProxy(installation.url) as wire, PausedSolution(installation) as gate:
        tab = await open_tab(installation, "contestant", origin=wire.origin)
        tab.expected.append(LOST)
        page = await tab.open("/problems/sum")
        await _submit(page, gate)
        live = page.locator("[data-live]")
        await expect(live).to_have_attribute("data-state", "live")
        for number, numbers in enumerate(("1 2", "1 1"), start=1):  # the first may be seen before the first event
            await gate.open(numbers)
            await expect(live.locator("tbody tr")).to_have_count(number)
        arrived, before = list(tab.navigations), len(wire.sent)
        await wire.close_connections()
        await gate.open()
        await expect(page.locator(".verdict")).to_contain_text("Accepted")
        assert b"last-event-id: " in bytes(wire.sent[before:]).lower(), "the browser said how far it had come"
        assert tab.navigations == arrived
        await page.goto("about:blank")


async def test_verdict_during_a_disconnection_is_shown_afterwards(embedded: Installation, open_tab: OpenTab) -> None:
    async with TcpProxy(embedded.url) as wire, PausedSolution(embedded) as gate:
        tab = await open_tab(embedded, "contestant", origin=wire.origin)
        tab.expected.append(LOST)
        page = await tab.open("/problems/sum")
        await _submit(page, gate)
        submission_id = page.url.rpartition("/")[2]
        await expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")
        arrived = list(tab.navigations)
        await wire.block()
        await expect(page.locator("[data-live]")).not_to_have_attribute("data-state", "live")
        await gate.open()
        embedded.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)
        await expect(page.locator(".verdict")).not_to_contain_text("Accepted")
        wire.unblock()
        await expect(page.locator(".verdict")).to_contain_text("Accepted")
        assert tab.navigations == arrived
        await page.goto("about:blank")


async def test_page_polls_if_streams_are_blocked(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    tab.expected.append(LOST)
    await tab.context.route("**/events", lambda route: route.abort())
    page = await tab.open("/problems/sum")
    async with PausedSolution(embedded) as gate:
        await _submit(page, gate)
        await expect(page.locator("[data-live]")).to_have_attribute("data-state", "polling")
        arrived = list(tab.navigations)
        await gate.open()
        await expect(page.locator(".verdict")).to_contain_text("Accepted")
        assert tab.navigations == arrived
