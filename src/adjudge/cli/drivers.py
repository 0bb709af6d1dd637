"""The drivers that settings choose. Only what is chosen is imported: most processes do without Redis, S3 and etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adjudge.blobs.directory import DirectoryBlobs
from adjudge.blobs.driver import Blobs
from adjudge.cache.buckets import Buckets, MemoryBuckets, RedisBuckets
from adjudge.domain.errors import InvalidInput
from adjudge.registry import Registry
from adjudge.registry.database import DatabaseRegistry
from adjudge.settings import Settings
from adjudge.store import Database, open_database
from adjudge.store.opening import sqlite_path
from adjudge.stream import MemoryStream, Stream


def open_existing(settings: Settings) -> AbstractAsyncContextManager[Database]:
    """The database of a judge that is looked after: never a new one.

    In the wrong folder an empty one would have no dead letters to show and no file to keep.
    """
    url = settings.database.url.reveal()
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise InvalidInput(
            f"There is no database {path} here: go to the folder where the judge runs, or set ADJUDGE_DATABASE_URL.",
            field="database.url",
        )
    return open_database(url)


@asynccontextmanager
async def open_stream(settings: Settings) -> AsyncIterator[Stream]:
    """Redis where its address is given, else a stream of this process."""
    jobs, url = settings.jobs, settings.jobs.redis_url.reveal()
    stream: Stream
    if url:
        from adjudge.stream.redis import RedisStream  # noqa: PLC0415  # only where it is chosen

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
        from adjudge.blobs.s3 import S3Blobs, S3Settings  # noqa: PLC0415  # only where it is chosen

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
