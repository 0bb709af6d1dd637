"""Operators: health in detail, queues, dead letters, the audit log, jobs, settings, figures."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from adjudge import settings as settings_source
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id
from adjudge.registry import ProcessHealth, ProcessInfo, ProcessRole
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import PoisonJob
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness

OPS = "/api/v1/ops"


async def dead_lettered(api: AsgiApp, count: int = 1) -> list[str]:
    jobs = await api.store.enqueue_many(count)
    poison_jobs = [PoisonJob(job_id, "NO_HANDLER", "nobody runs nodes here") for job_id in jobs]
    await api.store.transact(lambda tx: api.services.ops.jobs.dead_letter(tx, poison_jobs, actor="w1"))
    return [letter.id for letter in await api.store.database.read(dead_letters.page)]


async def test_staff_see_the_system_status(api_on_both: AsgiApp) -> None:
    api = api_on_both
    await api.store.enqueue_many(2, priority=1)
    await api.store.clock.advance(ms=5_000)
    await api.store.enqueue_many(1, priority=3)
    await api.store.claimed()
    await dead_lettered(api)
    await api.services.ops.registry.register(
        ProcessInfo("w1", "host", 7, "1.0", 2, {"cpp": "13"}, isolation="sandbox", health=ProcessHealth.READY)
    )
    async with api.as_role("judge") as judge:
        state = (await judge.get(f"{OPS}/status")).json()
        assert [(band["band"], band["waiting"], band["oldest_ms"]) for band in state["queues"]["bands"]] == [
            (1, 2, 5_000),
            (3, 1, 0),
        ]
        assert (state["queues"]["running"], state["dead_letters"]) == (1, 1)
        assert state["outbox"] == {"pending": 4, "due": 4, "oldest_ms": 5_000, "trouble": []}
        assert (await judge.get(f"{OPS}/queue")).json() == (await judge.get(f"{OPS}/queues")).json() == state["queues"]
        assert (await judge.get(f"{OPS}/outbox")).json() == state["outbox"]
        (worker,) = (await judge.get(f"{OPS}/workers")).json()["items"]
        assert (worker["name"], worker["languages"], worker["health"]) == ("w1", {"cpp": "13"}, "ready")


async def test_staff_see_all_roles(api_on_both: AsgiApp) -> None:
    registry = api_on_both.services.ops.registry
    for role in ProcessRole:
        await registry.register(ProcessInfo(f"{role}-1", "host", 7, "1.0", role=role, health=ProcessHealth.READY))
    async with api_on_both.as_role("judge") as judge:
        listed = (await judge.get(f"{OPS}/processes")).json()["items"]
        assert [(item["name"], item["role"], item["version"], item["seen_ago_sec"]) for item in listed] == [
            ("api-1", "api", "1.0", 0),
            ("scheduler-1", "scheduler", "1.0", 0),
            ("worker-1", "worker", "1.0", 0),
        ]
        workers = (await judge.get(f"{OPS}/workers")).json()["items"]
        assert [item["name"] for item in workers] == ["worker-1"]


async def test_dead_letters_are_read_replayed_and_discarded_by_name(api_on_both: AsgiApp) -> None:
    api = api_on_both
    first, second, third = await dead_lettered(api, 3)
    user_id, secret = await api.user("admin", "root1")
    async with api.client(secret) as admin:
        page = (await admin.get(f"{OPS}/dead-letters", params={"limit": 2})).json()
        rest = (await admin.get(f"{OPS}/dead-letters", params={"limit": 2, "cursor": page["next"]})).json()
        assert [item["id"] for item in page["items"] + rest["items"]] == [first, second, third]
        detail = (await admin.get(f"{OPS}/dead-letters/{first}")).json()
        assert (detail["error_code"], detail["attempts"]) == ("NO_HANDLER", [])
        answer = await admin.post(f"{OPS}/dead-letters:replay", json={"ids": [first, second], "reason": "fixed"})
        jobs = answer.json()["jobs"]
        assert (await api.store.job(jobs[first]))["status"] == "pending"
        again = await admin.post(f"{OPS}/dead-letters:replay", json={"ids": [third, first], "reason": "fixed"})
        assert again.json()["code"] == "CONFLICT", "all or none"
        assert (await admin.get(f"{OPS}/dead-letters/{third}")).json()["state"] == "open"
        discarded = await admin.post(f"{OPS}/dead-letters:discard", json={"ids": [third], "reason": "old"})
        assert discarded.status_code == 204
        unknown = await admin.post(f"{OPS}/dead-letters:discard", json={"ids": [new_id()], "reason": "old"})
        assert unknown.json()["code"] == "DEAD_LETTER_NOT_FOUND"
        log = (await admin.get(f"{OPS}/audit", params={"actor": "root1"})).json()["items"]
        assert [(entry["action"], entry["reason"]) for entry in log] == [
            ("discard", "old"),
            ("replay", "fixed"),
            ("replay", "fixed"),
        ]
        assert {(entry["actor"], entry["actor_name"]) for entry in log} == {(user_id, "root1")}
        assert (await admin.get(f"{OPS}/audit", params={"actor": user_id})).json()["items"] == log
        of_one = {"object_kind": "dead_letter", "object_id": third}
        assert [entry["action"] for entry in (await admin.get(f"{OPS}/audit", params=of_one)).json()["items"]] == [
            "discard"
        ]
        assert (await admin.get(f"{OPS}/audit", params={"object_kind": "user"})).status_code == 400
    assert user_id


async def test_job_history_is_shown(api: AsgiApp) -> None:
    fence = await api.store.claimed()
    async with api.as_role("judge") as judge:
        history = (await judge.get(f"{OPS}/jobs/{fence.job_id}")).json()
        assert (history["job"]["status"], history["job"]["lease_owner"], history["job"]["payload"]) == (
            "running",
            "w1",
            {},
        )
        assert [(change["from_status"], change["to_status"]) for change in history["log"]] == [("pending", "running")]
        assert (await judge.get(f"{OPS}/jobs/{new_id()}")).json()["code"] == "JOB_NOT_FOUND"


async def test_settings_are_shown_without_their_secrets(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    secrets: dict[str, object] = {
        "files.s3_secret_access_key": "hunter2",
        "accounts.oidc_client_secret": "hunter3",
        "database.url": "postgresql://me:hunter4@db/x",
    }
    async with make_app(sqlite_store, tmp_path, secrets) as api, api.as_role("admin") as admin:
        answer = await admin.get(f"{OPS}/config")
    assert "hunter" not in answer.text
    shown = {item["name"]: item for item in answer.json()["items"]}
    assert shown["files.s3_secret_access_key"]["value"] == "[redacted]"
    assert shown["jobs.lease_sec"]["value"] == "15.0"


@pytest.mark.parametrize(
    ("networks", "visitor", "far_visitor"),
    [("0.0.0.0/0, ::/0", 200, 200), ("127.0.0.0/8, ::1", 200, 403), ("none", 401, 401)],
)
async def test_metrics_are_for_whom_the_settings_say(
    sqlite_store: StoreHarness, tmp_path: Path, networks: str, visitor: int, far_visitor: int
) -> None:
    token = "token-of-the-scraper"
    settings: dict[str, object] = {"server.metrics_networks": networks, "server.metrics_token": token}
    async with make_app(sqlite_store, tmp_path, settings) as api:
        async with api.client() as near, api.as_role("judge") as staff, api.as_role("contestant") as other:
            assert (await near.get("/metrics")).status_code == visitor
            assert (await staff.get("/metrics")).status_code == 200
            assert (await other.get("/metrics")).status_code == (200 if visitor == 200 else 403)
        transport = httpx.ASGITransport(app=api.app, client=("198.51.100.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://adjudge") as far:
            assert (await far.get("/metrics")).status_code == far_visitor
            headers = {"Authorization": f"Bearer {token}"}
            assert "adjudge_queue_depth" in (await far.get("/metrics", headers=headers)).text


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("metrics_networks", "10.0.0.1/8", "has host bits set; give networks such as 10.0.0.0/8, or none"),
        ("metrics_networks", "everybody", "does not appear to be an IPv4 or IPv6 network"),
        ("metrics_token", "short", "must have at least 16 characters"),
    ],
)
def test_invalid_access_to_metrics_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        settings_source.load({f"server.{name}": value}, environ={})
    assert f"server.{name}" in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({}, {"X-Forwarded-For": "198.51.100.7"}),
        ({}, {"Forwarded": "for=198.51.100.7"}),
        ({"server.public_url": "https://judge.example"}, {}),
        ({"server.trusted_proxies": "127.0.0.1"}, {}),
    ],
)
async def test_a_proxy_on_this_machine_does_not_give_figures_away(
    sqlite_store: StoreHarness, tmp_path: Path, settings: dict[str, object], headers: dict[str, str]
) -> None:
    async with (
        make_app(sqlite_store, tmp_path, settings) as api,
        api.client(headers=headers) as anybody,
        api.as_role("judge") as staff,
    ):
        refused = await anybody.get("/metrics")
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
        assert (await staff.get("/metrics", headers=headers)).status_code == 200
