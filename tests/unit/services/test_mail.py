"""Mail: queued with its cause, sent by a job to a real SMTP server, tried again, forgotten when sent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.registry import ProcessHealth, ProcessInfo
from adjudge.relay.operational_alerts import OperationalAlerts
from adjudge.services.smtp import MailRefused, SmtpClient
from adjudge.store.accounts import users
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobResult
from adjudge.store.ops import mails
from adjudge.store.ops.mails import MailListener, NewMail
from adjudge.worker.handlers.mail import MailHandler
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.shared_routes import add_pages
from tests.support.smtp_server import Mailbox, smtp_server
from tests.support.store_harness import StoreHarness, fence_of

SENDER = "judge@judge.example"
PUBLIC = "https://judge.example"
PASSWORD = "correct-horse-battery"


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as found:
        yield found


@asynccontextmanager
async def app(store: StoreHarness, tmp_path: Path, mailbox: Mailbox) -> AsyncIterator[AsgiApp]:
    settings: dict[str, object] = {
        "mail.smtp_url": mailbox.url,
        "mail.sender": SENDER,
        "server.public_url": PUBLIC,
        "accounts.registration": "invitation",
    }
    async with make_app(store, tmp_path, settings) as made:
        add_pages(made.app, made.services)
        yield made


async def send_due(store: StoreHarness, mailbox: Mailbox) -> list[JobStatus]:
    """Run the waiting mail jobs, as a worker does; return how they ended."""
    handler, jobs = MailHandler(store.database, SmtpClient(mailbox.url, SENDER)), JobCommands({"mail": MailListener()})
    rows = await store.rows("SELECT id FROM jobs WHERE kind = 'mail' AND status = 'pending' ORDER BY id")
    claimed = (await store.claim(*[row["id"] for row in rows])).done if rows else ()
    ended = []
    for job in claimed:
        result = await handler.run(job)
        finish = JobResult(fence_of(job), result.status, result.result, None, "finished", result.error_code)
        await store.transact(lambda tx, finish=finish: jobs.finish_and_claim_next(tx, [finish]))  # type: ignore[misc]  # a default binds it
        ended.append(result.status)
    return ended


async def test_mail_is_sent_once_and_its_text_forgotten(store: StoreHarness, mailbox: Mailbox) -> None:
    await store.transact(lambda tx: mails.enqueue(tx, [NewMail("ann@example.org", "Grüße", "Zeile mit ü\n")]))
    assert await send_due(store, mailbox) == [JobStatus.SUCCEEDED]
    (received,) = mailbox.received
    assert (received["To"], received["From"], received["Subject"]) == ("ann@example.org", SENDER, "Grüße")
    assert received.get_content().splitlines() == ["Zeile mit ü"]
    (row,) = await store.rows("SELECT state, body FROM mails")
    assert (row["state"], row["body"]) == ("sent", None)


async def test_refused_mail_fails_without_a_dead_letter(store: StoreHarness, mailbox: Mailbox) -> None:
    mailbox.reply = "550 no such user"
    await store.transact(lambda tx: mails.enqueue(tx, [NewMail("nobody@example.org", "x", "y")]))
    assert await send_due(store, mailbox) == [JobStatus.FAILED]
    (row,) = await store.rows("SELECT state, error, body FROM mails")
    assert (row["state"], row["error"], row["body"]) == ("failed", "MAIL_REFUSED", None)


async def test_busy_server_is_tried_again_and_a_wrong_password_refused(mailbox: Mailbox) -> None:
    async def send(url: str) -> None:
        await SmtpClient(url, SENDER).send(message_id="1", recipient="a@example.org", subject="x", body="y")

    mailbox.reply = "451 try later"
    with pytest.raises(Unavailable, match="451"):
        await send(mailbox.url)
    with pytest.raises(MailRefused, match="535"):
        await send(mailbox.url.replace("correct-horse", "wrong"))
    with pytest.raises(Unavailable, match="mail server"):
        await send("smtp://127.0.0.1:9?starttls=off")


async def test_worker_without_a_mail_server_leaves_the_mail_to_others(store: StoreHarness) -> None:
    await store.transact(lambda tx: mails.enqueue(tx, [NewMail("ann@example.org", "x", "y")]))
    (row,) = await store.rows("SELECT id FROM jobs")
    (job,) = (await store.claim(row["id"])).done
    with pytest.raises(Unavailable, match=r"mail\.smtp_url"):
        await MailHandler(store.database, None).run(job)


async def _link(mailbox: Mailbox) -> str:
    found = re.search(rf"{PUBLIC}(\S+)", mailbox.received[-1].get_content())
    assert found is not None
    return found.group(1)


async def test_password_is_reset_with_the_link_of_a_mail(store: StoreHarness, tmp_path: Path, mailbox: Mailbox) -> None:
    async with app(store, tmp_path, mailbox) as api, api.client() as visitor:
        user_id, token = await api.user("contestant", "ann")
        password_hash = await api.services.users.passwords.hash("an old password 1")
        await store.transact(lambda tx: users.update_password(tx, user_id, password_hash, must_change=False))
        await store.transact(lambda tx: users.update_profile(tx, user_id, email="Ann@example.org", display_name=None))
        for who in ("ann", "Ann@example.org", "nobody", "other@example.org"):
            answer = await visitor.post("/forgot-password", data={"who": who})
            assert (answer.status_code, "a link is on its way" in answer.text) == (200, True), "the same for all"
        assert await send_due(store, mailbox) == [JobStatus.SUCCEEDED] * 2
        link = await _link(mailbox)
        shown = await visitor.get(link)
        assert shown.headers["Referrer-Policy"] == "no-referrer"
        secret = link.partition("token=")[2]
        weak = await visitor.post("/reset-password", data={"token": secret, "password": "short", "again": "short"})
        assert weak.status_code == 400
        form = {"token": secret, "password": PASSWORD, "again": PASSWORD}
        done = await visitor.post("/reset-password", data=form)
        assert (done.status_code, done.headers["Location"]) == (303, "/login?done=password")
        again = await visitor.post("/reset-password", data=form)
        assert (again.status_code, "used, expired or unknown" in again.text) == (400, True)
        login = await visitor.post("/api/v1/login", json={"name": "ann", "password": PASSWORD})
        assert login.status_code == 200
        async with api.client(token) as old:
            assert (await old.get("/api/v1/me")).status_code == 401, "tokens have ended"
        assert not await store.rows("SELECT id FROM password_resets WHERE used_at IS NULL"), (
            "nor does the other link work"
        )


async def test_expired_link_is_refused(store: StoreHarness, tmp_path: Path, mailbox: Mailbox) -> None:
    async with app(store, tmp_path, mailbox) as api, api.client() as visitor:
        user_id, _ = await api.user("contestant", "ann")
        path = await api.services.password_resets.create_link("root", user_id, reason="forgotten")
        assert (await visitor.get(path)).status_code == 200
        await store.clock.advance(4 * 86_400_000)
        assert (await visitor.get(path)).status_code == 400


async def test_requests_for_links_are_limited(store: StoreHarness, tmp_path: Path, mailbox: Mailbox) -> None:
    async with app(store, tmp_path, mailbox) as api, api.client() as visitor:
        codes = [(await visitor.post("/forgot-password", data={"who": "ann"})).status_code for _ in range(7)]
        assert codes[:5] == [200] * 5
        assert 429 in codes[5:]


async def test_without_mail_the_page_says_whom_to_ask(api: AsgiApp) -> None:
    add_pages(api.app, api.services)
    async with api.client() as visitor:
        assert "Ask an admin for a link." in (await visitor.get("/forgot-password")).text
        assert (await visitor.post("/forgot-password", data={"who": "ann"})).status_code == 400


async def test_invitation_is_sent_by_mail(store: StoreHarness, tmp_path: Path, mailbox: Mailbox) -> None:
    async with app(store, tmp_path, mailbox) as api, api.as_role("admin") as admin, api.client() as visitor:
        body = {"email": "new@example.org", "note": "spring course"}
        assert (await admin.post("/api/v1/invitations", json=body)).status_code == 201
        assert await send_due(store, mailbox) == [JobStatus.SUCCEEDED]
        assert mailbox.received[0]["To"] == "new@example.org"
        link = await _link(mailbox)
        assert link.startswith("/register?invitation=inv_")
        assert (await visitor.get(link)).status_code == 200


async def test_invitation_by_mail_needs_a_mail_server(api: AsgiApp) -> None:
    async with api.as_role("admin") as admin:
        refused = await admin.post("/api/v1/invitations", json={"email": "new@example.org"})
        assert (refused.status_code, "mail.smtp_url" in refused.json()["detail"]) == (400, True)


async def _subscribe(client: httpx.AsyncClient, events: list[str]) -> httpx.Response:
    return await client.post("/api/v1/webhooks", json={"url": "https://example.org/hook", "events": events})


async def test_operators_are_alerted_once_by_mail_and_webhook(
    store: StoreHarness, tmp_path: Path, mailbox: Mailbox
) -> None:
    async with app(store, tmp_path, mailbox) as api:
        async with api.as_role("admin") as admin, api.as_role("contestant") as contestant:
            assert (await _subscribe(admin, ["ops.worker_lost", "ops.dead_letter"])).status_code == 201
            assert (await _subscribe(contestant, ["ops.dead_letter"])).status_code == 400
        registry = api.services.ops.registry
        await registry.register(ProcessInfo("w1", "host-7", 7, "1", 2, health=ProcessHealth.READY))
        await registry.register(ProcessInfo("w2", "host-8", 7, "1", 2, health=ProcessHealth.READY))
        await registry.deregister("w2")
        await store.dead_letter(await store.enqueue_many(1), "NO_HANDLER")
        alerts = [
            OperationalAlerts(store.database, recipients=["ops@example.org"], interval_ms=300_000, public_url=PUBLIC)
            for _ in range(2)
        ]
        assert await alerts[0].run_once() == 1, "the dead letter; the worker may come back"
        await store.clock.advance(60_000)
        assert [await one.run_once() for one in (*alerts, *alerts)] == [1, 0, 0, 0], "an orderly end is no alert"
        await store.clock.advance(300_001)
        await alerts[1].run_once()
        assert await send_due(store, mailbox) == [JobStatus.SUCCEEDED] * 2
        first, second = (message.get_content() for message in mailbox.received)
        assert "dead letter: node job" in first
        assert "worker lost: w1 on host-7" in second
        assert f"{PUBLIC}/ops" in second
        sent = await store.rows("SELECT event FROM webhook_deliveries ORDER BY event")
        assert [row["event"] for row in sent] == ["ops.dead_letter", "ops.worker_lost"]
