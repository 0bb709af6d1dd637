"""Webhook pages: same rules as the API; the secret is shown once."""

from __future__ import annotations

import re
import time

import httpx
import pytest

from adjudge.domain.states import JobStatus
from adjudge.store.jobs.models import JobResult
from adjudge.store.webhooks.models import WebhookDelivered, WebhookFailed
from tests.support.asgi_app import AsgiApp
from tests.support.store_harness import fence_of
from tests.unit.web.test_query_counts import cost

ROOT = "/me/webhooks"
FORM = {"url": "https://example.org/hook?a=<b>", "event": ["submission.judged", "submission.canceled"]}


async def made(client: httpx.AsyncClient, **fields: object) -> str:
    """Make a webhook; where its page is."""
    answer = await client.post(ROOT, data=FORM | fields)
    assert answer.status_code == 200, answer.text
    found = re.search(r'href="(/me/webhooks/[^"]+)"', answer.text)
    assert found, answer.text
    return found[1]


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def done(client: httpx.AsyncClient, path: str, **fields: object) -> str:
    """Send a form; where it leads."""
    answer = await client.post(path, data=fields)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["Location"])


async def ended(pages: AsgiApp, *, well: bool) -> None:
    """Let the delivery that waits end."""
    (row,) = await pages.store.rows("SELECT id FROM jobs WHERE kind = 'webhook' AND finished_at IS NULL")
    (job,) = (await pages.store.claim(row["id"])).done
    finish = JobResult(fence_of(job), typed_result=WebhookDelivered(204))
    if not well:
        finish = JobResult(fence_of(job), JobStatus.FAILED, typed_result=WebhookFailed("<b>refused</b>", 500))
    await pages.store.transact(lambda tx: pages.store.jobs.finish_and_claim_next(tx, [finish]))


async def test_webhook_is_created_and_its_secret_is_shown_once(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        assert "No webhooks." in await shown(client, ROOT)
        assert ROOT in await shown(client, "/me")
        assert ROOT in await shown(client, "/me/tokens")
        answer = await client.post(ROOT, data=FORM)
        assert answer.headers["Cache-Control"] == "no-store"
        (secret,) = set(re.findall(r"whsec_[\w-]+", answer.text))
        assert (await pages.store.row("SELECT secret FROM webhooks"))["secret"] == secret
        listed = await shown(client, ROOT)
        assert "hook?a=&lt;b&gt;" in listed
        assert "submission judged, submission canceled" in listed
        assert "whsec_" not in listed
        assert "whsec_" not in await shown(client, await made(client))


@pytest.mark.parametrize(
    ("fields", "word"), [({"url": "ftp://example.org/"}, "https://HOST/PATH"), ({"event": []}, "at least one")]
)
async def test_invalid_webhook_is_reported_and_the_form_kept(
    pages: AsgiApp, fields: dict[str, object], word: str
) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        for form in (ROOT, f"{path}/edit"):
            refused = await client.post(form, data=FORM | {"url": "https://other.example.org/"} | fields)
            assert refused.status_code == 400
            assert 'role="alert"' in refused.text
            assert word in refused.text
            assert f'value="{fields.get("url", "https://other.example.org/")}"' in refused.text
        assert "example.org/hook" in await shown(client, path), "nothing was changed"
        assert len((await client.get("/api/v1/webhooks")).json()["items"]) == 1


async def test_webhook_is_edited_disabled_and_deleted(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        form = {"url": "https://new.example.org/", "event": "submission.rejudged"}
        assert await done(client, f"{path}/edit", **form) == f"{path}?done=saved"
        assert await done(client, f"{path}/switch", to="off") == f"{path}?done=disabled"
        (found,) = (await client.get("/api/v1/webhooks")).json()["items"]
        assert (found["url"], found["events"], found["is_active"]) == (form["url"], [form["event"]], False)
        assert f"{path}/ping" not in await shown(client, path)
        refused = await client.post(f"{path}/ping")
        assert (refused.status_code, "enable it first" in refused.text) == (409, True)
        assert await done(client, f"{path}/switch", to="on") == f"{path}?done=enabled"
        assert f"{path}/ping" in await shown(client, path)
        assert await done(client, f"{path}/remove") == f"{ROOT}?done=deleted"
        assert (await client.get(path)).status_code == 404


async def test_deliveries_are_listed_and_redelivered(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        assert "No deliveries yet" in await shown(client, path)
        assert await done(client, f"{path}/ping") == f"{path}?done=pinged"
        waiting = await shown(client, f"{path}/state")
        assert "pending" in waiting
        assert "data-live-done" not in waiting
        assert "/repeat" not in waiting
        await ended(pages, well=False)
        failed = await shown(client, f"{path}/state")
        assert "&lt;b&gt;refused&lt;/b&gt;" in failed
        assert "HTTP 500" in failed
        assert "data-live-done" in failed
        found = re.search(r'action="([^"]+/repeat)"', failed)
        assert found, failed
        assert await done(client, found[1]) == f"{path}?done=redelivered"
        await ended(pages, well=True)
        assert "HTTP 204" in await shown(client, path)
        await done(client, f"{path}/switch", to="off")
        assert "/repeat" not in await shown(client, path), "it would be refused"
        assert (await client.post(found[1])).status_code == 409


@pytest.mark.parametrize(
    ("wait_sec", "asked_ms"), [(-5, (2_000, 2_000)), (60, (50_000, 60_000)), (3_600, (300_000, 300_000))]
)
async def test_poll_interval_follows_the_next_attempt(pages: AsgiApp, wait_sec: int, asked_ms: tuple[int, int]) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        assert "data-poll-ms" not in await shown(client, path)
        await done(client, f"{path}/ping")
        await pages.store.write(
            "UPDATE jobs SET available_at = :at", at=(time.time_ns() // 1_000) + wait_sec * 1_000_000
        )
        found = re.search(r'data-poll-ms="(\d+)"', await shown(client, f"{path}/state"))
        assert found
        assert asked_ms[0] <= int(found[1]) <= asked_ms[1]


async def test_failing_webhook_shows_its_error(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        await pages.store.write("UPDATE webhooks SET failures = 2")
        assert "The last 2 deliveries failed." in await shown(client, path)
        await pages.store.write("UPDATE webhooks SET is_active = 0, disabled_at = 1, disabled_reason = '<i>gone</i>'")
        for where in (ROOT, path):
            assert "disabled after repeated failures" in await shown(client, where)
        assert "&lt;i&gt;gone&lt;/i&gt;" in await shown(client, path)
        await done(client, f"{path}/switch", to="on")
        assert "failed too often" not in await shown(client, path)


async def test_webhooks_are_visible_to_their_owner_only(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client, pages.as_role("admin") as other, pages.client() as visitor:
        path = await made(client)
        assert "example.org" not in await shown(other, ROOT)
        assert [(await other.get(where)).status_code for where in (path, f"{path}/state")] == [404, 404]
        for action in ("edit", "switch", "ping", "remove", "deliveries/x/repeat"):
            assert (await other.post(f"{path}/{action}", data=FORM)).status_code == 404, action
        assert (await visitor.get(path)).headers["Location"].startswith("/login")
        assert (await client.get(f"/api/v1/webhooks/{path.rpartition('/')[2]}")).json()["is_active"] is True


async def test_statements_of_delivery_list_do_not_depend_on_its_length(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        path = await made(client)
        short = await cost(client, path)
        for _ in range(3):
            await done(client, f"{path}/ping")
        assert await cost(client, path) == short
        assert max(short.values()) <= 2, short
