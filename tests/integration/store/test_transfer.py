"""``adjudge transfer``: a populated installation moves from SQLite to PostgreSQL and S3, in spite of a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from adjudge.store.transfer.row_digest import TABLES
from tests.browser.populated_database import populate
from tests.browser.seed_data import SUM, seed
from tests.integration.store import schema_introspection
from tests.support.databases import PostgresDatabases, run_in_thread
from tests.support.installation import (
    PASSWORD,
    AdjudgeProcess,
    Installation,
    command_environment,
    environment_of,
    start_embedded,
)
from tests.support.servers import RedisServer, S3Server

pytestmark = pytest.mark.slow
BUCKET = "transfer"
_READY = "Adjudge is running at "
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> S3Server:
    s3_server.create_bucket(BUCKET)
    return s3_server


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation that had everything happen once, and was killed while it was judging."""
    folder = tmp_path_factory.mktemp("embedded")
    with start_embedded(folder, webhooks_allow="127.0.0.0/8", reauthentication_minutes=0) as installation:
        seed(installation)
        populate(installation)
        with installation.client("contestant") as contestant:
            for number in range(12):
                body = {"problem": "sum", "language": "python3", "source": f"{SUM}# {number}\n"}
                assert contestant.post("/api/v1/submissions", json=body).status_code == 202
        installation.processes[0].kill()
    return folder


def target_file(folder: Path, url: str, server: S3Server) -> Path:
    """The settings of a new installation."""
    path = folder / "target.toml"
    path.write_text(
        f'[database]\nurl = "{url}"\n[files]\ns3_bucket = "{BUCKET}"\ns3_prefix = "t{os.getpid()}-{next(_NUMBERS)}"\n'
        f's3_endpoint = "{server.endpoint}"\ns3_access_key_id = "{server.access_key}"\n'
        f's3_secret_access_key = "{server.secret_key}"\n'
    )
    return path


def adjudge(*argv: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "adjudge", *map(str, argv)],
        env=command_environment(environment),
        capture_output=True,
        text=True,
        check=False,
    )


def fetch(url: str, sql: str) -> list[Any]:
    async def ask() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [row[0] for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return run_in_thread(ask())


def kill_in_the_middle(folder: Path, target: Path, url: str) -> None:
    """Start a transfer in small batches and kill it when a few tables are complete."""
    argv = [sys.executable, "-m", "adjudge", "transfer", str(target), "--batch-rows", "1"]
    environment = command_environment(environment_of(folder))
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while process.poll() is None:
            done = fetch(url, "SELECT to_regclass('transfer_positions') IS NOT NULL")
            if done[0] and fetch(url, "SELECT count(*) FROM transfer_positions")[0] >= 8:
                process.send_signal(signal.SIGKILL)
                break
        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait() == -signal.SIGKILL, said


def counts_of_source(folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(folder / "adjudge.db")) as connection:
        return {
            table.name: connection.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0] for table in TABLES
        }


@contextmanager
def roles(folder: Path, target: Path, redis: RedisServer) -> Iterator[Installation]:
    """The three roles with the settings of the target."""
    environment = environment_of(folder, job_lease_sec=4, job_heartbeat_sec=1, job_reclaim_interval_sec=1)
    environment |= {"ADJUDGE_CONFIG": str(target), "ADJUDGE_REDIS_URL": redis.url}
    environment |= {"ADJUDGE_ENVIRONMENT": f"transfer-{os.getpid()}-{next(_NUMBERS)}"}
    processes = [AdjudgeProcess([role], environment, folder) for role in ("api", "scheduler", "worker")]
    try:
        url = processes[0].wait_for(_READY)
        with httpx.Client(base_url=url, timeout=120) as admin:
            login = {"name": "admin", "password": PASSWORD, "token_name": "new"}
            answer = admin.post("/api/v1/login:token", json=login)
            assert answer.status_code == 201, answer.text
            admin.headers["Authorization"] = f"Bearer {answer.json()['secret']}"
            yield Installation(url, folder, admin, processes)
    finally:
        for process in processes:
            process.stop()


