"""The page that imports a contest package: preview, import, errors; and the links of the export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.asgi_app import AsgiApp, make_app
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.services.test_contest_package import CONTEST, MINIMAL, archive
from tests.unit.web.test_contest_settings_pages import form_values, shown

PAGE = "/contests/import"


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """The application with its pages."""
    async with make_app(sqlite_store, tmp_path) as found:
        add_pages(found.app, found.services)
        yield found


@pytest.mark.parametrize(("locale", "button"), [("en", "Import a contest"), ("zh", "导入比赛")])
async def test_package_is_previewed_then_imported(api: AsgiApp, locale: str, button: str) -> None:
    async with api.as_role("setter") as setter:
        setter.headers["Accept-Language"] = locale
        assert button in await shown(setter, "/contests")
        values = form_values(await shown(setter, PAGE), PAGE)
        file = {"package": ("spring.zip", archive(MINIMAL))}
        preview = await setter.post(PAGE, data=values | {"slug": "autumn"}, files=file)
        assert preview.status_code == 200, preview.text
        assert await api.store.rows("SELECT id FROM contests") == []
        sent = form_values(preview.text.partition("enctype")[0], PAGE)
        assert (sent["slug"], sent["file_name"], len(sent["digest"])) == ("autumn", "spring.zip", 64)
        done = await setter.post(PAGE, data=sent)
        assert (done.status_code, done.headers["Location"].partition("?")[0]) == (303, "/contests/autumn")
        again = await setter.post(PAGE, data=sent)
        assert "contest_unchanged" in again.headers["Location"]
        page = await shown(setter, "/contests/autumn/settings/lifecycle")
        assert 'href="/api/v1/contests/autumn/package"' in page


async def test_errors_are_listed_and_there_is_nothing_to_confirm(api: AsgiApp) -> None:
    broken = archive({"contest.yaml": CONTEST.replace("5:00:00", "<b>long</b>")})
    async with api.as_role("setter") as setter, api.as_role("contestant") as contestant:
        values = form_values(await shown(setter, PAGE), PAGE)
        preview = await setter.post(PAGE, data=values, files={"package": ("x.zip", broken)})
        assert "<code>contest.yaml:5</code>" in preview.text
        assert "&lt;b&gt;long&lt;/b&gt;" in preview.text
        assert 'name="digest"' not in preview.text
        for files in ({}, {"package": ("x.zip", b"no archive")}):
            refused = await setter.post(PAGE, data=values, files=files or {"other": ("", b"")})
            assert refused.status_code == 400
            assert "package: " in refused.text
        unknown = await setter.post(PAGE, data=values | {"digest": "0" * 64})
        assert unknown.status_code == 404
        assert (await contestant.get(PAGE)).status_code == 403
        assert PAGE not in await shown(contestant, "/contests")
