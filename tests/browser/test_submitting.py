"""Login, submit form and results in the browser."""

from __future__ import annotations

import re

from playwright.async_api import FilePayload, expect

from tests.browser.checked_tab import write
from tests.browser.conftest import OpenTab
from tests.browser.paused_solution import PausedSolution
from tests.browser.seed_data import HOSTILE, SUM
from tests.support.installation import PASSWORD, Installation

_COUNT_ROWS = """() => {
  window.counts = [];
  const part = document.querySelector('[data-live]');
  const note = () => window.counts.push(part.querySelectorAll('tbody tr').length);
  new MutationObserver(note).observe(part, {subtree: true, childList: true, characterData: true});
  note();
}"""


async def test_login_and_logout(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded)
    page = await tab.open("/submissions")
    assert page.url.endswith("/login?next=/submissions")
    await page.get_by_label("Username").fill("contestant")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{embedded.url}/submissions")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("link", name="Log in")).to_be_visible()


async def test_new_user_must_change_the_password(embedded: Installation, open_tab: OpenTab) -> None:
    one_time = embedded.user_with_one_time_password("newcomer")
    tab = await open_tab(embedded)
    tab.expected.append("status of 4")  # the wrong password is refused
    page = await tab.open("/login")
    for password in ("wrong password", one_time):
        await page.get_by_label("Username").fill("newcomer")
        await page.get_by_label("Password").fill(password)
        await page.keyboard.press("Enter")
        if password != one_time:
            await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page).to_have_url(f"{embedded.url}/me/password")
    await page.locator("#current").fill(one_time)
    await page.locator("#new").fill(PASSWORD)
    await page.locator("#again").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{embedded.url}/problems")


async def test_results_arrive_without_reloading(installation: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(installation, "contestant")
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("python3")
    async with PausedSolution(installation) as gate:
        await write(page, gate.source)
        await page.locator("#submit button").click()
        await page.wait_for_url("**/submissions/*")
        arrived = list(tab.navigations)
        await page.evaluate(_COUNT_ROWS)
        for number, numbers in enumerate(("1 2", "1 1", "2 2", "3 3"), start=1):
            await gate.open(numbers)
            await expect(page.locator("[data-live] tbody tr")).to_have_count(number)
    await expect(page.locator("[data-live] .verdict")).to_contain_text("Accepted")
    await expect(page.locator("[data-live]")).to_have_attribute("data-state", "done")
    counts = await page.evaluate("window.counts")
    assert counts == sorted(counts), "tests appear, none goes"
    assert {1, 2, 3, 4} <= set(counts), f"they did not come one by one: {counts}"
    assert counts[-1] == 5
    assert tab.navigations == arrived, "the page was not loaded again"
    await expect(page.locator("svg.plot rect")).to_have_count(10)  # time and memory
    await expect(page).to_have_title(re.compile(r"^Accepted · Submission #\d+ · Sum of two · Adjudge$"))


async def test_keyboard_submit_live_list_and_kept_form(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    tab.expected.append("status of 400")  # a program of nothing
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("python3")
    async with PausedSolution(embedded) as gate:
        await write(page, gate.source)
        await page.keyboard.press("ControlOrMeta+Enter")
        await page.wait_for_url("**/submissions/*")
        await tab.open("/submissions?problem=sum")
        await gate.open()
    await expect(page.locator("#submissions tbody tr").first).to_contain_text("Accepted")
    await expect(page.locator("#submissions")).to_have_attribute("data-state", "done")
    await tab.open("/problems/sum")
    await write(page, "")
    await page.keyboard.press("ControlOrMeta+Enter")
    await expect(page.get_by_role("alert")).to_contain_text("empty")
    await expect(page.locator("#language")).to_have_value("python3")


async def test_pages_work_without_scripts(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant", java_script_enabled=False)
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("python3")
    await page.locator("textarea#source").fill(SUM)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/submissions/*")
    submission_id = page.url.rpartition("/")[2]
    embedded.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)
    await page.reload()
    await expect(page.locator(".verdict")).to_contain_text("Accepted")


async def test_file_is_submitted(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("python3")
    file = FilePayload(name="wrong.py", mimeType="text/x-python", buffer=b"print(0)\n")
    await page.locator("#file").set_input_files(file)
    await page.locator("#submit button").click()
    await expect(page.locator(".verdict")).to_contain_text("Wrong answer")
    await expect(page.locator("#source")).to_have_text("print(0)\n")


async def test_source_is_highlighted_and_linked_from_compiler_messages(
    embedded: Installation, open_tab: OpenTab
) -> None:
    tab = await open_tab(embedded, "contestant")
    source = "\n" * 60 + f"int main() {{\n  return nowhere; // {HOSTILE}\n}}\n"
    with embedded.client("contestant") as contestant:
        refused = embedded.submit_and_wait(contestant, "sum", source, "c")
    page = await tab.open(f"/submissions/{refused}")
    await expect(page.locator("#source .tok-keyword").first).to_have_text("return")
    await expect(page.locator("#source .tok-comment")).to_have_text(f"// {HOSTILE}")
    assert await page.locator("#source").evaluate("element => element.textContent") == source
    await page.get_by_role("link", name="main.c:62").first.press("Enter")
    await expect(page.locator("#L62:target")).to_be_in_viewport()
    assert await page.evaluate("window.pwned") is None


async def test_lone_carriage_return_hides_nothing(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    with embedded.client("contestant") as contestant:
        refused = embedded.submit_and_wait(contestant, "sum", "int a;\rint b;\nint nowhere;;(\n", "c")
    page = await tab.open(f"/submissions/{refused}")
    await page.wait_for_load_state("networkidle")  # colours have been put in, or not
    await expect(page.locator("#source")).to_contain_text("int nowhere")


async def test_draft_is_stored_per_language(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/problems/sum")
    editor = page.locator(".cm-content")
    await page.locator("#language").select_option("python3")
    await write(page, "my own draft")
    await page.locator("#language").select_option("cpp20")
    await expect(editor).not_to_contain_text("my own draft")
    await page.reload()
    await page.locator("#language").select_option("python3")
    await expect(editor).to_contain_text("my own draft")


async def test_language_and_theme_are_stored(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/problems")
    await page.get_by_role("button", name="中文").click()
    await expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    await expect(page.locator("h1")).not_to_have_text("Problems")
    await page.get_by_role("button", name="English").click()
    await expect(page.locator("h1")).to_have_text("Problems")
    await page.wait_for_load_state()  # the heading is there before the script that the button of the theme needs
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.locator("[data-theme-toggle]").click()
    dark = await page.evaluate(ground)
    assert dark != light
    await page.reload()
    assert await page.evaluate(ground) == dark
