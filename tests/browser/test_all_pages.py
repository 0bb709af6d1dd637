"""Every page is accessible, escapes text and loads nothing from other hosts."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import pytest
from fastapi import FastAPI, routing
from playwright.async_api import Page, expect

from adjudge import settings as settings_source
from adjudge.web.app import install
from tests.browser.checked_tab import CheckedTab
from tests.browser.conftest import OpenTab
from tests.browser.populated_database import CreatedObjects, populate
from tests.browser.seed_data import HOSTILE
from tests.support.installation import Installation
from tests.support.links import problem
from tests.support.servers import AXE
from tests.support.shared_routes import lookup_services

NO_PAGES: Final = {"/", "/chains/{chain}/runs/{number}", "/ops/find", "/{path:path}"}
"""They lead elsewhere, or nowhere."""
_RUN_AXE: Final = """async (rules) => {
  const options = {resultTypes: ["violations"], ...(rules ? {runOnly: {type: "rule", values: rules}} : {})};
  const found = (await axe.run(document, options)).violations;
  return found.filter((item) => ["serious", "critical"].includes(item.impact))
    .map((item) => `${item.id}: ${item.help}: ${item.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}"""
_TOO_WIDE: Final = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const out = [...document.querySelectorAll("main *")].filter((item) => item.getBoundingClientRect().right > wide + 1);
  return out.filter((item) => !item.closest(".scroll, pre")).slice(-3).map((item) => item.outerHTML.slice(0, 200));
}"""
_REPEATED_IDS: Final = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((item) => item.id);
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
}"""
_ADDRESSES: Final = """() => {
  const links = [...document.querySelectorAll("a[href], [data-live]")]
    .map((item) => ["GET", new URL(item.dataset.live ?? item.href, location.href).href]);
  const forms = [...document.forms].map((form) => {
    const address = new URL(form.getAttribute("action") ?? location.pathname, location.href);
    if (form.method === "post") {
      const buttons = [...form.elements].filter((item) => item.hasAttribute("formaction"));
      return buttons.length ? ["POST", buttons[0].formAction] : ["POST", address.href];
    }
    const named = [...form.elements].filter((item) => item.name);
    address.search = new URLSearchParams(named.map((item) => [item.name, "1"]));
    return ["GET", address.href];
  });
  return [...links, ...forms].filter(([, address]) => new URL(address).origin === location.origin);
}"""
PHONE: Final = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def populated(embedded: Installation) -> CreatedObjects:
    return populate(embedded)


def page_paths() -> set[str]:
    """Every page that there is, from the application itself: a new one cannot be forgotten here."""
    app = FastAPI()
    install(app, lookup_services(settings_source.load({}, environ={})))
    routes = [route for route in routing.iter_route_contexts(app.routes) if "GET" in (route.methods or ())]
    paths = {str(route.path) for route in routes if isinstance(route.original_route, routing.APIRoute)}
    paths = {path for path in paths if not path.endswith("/state")}
    return {path for path in paths if not path.startswith(("/static", "/setting"))} - NO_PAGES


def test_every_page_is_covered(populated: CreatedObjects) -> None:
    assert set(populated.paths) == page_paths()


@pytest.mark.usefixtures("axe")
async def test_every_page_is_accessible_and_escapes_text(
    embedded: Installation, open_tab: OpenTab, populated: CreatedObjects
) -> None:
    # Without its policy a page has only its own escaping to rely on: the probes would run.
    tab = await open_tab(embedded, "admin", bypass_csp=True)
    found: list[str] = []
    for path in [*populated.paths.values(), *populated.more.values()]:
        page = await tab.open(path)
        found += [f"{path} {item}" for item in await _look(page)]
        policy = tab.policies[path.partition("?")[0]]
        assert "unsafe" not in policy, path
        assert "default-src 'none'" in policy, path
        assert "script-src 'self';" in policy, path
    assert not found, "\n".join(found)


async def _look(page: Page) -> list[str]:
    """Everything wrong with a page, in words."""
    await page.evaluate(AXE.read_text())
    found: list[str] = await page.evaluate(_RUN_AXE)
    await page.evaluate("document.documentElement.dataset.theme = 'dark'")
    found += [f"(dark) {item}" for item in await page.evaluate(_RUN_AXE, ["color-contrast"])]
    found += [f"the id {item!r} is used more than once" for item in await page.evaluate(_REPEATED_IDS)]
    if await page.evaluate("window.pwned") is not None:
        found.append("a probe ran")
    if await page.locator("main img[src='x'], main script, a[href^='javascript']").count():
        found.append("a probe became an element")
    addresses = await page.evaluate(_ADDRESSES)
    found += [wrong for method, address in addresses if (wrong := problem(method, address)) is not None]
    viewport: Any = page.viewport_size
    await page.set_viewport_size(cast("Any", PHONE))
    found += [f"wider than a phone: {item}" for item in await page.evaluate(_TOO_WIDE)]
    await page.set_viewport_size(viewport)
    return found


@pytest.fixture
def axe() -> None:
    if not AXE.exists():
        pytest.fail("axe-core is not installed: run `npm ci` in frontend/, or `python hatch_build.py`.")


async def test_hostile_text_is_shown_as_text(
    embedded: Installation, open_tab: OpenTab, populated: CreatedObjects
) -> None:
    tab = await open_tab(embedded, "admin")
    shown = {
        populated.paths["/problems/{name}"]: "h1",
        populated.paths["/rejudge/{batch_id}"]: "h1 + p",
        populated.paths["/runs/{run_id}/nodes/{node_id}"]: ".notice",
        populated.paths["/manage/problems/{name}/diff"]: "ins",
        populated.more["a checker's message"]: "table pre",
        populated.more["a compiler's message"]: "details pre",
        populated.more["a question"]: "pre",
    }
    for path, where in shown.items():
        page = await tab.open(path)
        texts = await page.locator(where).all_text_contents()
        assert any(HOSTILE[:60] in text for text in texts), (path, texts)
    await _is_unharmed(tab)


async def _is_unharmed(tab: CheckedTab) -> None:
    assert await tab.page.evaluate("window.pwned") is None


async def test_unknown_path_shows_an_error_page(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded)
    tab.expected.append("status of 404")
    page = await tab.open(f"/{HOSTILE.replace('/', '%2F')}")
    await expect(page.locator("h1")).to_have_text("Page not found")
    await page.get_by_role("link", name="Home").click()
    await expect(page).to_have_url(re.compile("/problems$"))


@pytest.mark.parametrize("width", [PHONE["width"], 1280])
async def test_first_tab_reaches_the_skip_link(embedded: Installation, open_tab: OpenTab, width: int) -> None:
    tab = await open_tab(embedded, "admin")
    await tab.page.set_viewport_size({"width": width, "height": 740})
    page = await tab.open("/problems")
    paths = await page.locator(".top nav a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert len(paths) > 3
    for path in paths:
        await tab.open(path)
        current = page.locator(".top [aria-current]")
        await expect(current).to_be_in_viewport()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to content"), path).to_be_focused()


async def test_keyboard_reaches_the_content_and_leaves_the_editor(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/problems/sum")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    await page.locator(".cm-content").focus()
    await page.clock.set_fixed_time(0)  # the editor minds how soon one key follows the other
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await expect(page.locator(".cm-content")).not_to_be_focused()
