"""The parts of the drive, put together from settings: what every role is made of."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from adjudge import __version__
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobs
from adjudge.blobs.driver import Blobs
from adjudge.blobs.s3 import S3Blobs, S3Settings
from adjudge.cache.buckets import Buckets, MemoryBuckets, RedisBuckets
from adjudge.chains.engine import Engine
from adjudge.chains.patrol import ChainPatrol, PatrolSettings
from adjudge.chains.triggers import TriggerScheduler
from adjudge.cli.chaining import make_engine, make_executors, make_owners, run_starter
from adjudge.cli.judging import open_judge
from adjudge.domain.errors import AdjudgeError
from adjudge.judge.pipeline import Judge
from adjudge.observe.door import Pulse, open_door
from adjudge.registry import Health, Registry, WorkerInfo
from adjudge.registry.database import DatabaseRegistry
from adjudge.registry.etcd import EtcdRegistry
from adjudge.relay.direct import delivering
from adjudge.relay.patrol import Census, Reconciler, Watchdog, patrol
from adjudge.relay.pump import Pump
from adjudge.relay.retention import Retention
from adjudge.settings import Settings
from adjudge.store import Database, open_database, problem_imports
from adjudge.store.chain_values import NODE
from adjudge.store.executions import EXECUTE
from adjudge.store.jobs import Jobs
from adjudge.store.submissions import JUDGE
from adjudge.store.webhooks import WEBHOOK
from adjudge.stream import MemoryStream, Stream, consumer_name
from adjudge.stream.redis import RedisStream
from adjudge.worker.executing import ExecuteHandler
from adjudge.worker.handler import Handler
from adjudge.worker.importing import ImportHandler
from adjudge.worker.judging import JudgeHandler
from adjudge.worker.lease_thread import leases_kept_apart
from adjudge.worker.loop import Worker, WorkerSettings
from adjudge.worker.node import NodeHandler
from adjudge.worker.presence import announced
from adjudge.worker.progress import ProgressBoard
from adjudge.worker.rate import Pace
from adjudge.worker.slots import parse_limits
from adjudge.worker.webhooks import Allowed, WebhookHandler

_RECONCILE_MS = 5_000
_AHEAD = 20_000
_RETENTION_MS = 60_000
_CHAINS_MS = 500
"""How exactly timers of chains are kept."""


def make_jobs(settings: Settings, engine: Engine | None = None) -> Jobs:
    """Jobs, with everything that owns them."""
    return Jobs(make_owners(engine or make_engine(), settings), policy=settings.retry.policy())


@asynccontextmanager
async def delivered_directly(settings: Settings, database: Database, stream: Stream) -> AsyncIterator[None]:
    """Where the outbox is switched off, this process delivers jobs itself while the block lasts."""
    if settings.jobs.outbox_enabled:
        yield
        return
    name = f"direct-{socket.gethostname()}-{os.getpid()}"
    async with delivering(Pump(database, Jobs({}), stream, name=name, ahead=_ahead(settings))):
        yield


@asynccontextmanager
async def open_stream(settings: Settings) -> AsyncIterator[Stream]:
    """Redis where its address is given, else a stream of this process."""
    jobs, url = settings.jobs, settings.jobs.redis_url.reveal()
    stream: Stream
    if url:
        stream = RedisStream(
            url,
            environment=settings.server.environment,
            maxlen=jobs.stream_maxlen,
            payload_ttl_sec=jobs.payload_ttl_sec,
        )
    else:
        stream = MemoryStream(maxlen=jobs.stream_maxlen)
    try:
        yield stream
    finally:
        await stream.close()


@asynccontextmanager
async def open_buckets(settings: Settings) -> AsyncIterator[Buckets]:
    """Shared through Redis where its address is given, else of this process."""
    url = settings.jobs.redis_url.reveal()
    buckets: Buckets = RedisBuckets(url, environment=settings.server.environment) if url else MemoryBuckets()
    try:
        yield buckets
    finally:
        await buckets.close()


@asynccontextmanager
async def open_blobs(settings: Settings) -> AsyncIterator[Blobs]:
    """S3 where a bucket is named, else a folder of this machine."""
    files = settings.files
    blobs: Blobs
    if files.s3_bucket:
        blobs = S3Blobs(
            S3Settings(
                bucket=files.s3_bucket,
                prefix=files.s3_prefix,
                endpoint=files.s3_endpoint or None,
                region=files.s3_region,
                access_key_id=files.s3_access_key_id or None,
                secret_access_key=files.s3_secret_access_key.reveal() or None,
            )
        )
    else:
        blobs = DirectoryBlobs(settings.server.data_dir / "blobs")
    try:
        yield blobs
    finally:
        await blobs.close()


@asynccontextmanager
async def open_registry(settings: Settings, database: Database) -> AsyncIterator[Registry]:
    """Etcd where its addresses are given, else the database."""
    endpoints = [place.strip() for place in settings.worker.etcd_endpoints.split(",") if place.strip()]
    registry: Registry
    if endpoints:
        registry = EtcdRegistry(endpoints, environment=settings.server.environment, lease_sec=settings.jobs.lease_sec)
    else:
        registry = DatabaseRegistry(database, lease_sec=settings.jobs.lease_sec)
    try:
        yield registry
    finally:
        await registry.close()


@asynccontextmanager
async def watched(settings: Settings, *pulses: Pulse) -> AsyncIterator[None]:
    """Serve figures and liveness while the block lasts, where a port is set."""
    if not settings.server.metrics_port:
        yield
        return
    async with open_door(settings.server.metrics_port, pulses):
        yield


@asynccontextmanager
async def open_worker(
    settings: Settings, database: Database, stream: Stream, blobs: Blobs, name: str
) -> AsyncIterator[Worker]:
    """A worker with its sandbox, its cache and its keeper of leases; ``run`` it while the block lasts."""
    _lift_file_limit()
    slots = settings.worker.slots or os.cpu_count() or 1
    engine = make_engine()
    jobs, wanted = make_jobs(settings, engine), _worker_settings(settings, name, slots)
    cache = BlobCache(blobs, settings.worker.cache_dir.expanduser(), max_bytes=settings.worker.cache_bytes)

    def open_another() -> AbstractAsyncContextManager[Database]:
        return open_database(settings.database.url.reveal(), migrate=False, max_connections=2)

    async with (
        open_judge(slots) as judge,
        open_buckets(settings) as buckets,
        ProgressBoard(database, worker=name) as board,
        aclosing(_webhooks(settings, database)) as webhooks,
        leases_kept_apart(open_another, jobs, lease_ms=wanted.lease_ms, heartbeat_ms=wanted.heartbeat_ms) as keeper,
    ):
        executors = make_executors(
            settings, database=database, jobs=jobs, engine=engine, blobs=blobs, cache=cache, judge=judge
        )
        handlers: dict[str, Handler] = {
            JUDGE: JudgeHandler(database, blobs, cache, judge, margin=settings.judge.time_margin, board=board),
            problem_imports.KIND: ImportHandler(database, blobs, cache, judge, slots=max(1, slots // 2), board=board),
            NODE: NodeHandler(database, blobs, executors, engine.dags),
            EXECUTE: ExecuteHandler(database, judge, board=board),
            WEBHOOK: webhooks,
        }
        rate_per_sec = settings.worker.rate_per_sec
        pace = Pace(buckets, rate_per_sec=rate_per_sec) if rate_per_sec else None
        worker = Worker(database, jobs, stream, handlers, wanted, keeper=keeper, pace=pace)
        async with (
            open_registry(settings, database) as registry,
            announced(
                registry,
                _info(name, slots),
                partial(_looked, judge, _info(name, slots)),
                lambda: Health.DRAINING if worker.is_draining else Health.READY,
                every_sec=settings.jobs.heartbeat_sec,
            ),
        ):
            yield worker


def _webhooks(settings: Settings, database: Database) -> WebhookHandler:
    wanted = settings.webhooks
    return WebhookHandler(database, Allowed.parse(wanted.allow), timeout_sec=wanted.timeout_sec)


def _info(name: str, slots: int) -> WorkerInfo:
    return WorkerInfo(
        name, socket.gethostname(), os.getpid(), __version__, slots, isolation="sandbox", health=Health.READY
    )


async def _looked(judge: Judge, info: WorkerInfo) -> WorkerInfo:
    """With the languages that it can judge, in which versions."""
    versions = {}
    for language in judge.languages:
        with suppress(AdjudgeError):  # a toolchain that is missing or does not run disables its language alone
            versions[language.id] = await judge.languages.version(language, judge.box)
    return replace(info, languages=versions)


def _worker_settings(settings: Settings, name: str, slots: int) -> WorkerSettings:
    jobs = settings.jobs
    return WorkerSettings(
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
        retry=settings.retry.policy(),
    )


def _lift_file_limit() -> None:
    """Test data in use is held open, file by file: take all the descriptors that we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _ahead(settings: Settings) -> int:
    """How much of a band to announce ahead of the workers: far from where the stream drops its oldest messages."""
    return min(_AHEAD, settings.jobs.stream_maxlen // 2)


def _chain_rounds(settings: Settings) -> PatrolSettings:
    chains = settings.chains
    keep_ms = round(chains.keep_days * 86_400_000) or None
    return PatrolSettings(stop_grace_ms=round(chains.stop_grace_sec * 1_000), keep_ms=keep_ms)


async def schedule(
    settings: Settings, database: Database, stream: Stream, name: str, pulse: Pulse | None = None
) -> None:
    """Deliver the outbox and keep order, for ever: what the scheduler role does."""
    engine = make_engine()
    jobs = make_jobs(settings, engine)
    watchdog, reconciler = Watchdog(database, jobs, name=name), Reconciler(database, jobs, stream, name=name)
    interval_ms = round(settings.jobs.reclaim_interval_sec * 1_000)
    async with asyncio.TaskGroup() as roles:
        roles.create_task(Pump(database, jobs, stream, name=name, pulse=pulse, ahead=_ahead(settings)).run())
        roles.create_task(patrol(watchdog.tick, every_ms=interval_ms))
        roles.create_task(patrol(reconciler.tick, every_ms=_RECONCILE_MS))
        roles.create_task(patrol(Census(database, stream).tick, every_ms=_RECONCILE_MS))
        retention = Retention(database, deliveries_ms=settings.webhooks.keep_sec * 1_000)
        roles.create_task(patrol(retention.tick, every_ms=_RETENTION_MS))
        chains = ChainPatrol(database, jobs, engine, name=name, settings=_chain_rounds(settings))
        roles.create_task(patrol(chains.tick, every_ms=_CHAINS_MS))
        roles.create_task(TriggerScheduler(database, run_starter(engine), name=name).run())
