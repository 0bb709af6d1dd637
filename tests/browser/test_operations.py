"""Chain runs, dead letters and secrets in the browser."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import OpenTab
from tests.browser.seed_data import HOSTILE, SUM, package_with_large_limits
from tests.support.installation import Installation


async def test_run_is_approved_retried_and_succeeds(installation: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(installation, "setter")
    page = await tab.open("/chains/release")
    await page.locator("#parameters").fill(json.dumps({"slug": "later"}))
    await page.get_by_role("button", name="Start").click()
    await page.wait_for_url("**/runs/*")
    arrived = list(tab.navigations)
    await expect(_node(page, "ask")).to_contain_text("waiting for approval")
    await expect(page.locator(".notice")).to_contain_text("ask requires approval: Go on?")
    await expect(page.locator("svg.dag .node.good")).to_have_count(1)
    assert tab.navigations == arrived, "the run was followed without loading the page again"
    run = page.url
    await page.locator("svg.dag a", has_text="ask").click()
    await expect(page.locator(".notice")).to_contain_text(HOSTILE)
    await page.locator("#reason").fill("looks right")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page).to_have_url(run)
    await expect(_node(page, "fragile")).to_contain_text("failed")
    await expect(page.locator("[data-live]")).to_have_attribute("data-state", "done")
    with installation.client("setter") as setter:  # a run verifies only what the user who started it may see
        installation.publish(package_with_large_limits("Later"), by=setter, slug="later")
    await page.get_by_role("link", name="fragile", exact=True).last.click()
    await page.locator("#reason").fill("it is there now")
    await page.get_by_role("button", name="Retry").click()
    await expect(page).to_have_url(run)
    arrived = list(tab.navigations)
    await expect(_node(page, "end")).to_contain_text("success")
    await expect(page.locator("svg.dag .node.good")).to_have_count(4)
    await expect(page.locator("[data-live]")).to_have_attribute("data-state", "done")
    assert tab.navigations == arrived
    await page.reload()
    await page.get_by_text("History").or_(page.locator("summary").last).first.click()
    await expect(page.locator(".timeline")).to_contain_text("it is there now")


async def test_dead_letter_is_replayed_and_its_submission_judged(installation: Installation, open_tab: OpenTab) -> None:
    secret = "640 2\n"
    installation.publish(
        package_with_large_limits("Lost", **{"data/secret/1.in": secret, "data/secret/1.ans": "642\n"}), slug="lost"
    )
    file = _blob(installation.blobs, sha256(secret.encode()).hexdigest())
    kept = file.read_bytes()
    file.unlink()
    with installation.client("contestant") as contestant:
        body = {"problem": "lost", "language": "python3", "source": SUM}
        taken = contestant.post("/api/v1/submissions", json=body).json()
    submission_id, job_id = taken["submission_id"], taken["job_id"]
    installation.wait_until(
        "/api/v1/ops/dead-letters", lambda it: job_id in [letter["job_id"] for letter in it["items"]]
    )
    file.write_bytes(kept)
    tab = await open_tab(installation, "admin")
    page = await tab.open("/ops")
    await page.get_by_role("link", name="Dead letters").first.click()
    await page.get_by_role("link", name=job_id).click()
    await expect(page.locator(".timeline")).to_contain_text("failed")
    await tab.open("/ops/dead-letters")
    await page.get_by_label(f"Select {job_id}").check()
    await page.locator("#reason").fill(HOSTILE)
    await page.get_by_role("button", name="Replay").click()
    await expect(page.get_by_label(f"Select {job_id}")).to_have_count(0)
    installation.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["verdict"] == "AC")
    await tab.open(f"/submissions/{submission_id}")
    await expect(page.locator(".verdict")).to_contain_text("Accepted")
    await tab.open("/ops/audit")
    await expect(page.get_by_role("row", name=re.compile("replay"))).to_contain_text(HOSTILE)


async def test_secret_is_set_and_deleted_and_never_shown(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "admin")
    tab.agrees = True
    tab.expected.append("status of 400")
    page = await tab.open("/ops")
    await page.get_by_role("link", name="Chain secrets").click()
    for value in ("short", "correct-horse-battery"):
        await page.locator("#name").fill("MAIL_TOKEN")
        await page.locator("#value").fill(value)
        await page.get_by_role("button", name="Save").click()
        if value == "short":
            await expect(page.locator("#value-error")).to_contain_text("8 to 8192 characters")
    row = page.get_by_role("row", name=re.compile("MAIL_TOKEN"))
    await expect(row).to_contain_text("admin")
    assert "correct-horse" not in await page.content()
    await page.get_by_role("button", name="Delete MAIL_TOKEN").click()
    await expect(row).to_have_count(0)


def _node(page: Page, node_id: str) -> Locator:
    return page.get_by_role("row", name=re.compile(f"^{node_id} "))


def _blob(folder: Path, digest: str) -> Path:
    """The file of a blob, wherever its folder puts it."""
    (found,) = [path for path in folder.rglob("*") if path.is_file() and digest in path.as_posix().replace("/", "")]
    return found
