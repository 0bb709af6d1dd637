"""Effects of queue settings and log lines, with the real commands as processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from redis.asyncio import Redis

from adjudge import settings
from adjudge.cli.wiring.chains import make_engine
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens
from adjudge.store.chains import definitions
from adjudge.store.chains.models import NewChainRun
from adjudge.store.webhooks import commands as webhook_commands
from tests.integration.queue.installation import (
    Installation,
    events,
    import_problem,
    rows,
    submit,
    until_all_decided,
)
from tests.support.servers import RedisServer
from tests.support.tcp_server import tcp_server

pytestmark = pytest.mark.slow
SOURCE = "import time\ntime.sleep(0.05)\nprint('wrong')\n"
SLEEP_US = 50_000
"""For how long each program sleeps."""
REQUEST = "a-request-of-the-test"
STEPS = {"enqueued", "delivered", "started", "finished"}


@pytest.fixture
def installation(postgres_url: str, redis_server: RedisServer, tmp_path: Path) -> Installation:
    installation = Installation(postgres_url, redis_server, tmp_path)
    installation.environment |= {"ADJUDGE_LOG_FORMAT": "json", "ADJUDGE_LOG_LEVEL": "info"}
    return installation


async def _until(installation: Installation, sql: str) -> None:
    async with installation.opened() as database, asyncio.timeout(240):
        while not await rows(database, sql):
            await asyncio.sleep(0.05)


async def _readers(installation: Installation) -> set[str]:
    """Who reads the streams of this installation."""
    client: Redis = Redis.from_url(installation.environment["ADJUDGE_REDIS_URL"], decode_responses=True)
    scope, found = f"adjudge:{installation.environment['ADJUDGE_ENVIRONMENT']}", set()
    async for key in client.scan_iter(match=f"{scope}:jobs:*"):
        found |= {reader["name"] for reader in await client.xinfo_consumers(key, f"{scope}:workers")}
    await client.aclose()
    return found


async def test_a_worker_reads_by_its_consumer_name_and_runs_no_more_of_a_language_than_its_limit(
    installation: Installation, tmp_path: Path
) -> None:
    """``JOB_STREAM_CONSUMER`` and ``ADJUDGE_WORKER_LIMITS``."""
    source = tmp_path / "sleeper.py"
    source.write_text(SOURCE)
    environ = {"JOB_STREAM_CONSUMER": "reader-7", "ADJUDGE_WORKER_LIMITS": "language:python3=1"}
    async with installation.opened() as database:
        ids = await import_problem(database, installation.blobs)
        with (
            installation.running("scheduler"),
            installation.running("worker", "--slots", "4", "--name", "w1", **environ),
        ):
            await submit(database, installation.blobs, ids, [source] * 4)
            decided = await until_all_decided(database)
            readers = await _readers(installation)
        attempts = await rows(
            database, "SELECT lease_owner, started_at, ended_at FROM job_attempts ORDER BY started_at"
        )
    assert [row["verdict"] for row in decided] == ["WA"] * 4
    assert readers == {"reader-7"}
    assert {row["lease_owner"] for row in attempts} == {"w1"}, "leases are held by the worker's own name"
    assert len(attempts) == 4
    starts = [row["started_at"] for row in attempts]
    assert all(two - one >= SLEEP_US for one, two in pairwise(starts)), "one begins when the program before has ended"


def _submit(url: str, secret: str) -> None:
    body = {"problem": "multiples", "language": "python3", "source": SOURCE}
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/json",
        "X-Request-ID": REQUEST,
    }
    with urlopen(Request(f"{url}/api/v1/submissions", json.dumps(body).encode(), headers), timeout=120) as answer:
        assert answer.status == 202


def _steps(installation: Installation, job_id: str) -> dict[str, dict[str, Any]]:
    """What server and worker have logged of a job, by its stage."""
    said = [event for role in ("api", "worker") for event in events(installation.folder / f"{role}.log")]
    return {event["stage"]: event for event in said if event.get("job_id") == job_id and "stage" in event}


def _requests(installation: Installation) -> list[dict[str, Any]]:
    """What the server has logged of the request itself."""
    said = events(installation.folder / "api.log")
    return [event for event in said if event.get("request_id") == REQUEST and event["event"] == "request_finished"]


async def test_d1_3_a_server_delivers_without_the_outbox_and_every_step_is_logged_with_its_origin(
    installation: Installation,
) -> None:
    """``OUTBOX_ENABLED=false`` on a server, and no scheduler; the fields that every step of a job is logged with."""
    secret = api_tokens.new_secret()
    async with installation.opened() as database:
        person, _, _ = await import_problem(database, installation.blobs)
        token = api_tokens.NewApiToken(new_id(), person, "test", secret, ("*",))
        await database.transact(lambda tx: api_tokens.insert(tx, token))
        with (
            installation.running("worker", "--slots", "1", "--name", "w1"),
            installation.running("api", "--port", "0", OUTBOX_ENABLED="false"),
        ):
            await asyncio.to_thread(_submit, installation.said["api"].split()[-1], secret)
            (decided,) = await until_all_decided(database)
            (job,) = await rows(database, "SELECT id, submission_id, trace_id FROM jobs")
            async with asyncio.timeout(240):  # what is done is logged afterwards
                while set(steps := _steps(installation, job["id"])) < STEPS or not _requests(installation):
                    await asyncio.sleep(0.05)
    assert decided["verdict"] == "WA"
    assert set(steps) == STEPS
    for step in steps.values():
        assert step["request_id"] == REQUEST
        assert (step["submission_id"], step["user_id"], step["language"]) == (job["submission_id"], person, "python3")
        assert step["trace_id"] == job["trace_id"]
    assert steps["started"]["attempt_id"] == steps["finished"]["attempt_id"] == 1
    (request,) = _requests(installation)
    assert request["trace_id"] == job["trace_id"]


@asynccontextmanager
async def _listening() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """An address that takes webhooks, and whether one came."""
    called = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        called.set()

    async with tcp_server(answer) as port:
        yield f"http://127.0.0.1:{port}/", called


async def test_d1_3_a_worker_delivers_what_verdicts_and_chains_lead_to_without_the_outbox(
    installation: Installation, tmp_path: Path
) -> None:
    """``OUTBOX_ENABLED=false`` on a worker, which is all alone: a verdict, its webhook, and a chain that fans out."""
    source = tmp_path / "sleeper.py"
    source.write_text(SOURCE)
    branches = [{"id": f"branch-{number}", "type": "noop", "deps": ["first"]} for number in range(4)]
    dag = {"nodes": [{"id": "first", "type": "noop"}, *branches]}
    environ = {"OUTBOX_ENABLED": "false", "ADJUDGE_WEBHOOKS_ALLOW": "127.0.0.0/8"}
    async with installation.opened() as database, _listening() as (url, called):
        ids = await import_problem(database, installation.blobs)

        async def prepare(tx: Tx) -> None:
            await webhook_commands.insert(
                tx, webhook_id=new_id(), user_id=ids[0], url=url, secret="whsec_x", events=[webhook_commands.JUDGED]
            )
            made = await definitions.create(tx, name="fan", dag=dag, actor=ids[0])
            await make_engine(settings.load(environ={})).start(tx, NewChainRun(made.id, {}, actor=ids[0]))

        with installation.running("worker", "--slots", "1", "--name", "w1", **environ):
            await database.transact(prepare)
            await submit(database, installation.blobs, ids, [source])
            (decided,) = await until_all_decided(database)
            async with asyncio.timeout(240):
                await called.wait()
            await _until(installation, "SELECT 1 AS one FROM chain_runs WHERE status = 'success'")
    assert decided["verdict"] == "WA"
