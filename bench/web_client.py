"""What ``bench/web.py`` measures with: requests over raw sockets, and a browser that says when it painted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page

from adjudge.api.cookies import SESSION_COOKIE

_FIRST_PAINT = """() => new Promise((resolve) => {
  const painted = () => performance.getEntriesByName('first-contentful-paint')[0];
  if (painted()) { resolve(painted().startTime); return; }
  new PerformanceObserver((list, observer) => {
    if (painted()) { observer.disconnect(); resolve(painted().startTime); }
  }).observe({type: 'paint', buffered: true});
})"""
_LOADED = """() => {
  const page = performance.getEntriesByType('navigation')[0];
  const entries = [page, ...performance.getEntriesByType('resource')];
  const before = entries.filter((entry) => !entry.name.includes('/bundle/'));
  const bytes = (list) => list.reduce((sum, entry) => sum + entry.transferSize, 0);
  return {bytes: bytes(before), requests: before.length, all_bytes: bytes(entries), all_requests: entries.length};
}"""


@dataclass(frozen=True)
class PageVisit:
    """One visit with an empty cache."""

    first_paint_ms: float
    bytes: int
    """Over the wire with headers, before the editor."""
    requests: int
    all_bytes: int
    all_requests: int


async def visit(browser: Browser, url: str, session: str) -> PageVisit:
    """Open a page as somebody who was never here before."""
    context = await browser.new_context()
    try:
        await context.add_cookies([{"name": SESSION_COOKIE, "value": session, "url": url}])
        page: Page = await context.new_page()
        await page.goto(url, wait_until="networkidle")
        painted = await page.evaluate(_FIRST_PAINT)
        return PageVisit(first_paint_ms=painted, **await page.evaluate(_LOADED))
    finally:
        await context.close()


class KeepAliveConnection:
    """One keep-alive connection that asks for the same address again and again."""

    def __init__(self, url: str, session: str = "") -> None:
        address = urlsplit(url)
        self._where = (address.hostname or "", address.port or 80)
        cookie = f"Cookie: {SESSION_COOKIE}={session}\r\n" if session else ""
        self._request = (
            f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept-Encoding: gzip\r\n{cookie}\r\n".encode()
        )

    async def __aenter__(self) -> KeepAliveConnection:
        self._reader, self._writer = await asyncio.open_connection(*self._where)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def ask(self) -> float:
        """Ask once; how many milliseconds the whole answer took."""
        began = time.perf_counter()
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode(errors="replace"))
        (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await self._reader.readexactly(int(length.partition(b":")[2]))
        return (time.perf_counter() - began) * 1_000


@asynccontextmanager
async def under_load(url: str, session: str, *, per_sec: float, limit: int) -> AsyncIterator[list[float]]:
    """Ask for a page at a steady rate while the block lasts, ``limit`` times in all; what each took, in ms."""
    took: list[float] = []

    async def ask_steadily() -> None:
        async with KeepAliveConnection(url, session) as connection:
            for _ in range(limit):
                began = time.perf_counter()
                took.append(await connection.ask())
                await asyncio.sleep(max(0.0, 1 / per_sec - (time.perf_counter() - began)))

    task = asyncio.create_task(ask_steadily())
    try:
        yield took
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
