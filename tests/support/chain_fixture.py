"""An installation for chains in one process: database, stream, worker with the real sandbox, scheduler, triggers."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from adjudge import settings as settings_source
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.blobs.driver import BlobStore
from adjudge.chains import executor_registry
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.definition_file import ChainDefinition
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import Executor
from adjudge.chains.housekeeping import ChainHousekeeping
from adjudge.chains.triggers import TriggerScheduler
from adjudge.cli.wiring.chains import make_engine, run_starter
from adjudge.cli.wiring.executors import make_executors
from adjudge.cli.wiring.jobs import make_job_listeners
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.authority import Authority, Grant
from adjudge.domain.ids import new_id
from adjudge.domain.retry import RetryPolicy
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import Judge
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.relay.dispatcher import Dispatcher
from adjudge.relay.periodic import run_periodically
from adjudge.sandbox import Sandbox
from adjudge.store import Database, open_database
from adjudge.store.accounts import users
from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import JOB_KIND_NODE, ChainNodeRow, ChainRunRow, NewChainRun
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import JOB_KIND_JUDGE, SubmissionCommands
from adjudge.stream import MemoryStream
from adjudge.worker.handler import Handler
from adjudge.worker.handlers.judge import JudgeHandler
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions

QUICK = RetryPolicy(max_retries=2, base_ms=10, cap_ms=50)


@dataclass
class ChainInstallation:
    """The components that run chains, and helpers to start runs and read their state."""

    database: Database
    blobs: BlobStore
    engine: ChainEngine
    executors: Mapping[str, Executor]
    judge: Judge
    user_id: str
    submissions: SubmissionCommands

    @property
    def authority(self) -> Authority:
        """The authority of an admin."""
        return Authority((Grant(self.user_id),))

    async def define(self, name: str, dag: Mapping[str, Any]) -> str:
        """Create a chain; return its id."""
        check_dag(dag, executor_registry.discover_executors())
        chain = await self.database.transact(
            lambda tx: definitions.create(tx, name=name, dag=dag, actor=self.user_id, authority=self.authority)
        )
        return chain.id

    async def apply(self, definition: ChainDefinition) -> str:
        """Create a chain from a definition file."""
        return await self.define(definition.name, definition.dag)

    async def start(self, chain_id: str, **parameters: Any) -> str:
        """Start a run of a chain; return the run's id."""
        wanted = NewChainRun(chain_id, parameters, actor=self.user_id, authority=self.authority)
        return (await self.database.transact(lambda tx: self.engine.start(tx, wanted))).run_id

    async def node(self, run_id: str, node_id: str) -> ChainNodeRow:
        """Read a node."""
        return await self.database.read(lambda tx: chain_queries.find_node(tx, run_id, node_id))

    async def nodes(self, run_id: str) -> dict[str, ChainNodeRow]:
        """All nodes of a run."""
        return {
            node.node_id: node for node in await self.database.read(lambda tx: chain_queries.list_nodes(tx, run_id))
        }

    async def log_lines(self, run_id: str, node_id: str) -> list[str]:
        """Get the log of a node."""
        return [line.text for line in await self.database.read(lambda tx: chain_queries.read_log(tx, run_id, node_id))]

    async def wait_for_node(self, run_id: str, node_id: str, holds: Callable[[ChainNodeRow], bool]) -> ChainNodeRow:
        """Wait until ``holds`` is true for a node; fail the test with the node errors if the run finishes first."""
        changed = asyncio.Event()
        unsubscribe = self.database.listen(chain_queries.CHANGED, changed.set)
        try:
            async with asyncio.timeout(240):
                while not holds(node := await self.node(run_id, node_id)):
                    run = await self.database.read(lambda tx: chain_queries.find_run(tx, run_id))
                    assert run.finished_at is None, {
                        item.node_id: item.last_error for item in (await self.nodes(run_id)).values()
                    }
                    await changed.wait()
                    changed.clear()
            return node
        finally:
            unsubscribe()

    async def wait_finished(self, run_id: str) -> ChainRunRow:
        """Wait until a run has finished."""
        changed = asyncio.Event()
        unsubscribe = self.database.listen(chain_queries.CHANGED, changed.set)
        try:
            async with asyncio.timeout(240):
                while (
                    run := await self.database.read(lambda tx: chain_queries.find_run(tx, run_id))
                ).finished_at is None:
                    await changed.wait()
                    changed.clear()
            return run
        finally:
            unsubscribe()

    async def run(self, dag: Mapping[str, Any], **parameters: Any) -> tuple[ChainRunRow, dict[str, ChainNodeRow]]:
        """Create a chain, start it, and wait until it has finished."""
        run_id = await self.start(await self.define(new_id(), dag), **parameters)
        return await self.wait_finished(run_id), await self.nodes(run_id)


def zip_folder(folder: Path) -> bytes:
    """The files of a package folder as a ZIP archive."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()


@asynccontextmanager
async def open_chain_installation(
    url: str, folder: Path, compiled: Path, **overrides: Any
) -> AsyncIterator[ChainInstallation]:
    """Start all components on the database at ``url``."""
    settings = settings_source.load({f"chains.{name}": value for name, value in overrides.items()}, environ={})
    blobs, stream = DirectoryBlobStore(folder / "blobs"), MemoryStream()
    cache, engine, user_id = BlobCache(blobs, folder / "cache", max_bytes=1 << 30), make_engine(settings), new_id()
    jobs = JobCommands(make_job_listeners(engine, settings), policy=QUICK)
    async with open_database(url, migrate=False) as database, Sandbox(unsafe=True, slots=2) as box:
        judge = Judge(box, Languages.load(), CompileCache(compiled), worker="test")
        executors = make_executors(
            settings, database=database, jobs=jobs, engine=engine, blobs=blobs, cache=cache, judge=judge
        )
        handlers: dict[str, Handler] = {
            JOB_KIND_NODE: NodeHandler(database, blobs, executors, engine.dags),
            JOB_KIND_JUDGE: JudgeHandler(database, blobs, cache, judge, margin=0.1),
        }
        worker = Worker(database, jobs, stream, handlers, WorkerOptions("w", slots=2, retry=QUICK))
        await database.transact(lambda tx: users.insert(tx, users.NewUser(user_id, "eva", role="admin")))
        loops = [
            Dispatcher(database, jobs, stream, name="s", poll_ms=50).run(),
            run_periodically(ChainHousekeeping(database, jobs, engine, name="s").run_once, interval_ms=20),
            run_periodically(ContestAnnouncer(database).run_once, interval_ms=50),
            TriggerScheduler(database, run_starter(engine), name="s").run(),
            worker.run(),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            submissions = SubmissionCommands(jobs, listener=CONTEST_LISTENER)
            yield ChainInstallation(database, blobs, engine, executors, judge, user_id, submissions)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stream.close()