def test_transfer_survives_a_kill_loses_nothing_and_unfinished_jobs_go_on(
    source: Path, tmp_path: Path, postgres_databases: PostgresDatabases, redis_server: RedisServer, bucket: S3Server
) -> None:
    with postgres_databases.fresh(empty=True) as url, postgres_databases.fresh() as fresh:
        target = target_file(tmp_path, url, bucket)
        kill_in_the_middle(source, target, url)
        refused = adjudge("migrate", "status", ADJUDGE_CONFIG=str(target))
        assert (refused.returncode, "transfer to this database is unfinished" in refused.stderr) == (3, True)
        copied = fetch(url, "SELECT sum(row_count)::bigint FROM transfer_positions")[0]
        done = adjudge("transfer", target, **environment_of(source))
        assert done.returncode == 0, done.stderr
        assert "continuing an unfinished transfer" in done.stdout
        counts = counts_of_source(source)
        assert 0 < copied < sum(counts.values())
        assert len([name for name, rows in counts.items() if rows]) > 45, "the test covers most tables"
        assert {table.name: fetch(url, f'SELECT count(*) FROM "{table.name}"')[0] for table in TABLES} == counts
        assert asyncio.run(schema_introspection.of_postgres(url)) == asyncio.run(
            schema_introspection.of_postgres(fresh)
        )
        assert fetch(url, "SELECT tgname::text FROM pg_trigger WHERE tgenabled = 'D'") == []
        again = adjudge("transfer", target, **environment_of(source))
        assert (again.returncode, "not empty" in again.stderr) == (3, True)
        unfinished = fetch(url, "SELECT id FROM submissions WHERE finished_at IS NULL")
        assert unfinished, "some submissions were not judged when the old installation ended"
        (last,) = fetch(url, "SELECT max(number) FROM submissions")
        with roles(tmp_path, target, redis_server) as installation:
            for submission in unfinished:
                found = installation.wait_until(
                    f"/api/v1/submissions/{submission}", lambda it: it["finished_at"] is not None
                )
                assert found["verdict"] == "AC", found
            new = installation.submit_and_wait(installation.admin, "sum", SUM)
            assert installation.admin.get(f"/api/v1/submissions/{new}").json()["number"] == last + 1
        ended = fetch(url, "SELECT count(*) FROM job_status_log WHERE to_status = 'succeeded' GROUP BY job_id")
        assert set(ended) == {1}


def test_transfer_refuses_unsuitable_sources_and_targets(
    source: Path, tmp_path: Path, postgres_databases: PostgresDatabases, bucket: S3Server
) -> None:
    with postgres_databases.fresh() as url:
        target = target_file(tmp_path, url, bucket)
        with closing(sqlite3.connect(source / "adjudge.db")) as connection:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("SELECT count(*) FROM users").fetchone()
            used = adjudge("transfer", target, **environment_of(source))
        assert (used.returncode, "is in use: stop Adjudge first" in used.stderr) == (3, True)
        run_in_thread(_execute(url, "INSERT INTO installation (only_row, id) VALUES (1, 'another')"))
        filled = adjudge("transfer", target, **environment_of(source))
        assert (filled.returncode, "the table installation has rows" in filled.stderr) == (3, True)
        target.write_text(f'[database]\nurl = "{url}"\n')
        without_bucket = adjudge("transfer", target, **environment_of(source))
        assert (without_bucket.returncode, "files.s3_bucket is missing" in without_bucket.stderr) == (3, True)
        target.write_text("")
        to_sqlite = adjudge("transfer", target, **environment_of(source))
        assert (to_sqlite.returncode, "must be a PostgreSQL URL" in to_sqlite.stderr) == (3, True)


async def _execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()
