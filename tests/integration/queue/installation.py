"""An installation of real processes on private servers, and helpers to query it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.blobs.driver import BlobStore
from adjudge.domain.ids import new_id
from adjudge.packages.load import load_package
from adjudge.packages.storing import new_revision, store_package_files
from adjudge.store import Database, Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.engine.statement import Row, Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener, SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from tests.support.server_process import free_port
from tests.support.servers import RedisServer

LOSABLE = {"JOB_LEASE_SEC": "2"}
"""For a process that is to be lost: others wait for its lease to run out."""
PROBLEM = Path(__file__).parents[3] / "examples" / "problems" / "multiples"


_NUMBERS = count(1)


class Installation:
    """A database, a stream and a folder that processes share; their leases outlast any pause of the machine."""

    def __init__(self, url: str, redis: RedisServer | None, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.blobs = DirectoryBlobStore(folder / "blobs")
        self.health_ports: dict[str, int] = {}
        self.said: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "ADJUDGE_DATABASE_URL": url,
            "ADJUDGE_REDIS_URL": redis.url if redis else "",
            "ADJUDGE_ENVIRONMENT": f"processes-{os.getpid()}-{next(_NUMBERS)}",
            "ADJUDGE_DATA_DIR": str(folder),
            "ADJUDGE_WORKER_CACHE_DIR": str(folder / "cache"),
            "ADJUDGE_JUDGE_CACHE_DIR": str(folder / "compiled"),
            "JOB_LEASE_SEC": "60",
            "JOB_HEARTBEAT_SEC": "0.5",
            "JOB_RECLAIM_INTERVAL_SEC": "0.5",
            "JOB_RECLAIM_GRACE_SEC": "0.5",
            "ADJUDGE_RETRY_BASE_MS": "100",
        }

    @contextmanager
    def running(self, *argv: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command for the block, with additional environment variables; keep its first line."""
        log, port = self.folder / f"{argv[0]}.log", free_port()
        self.health_ports[argv[-1]] = port
        with (
            log.open("a") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "adjudge", *argv],
                env={**self.environment, "ADJUDGE_METRICS_PORT": str(port), **environment},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                self.said[argv[0]] = process.stdout.readline()
                assert re.search(r" started,| is running at ", self.said[argv[0]]), log.read_text()[-2000:]
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


async def import_problem(database: Database, blobs: BlobStore) -> tuple[str, str, str]:
    person, problem = new_id(), new_id()
    with load_package(PROBLEM) as package:
        files = await store_package_files(blobs, package)
        revision = new_revision(package, files, problem_id=problem, created_by=person)

    async def create(tx: Tx) -> None:
        await users.insert(tx, users.NewUser(person, "person"))
        await problem_commands.insert(
            tx, problem_models.NewProblem(problem, "multiples", package.problem.title, person)
        )
        await problem_commands.add_revision(tx, revision)
        await problem_commands.publish(tx, problem_id=problem, revision_id=revision.id, version=1)

    await database.transact(create)
    return person, problem, revision.id


async def submit(database: Database, blobs: DirectoryBlobStore, ids: tuple[str, str, str], sources: list[Path]) -> None:
    """Submit, with ids in the order of the sources: ids of one millisecond are not ordered."""
    person, problem, revision = ids
    new = []
    for submission_id, source in zip(sorted(new_id() for _ in sources), sources, strict=True):
        digest = await blobs.put(source)
        language = {"cpp": "cpp", "py": "python3"}[source.suffix[1:]]
        size = source.stat().st_size
        new.append(NewSubmission(submission_id, person, problem, revision, language, digest, size))
    jobs = JobCommands({JOB_KIND_JUDGE: JudgeRunListener()})
    await database.transact(lambda tx: SubmissionCommands(jobs).submit(tx, new))


async def rows(database: Database, sql: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(Statement(sql, "Asked by a test.", sql)))


def get_health_and_metrics(port: int) -> tuple[str, str]:
    """Return the liveness reply and the metrics of a process."""
    live, figures = (f"http://127.0.0.1:{port}/{path}" for path in ("health/live", "metrics"))
    with urlopen(live, timeout=120) as first, urlopen(figures, timeout=120) as second:
        return first.read().decode(), second.read().decode()


async def until_all_decided(database: Database) -> list[Row]:
    async with asyncio.timeout(240):
        while await rows(database, "SELECT 1 AS one FROM submissions WHERE finished_at IS NULL LIMIT 1"):
            await asyncio.sleep(0.05)
    return await rows(database, "SELECT status, verdict, time_ms, mem_kb FROM submissions ORDER BY id")


async def listed(installation: Installation, name: str) -> dict[str, Any]:
    """What the registry says of a worker, once it has looked for its languages."""
    async with asyncio.timeout(240):
        while True:
            answer = await asyncio.to_thread(installation.ask, "workers", "--json")
            found: list[dict[str, Any]] = [item for item in json.loads(answer) if item["name"] == name]
            if found and found[0]["languages"]:
                return found[0]


def events(log: Path) -> list[dict[str, Any]]:
    """What a process logged as JSON; a line that it is still writing is left out."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line[0] + line[-1] == "{\n"]
