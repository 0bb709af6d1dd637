"""Import, publication and rejudge in the browser."""

from __future__ import annotations

import re

from playwright.async_api import FilePayload, expect

from tests.browser.conftest import OpenTab
from tests.browser.seed_data import HOSTILE, SUM, package_with_large_limits
from tests.support.installation import Installation
from tests.support.problem_packages import zip_files


async def test_package_is_uploaded_verified_and_published(installation: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(installation, "setter")
    page = await tab.open("/manage")
    data = package_with_large_limits("Brand new")
    await page.locator("#package").set_input_files(FilePayload(name="new.zip", mimeType="application/zip", buffer=data))
    await page.locator("#slug").fill("brand-new")
    await page.get_by_role("button", name="Upload a package").click()
    await page.wait_for_url("**/manage/imports/*")
    arrived = list(tab.navigations)
    state = page.locator("[data-live]")
    await expect(state).to_have_attribute("data-state", "done")
    await expect(state).to_contain_text("succeeded")
    await expect(state.get_by_role("row", name=re.compile("sum.py.*Accepted"))).to_be_visible()
    assert tab.navigations == arrived, "the page was not loaded again"
    visitor = await open_tab(installation)
    await visitor.open("/problems?q=brand")
    await expect(visitor.page.locator(".empty")).to_be_visible()
    await state.get_by_role("link", name="brand-new").click()
    await page.get_by_role("row", name=re.compile("^1 ")).get_by_label("Reason").fill(HOSTILE)
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("row", name=re.compile("current"))).to_be_visible()
    await visitor.open("/problems?q=brand")
    await visitor.page.get_by_role("link", name="Brand new").click()
    await expect(visitor.page.locator("math").first).to_be_visible()


async def test_findings_of_a_package_are_shown(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "setter")
    page = await tab.open("/manage")
    broken = zip_files({"problem.yaml": f"name: {HOSTILE!r}\nlimits: 7\n".encode()})
    file = FilePayload(name=f"{HOSTILE}.zip", mimeType="application/zip", buffer=broken)
    await page.locator("#package").set_input_files(file)
    await page.get_by_role("button", name="Upload a package").click()
    state = page.locator("[data-live]")
    await expect(state).to_have_attribute("data-state", "done")
    await expect(state).to_contain_text("failed")
    assert await page.evaluate("window.pwned") is None


async def test_rejudge_is_previewed_then_applied(installation: Installation, open_tab: OpenTab) -> None:
    installation.publish(package_with_large_limits("Moving"), slug="moving")
    with installation.client("contestant") as contestant:
        submission_id = installation.submit_and_wait(contestant, "moving", SUM)
    moved = {"data/secret/1.ans": "12\n", "submissions/accepted/sum.py": "print(12)\n"}
    installation.publish_manually(package_with_large_limits("Moving", **moved), "moving")
    tab = await open_tab(installation, "judge")
    page = await tab.open("/rejudge")
    await page.locator("#problem").fill("moving")
    await page.locator("#reason").fill(HOSTILE)
    await page.get_by_role("button", name="Rejudge").click()
    await page.wait_for_url("**/rejudge/*")
    state = page.locator("[data-live]")
    await expect(state).to_contain_text("ready")
    await expect(state.get_by_role("row", name=re.compile("^Accepted Wrong answer 1$"))).to_be_visible()
    public = await open_tab(installation, "contestant")
    await public.open(f"/submissions/{submission_id}")
    await expect(public.page.locator(".verdict")).to_contain_text("Accepted")
    await page.get_by_role("button", name="Apply").click()
    await expect(state).to_contain_text("applied")
    await public.page.reload()
    await expect(public.page.locator(".verdict")).to_contain_text("Wrong answer")
