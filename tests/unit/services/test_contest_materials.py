"""Materials: uploaded by organisers, visible by their setting in every phase, served as downloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestRole, ContestVisibility
from adjudge.services import contest_materials
from adjudge.store.contests import commands
from adjudge.store.contests.models import ContestSettings
from adjudge.store.ops.blob_references import iter_referenced_digests
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_visibility import (
    HOUR_MS,
    PHASES_MS,
    SETTINGS,
    SLUG,
    VIEWERS,
    VisibilityFixture,
    make_fixture,
)

PATH = f"/api/v1/contests/{SLUG}/materials"
PAGE = f"/contests/{SLUG}/settings/materials"


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield api


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


async def open_fixture(
    api: AsgiApp, stack: AsyncExitStack, settings: ContestSettings = SETTINGS
) -> tuple[VisibilityFixture, httpx.AsyncClient]:
    """The contest with its viewers, and a client of its organiser."""
    fixture = await make_fixture(await publish_problem(api), stack, settings)
    user_id, token = await api.user("contestant")
    roles = [(user_id, ContestRole.ORGANISER)]
    await api.store.transact(
        lambda tx: commands.grant_roles(tx, fixture.contest_id, roles, actor=user_id, granted_by=user_id)
    )
    return fixture, await stack.enter_async_context(api.client(token))


async def put(client: httpx.AsyncClient, name: str, content: bytes = b"text", **query: Any) -> Any:
    answer = await client.put(f"{PATH}/{name}", content=content, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def names(client: httpx.AsyncClient) -> list[str]:
    answer = await client.get(PATH)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


async def test_file_is_uploaded_replaced_changed_and_deleted(api: AsgiApp, stack: AsyncExitStack) -> None:
    fixture, organiser = await open_fixture(api, stack)
    made = await put(organiser, "rules.pdf", b"%PDF-1", title="Rules")
    assert (made["title"], made["visible"], made["size_bytes"]) == ("Rules", "always", 6)
    assert made["url"] == f"{PATH}/rules.pdf"
    answer = await fixture.clients["visitor"].get(f"{PATH}/rules.pdf")
    assert (answer.content, answer.headers["Content-Type"]) == (b"%PDF-1", "application/pdf")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    replaced = await put(organiser, "rules.pdf", b"%PDF-2!")
    assert (replaced["title"], replaced["size_bytes"]) == ("Rules", 7)
    changed = await organiser.patch(f"{PATH}/rules.pdf", json={"visible": "start", "title": ""})
    assert (changed.json()["visible"], changed.json()["title"]) == ("start", "")
    assert changed.json()["created_at"] == replaced["created_at"]
    page = await put(organiser, "a<b>.html", b"<script>alert(1)</script>")
    served = await organiser.get(page["url"])
    assert served.headers["Content-Type"] == "application/octet-stream"
    assert {made["digest"], replaced["digest"], page["digest"]} & {
        digest async for digest in iter_referenced_digests(api.store.database)
    } == {replaced["digest"], page["digest"]}
    assert (await organiser.delete(f"{PATH}/rules.pdf")).status_code == 204
    assert (await organiser.delete(f"{PATH}/rules.pdf")).status_code == 404
    assert await names(organiser) == ["a<b>.html"]
    rows = await api.store.rows("SELECT action FROM audit_log WHERE action LIKE 'contest_material.%' ORDER BY id")
    assert [row["action"].rpartition(".")[2] for row in rows] == ["save", "save", "update", "save", "delete"]


async def test_wrong_file_names_its_field_and_changes_nothing(
    api: AsgiApp, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture, organiser = await open_fixture(api, stack)
    for name in (".hidden", "a%5Cb", "%20a", "a%0Ab"):
        refused = await organiser.put(f"{PATH}/{name}", content=b"x")
        assert (refused.status_code, refused.json()["detail"].startswith("name:")) == (400, True), name
    empty = await organiser.put(f"{PATH}/a.txt", content=b"")
    assert (empty.status_code, empty.json()["detail"]) == (400, "file: empty.")
    monkeypatch.setattr(contest_materials, "MAX_BYTES", 3)
    large = await organiser.put(f"{PATH}/a.txt", content=b"four")
    assert (large.status_code, large.json()["detail"].startswith("file: exceeds")) == (400, True)
    monkeypatch.setattr(contest_materials, "MAX_FILES", 1)
    await put(organiser, "a.txt", b"x")
    await put(organiser, "a.txt", b"y")
    assert (await organiser.put(f"{PATH}/b.txt", content=b"x")).status_code == 409
    for who in VIEWERS:
        client, status = fixture.clients[who], 401 if who == "visitor" else 403
        assert (await client.put(f"{PATH}/c.txt", content=b"x")).status_code == status, who
        assert (await client.patch(f"{PATH}/a.txt", json={"visible": "thaw"})).status_code == status, who
        assert (await client.delete(f"{PATH}/a.txt")).status_code == status, who
        assert (await client.get(PAGE)).status_code == (303 if who == "visitor" else 403), who
    assert await names(organiser) == ["a.txt"]


EVERYONE = set(VIEWERS)
TEAMS = {"author", "teammate", "other"}
EXPECTED: dict[tuple[str, bool], dict[str, set[str]]] = {
    ("before", False): {"always": EVERYONE, "start": {"jury"}, "thaw": {"jury"}},
    ("running", False): {"always": EVERYONE, "start": TEAMS | {"jury"}, "thaw": {"jury"}},
    ("frozen", False): {"always": EVERYONE, "start": TEAMS | {"jury"}, "thaw": {"jury"}},
    ("ended", False): {"always": EVERYONE, "start": TEAMS | {"jury"}, "thaw": {"jury"}},
    ("thawed", False): {"always": EVERYONE, "start": TEAMS | {"jury"}, "thaw": {"jury"}},
    ("before", True): {"always": EVERYONE, "start": {"jury"}, "thaw": {"jury"}},
    ("running", True): {"always": EVERYONE, "start": EVERYONE, "thaw": {"jury"}},
    ("frozen", True): {"always": EVERYONE, "start": EVERYONE, "thaw": {"jury"}},
    ("ended", True): {"always": EVERYONE, "start": EVERYONE, "thaw": {"jury"}},
    ("thawed", True): {"always": EVERYONE, "start": EVERYONE, "thaw": EVERYONE},
}
"""Who sees which material, by phase and by whether the contest shows problems and materials to all."""


@pytest.mark.parametrize("is_public", [False, True])
async def test_materials_are_visible_by_their_setting_in_every_phase(
    api: AsgiApp, stack: AsyncExitStack, is_public: bool
) -> None:
    settings = replace(SETTINGS, problems_public=is_public, materials_public=is_public)
    fixture, organiser = await open_fixture(api, stack, settings)
    kinds, passed_ms = ("always", "start", "thaw"), 0
    for kind in kinds:
        await put(organiser, f"{kind}.txt", visible=kind)
    for phase in (*PHASES_MS, "thawed"):
        if phase == "thawed":
            await api.store.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="", reason=""))
        else:
            await api.store.clock.advance(PHASES_MS[phase] - passed_ms)
            passed_ms = PHASES_MS[phase]
        expected = EXPECTED[phase, is_public]
        for who, client in fixture.clients.items():
            seen = [f"{kind}.txt" for kind in kinds if who in expected[kind]]
            assert await names(client) == seen, (phase, who)
            for kind in kinds:
                answer = await client.get(f"{PATH}/{kind}.txt")
                assert answer.status_code == (200 if who in expected[kind] else 404), (phase, who, kind)
                if answer.status_code == 404:
                    missing = await client.get(f"{PATH}/none.txt")
                    assert answer.json()["detail"] == missing.json()["detail"].replace("none", kind)
                    assert "ETag" not in answer.headers
            page = (await client.get(f"/contests/{SLUG}")).text
            assert [kind for kind in kinds if f"materials/{kind}.txt" in page] == [
                kind for kind in kinds if who in expected[kind]
            ], (phase, who)


async def test_materials_of_a_private_contest_and_of_a_draft_are_missing(api: AsgiApp, stack: AsyncExitStack) -> None:
    fixture, organiser = await open_fixture(api, stack, replace(SETTINGS, visibility=ContestVisibility.PRIVATE))
    await put(organiser, "rules.txt")
    for who in ("visitor", "stranger"):
        for path in (PATH, f"{PATH}/rules.txt"):
            assert (await fixture.clients[who].get(path)).status_code == 404
    assert await names(fixture.clients["author"]) == ["rules.txt"]
    await api.store.transact(lambda tx: lifecycle.unpublish(tx, fixture.contest_id, actor="", reason=""))
    assert (await fixture.clients["author"].get(PATH)).status_code == 404
    assert await names(fixture.clients["balloon"]) == []
    assert await names(fixture.clients["jury"]) == ["rules.txt"]


async def test_body_is_read_only_for_organisers(api: AsgiApp, stack: AsyncExitStack) -> None:
    fixture, organiser = await open_fixture(api, stack)
    sent = list[int]()

    async def body() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        for index in range(64):
            sent.append(index)
            yield b"x" * 1_000_000
        yield b'\r\n--x\r\nContent-Disposition: form-data; name="visible"\r\n\r\nalways\r\n--x--\r\n'

    async def upload(client: httpx.AsyncClient) -> tuple[int, int]:
        sent.clear()
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = await client.post(PAGE, content=body(), headers=headers)
        return answer.status_code, len(sent)

    for who in ("author", "stranger", "balloon"):
        status, read = await upload(fixture.clients[who])
        assert (status, read <= 2) == (403, True), who
    name, password = "with-session", "correct horse battery"
    _, admin = await api.user("admin")
    async with api.client(admin) as client:
        made = await client.post("/api/v1/users", json={"name": name, "password": password})
        assert made.is_success, made.text
    async with api.client() as browser:
        login = await browser.post("/api/v1/login", json={"name": name, "password": password})
        assert login.is_success, login.text
        status, read = await upload(browser)
        assert (status, read <= 2) == (403, True), "the CSRF token would be in the body"
    assert await upload(organiser) == (303, 64)


async def test_page_uploads_changes_and_deletes(api: AsgiApp, stack: AsyncExitStack) -> None:
    fixture, organiser = await open_fixture(api, stack)
    await api.store.clock.advance(HOUR_MS)
    form = {"title": "Problem <set>", "visible": "start"}
    sent = await organiser.post(PAGE, data=form, files={"file": ("C:\\set.pdf", b"%PDF")})
    assert (sent.status_code, sent.headers["Location"]) == (303, f"{PAGE}?done=material_saved")
    text = (await organiser.get(PAGE)).text
    assert "Problem &lt;set&gt;" in text
    assert "is off" not in text
    assert "Problem &lt;set&gt;" in (await fixture.clients["author"].get(f"/contests/{SLUG}")).text
    for wrong, files in (({}, {}), ({"visible": "never"}, {"file": ("a", b"x")})):
        assert (await organiser.post(PAGE, data=form | wrong, files=files)).status_code == 400
    changed = {"name": "set.pdf", "title": "", "visible": "thaw", "action": "save"}
    assert (await organiser.post(f"{PAGE}/change", data=changed)).status_code == 303
    assert "it is off" in (await organiser.get(PAGE)).text
    assert await names(fixture.clients["author"]) == []
    assert (await organiser.post(f"{PAGE}/change", data=changed | {"action": "delete"})).status_code == 303
    assert await names(organiser) == []
