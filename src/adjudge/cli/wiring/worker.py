"""The parts of a worker, put together from settings."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import shutil
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from adjudge import __version__
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.chains.secrets import Keyring
from adjudge.cli.wiring.chains import make_engine
from adjudge.cli.wiring.drivers import open_buckets, open_for_leases, open_registry
from adjudge.cli.wiring.executors import make_executors
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.cli.wiring.judge import open_judge
from adjudge.cli.wiring.mail import make_smtp_client
from adjudge.domain.errors import AdjudgeError
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.judge.pipeline import Judge
from adjudge.observe import metrics
from adjudge.registry import ProcessHealth, ProcessInfo
from adjudge.registry.registration import keep_registered
from adjudge.services.http_client import PrivateHostAllowList
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.store.judging.evaluations import JOB_KIND_EVALUATE
from adjudge.store.judging.executions import JOB_KIND_CALLBACK, JOB_KIND_EXECUTE
from adjudge.store.ops.mails import JOB_KIND_MAIL
from adjudge.store.problems import imports
from adjudge.store.webhooks.commands import JOB_KIND_WEBHOOK
from adjudge.stream import Stream, consumer_name
from adjudge.worker.control import WorkerControl
from adjudge.worker.handler import Handler
from adjudge.worker.handlers.callback import CallbackHandler
from adjudge.worker.handlers.evaluate import EvaluationHandler
from adjudge.worker.handlers.execute import ExecutionHandler
from adjudge.worker.handlers.import_package import ProblemImportHandler
from adjudge.worker.handlers.judge import JudgeHandler
from adjudge.worker.handlers.mail import MailHandler
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.handlers.progress import ProgressWriter
from adjudge.worker.handlers.webhook import WebhookHandler
from adjudge.worker.leases import lease_keeper_thread
from adjudge.worker.slots import StartRateLimiter, parse_limits, refuse_unknown
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions


@asynccontextmanager
async def open_worker(
    settings: Settings, database: Database, stream: Stream, blobs: BlobStore, name: str
) -> AsyncIterator[Worker]:
    """A worker with its sandbox, its cache and its keeper of leases; ``run`` it while the block lasts."""
    _raise_fd_limit()
    slots = settings.worker.slots or os.cpu_count() or 1
    engine = make_engine(settings)
    jobs, wanted = make_jobs(settings, engine), _worker_settings(settings, name, slots)
    cache = BlobCache(blobs, settings.worker.cache_dir.expanduser(), max_bytes=settings.worker.cache_bytes)

    _export_disk_usage({"files": settings.worker.cache_dir, "programs": settings.judge.cache_dir})
    async with (
        open_judge(slots) as judge,
        _open_runner(judge, settings) as evaluation_runner,
        open_buckets(settings) as buckets,
        ProgressWriter(database, worker=name) as board,
        lease_keeper_thread(
            partial(open_for_leases, settings), jobs, lease_ms=wanted.lease_ms, heartbeat_ms=wanted.heartbeat_ms
        ) as keeper,
    ):
        executors = make_executors(
            settings, database=database, jobs=jobs, engine=engine, blobs=blobs, cache=cache, judge=judge
        )
        handlers: dict[str, Handler] = {
            JOB_KIND_JUDGE: JudgeHandler(database, blobs, cache, judge, margin=settings.judge.time_margin, board=board),
            imports.JOB_KIND_IMPORT: ProblemImportHandler(
                database, blobs, cache, judge, slots=max(1, slots // 2), board=board
            ),
            JOB_KIND_NODE: NodeHandler(
                database,
                blobs,
                executors,
                engine.dags,
                keyring=Keyring.of(settings.server.data_dir, settings.chains.secret_keys.reveal()),
            ),
            JOB_KIND_EXECUTE: ExecutionHandler(
                database, judge, board=board, output_bytes=settings.executions.output_bytes
            ),
            JOB_KIND_EVALUATE: EvaluationHandler(
                database, cache, evaluation_runner, judge, margin=settings.judge.time_margin
            ),
            JOB_KIND_WEBHOOK: _webhooks(settings, database),
            JOB_KIND_MAIL: MailHandler(database, make_smtp_client(settings)),
            JOB_KIND_CALLBACK: CallbackHandler(
                database, judge.languages, PrivateHostAllowList.parse(settings.webhooks.allow)
            ),
        }
        refuse_unknown(wanted.limits, _limited(judge, handlers, executors))
        rate_per_sec = settings.worker.rate_per_sec
        rate = StartRateLimiter(buckets, rate_per_sec=rate_per_sec) if rate_per_sec else None
        worker = Worker(database, jobs, stream, handlers, wanted, keeper=keeper, rate=rate)
        async with (
            open_registry(settings, database) as registry,
            keep_registered(
                registry,
                _info(name, slots),
                partial(_with_capabilities, judge, _info(name, slots)),
                lambda: _health(worker, judge),
                interval_sec=settings.jobs.heartbeat_sec,
            ),
            _follow_orders(database, worker, name, wanted.heartbeat_ms),
        ):
            yield worker


@asynccontextmanager
async def _follow_orders(database: Database, worker: Worker, name: str, interval_ms: int) -> AsyncIterator[None]:
    """Carry out orders of operators while the block runs."""
    task = asyncio.create_task(WorkerControl(database, worker, name=name, interval_ms=interval_ms).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def _open_runner(judge: Judge, settings: Settings) -> AsyncIterator[EvaluationRunner]:
    """The runner of evaluations, with a folder for outputs."""
    with EvaluationRunner(judge, total_ms=settings.executions.total_sec * 1_000) as runner:
        yield runner


def _limited(judge: Judge, kinds: Iterable[str], node_types: Iterable[str]) -> dict[str, set[str]]:
    names = {name for language in judge.languages for name in judge.languages.limit_names(language.id)}
    return {"language": names, "kind": set(kinds), "node": set(node_types)}


def _webhooks(settings: Settings, database: Database) -> WebhookHandler:
    wanted = settings.webhooks
    return WebhookHandler(database, PrivateHostAllowList.parse(wanted.allow), timeout_sec=wanted.timeout_sec)


def _info(name: str, slots: int) -> ProcessInfo:
    return ProcessInfo(name, socket.gethostname(), os.getpid(), __version__, slots)


def _health(worker: Worker, judge: Judge) -> ProcessHealth:
    if worker.is_draining:
        return ProcessHealth.DRAINING
    if worker.is_paused:
        return ProcessHealth.PAUSED
    return ProcessHealth.DEGRADED if judge.sandbox.is_degraded else ProcessHealth.READY


async def _with_capabilities(judge: Judge, info: ProcessInfo) -> ProcessInfo:
    """The registration of a worker: isolation, languages and versions.

    Languages that it cannot are left out, and admission goes by that.
    """
    versions = {}
    for language in judge.languages:
        with suppress(AdjudgeError):  # a box that cannot be asked about one may well answer for the next
            version = await judge.languages.version(language, judge.sandbox)
            if judge.languages.toolchain(language).usable:
                versions[language.id] = version
    return replace(info, languages=versions, isolation=str(judge.sandbox.isolation or ""), health=ProcessHealth.READY)


def _worker_settings(settings: Settings, name: str, slots: int) -> WorkerOptions:
    jobs = settings.jobs
    return WorkerOptions(
        name=name,
        slots=slots,
        consumer=consumer_name(settings.jobs.stream_consumer, name),
        limits=parse_limits(settings.worker.limits),
        lease_ms=round(jobs.lease_sec * 1_000),
        heartbeat_ms=round(jobs.heartbeat_sec * 1_000),
        reclaim_interval_ms=round(jobs.reclaim_interval_sec * 1_000),
        reclaim_grace_ms=round(jobs.reclaim_grace_sec * 1_000),
        reclaim_count=jobs.reclaim_count,
        drain_grace_ms=round(settings.worker.drain_sec * 1_000),
        deadline_ms=settings.jobs.deadline_sec * 1_000,
        retry=settings.retry.policy(),
    )


def _export_disk_usage(folders: Mapping[str, Path]) -> None:
    """Let each scrape read the size and the free space of the file systems of the caches."""
    for cache, folder in folders.items():
        path = folder.expanduser()
        metrics.WORKER_CACHE_DISK.labels(cache).set_function(partial(_disk_usage, path, "total"))
        metrics.WORKER_CACHE_DISK_FREE.labels(cache).set_function(partial(_disk_usage, path, "free"))


def _disk_usage(folder: Path, part: Literal["total", "free"]) -> float:
    """NaN if the folder cannot be examined, for example because it does not exist yet."""
    try:
        return float(getattr(shutil.disk_usage(folder), part))
    except OSError:
        return math.nan


def _raise_fd_limit() -> None:
    """Test data in use is held open, file by file: take all the descriptors that we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
