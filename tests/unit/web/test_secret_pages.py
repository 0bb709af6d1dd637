"""Secrets pages: same rules as the API; values are never shown."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.support.asgi_app import AsgiApp

ROOT = "/ops/secrets"
VALUE = "correct-horse-battery"


async def shown(client: httpx.AsyncClient, path: str, **headers: str) -> str:
    answer = await client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_secret_is_set_replaced_listed_and_deleted_and_never_shown(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as client:
        assert "No secrets." in await shown(client, ROOT)
        for value in (VALUE, f"{VALUE}-2"):
            answer = await client.post(ROOT, data={"name": " TOKEN ", "value": value})
            assert (answer.status_code, answer.headers["Location"]) == (303, f"{ROOT}?done=saved")
        name = (await client.get("/api/v1/me")).json()["name"]
        listed = await shown(client, ROOT)
        assert "<code>TOKEN</code>" in listed
        assert listed.count(f'<span class="muted">{name}</span>') == 2, "who set it and who changed it"
        assert VALUE not in listed
        removed = await client.post(f"{ROOT}/TOKEN/delete")
        assert (removed.status_code, removed.headers["Location"]) == (303, f"{ROOT}?done=deleted")
        assert "<code>TOKEN</code>" not in await shown(client, ROOT)
        assert (await client.post(f"{ROOT}/TOKEN/delete")).status_code == 404
        actions = await pages.store.rows("SELECT action FROM audit_log WHERE object_id = 'TOKEN' ORDER BY id")
        assert [row["action"] for row in actions] == ["secret.set", "secret.set", "secret.delete"]


@pytest.mark.parametrize(
    ("name", "value", "wrong", "word"),
    [
        ("a-b", VALUE, "name", "letters, digits and _"),
        ("", VALUE, "name", "letters, digits and _"),
        ("x" * 5_000, VALUE, "name", "at most 4000"),
        ("TOKEN", "short-1", "value", "8 to 8192"),
        ("TOKEN", "", "value", "8 to 8192"),
        ("TOKEN", "y" * 9_000, "value", "at most 8192"),
    ],
)
async def test_field_error_is_shown_at_its_field_without_the_value(
    pages: AsgiApp, name: str, value: str, wrong: str, word: str
) -> None:
    async with pages.as_role("admin") as client:
        refused = await client.post(ROOT, data={"name": name, "value": value})
        assert refused.status_code == 400
        (field,) = re.findall(r'<input id="(\w+)"[^>]* aria-invalid="true"', refused.text)
        assert field == wrong
        (said,) = re.findall(rf'role="alert" id="{wrong}-error">([^<]*)<', refused.text)
        assert word in said
        assert f'value="{name if len(name) < 100 else ""}"' in refused.text
        assert not value or value not in refused.text
        assert await pages.store.rows("SELECT name FROM chain_secrets") == []


async def test_unreadable_key_is_reported_above_the_form(pages: AsgiApp) -> None:
    keys = pages.services.settings.server.data_dir / "secrets.key"
    keys.parent.mkdir(parents=True, exist_ok=True)
    keys.write_text("no key\n")
    async with pages.as_role("admin") as client:
        refused = await client.post(ROOT, data={"name": "TOKEN", "value": VALUE})
    assert (refused.status_code, "adjudge secret key" in refused.text) == (400, True)
    assert "aria-invalid" not in refused.text


@pytest.mark.parametrize("role", ["setter", "judge", "contestant"])
async def test_secrets_page_requires_the_permission(pages: AsgiApp, role: str) -> None:
    async with pages.as_role("admin") as admin, pages.as_role(role) as other, pages.client() as visitor:
        await admin.post(ROOT, data={"name": "TOKEN", "value": VALUE})
        assert (await other.get(ROOT)).status_code == 403
        form = {"name": "TOKEN", "value": "other-value"}
        assert [(await other.post(path, data=form)).status_code for path in (ROOT, f"{ROOT}/TOKEN/delete")] == [
            403,
            403,
        ]
        assert (await visitor.get(ROOT)).headers["Location"].startswith("/login")
        for path in ("/ops", "/chains"):
            assert f'href="{ROOT}"' in await shown(admin, path)
            assert f'href="{ROOT}"' not in (await other.get(path)).text
        assert "<code>TOKEN</code>" in await shown(admin, ROOT)


async def test_secrets_page_is_translated(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as client:
        await client.post(ROOT, data={"name": "TOKEN", "value": VALUE})
        text = await shown(client, ROOT, **{"Accept-Language": "zh"})
    assert "任务链密钥" in text
    assert "{{ secrets.NAME }}" in text
