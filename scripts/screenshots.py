"""Take a picture of each main page into ``docs/images/``: a server of its own, the examples, a day's worth of work.

``make screenshots`` runs it. Pictures are of one size and one language, so that the documentation can show them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, async_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from adjudge.api.cookies import SESSION_COOKIE  # noqa: E402  # the checkout's own code, whatever is installed
from scripts.screenshot_contest import SLUG as CONTEST  # noqa: E402
from scripts.screenshot_contest import seed_contest  # noqa: E402
from tests.support.installation import Installation, start_embedded  # noqa: E402
from tests.support.problem_packages import EXAMPLES, folder_archive  # noqa: E402
from tests.support.servers import Browser as BrowserServer  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
TALL: Final = {"width": 1180, "height": 1180}
_OTHER_LANGUAGE: Final = "button[name=language]"
"""Left out: the machine may have no font for its name."""
DESKTOP: Final = {"width": 1180, "height": 820}
PHONE: Final = {"width": 390, "height": 820}
PROBLEMS: Final = {
    "multiples": "Multiples of Two Kinds",
    "change": "Change",
    "backwards": "Backwards",
    "postcards": "Postcards Out of Order",
    "shout": "Shout and Whisper",
    "smallroot": "The Small Root",
    "dressing": "Getting Dressed",
    "guess": "Guess the Number",
}
CHAIN: Final = {
    "nodes": [
        {"id": "verify", "type": "problem.verify", "cfg": {"problem": "shout"}},
        {"id": "look", "type": "noop", "deps": ["verify"]},
        {"id": "count", "type": "noop", "deps": ["verify"]},
        {
            "id": "agree",
            "type": "wait_approval",
            "deps": ["look", "count"],
            "cfg": {"question": "All solutions of the jury behave. Announce it?"},
        },
        {"id": "announce", "type": "notify", "deps": ["agree"], "cfg": {"text": "shout holds"}},
    ]
}


@dataclass(frozen=True)
class Screenshot:
    """One picture."""

    name: str
    path: str
    role: str
    options: dict[str, Any]
    keys: int = 0
    """How often the space bar is pressed first."""


def seed(installation: Installation) -> list[Screenshot]:
    """Let people work for a while; say what is worth a picture."""
    for role in ("contestant", "setter", "judge"):
        installation.user(role, role)
    with installation.client("setter") as setter:
        for slug, title in PROBLEMS.items():
            data, verify = folder_archive(EXAMPLES / slug), slug in ("shout", "multiples")
            installation.publish(data, by=setter, slug=slug, title=title, verify=verify)
        imports = setter.get("/api/v1/imports").json()["items"]
    with installation.client("contestant") as contestant:
        verdicts = {
            f"{slug}/{kind}": installation.submit_and_wait(contestant, slug, file.read_text(), _language(file))
            for slug in ("multiples", "shout", "backwards")
            for kind in ("accepted", "wrong_answer")
            for file in sorted((EXAMPLES / slug / "submissions" / kind).glob("*"))[:1]
            if file.is_file()
        }
    seed_contest(installation)
    body = {"name": "nightly", "description": "Verify a problem, ask, announce.", "dag": CHAIN}
    installation.admin.post("/api/v1/chains", json=body).raise_for_status()
    run = installation.admin.post("/api/v1/chains/nightly:start", json={"parameters": {}}).json()["run_id"]
    installation.wait_until(f"/api/v1/runs/{run}/nodes/agree", lambda it: it["wait_on"] is not None)
    order = {"filter": {"problem": "multiples"}, "reason": "a test was added"}
    batch = installation.admin.post("/api/v1/rejudge-batches", json=order).json()
    installation.wait_until(f"/api/v1/rejudge-batches/{batch['id']}", lambda it: it["state"] == "ready")
    verified = next(item["id"] for item in imports if item["jury"])
    failed = next(path for name, path in verdicts.items() if name.endswith("wrong_answer"))
    return [
        Screenshot("problems", "/problems", "contestant", {}),
        Screenshot("problem", "/problems/multiples", "contestant", {}),
        Screenshot("problem-phone", "/problems/multiples", "contestant", {"viewport": PHONE}),
        Screenshot("submission", f"/submissions/{verdicts['multiples/accepted']}", "contestant", {}),
        Screenshot("submission-dark", f"/submissions/{failed}", "contestant", {"color_scheme": "dark"}),
        Screenshot("submissions", "/submissions", "contestant", {}),
        Screenshot("manage-problems", "/manage", "setter", {}),
        Screenshot("import", f"/manage/imports/{verified}", "setter", {}),
        Screenshot("manage-problem", "/manage/problems/multiples", "setter", {}),
        Screenshot("chain", "/chains/nightly", "admin", {}),
        Screenshot("run", f"/runs/{run}", "admin", {}),
        Screenshot("node", f"/runs/{run}/nodes/agree", "admin", {}),
        Screenshot("rejudge", f"/rejudge/{batch['id']}", "judge", {}),
        Screenshot("operations", "/ops", "admin", {}),
        Screenshot("dead-letters", "/ops/dead-letters", "admin", {}),
        Screenshot("contest", f"/contests/{CONTEST}", "contestant", {}),
        Screenshot("scoreboard", f"/contests/{CONTEST}/scoreboard", "contestant", {"viewport": TALL}),
        Screenshot("scoreboard-dark", f"/contests/{CONTEST}/scoreboard?view=jury", "admin", {"color_scheme": "dark"}),
        Screenshot("scoreboard-phone", f"/contests/{CONTEST}/scoreboard", "contestant", {"viewport": PHONE}),
        Screenshot("clarifications", f"/contests/{CONTEST}/clarifications", "admin", {}),
        Screenshot("jury", f"/contests/{CONTEST}/jury", "admin", {}),
        Screenshot("resolver", f"/contests/{CONTEST}/resolver", "admin", {}, keys=9),
        Screenshot("resolver-award", f"/contests/{CONTEST}/resolver", "admin", {}, keys=23),
    ]


def _language(file: Path) -> str:
    return {".py": "python3", ".cpp": "cpp20", ".c": "c", ".java": "java"}[file.suffix]


async def take(browser: Browser, installation: Installation, shot: Screenshot, folder: Path) -> None:
    """Take one picture of what one sees first."""
    options = {"locale": "en-GB", "timezone_id": "UTC", "viewport": DESKTOP, "color_scheme": "light", **shot.options}
    context = await browser.new_context(**options)
    await context.add_cookies(
        [{"name": SESSION_COOKIE, "value": installation.session(shot.role), "url": installation.url}]
    )
    page = await context.new_page()
    has_editor = shot.path.startswith("/problems/")
    await page.goto(installation.url + shot.path, wait_until="networkidle" if has_editor else "load")
    if has_editor:
        await page.wait_for_selector(".cm-content, textarea#source:not([hidden])")
    await page.locator(_OTHER_LANGUAGE).evaluate_all("items => items.forEach((item) => item.remove())")
    if shot.keys:
        await page.wait_for_selector(".resolver-row")
    for _ in range(shot.keys):
        await page.keyboard.press("Space")
    await page.screenshot(path=folder / f"{shot.name}.png", animations="disabled")
    await context.close()


async def take_all(installation: Installation, endpoint: str, folder: Path) -> None:
    """Take them all."""
    shots = seed(installation)
    async with async_playwright() as driver:
        browser = await driver.chromium.connect_over_cdp(endpoint)
        for shot in shots:
            await take(browser, installation, shot, folder)
            print(folder / f"{shot.name}.png", flush=True)
        await browser.close()


def main() -> int:
    """Start everything, take the pictures, stop everything."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    server = BrowserServer()
    server.start()
    try:
        with tempfile.TemporaryDirectory() as data, start_embedded(Path(data)) as installation:
            asyncio.run(take_all(installation, server.endpoint, folder))
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
