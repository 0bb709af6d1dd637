"""A browser tab that records forbidden behaviour of pages in every test."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, Response, WebError

from adjudge.api.cookies import SESSION_COOKIE
from tests.support.installation import Installation

_LOOPBACK = {"127.0.0.1", "localhost"}
_OWN_SCHEMES = {"data", "blob", "about"}


@dataclass
class CheckedTab:
    """One page of a browser context of its own, and everything wrong that happened in it."""

    page: Page
    context: BrowserContext
    origin: str
    problems: list[str] = field(default_factory=list)
    navigations: list[str] = field(default_factory=list)
    policies: dict[str, str] = field(default_factory=dict)
    """The content security policy of each page that was shown, by path."""
    expected: list[str] = field(default_factory=list)
    """Patterns of what this test brings about itself: a cut connection, a refusal."""
    agrees: bool = False
    """Whether questions that a page asks are answered with yes; a question that nobody expects is a complaint."""

    async def open(self, path: str) -> Page:
        """Go to a page of ours."""
        await self.page.goto(self.origin + path)
        return self.page

    def verify(self) -> None:
        """Fail on whatever happened that nobody expected."""
        unexpected = [item for item in self.problems if not any(re.search(known, item) for known in self.expected)]
        assert not unexpected, unexpected

    def on_console(self, message: ConsoleMessage) -> None:
        """Errors and warnings in the console."""
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text} ({message.location.get('url')})")

    def on_error(self, error: WebError) -> None:
        """A script that failed."""
        self.problems.append(f"script: {error.error}")

    def on_request(self, request: Request) -> None:
        """Nothing leaves the machine."""
        address = urlsplit(request.url)
        if address.scheme not in _OWN_SCHEMES and address.hostname not in _LOOPBACK:
            self.problems.append(f"a request left the machine: {request.url}")
        if request.is_navigation_request():
            self.navigations.append(address.path)

    def on_response(self, response: Response) -> None:
        """Keep what protects each page."""
        if response.request.is_navigation_request() and response.status < 300:
            self.policies[urlsplit(response.url).path] = response.headers.get("content-security-policy", "")

    async def on_dialog(self, dialog: Dialog) -> None:
        """A box that popped up: ours, or somebody's script."""
        if self.agrees and dialog.type == "confirm":
            await dialog.accept()
            return
        self.problems.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()


async def open_tab(context: BrowserContext, installation: Installation, name: str | None, origin: str) -> CheckedTab:
    """A tab in ``context``, logged in as ``name``."""
    if name is not None:
        await context.add_cookies([{"name": SESSION_COOKIE, "value": installation.session(name), "url": origin}])
    tab = CheckedTab(await context.new_page(), context, origin)
    context.on("console", tab.on_console)
    context.on("weberror", tab.on_error)
    context.on("request", tab.on_request)
    context.on("response", tab.on_response)
    context.on("dialog", tab.on_dialog)
    return tab


async def write(page: Page, text: str) -> None:
    """Put ``text`` into the editor instead of whatever it has, as a person with a keyboard does."""
    await page.locator(".cm-content").focus()
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.press("Delete")
    await page.keyboard.insert_text(text)
