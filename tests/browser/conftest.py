"""Fixtures: one browser and one server per mode, one browser context per test."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.browser.checked_tab import CheckedTab
from tests.browser.checked_tab import open_tab as open_checked_tab
from tests.browser.seed_data import seed
from tests.support.databases import PostgresDatabases
from tests.support.installation import Installation, start_distributed, start_embedded
from tests.support.servers import Browser as BrowserServer
from tests.support.servers import RedisServer

OpenTab = Callable[..., Awaitable[CheckedTab]]
TIMEOUT_MS = 60_000
"""Timeout of page actions; bounds failures only."""
expect.set_options(timeout=TIMEOUT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is slow, and shares one loop: a browser belongs to the loop that it was opened on."""
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.slow)
            if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(browser_server: BrowserServer) -> AsyncIterator[Browser]:
    """The browser, driven."""
    async with async_playwright() as driver:
        browser = await driver.chromium.connect_over_cdp(browser_server.endpoint, timeout=TIMEOUT_MS)
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``adjudge up`` on SQLite; webhooks to this machine are allowed, and no login is recent enough for the jury."""
    settings = {"webhooks_allow": "127.0.0.0/8", "webhooks_timeout_sec": 50, "reauthentication_minutes": 0}
    with start_embedded(tmp_path_factory.mktemp("embedded"), **settings) as installation:
        seed(installation)
        yield installation


@pytest.fixture(scope="session")
def distributed(
    tmp_path_factory: pytest.TempPathFactory, postgres_databases: PostgresDatabases, redis_server: RedisServer
) -> Iterator[Installation]:
    """A server, a scheduler and a worker of their own, on PostgreSQL and Redis."""
    with (
        postgres_databases.fresh() as url,
        start_distributed(tmp_path_factory.mktemp("distributed"), url, redis_server.url) as installation,
    ):
        seed(installation)
        yield installation


@pytest.fixture(params=["embedded", "distributed"])
def installation(request: pytest.FixtureRequest) -> Installation:
    """Both deployment modes in turn."""
    found: Installation = request.getfixturevalue(request.param)
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def open_tab(chromium: Browser) -> AsyncIterator[OpenTab]:
    """Opens tabs: ``await open_tab(installation, "contestant")``; without a name, for a visitor. Verifies all tabs."""
    tabs: list[CheckedTab] = []

    async def open_one(
        installation: Installation, name: str | None = None, *, origin: str = "", **options: Any
    ) -> CheckedTab:
        options = {"locale": "en-GB", "timezone_id": "UTC", "color_scheme": "light", **options}
        context = await chromium.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        tabs.append(await open_checked_tab(context, installation, name, origin or installation.url))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        await tab.context.close()
    for tab in tabs:
        tab.verify()
