"""Real workers and schedulers, as processes, judging a real problem; some of them are killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from adjudge.blobs.directory import DirectoryBlobs
from adjudge.domain.ids import new_id
from adjudge.packages.load import loaded
from adjudge.packages.storing import new_revision, store_files
from adjudge.store import Database, Tx, open_database, problems, users
from adjudge.store.jobs import Jobs
from adjudge.store.statement import Row, Statement
from adjudge.store.submissions import JUDGE, JudgeRunOwner, NewSubmission, Submissions
from tests.support.service import free_port
from tests.support.services import RedisServer

PROBLEM = Path(__file__).parents[3] / "examples" / "problems" / "multiples"


class Installation:
    """A database, a stream and a folder that processes share."""

    def __init__(self, url: str, redis: RedisServer | None, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.blobs = DirectoryBlobs(folder / "blobs")
        self.doors: dict[str, int] = {}
        self.environment = {
            **os.environ,
            "ADJUDGE_DATABASE_URL": url,
            "ADJUDGE_REDIS_URL": redis.url if redis else "",
            "ADJUDGE_ENVIRONMENT": f"processes-{os.getpid()}",
            "ADJUDGE_DATA_DIR": str(folder),
            "ADJUDGE_WORKER_CACHE_DIR": str(folder / "cache"),
            "ADJUDGE_JUDGE_CACHE_DIR": str(folder / "compiled"),
            "JOB_LEASE_SEC": "2",
            "JOB_HEARTBEAT_SEC": "0.5",
            "JOB_RECLAIM_INTERVAL_SEC": "0.5",
            "JOB_RECLAIM_GRACE_SEC": "0.5",
            "ADJUDGE_RETRY_BASE_MS": "100",
        }

    @contextmanager
    def running(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        log, port = self.folder / f"{argv[0]}.log", free_port()
        self.doors[argv[-1]] = port
        with (
            log.open("a") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "adjudge", *argv],
                env={**self.environment, "ADJUDGE_METRICS_PORT": str(port)},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                assert "is up" in process.stdout.readline(), log.read_text()[-2000:]
                yield process
            finally:
                process.kill()

    def ask(self, *argv: str) -> str:
        """What a command prints."""
        argv = (sys.executable, "-m", "adjudge", *argv)
        return subprocess.run(argv, env=self.environment, check=True, capture_output=True, text=True).stdout

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        async with open_database(self.url, migrate=False) as database:
            yield database


@pytest.fixture
def embedded(sqlite_url: str, tmp_path: Path) -> Installation:
    return Installation(sqlite_url, None, tmp_path)


@pytest.fixture
def installation(postgres_url: str, redis_server: RedisServer, tmp_path: Path) -> Installation:
    return Installation(postgres_url, redis_server, tmp_path)


async def _import(database: Database, blobs: DirectoryBlobs) -> tuple[str, str, str]:
    person, problem = new_id(), new_id()
    with loaded(PROBLEM) as package:
        files = await store_files(blobs, package)
        revision = new_revision(package, files, problem_id=problem, created_by=person)

    async def create(tx: Tx) -> None:
        await users.add(tx, users.NewUser(person, "person"))
        await problems.add(tx, problems.NewProblem(problem, "multiples", package.problem.title, person))
        await problems.add_revision(tx, revision)
        await problems.publish(tx, problem_id=problem, revision_id=revision.id, version=1)

    await database.transact(create)
    return person, problem, revision.id


async def _submit(database: Database, blobs: DirectoryBlobs, ids: tuple[str, str, str], sources: list[Path]) -> None:
    person, problem, revision = ids
    new = []
    for source in sources:
        digest = await blobs.put(source)
        language = {"cpp": "cpp", "py": "python3"}[source.suffix[1:]]
        size = source.stat().st_size
        new.append(NewSubmission(new_id(), person, problem, revision, language, digest, size))
    jobs = Jobs({JUDGE: JudgeRunOwner()})
    await database.transact(lambda tx: Submissions(jobs).submit(tx, new))


async def _rows(database: Database, sql: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(Statement(sql, "Asked by a test.", sql)))


def _ask(port: int) -> tuple[str, str]:
    """What a process says of itself: whether it is live, and its figures."""
    live, figures = (f"http://127.0.0.1:{port}/{path}" for path in ("health/live", "metrics"))
    with urlopen(live, timeout=10) as first, urlopen(figures, timeout=10) as second:
        return first.read().decode(), second.read().decode()


async def _until_all_decided(database: Database) -> list[Row]:
    async with asyncio.timeout(90):
        while await _rows(database, "SELECT 1 AS one FROM submissions WHERE finished_at IS NULL LIMIT 1"):
            await asyncio.sleep(0.05)
    return await _rows(database, "SELECT status, verdict, time_ms, mem_kb FROM submissions ORDER BY id")


async def _listed(installation: Installation, name: str) -> dict[str, Any]:
    """What the registry says of a worker, once it has looked for its languages."""
    async with asyncio.timeout(60):
        while True:
            answer = await asyncio.to_thread(installation.ask, "workers", "--json")
            found: list[dict[str, Any]] = [item for item in json.loads(answer) if item["name"] == name]
            if found and found[0]["languages"]:
                return found[0]


@pytest.mark.slow
async def test_processes_judge_a_real_problem_and_survive_kill_9(installation: Installation) -> None:
    accepted = sorted((PROBLEM / "submissions" / "accepted").glob("*.cpp"))[0]
    wrong = sorted((PROBLEM / "submissions" / "wrong_answer").glob("*.*"))[0]
    async with installation.opened() as database:
        ids = await _import(database, installation.blobs)
        with (
            installation.running("scheduler"),
            installation.running("worker", "--slots", "2", "--name", "w1") as first,
        ):
            await _submit(database, installation.blobs, ids, [accepted, wrong] * 10)
            async with asyncio.timeout(60):
                while not await _rows(database, "SELECT 1 AS one FROM jobs WHERE status = 'running' LIMIT 1"):
                    await asyncio.sleep(0.01)
            first.send_signal(signal.SIGKILL)
            with installation.running("worker", "--slots", "2", "--name", "w2") as second:
                rows = await _until_all_decided(database)
                listed = await _listed(installation, "w2")
                said = {name: await asyncio.to_thread(_ask, installation.doors[name]) for name in ("scheduler", "w2")}
                second.send_signal(signal.SIGTERM)
                assert second.wait(30) == 0
        logged = await _rows(database, "SELECT job_id FROM job_status_log WHERE to_status = 'succeeded'")
        cases = await _rows(database, "SELECT count(*) AS n FROM case_results WHERE verdict = 'AC'")
    assert [row["verdict"] for row in rows] == ["AC", "WA"] * 10
    assert (listed["slots"], listed["health"]) == (2, "ready")
    assert {"c", "python3"} <= set(listed["languages"])
    assert len(logged) == len({row["job_id"] for row in logged}) == 20
    assert cases[0]["n"] > 100
    assert said["scheduler"][0] == said["w2"][0] == "ok\n"
    assert 'adjudge_api_outbox_dispatch_total{reason="ok",status="delivered"}' in said["scheduler"][1]
    assert 'adjudge_worker_finalize_total{status="succeeded"}' in said["w2"][1]


@pytest.mark.slow
async def test_everything_in_one_process_resumes_after_kill_9(embedded: Installation) -> None:
    accepted = sorted((PROBLEM / "submissions" / "accepted").glob("*.cpp"))[0]
    wrong = sorted((PROBLEM / "submissions" / "wrong_answer").glob("*.*"))[0]
    async with embedded.opened() as database:
        ids = await _import(database, embedded.blobs)
        await _submit(database, embedded.blobs, ids, [accepted, wrong] * 5)
        with embedded.running("up", "--port", "0") as first:
            async with asyncio.timeout(60):
                while not await _rows(database, "SELECT 1 AS one FROM jobs WHERE status = 'running' LIMIT 1"):
                    await asyncio.sleep(0.01)
            first.send_signal(signal.SIGKILL)
        with embedded.running("up", "--port", "0") as second:
            rows = await _until_all_decided(database)
            second.send_signal(signal.SIGTERM)
            assert second.wait(30) == 0
        ends = await _rows(database, "SELECT job_id FROM job_status_log WHERE to_status = 'succeeded'")
    assert [row["verdict"] for row in rows] == ["AC", "WA"] * 5
    assert len(ends) == len({row["job_id"] for row in ends}) == 10
