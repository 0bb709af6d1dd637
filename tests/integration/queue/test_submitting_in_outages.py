"""Submitting over HTTP while Redis is away or PostgreSQL is read-only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.store.accounts import api_tokens
from tests.integration.queue.installation import Installation, import_problem, rows
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.servers import RedisServer
from tests.support.store_harness import StoreHarness

SMALL = "print('wrong')\n"
LARGE = f"{SMALL}#{'x' * 100_000}\n"
"""Over 64 KiB: such a source is kept as a file, not as a row."""


async def _submit(installation: Installation, secret: str, source: str) -> httpx.Response:
    url = f"{installation.said['api'].split()[-1]}/api/v1/submissions"
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=120) as client:
        return await client.post(url, json={"problem": "multiples", "language": "python3", "source": source})


@pytest.mark.slow
@pytest.mark.parametrize("since", ["before the server starts", "while the server runs"])
async def test_117_a_submission_is_accepted_while_redis_is_away(postgres_url: str, tmp_path: Path, since: str) -> None:
    redis = RedisServer().start()
    installation, secret = Installation(postgres_url, redis, tmp_path), api_tokens.new_secret()
    try:
        async with installation.opened() as database:
            person, _, _ = await import_problem(database, installation.blobs)
            token = api_tokens.NewApiToken(new_id(), person, "test", secret, ("*",))
            await database.transact(lambda tx: api_tokens.insert(tx, token))
            if since == "before the server starts":
                redis.stop()
            with installation.running("api", "--port", "0", ADJUDGE_ADMISSION_HEALTH_GATE="false"):
                if since == "while the server runs":
                    assert (await _submit(installation, secret, SMALL)).status_code == 202
                    redis.stop()
                answers = [await _submit(installation, secret, source) for source in (SMALL, LARGE)]
            waiting = await rows(database, "SELECT job_id FROM outbox WHERE state = 'pending'")
    finally:
        redis.stop()
    assert [answer.status_code for answer in answers] == [202, 202], [answer.text for answer in answers]
    jobs = {answer.json()["job_id"] for answer in answers}
    assert jobs <= {row["job_id"] for row in waiting}, "they are delivered when Redis is back"


@pytest.fixture
async def published_problem(postgres_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    async with make_app(postgres_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


async def _switch(store: StoreHarness, *, read_only: bool) -> None:
    """Make the test's database read-only or writable, for connections that are open too."""
    name, state = urlsplit(store.url).path[1:], "on" if read_only else "off"
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    admin: Any = await asyncpg.connect(store.url)
    try:
        await admin.execute("SET default_transaction_read_only = off")
        await admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {state}')
        await admin.execute(f"SELECT pg_terminate_backend(pid) {others}")
    finally:
        await admin.close()


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
async def test_a_submission_to_a_read_only_database_is_refused_for_now(
    published_problem: PublishedProblem, content_type: str
) -> None:
    """As after a failover: 503 with ``Retry-After``, by both ways in; accepted as soon as it is writable again."""
    _, token = await published_problem.api.user("contestant")
    async with published_problem.api.client(token, headers={"Content-Type": content_type}) as client:

        async def submit() -> httpx.Response:
            return await client.post("/api/v1/submissions", json=published_problem.submission_body())

        assert (await submit()).status_code == 202
        await _switch(published_problem.api.store, read_only=True)
        refused = [await submit() for _ in range(6)]  # the first may meet a connection that was ended
        await _switch(published_problem.api.store, read_only=False)
        async with asyncio.timeout(120):
            while (accepted := await submit()).status_code == 503:
                await asyncio.sleep(0.05)
    assert [answer.status_code for answer in refused] == [503] * 6
    assert "read-only" in refused[-1].json()["detail"]
    assert int(refused[-1].headers["Retry-After"]) > 0
    assert accepted.status_code == 202
