"""Webhooks in the browser, with a receiver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import expect

from tests.browser.conftest import OpenTab
from tests.support.installation import Installation


@dataclass
class WebhookReceiver:
    """A server on this machine that keeps what it is sent, and answers when released."""

    url: str = ""
    heard: list[dict[str, Any]] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        self.heard.append(json.loads(await reader.readexactly(length)))
        await self.may_answer.wait()
        writer.write(b"HTTP/1.1 204 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[WebhookReceiver]:
    listener = WebhookReceiver()
    async with await asyncio.start_server(listener.serve, "127.0.0.1", 0) as server:
        listener.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        yield listener


async def test_webhook_is_created_pinged_disabled_and_deleted(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    tab.agrees = True
    async with listening() as listener:
        page = await tab.open("/me/webhooks")
        await page.get_by_label("URL").fill(listener.url)
        await page.get_by_role("button", name="Create webhook").click()
        await expect(page.locator("#webhook-secret")).to_contain_text("whsec_")
        await page.get_by_role("link", name=listener.url).click()
        await expect(page.locator(".verdict")).to_have_text("enabled")
        await page.get_by_role("button", name="Send ping").click()
        await expect(page.locator("[data-live]")).to_have_attribute("data-state", "polling")
        await expect(page.locator("tbody")).to_contain_text("pending")
        arrived = list(tab.navigations)
        listener.may_answer.set()
        await expect(page.locator("tbody")).to_contain_text("delivered HTTP 204")
        await expect(page.locator("[data-live]")).to_have_attribute("data-state", "done")
        assert tab.navigations == arrived, "the delivery was followed without loading the page again"
        assert [item["event"] for item in listener.heard] == ["ping"]
    await page.get_by_role("button", name="Disable").click()
    await expect(page.locator(".verdict")).to_have_text("disabled")
    await expect(page.get_by_role("button", name="Send ping")).to_have_count(0)
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No webhooks.")).to_be_visible()
