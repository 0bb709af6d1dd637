"""Opens the configured drivers. Only these are imported: most processes do not need Redis, S3 and etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.blobs.driver import BlobStore
from adjudge.cache.token_buckets import MemoryTokenBuckets, RedisTokenBuckets, TokenBuckets
from adjudge.cli.wiring.transport_security import redis_problem
from adjudge.domain.errors import InvalidInput
from adjudge.observe.logs import get_logger
from adjudge.registry import Registry
from adjudge.registry.database import DatabaseRegistry
from adjudge.services.rate_limit import FallbackBuckets
from adjudge.settings import Settings
from adjudge.store import Database, open_database
from adjudge.store.engine.connect import sqlite_path
from adjudge.stream import MemoryStream, Stream

_COMMAND_TIMEOUT_SEC: Final = 300.0
"""For commands that read whole tables."""
_PRODUCTION: Final = "prod"
"""The environment in which an unprotected Redis is refused unless it is allowed."""
_log = get_logger(__name__)


def open_existing_database(settings: Settings) -> AbstractAsyncContextManager[Database]:
    """Open the database of a judge that is being operated: never a new one."""
    return open_database(existing_url(settings), timeout_sec=max(_COMMAND_TIMEOUT_SEC, settings.database.timeout_sec))


def open_served(settings: Settings) -> AbstractAsyncContextManager[Database]:
    """The database of a process that serves: brought up to date first, with the settings' time limit."""
    return open_database(settings.database.url.reveal(), timeout_sec=settings.database.timeout_sec)


def open_for_leases(settings: Settings) -> AbstractAsyncContextManager[Database]:
    """The lease keeper's own connections.

    Their time limit is short: after a connection that does not answer there must be time for two more tries within the
    lease.
    """
    jobs = settings.jobs
    limit_sec = max(0.5, (jobs.lease_sec - jobs.heartbeat_sec) / 3)
    return open_database(
        settings.database.url.reveal(),
        migrate=False,
        max_connections=2,
        timeout_sec=min(limit_sec, settings.database.timeout_sec),
    )


def existing_url(settings: Settings) -> str:
    """The URL of an existing database.

    In the wrong folder, a new empty database would show no dead letters and refer to no files.
    """
    url = settings.database.url.reveal()
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise InvalidInput(
            f"Database not found: {path}. Run the command in the server's working directory, or set "
            "ADJUDGE_DATABASE_URL.",
            field="database.url",
        )
    return url


def warn_of_open_redis(settings: Settings) -> None:
    """Refuse or warn of a Redis that anybody on its network can use, as ``jobs.redis_security`` says."""
    policy, problem = settings.jobs.redis_security, redis_problem(settings)
    if problem is None or policy == "allow":
        return
    if policy == "require" or settings.server.environment == _PRODUCTION:
        raise InvalidInput(problem, field="jobs.redis_url")
    _log.warning("redis_unprotected", error=problem)


@asynccontextmanager
async def open_stream(settings: Settings) -> AsyncIterator[Stream]:
    """Redis if configured, else an in-process stream."""
    jobs, url = settings.jobs, settings.jobs.redis_url.reveal()
    stream: Stream
    if url:
        warn_of_open_redis(settings)
        from adjudge.stream.redis import RedisStream  # noqa: PLC0415  # only where it is chosen

        stream = RedisStream(
            url,
            environment=settings.server.environment,
            maxlen=jobs.stream_maxlen,
            payload_ttl_sec=jobs.payload_ttl_sec,
            group=jobs.stream_group or None,
            timeout_sec=jobs.redis_timeout_sec,
        )
    else:
        stream = MemoryStream(maxlen=jobs.stream_maxlen)
    try:
        yield stream
    finally:
        await stream.close()


@asynccontextmanager
async def open_buckets(settings: Settings) -> AsyncIterator[TokenBuckets]:
    """Shared through Redis if configured, while it is available, else in-process."""
    url, environment = settings.jobs.redis_url.reveal(), settings.server.environment
    buckets: TokenBuckets = MemoryTokenBuckets()
    if url:
        timeout_sec = settings.jobs.redis_timeout_sec
        buckets = FallbackBuckets(RedisTokenBuckets(url, environment=environment, timeout_sec=timeout_sec))
    try:
        yield buckets
    finally:
        await buckets.close()


@asynccontextmanager
async def open_blobs(settings: Settings) -> AsyncIterator[BlobStore]:
    """S3 if a bucket is configured, else a local folder."""
    files = settings.files
    blobs: BlobStore
    if files.s3_bucket:
        from adjudge.blobs.s3 import S3BlobStore, S3Options  # noqa: PLC0415  # only where it is chosen

        blobs = S3BlobStore(
            S3Options(
                bucket=files.s3_bucket,
                prefix=files.s3_prefix,
                endpoint=files.s3_endpoint or None,
                region=files.s3_region,
                access_key_id=files.s3_access_key_id or None,
                secret_access_key=files.s3_secret_access_key.reveal() or None,
                timeout_sec=files.s3_timeout_sec,
            )
        )
    else:
        blobs = DirectoryBlobStore(settings.server.data_dir / "blobs")
    try:
        yield blobs
    finally:
        await blobs.close()


@asynccontextmanager
async def open_registry(settings: Settings, database: Database) -> AsyncIterator[Registry]:
    """Etcd if configured, else the database."""
    endpoints = [place.strip() for place in settings.worker.etcd_endpoints.split(",") if place.strip()]
    registry: Registry
    if endpoints:
        from adjudge.registry.etcd import EtcdRegistry  # noqa: PLC0415  # only where it is chosen

        registry = EtcdRegistry(
            endpoints,
            environment=settings.server.environment,
            lease_sec=settings.jobs.lease_sec,
            user=settings.worker.etcd_user or None,
            password=settings.worker.etcd_password.reveal() or None,
        )
    else:
        registry = DatabaseRegistry(database, lease_sec=settings.jobs.lease_sec)
    try:
        yield registry
    finally:
        await registry.close()
