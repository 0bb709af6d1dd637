"""The list of languages and their source templates."""

from __future__ import annotations

from pathlib import Path

from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import publish_problem
from tests.support.store_harness import StoreHarness

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


async def test_disabled_language_is_not_listed_and_not_accepted(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    overlay = tmp_path / "languages.toml"
    overlay.write_text("[bash]\ndisabled = true\n")
    async with (
        make_app(sqlite_store, tmp_path, {"judge.languages_file": str(overlay)}) as api,
        api.as_role("service") as client,
    ):
        listed = {item["id"] for item in (await client.get(f"{ROOT}/languages")).json()["items"]}
        assert "bash" not in listed
        assert "cpp20" in listed
        program = {"language": "bash", "source": "echo 1"}
        published = await publish_problem(api)
        for path, body, field in (
            ("executions", program, "language"),
            ("executions:batch", {"items": [program]}, "items[0].language"),
            ("submissions", program | {"problem": published.slug}, "language"),
        ):
            answer = await client.post(f"{ROOT}/{path}", json=body)
            assert (answer.status_code, answer.json()["fields"]["field"]) == (400, field), path
            assert "Bash is disabled on this installation" in answer.text
