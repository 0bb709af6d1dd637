"""A problem's page: what comes over the wire, how long the server takes, and when a browser paints it, under load.

The server is ``adjudge up`` in a process of its own with the example *multiples*, seen by somebody who is logged in and
has never been here before. The constant is an answer of ready bytes, as long as the page, from the same framework on
the same server software in another process: what a page cannot get under. Load is a steady stream of requests for
pages, bounded in number.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx
from playwright.async_api import async_playwright

from bench.harness import Bench, Goal, sized
from bench.http_baseline import PATH as CONSTANT_PATH
from bench.web_client import KeepAliveConnection, PageVisit, under_load, visit
from tests.support.installation import Installation, start_embedded
from tests.support.problem_packages import EXAMPLES, folder_archive
from tests.support.server_process import ServerNotInstalled
from tests.support.servers import Browser

VISITS = sized(full=15, quick=5, smoke=1)
REQUESTS = sized(full=600, quick=120, smoke=2)
ROUNDS = sized(full=5, quick=3, smoke=1)
WARM_UP = sized(full=20, smoke=1)
LOAD_PER_SEC = 20
PATH = "/problems/multiples"


@contextmanager
def constant(size_bytes: int) -> Iterator[str]:
    """The same framework answering ready bytes; its address."""
    argv = [sys.executable, "-m", "bench.http_baseline", str(size_bytes), "text/html"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1] + CONSTANT_PATH
        finally:
            process.terminate()


async def medians(installation: Installation, session: str, other: str) -> dict[str, float]:
    """The median wait for our page and for the constant, in turns on a quiet server."""
    seen: dict[str, list[float]] = {"page": [], "constant": []}
    async with KeepAliveConnection(installation.url + PATH, session) as page, KeepAliveConnection(other) as ready:
        for _ in range(WARM_UP):
            await page.ask()
            await ready.ask()
        for _ in range(ROUNDS):
            for name, connection in (("page", page), ("constant", ready)):
                seen[name] += [await connection.ask() for _ in range(REQUESTS // ROUNDS)]
    return {name: median(figures) for name, figures in seen.items()}


async def visits(
    installation: Installation, session: str, endpoint: str
) -> tuple[list[PageVisit], list[PageVisit], list[float]]:
    """Visits on a quiet server, visits under load, and what the load's own requests took."""
    async with async_playwright() as driver:
        browser = await driver.chromium.connect_over_cdp(endpoint)
        await visit(browser, installation.url + PATH, session)
        quiet = [await visit(browser, installation.url + PATH, session) for _ in range(VISITS)]
        async with under_load(installation.url + PATH, session, per_sec=LOAD_PER_SEC, limit=3_000) as waits:
            busy = [await visit(browser, installation.url + PATH, session) for _ in range(VISITS)]
        await browser.close()
    return quiet, busy, waits


def measure(bench: Bench, installation: Installation, browser: Browser) -> None:
    """Fill the table."""
    installation.publish(folder_archive(EXAMPLES / "multiples"), slug="multiples")
    installation.user("contestant")
    session = installation.session("contestant")
    page = httpx.get(installation.url + PATH, cookies={"adjudge_session": session}).raise_for_status()
    wire_bytes = int(page.headers["Content-Length"])
    with constant(wire_bytes) as other:
        figures = asyncio.run(medians(installation, session, other))
    bench.compare("time of the page", figures, "page", "constant", unit="ms", goal=Goal(limit=20))
    try:
        browser.start()
    except ServerNotInstalled as missing:
        bench.absent("bytes, requests and paints in a browser", str(missing))
        return
    quiet, busy, waits = asyncio.run(visits(installation, session, browser.endpoint))
    bench.add("bytes over the wire before the editor", quiet[0].bytes / 1_000, "kB", goal=Goal(limit=150))
    bench.add("requests before the editor", quiet[0].requests, "requests", goal=Goal(limit=12))
    bench.add("bytes over the wire with the editor", quiet[0].all_bytes / 1_000, "kB")
    bench.add("requests with the editor", quiet[0].all_requests, "requests")
    bench.add("first contentful paint, quiet", median(it.first_paint_ms for it in quiet), "ms", goal=Goal(limit=1000))
    bench.add(
        f"first contentful paint, {LOAD_PER_SEC} pages/s asked for meanwhile",
        median(it.first_paint_ms for it in busy),
        "ms",
        goal=Goal(limit=1000),
    )
    bench.add("time of the page under that load", median(waits), "ms")


def main() -> None:
    """Start everything, measure, stop everything."""
    bench = Bench("web")
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as folder, start_embedded(Path(folder)) as installation:
            measure(bench, installation, browser)
    finally:
        browser.stop()
    bench.finish()


if __name__ == "__main__":
    main()
