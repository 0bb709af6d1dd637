"""The list of languages and their source templates."""

from __future__ import annotations

from tests.support.asgi_app import AsgiApp

ROOT = "/api/v1"


async def test_languages_have_templates(api: AsgiApp) -> None:
    async with api.client() as visitor:
        listed = (await visitor.get(f"{ROOT}/languages")).json()["items"]
        assert all(item["has_template"] for item in listed)
        answer = await visitor.get(f"{ROOT}/languages/cpp20/template")
        assert "int main" in answer.json()["source"]
        again = await visitor.get(f"{ROOT}/languages/cpp20/template", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        missing = await visitor.get(f"{ROOT}/languages/klingon/template")
        assert missing.json()["code"] == "LANGUAGE_NOT_FOUND"
