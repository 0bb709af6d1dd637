"""Every role as a process on every server of a distributed installation: PostgreSQL, Redis, S3 and etcd."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import httpx
import pytest

from adjudge import settings
from adjudge.cli.wiring.drivers import open_blobs
from adjudge.domain.ids import new_id
from adjudge.store.accounts import api_tokens
from tests.integration.queue.installation import Installation, import_problem, listed, rows, until_all_decided
from tests.support.servers import EtcdServer, RedisServer, S3Server

LARGE = f"print('wrong')\n#{'x' * 100_000}\n"
"""Over 64 KiB: the server stores it as a file, and the worker fetches it."""


@pytest.mark.slow
async def test_10_11_processes_judge_with_files_in_s3_and_workers_in_etcd(
    postgres_url: str, redis_server: RedisServer, s3_server: S3Server, etcd_server: EtcdServer, tmp_path: Path
) -> None:
    s3_server.create_bucket("processes")
    installation, secret = Installation(postgres_url, redis_server, tmp_path), api_tokens.new_secret()
    installation.environment |= {
        "ADJUDGE_S3_BUCKET": "processes",
        "ADJUDGE_S3_PREFIX": "judge/files",
        "ADJUDGE_S3_ENDPOINT": s3_server.endpoint,
        "ADJUDGE_S3_ACCESS_KEY_ID": s3_server.access_key,
        "ADJUDGE_S3_SECRET_ACCESS_KEY": s3_server.secret_key,
        "ADJUDGE_ETCD_ENDPOINTS": etcd_server.endpoint,
    }
    loaded = settings.load(environ=installation.environment)
    async with installation.opened() as database, open_blobs(loaded) as blobs:
        person, _, _ = await import_problem(database, blobs)
        token = api_tokens.NewApiToken(new_id(), person, "test", secret, ("*",))
        await database.transact(lambda tx: api_tokens.insert(tx, token))
        with (
            installation.running("scheduler"),
            installation.running("worker", "--slots", "1", "--name", "w1") as worker,
            installation.running("api", "--port", "0"),
        ):
            # A server lets nobody in until a worker is announced; the list is etcd's.
            known = await listed(installation, "w1")
            url = f"{installation.said['api'].split()[-1]}/api/v1/submissions"
            body = {"problem": "multiples", "language": "python3", "source": LARGE}
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=120) as client:
                answer = await client.post(url, json=body)
            assert answer.status_code == 202, answer.text
            (decided,) = await until_all_decided(database)
            (source,) = await rows(database, "SELECT source_digest FROM submissions")
            assert await blobs.exists(source["source_digest"])
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, 120) == 0
            left = await asyncio.to_thread(installation.ask, "workers", "--json")
        in_database = await rows(database, "SELECT 1 AS one FROM processes")
    assert decided["verdict"] == "WA"
    assert (known["slots"], known["health"]) == (1, "ready")
    assert "python3" in known["languages"]
    roles = sorted(process["role"] for process in json.loads(left))
    assert roles == ["api", "scheduler"], "a worker that ends takes itself off the list"
    assert not in_database
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()], "no file went to the folder"
