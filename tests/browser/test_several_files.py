"""Submissions of several files, from the API and from the page to their verdict."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import FilePayload, expect

from adjudge.client import Client
from tests.browser.conftest import OpenTab
from tests.support.installation import Installation
from tests.support.problem_packages import folder_archive

HALVES = Path(__file__).resolve().parents[2] / "examples" / "problems" / "halves"
EXACT = {
    path.relative_to(HALVES / "submissions/accepted/exact").as_posix(): path.read_bytes()
    for path in (HALVES / "submissions/accepted/exact").rglob("*.out")
}
PROGRAM = {
    "main.py": b"print(0)\n",
    "other.py": b"from lib.add import add\nprint(add(*map(int, input().split())))\n",
    "lib/add.py": b"def add(a, b):\n    return a + b\n",
}


@pytest.fixture
def halves(installation: Installation) -> Installation:
    """Publishes the output-only example problem once for each installation."""
    if installation.admin.get("/api/v1/problems/halves").status_code == 404:
        installation.publish(folder_archive(HALVES), slug="halves")
    return installation


def judged(installation: Installation, submission_id: str) -> dict[str, Any]:
    return installation.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)


def test_output_files_are_judged_and_rejudged(halves: Installation) -> None:
    with halves.client("contestant") as http:
        token = http.headers["Authorization"].removeprefix("Bearer ")
    with Client(halves.url, token=token) as client:
        names = client.problem("halves").output_names
        assert sorted(names) == sorted(EXACT)
        full = client.submit("halves", files=EXACT)
        partly = client.submit("halves", files={"1.out": EXACT["secret/1.out"]})
        assert judged(halves, full.submission_id)["verdict"] == "AC"
        found = judged(halves, partly.submission_id)
        assert 0 < found["score"] < judged(halves, full.submission_id)["score"]
        provenance = (client.results(full.submission_id).document or {})["provenance"]
        assert {item["name"] for item in provenance["files"]} == set(EXACT)
        assert {file.name: file.data for file in client.files(full.submission_id).items} == EXACT
    order = {"filter": {"ids": [full.submission_id, partly.submission_id]}, "reason": "again"}
    batch = halves.admin.post("/api/v1/rejudge-batches", json=order)
    assert batch.status_code == 202, batch.text
    where = f"/api/v1/rejudge-batches/{batch.json()['id']}"
    halves.wait_until(where, lambda it: it["state"] == "ready")
    items = halves.admin.get(f"{where}/preview").json()["items"]
    assert all(item["old_verdict"] == item["new_verdict"] for item in items), items


async def test_output_files_from_the_page(halves: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(halves, "contestant", viewport={"width": 390, "height": 844})
    page = await tab.open("/problems/halves")
    await expect(page.locator("#submit details li")).to_have_text(sorted(EXACT))
    chosen = [FilePayload(name=name.rpartition("/")[2], mimeType="text/plain", buffer=EXACT[name]) for name in EXACT]
    await page.locator("#files").set_input_files(chosen)
    await expect(page.locator("[data-chosen] li")).to_have_count(len(EXACT))
    await expect(page.locator("[data-chosen] li").first).to_contain_text(" B")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "fits a phone"
    await page.locator("#submit button").click()
    await expect(page.locator(".verdict")).to_contain_text("Accepted")
    await expect(page.locator(".submitted-file")).to_have_count(len(EXACT))
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "fits a phone"


async def test_program_of_several_files_from_the_page(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("cpp20")
    await expect(page.locator("#entry_point")).to_be_hidden()
    await page.locator("#language").select_option("python3")
    await page.locator("#entry_point").fill("other.py")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in PROGRAM.items():
            archive.writestr(name, content)
    await page.locator("#file").set_input_files(
        FilePayload(name="solution.zip", mimeType="application/zip", buffer=data.getvalue())
    )
    await expect(page.locator("[data-chosen] li")).to_contain_text(["solution.zip"])
    await page.locator("#submit button").click()
    await expect(page.locator(".verdict")).to_contain_text("Accepted")
    await expect(page.locator(".submitted-file h3")).to_have_text(sorted(PROGRAM))
    href = await page.get_by_role("link", name="Download all (ZIP)").get_attribute("href")
    answer = await page.context.request.get(f"{embedded.url}{href}")
    with zipfile.ZipFile(io.BytesIO(await answer.body())) as unpacked:
        assert {name: unpacked.read(name) for name in unpacked.namelist()} == PROGRAM


async def test_compiler_messages_link_to_the_line_of_their_file(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant")
    files = [
        {"name": "main.cpp", "content": '#include "lib/one.h"\nint main() { return one(); }\n'},
        {"name": "lib/one.h", "content": "\n" * 60 + "int one() { return nowhere; }\n"},
    ]
    with embedded.client("contestant") as contestant:
        body = {"problem": "sum", "language": "cpp20", "files": files}
        made = contestant.post("/api/v1/submissions", json=body).json()
    assert judged(embedded, made["submission_id"])["verdict"] == "CE"
    page = await tab.open(f"/submissions/{made['submission_id']}")
    await page.get_by_role("link", name="lib/one.h:61").first.press("Enter")
    await expect(page.locator("#F0L61:target")).to_be_in_viewport()


async def test_several_files_without_scripts(embedded: Installation, open_tab: OpenTab) -> None:
    tab = await open_tab(embedded, "contestant", java_script_enabled=False)
    page = await tab.open("/problems/sum")
    await page.locator("#language").select_option("python3")
    await page.locator("#entry_point").fill("b.py")
    contents = {"a.py": b"print(0)\n", "b.py": b"print(sum(map(int, input().split())))\n"}
    files = [FilePayload(name=name, mimeType="text/plain", buffer=data) for name, data in contents.items()]
    await page.locator("#file").set_input_files(files)
    await page.locator("#submit button").click()
    await page.wait_for_url("**/submissions/*")
    submission_id = page.url.rpartition("/")[2]
    assert judged(embedded, submission_id)["verdict"] == "AC"
    await page.reload()
    await expect(page.locator(".submitted-file h3")).to_have_text(["a.py", "b.py"])
