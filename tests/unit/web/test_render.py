"""Headers, language, static files, error pages and redirects."""

from __future__ import annotations

import pytest

from adjudge.api.csrf import safe_redirect_path
from adjudge.web.static_files import Assets
from tests.support.asgi_app import AsgiApp


async def test_unknown_path_gets_an_error_page(pages: AsgiApp) -> None:
    async with pages.client() as client:
        answer = await client.get("/nowhere", headers={"Accept-Language": "zh"})
    assert (answer.status_code, answer.headers["Content-Language"]) == (404, "zh-Hans")
    assert "没有这个页面" in answer.text
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]


async def test_unknown_api_path_gets_a_json_error(pages: AsgiApp) -> None:
    async with pages.client() as client:
        assert (await client.get("/api/v1/version")).json()["name"] == "adjudge"
        assert (await client.get("/api/v1/nowhere")).json()["code"] == "ROUTE_NOT_FOUND"


async def test_selected_language_is_stored(pages: AsgiApp) -> None:
    async with pages.client() as client:
        answer = await client.post("/preferences/language", data={"language": "zh", "next": "/problems"})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/problems")
        assert "回到首页" in (await client.get("/nowhere")).text
        assert (await client.post("/preferences/language", data={"language": "tlh"})).status_code == 400


@pytest.mark.parametrize(
    "wanted",
    [
        "https://elsewhere.example/",
        "//elsewhere.example",
        "/\\elsewhere.example",
        "x",
        "/a\r\nb",
        "/\t/elsewhere.example",
    ],
)
def test_redirects_stay_on_this_host(wanted: str) -> None:
    assert safe_redirect_path(wanted) == "/"


async def test_static_files_are_hashed_and_cached(pages: AsgiApp) -> None:
    url = Assets().url("app.css")
    async with pages.client() as client:
        answer = await client.get(url)
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Encoding"] == "gzip"
        again = await client.get(url, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304
        old = await client.get(url.replace(url.split("/")[2], "000000000000"))
        assert old.headers["Cache-Control"] == "no-cache"
        assert (await client.get("/static/x/../words.py")).status_code == 404


async def test_former_paths_redirect_permanently(pages: AsgiApp) -> None:
    async with pages.client() as client:
        found = [
            ((answer := await client.request(method, path)).status_code, answer.headers.get("Location"))
            for method, path in (
                ("GET", "/setting"),
                ("GET", "/setting/problems/sum/diff?old=1&new=2"),
                ("POST", "/setting/import"),
                ("POST", "/language"),
            )
        ]
    assert found == [
        (308, "/manage"),
        (308, "/manage/problems/sum/diff?old=1&new=2"),
        (308, "/manage/import"),
        (308, "/preferences/language"),
    ]
