"""The real commands die wherever they commit or call Redis; programs that were really run get their verdicts, once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import product
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import open_database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener, SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.stream.redis import RedisStream
from tests.chaos.cluster import Cluster, warm_up
from tests.chaos.crashing_command import CrashingCommand, run_command
from tests.chaos.crashing_process import TIRELESS, CrashOperation, CrashPoint, Phase, Role
from tests.integration.queue.installation import Installation, import_problem
from tests.support.databases import PostgresDatabases
from tests.support.servers import RedisServer

PASSAGES: dict[tuple[Role, CrashOperation], int] = {
    ("worker", "commit"): 4,
    ("worker", "redis"): 2,
    ("scheduler", "commit"): 4,
    ("scheduler", "redis"): 3,
}
"""How many of the first passages somebody dies at. A job takes fewer; the rest are heartbeats, rounds and the next."""
PHASES: tuple[Phase, ...] = ("before", "after")
OTHER: dict[Role, Role] = {"worker": "scheduler", "scheduler": "worker"}
PROGRAMS = (("print('wrong')", Verdict.WA), ("raise SystemExit(3)", Verdict.RE))
JOBS = JobCommands({JOB_KIND_JUDGE: JudgeRunListener()}, policy=TIRELESS)


@dataclass
class CrashInstallation:
    """An installation with its problem, and its submissions."""

    cluster: Cluster
    installation: Installation
    ids: tuple[str, str, str]
    expected: dict[str, Verdict] = field(default_factory=dict)

    @contextmanager
    def process(self, role: Role, name: str, dies_at: CrashPoint | None = None) -> Iterator[ForkServerProcess]:
        argv = ["worker", "--slots", "1", "--name", name] if role == "worker" else ["scheduler"]
        log = self.installation.folder / f"{name}.log"
        with run_command(CrashingCommand(argv, self.installation.environment, log, dies_at)) as process:
            yield process

    async def submit(self) -> None:
        """Hand one of the programs in, by turns."""
        text, verdict = PROGRAMS[len(self.expected) % len(PROGRAMS)]
        source = self.installation.folder / "main.py"
        source.write_text(text)
        digest = await self.installation.blobs.put(source)
        new = NewSubmission(new_id(), *self.ids, "python3", digest, len(text))
        self.expected[new.id] = verdict
        await self.cluster.database.transact(lambda tx: SubmissionCommands(JOBS).submit(tx, [new]))

    async def die(self, role: Role, point: CrashPoint) -> None:
        """Let a process live up to ``point``, with something to do until it gets there: lost jobs take their time."""
        await self.submit()
        with self.process(role, f"victim-{role}-{point.operation}-{point.number}-{point.phase}", point) as doomed:

            async def dead() -> bool:
                if doomed.exitcode is None and not await self.cluster.count("jobs WHERE finished_at IS NULL"):
                    await self.submit()
                return doomed.exitcode is not None

            await self.cluster.wait_until(dead, f"{role} dies at {point}")
            assert doomed.exitcode == -signal.SIGKILL, point


@asynccontextmanager
async def _site(url: str, redis: RedisServer, folder: Path) -> AsyncIterator[CrashInstallation]:
    folder.mkdir()
    installation = Installation(url, redis, folder)
    installation.environment |= {"JOB_LEASE_SEC": "1", "JOB_HEARTBEAT_SEC": "0.25", "JOB_RECLAIM_GRACE_SEC": "0"}
    installation.environment |= {"ADJUDGE_RETRY_CAP_MS": "200"}
    environment = installation.environment["ADJUDGE_ENVIRONMENT"]
    async with open_database(url, migrate=False, max_connections=4) as database:
        stream = RedisStream(redis.url, environment=environment)
        try:
            ids = await import_problem(database, installation.blobs)
            yield CrashInstallation(Cluster(url, redis.url, environment, database, stream), installation, ids)
        finally:
            await stream.close()


async def _walk(url: str, redis: RedisServer, folder: Path, role: Role, operation: CrashOperation) -> None:
    async with _site(url, redis, folder) as site:
        with site.process(OTHER[role], f"bystander-{OTHER[role]}"):
            for phase, number in product(PHASES, range(1, PASSAGES[role, operation] + 1)):
                await site.die(role, CrashPoint(operation, number, phase))
            await site.submit()
            with site.process(role, f"heir-{role}"):
                await site.cluster.wait_until(site.cluster.is_idle, f"all is done after every {role} that died")
        await site.cluster.check(list(site.expected), site.expected.__getitem__)


@pytest.mark.slow
async def test_commands_killed_anywhere_lose_and_duplicate_no_verdict(
    postgres_databases: PostgresDatabases, redis_server: RedisServer, tmp_path: Path
) -> None:
    await asyncio.to_thread(warm_up)
    urls = [postgres_databases.url(await asyncio.to_thread(postgres_databases.create)) for _ in PASSAGES]
    async with asyncio.TaskGroup() as walks:
        for url, (role, operation) in zip(urls, PASSAGES, strict=True):
            walks.create_task(_walk(url, redis_server, tmp_path / f"{role}-{operation}", role, operation))
