"""Webhooks: created with what they tell of, signed, tried again, and never sent inside."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id
from adjudge.domain.ip_addresses import unwrap_ipv4
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.services.http_client import PrivateHostAllowList
from adjudge.store.jobs.models import JobResult
from adjudge.store.webhooks.commands import ATTEMPTS, WebhookDeliveryListener
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.delivery import DeliveryFailed
from adjudge.worker.handlers.webhook import WebhookHandler
from tests.support.asgi_app import make_app
from tests.support.dripping import dripping
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness, fence_of
from tests.support.tcp_server import tcp_server

ROOT = "/api/v1/webhooks"
LOOPBACK = PrivateHostAllowList.parse("127.0.0.0/8")


@pytest.fixture
async def published_problem(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def sqlite_published_problem(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on SQLite."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@asynccontextmanager
async def listening(status: int = 204) -> AsyncIterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server on this machine that keeps what it is sent."""
    seen: list[tuple[dict[str, str], bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {
            name.lower(): value
            for line in head.splitlines()[1:]
            if ": " in line
            for name, value in [line.split(": ", 1)]
        }
        seen.append((headers, await reader.readexactly(int(headers["content-length"]))))
        location = "Location: http://127.0.0.1:1/\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with tcp_server(serve) as port:
        yield f"http://127.0.0.1:{port}/hook?a=b", seen


async def deliver(
    published_problem: PublishedProblem, allowed: PrivateHostAllowList = LOOPBACK, **options: Any
) -> HandlerResult:
    """Run the one delivery that waits, as a worker would."""
    (row,) = await published_problem.api.store.rows(
        "SELECT id FROM jobs WHERE kind = 'webhook' AND finished_at IS NULL"
    )
    (job,) = (await published_problem.api.store.claim(row["id"])).done
    handler = WebhookHandler(published_problem.api.store.database, allowed, clock=lambda: 1_700_000_000, **options)
    try:
        done = await handler.run(job)
    except DeliveryFailed as error:
        release = JobResult(fence_of(job), JobStatus.PENDING, reason="retry", error_code=error.code, error=str(error))
        await published_problem.api.store.transact(
            lambda tx: published_problem.api.store.jobs.finish_and_claim_next(tx, [release])
        )
        raise
    finish = JobResult(fence_of(job), done.status, done.result, done.typed_result, dead_letter=done.dead_letter)
    await published_problem.api.store.transact(
        lambda tx: published_problem.api.store.jobs.finish_and_claim_next(tx, [finish])
    )
    return done


async def test_verdict_is_delivered_signed_and_logged(published_problem: PublishedProblem) -> None:
    async with (
        published_problem.user_client() as client,
        published_problem.user_client() as other,
        listening() as (url, seen),
    ):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()
        assert "secret" not in json.dumps((await client.get(ROOT)).json())
        item = await published_problem.submit(client)
        await published_problem.finish(item["job_id"], Verdict.WA)
        await deliver(published_problem)
        ((headers, body),) = seen
        payload = json.loads(body)
        assert (payload["event"], payload["data"]["submission_id"], payload["data"]["verdict"]) == (
            "submission.judged",
            item["submission_id"],
            "WA",
        )
        digest = hmac.new(made["secret"].encode(), b"1700000000." + body, hashlib.sha256).hexdigest()
        assert headers["x-adjudge-signature"] == f"t=1700000000,v1={digest}"
        assert headers["x-adjudge-event"] == "submission.judged"
        place = f"{ROOT}/{made['webhook']['id']}"
        (entry,) = (await client.get(f"{place}/deliveries")).json()["items"]
        assert (entry["state"], entry["response_status"], entry["attempts"]) == ("delivered", 204, 1)
        for method, path in (
            ("GET", place),
            ("PATCH", place),
            ("DELETE", place),
            ("POST", f"{place}:ping"),
            ("GET", f"{place}/deliveries"),
        ):
            nosy = await other.request(method, path, json={} if method == "PATCH" else None)
            assert (nosy.status_code, nosy.json()["code"]) == (404, "WEBHOOK_NOT_FOUND")


async def test_only_subscribed_events_are_delivered(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client, published_problem.user_client() as other:
        await client.post(ROOT, json={"url": "https://example.org/", "events": ["submission.canceled"]})
        mine, theirs = await published_problem.submit(client), await published_problem.submit(other)
        await published_problem.finish(mine["job_id"])
        await published_problem.finish(theirs["job_id"])
        assert await published_problem.api.store.rows("SELECT id FROM webhook_deliveries") == []
        third = await published_problem.submit(client)
        await client.post(f"/api/v1/submissions/{third['submission_id']}:cancel")
        (row,) = await published_problem.api.store.rows("SELECT event, body FROM webhook_deliveries")
        assert row["event"] == "submission.canceled"


async def test_a_refusal_is_tried_again_and_shown(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client, listening(500) as (url, seen):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()
        ping = await client.post(f"{ROOT}/{made['webhook']['id']}:ping")
        assert ping.status_code == 202
        for _ in range(2):
            with pytest.raises(DeliveryFailed):
                await deliver(published_problem)
        (entry,) = (await client.get(f"{ROOT}/{made['webhook']['id']}/deliveries")).json()["items"]
        assert (entry["event"], entry["state"], entry["attempts"]) == ("ping", "pending", 2)
        assert "500" in entry["error"]
        assert len(seen) == 2


async def give_up(published_problem: PublishedProblem) -> None:
    """Try the one delivery that waits until there is no attempt left."""
    for _ in range(ATTEMPTS - 1):
        with pytest.raises(DeliveryFailed):
            await deliver(published_problem)
    assert (await deliver(published_problem)).status is JobStatus.FAILED


async def test_a_delivery_that_was_given_up_is_its_owners_to_repeat(published_problem: PublishedProblem) -> None:
    store = published_problem.api.store
    async with published_problem.user_client() as client, listening(500) as (url, _), listening() as (working, _):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()["webhook"]
        await client.post(f"{ROOT}/{made['id']}:ping")
        (waiting,) = (await client.get(f"{ROOT}/{made['id']}/deliveries")).json()["items"]
        repeat = f"{ROOT}/{made['id']}/deliveries/{waiting['id']}:repeat"
        assert (await client.post(repeat)).status_code == 409
        await give_up(published_problem)
        (given_up,) = (await client.get(f"{ROOT}/{made['id']}/deliveries")).json()["items"]
        assert (given_up["state"], given_up["attempts"], given_up["response_status"]) == ("failed", 6, 500)
        assert "500" in given_up["error"]
        assert await store.rows("SELECT id FROM dead_letters") == [], "no operator can mend it"
        await client.patch(f"{ROOT}/{made['id']}", json={"url": working})
        assert (await client.post(repeat)).status_code == 202
        assert (await client.post(repeat.replace(waiting["id"], new_id()))).json()["code"] == "DELIVERY_NOT_FOUND"
        await deliver(published_problem)
        (delivery,) = (await client.get(f"{ROOT}/{made['id']}/deliveries")).json()["items"]
        assert (delivery["state"], delivery["response_status"]) == ("delivered", 204)


async def test_a_webhook_that_fails_again_and_again_is_switched_off(published_problem: PublishedProblem) -> None:
    published_problem.api.store.jobs._listeners["webhook"] = WebhookDeliveryListener(disable_after=2)  # type: ignore[index]  # a dict, here
    async with published_problem.user_client() as client, listening(500) as (url, _), listening() as (working, seen):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()["webhook"]
        place, current = f"{ROOT}/{made['id']}", made
        for failures in (1, 2):
            await client.post(f"{place}:ping")
            await give_up(published_problem)
            assert (await client.get(place)).json()["failures"] == failures - 1, "a ping is no delivery"
            await published_problem.finish((await published_problem.submit(client))["job_id"])
            await give_up(published_problem)
            current = (await client.get(place)).json()
            assert (current["failures"], current["is_active"]) == (failures, failures < 2)
        assert "500" in current["disabled_reason"]
        assert current["disabled_at"] is not None
        last = (await client.get(f"{place}/deliveries")).json()["items"][0]["id"]
        assert (await client.post(f"{place}/deliveries/{last}:redeliver")).json()["code"] == "CONFLICT"
        mended = (await client.patch(place, json={"is_active": True, "url": working})).json()
        assert (mended["failures"], mended["is_active"], mended["disabled_reason"]) == (0, True, None)
        await published_problem.finish((await published_problem.submit(client))["job_id"])
        await deliver(published_problem)
        assert len(seen) == 1


async def test_one_success_forgives_the_failures_before_it(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    published_problem.api.store.jobs._listeners["webhook"] = WebhookDeliveryListener(disable_after=2)  # type: ignore[index]  # a dict, here
    async with published_problem.user_client() as client, listening(500) as (url, _), listening() as (working, _):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()["webhook"]
        await published_problem.finish((await published_problem.submit(client))["job_id"])
        await give_up(published_problem)
        await client.patch(f"{ROOT}/{made['id']}", json={"url": working})
        await published_problem.finish((await published_problem.submit(client))["job_id"])
        await deliver(published_problem)
        assert (await client.get(f"{ROOT}/{made['id']}")).json()["failures"] == 0


async def test_what_waits_when_a_webhook_is_switched_off_is_dropped(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client, listening() as (url, seen):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()["webhook"]
        await published_problem.finish((await published_problem.submit(client))["job_id"])
        await client.patch(f"{ROOT}/{made['id']}", json={"is_active": False})
        await deliver(published_problem)
        (entry,) = (await client.get(f"{ROOT}/{made['id']}/deliveries")).json()["items"]
        assert (entry["state"], seen) == ("canceled", [])


async def test_a_redirect_is_not_followed(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client, listening(302) as (url, _):
        made = (await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})).json()
        await client.post(f"{ROOT}/{made['webhook']['id']}:ping")
        with pytest.raises(DeliveryFailed, match="302"):
            await deliver(published_problem)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "224.0.0.1", "0.0.0.0"),
        *("::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:0a00:0001::1"),
    ],
)
def test_an_address_inside_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="not a public one") as refused:
        PrivateHostAllowList().check_address(ipaddress.ip_address(address), "looks.fine")
    assert str(unwrap_ipv4(ipaddress.ip_address(address))) not in str(refused.value), (
        "addresses of internal names are not revealed"
    )


async def test_a_name_that_also_leads_inside_is_never_called(sqlite_published_problem: PublishedProblem) -> None:
    async def resolve(*_: object) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    async with sqlite_published_problem.user_client() as client:
        made = await client.post(ROOT, json={"url": "http://looks.fine/", "events": ["submission.judged"]})
        await client.post(f"{ROOT}/{made.json()['webhook']['id']}:ping")
        done = await deliver(sqlite_published_problem, PrivateHostAllowList(), resolve=resolve)
        assert done.status is JobStatus.FAILED, "another attempt would find the same"
        (entry,) = (await client.get(f"{ROOT}/{made.json()['webhook']['id']}/deliveries")).json()["items"]
        assert (entry["state"], entry["attempts"]) == ("failed", 1)
        assert "not a public one" in entry["error"]
        assert "10.0.0.1" not in entry["error"]


def test_an_operator_may_allow_hosts_and_networks() -> None:
    allowed = PrivateHostAllowList.parse("ci.internal, 10.0.0.0/8")
    assert allowed.hosts == {"ci.internal"}
    with pytest.raises(InvalidInput):
        PrivateHostAllowList.parse("10.0.0.0/33")


async def test_webhooks_are_changed_switched_off_and_removed(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client:
        body = {"url": "https://example.org/", "events": ["submission.judged"]}
        made = (await client.post(ROOT, json=body)).json()
        place = f"{ROOT}/{made['webhook']['id']}"
        changed = (await client.patch(place, json={"is_active": False})).json()
        assert (changed["is_active"], changed["url"]) == (False, "https://example.org/")
        item = await published_problem.submit(client)
        await published_problem.finish(item["job_id"])
        assert await published_problem.api.store.rows("SELECT id FROM webhook_deliveries") == []
        assert (await client.delete(place)).status_code == 204
        assert (await client.get(place)).status_code == 404
        for wrong in ("ftp://example.org/", "https://", "https://a:b@example.org/", "https://intranet/", "http://[::1"):
            answer = await client.post(ROOT, json=body | {"url": wrong})
            assert (answer.status_code, answer.json()["fields"]["field"]) == (400, "url")
        for _ in range(10):
            await client.post(ROOT, json=body)
        assert (await client.post(ROOT, json=body)).status_code == 409


async def test_nothing_is_sent_to_a_webhook_that_is_switched_off(sqlite_published_problem: PublishedProblem) -> None:
    async with sqlite_published_problem.user_client() as client:
        made = (await client.post(ROOT, json={"url": "https://example.org/", "events": ["submission.judged"]})).json()
        place = f"{ROOT}/{made['webhook']['id']}"
        await client.patch(place, json={"is_active": False})
        refused = await client.post(f"{place}:ping")
        assert (refused.status_code, refused.json()["code"]) == (409, "CONFLICT")
        assert "enable it first" in refused.json()["detail"]
        assert (await client.get(f"{place}/deliveries")).json()["items"] == []
        await client.patch(place, json={"is_active": True})
        assert (await client.post(f"{place}:ping")).status_code == 202


async def test_pings_are_few(sqlite_published_problem: PublishedProblem) -> None:
    async with sqlite_published_problem.user_client() as client:
        made = (await client.post(ROOT, json={"url": "https://example.org/", "events": ["submission.judged"]})).json()
        answers = [await client.post(f"{ROOT}/{made['webhook']['id']}:ping") for _ in range(11)]
    assert [answer.status_code for answer in answers[-2:]] == [202, 429]


async def test_a_delivery_is_given_up_when_the_answer_comes_too_slowly(published_problem: PublishedProblem) -> None:
    """Each header comes in time, the whole answer does not."""
    async with dripping(b"HTTP/1.1 200 X\r\n", b"X-More: yes\r\n") as url, published_problem.user_client() as client:
        await client.post(ROOT, json={"url": url, "events": ["submission.judged"]})
        await published_problem.finish((await published_problem.submit(client))["job_id"])
        with pytest.raises(DeliveryFailed, match=r"No answer within 0\.5 s"):
            await deliver(published_problem, timeout_sec=0.5)
