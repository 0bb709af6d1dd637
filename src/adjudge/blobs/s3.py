"""Blobs in S3 or a compatible service. Keys are ``PREFIX/ab/cd/abcd…``.

The bytes are hashed before they are sent (the key is the digest, and a retry needs them again), so a source that can be
read only once goes through a temporary file. Large files are uploaded in parts. An object appears when its upload is
complete; parts of an interrupted one are invisible and deleted by the bucket's lifecycle rule for incomplete uploads.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from adjudge.blobs import chunked_io
from adjudge.blobs.driver import FRESH_SEC, BlobInfo, BlobSource, Digest, parse_digest, parse_prefix
from adjudge.blobs.s3_failures import translated
from adjudge.domain.errors import InvalidInput, NotFound, Unavailable

_PART_BYTES: Final = 8 << 20
_PARTS_AT_ONCE: Final = 4
_RESUMES: Final = 4


@dataclass(frozen=True, slots=True)
class S3Options:
    """Bucket and credentials. Without keys, those of the machine are used (role, environment)."""

    bucket: str
    prefix: str = "blobs"
    endpoint: str | None = None
    """For services other than AWS: ``https://host:port``."""
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style: bool = True
    """``endpoint/bucket/key`` instead of ``bucket.endpoint/key``."""
    timeout_sec: float = 60.0
    """Per request; each part of a large file is a request."""
    retry_sec: float = 30.0
    """How long a failing request is retried, with growing delays, before ``Unavailable`` is raised."""


class S3BlobStore:
    """Blobs in one bucket below one prefix."""

    def __init__(self, settings: S3Options) -> None:
        if not settings.bucket:
            raise InvalidInput("s3_bucket: must not be empty.", field="s3_bucket")
        self._endpoint = f"{settings.endpoint or 'AWS'}/{settings.bucket}"
        self._store = _connect(settings)

    async def put(self, source: BlobSource, *, expected: Digest | None = None) -> Digest:
        """Hash, then upload unless the same blob was stored recently."""
        if isinstance(source, bytes | Path):
            return await self._put(source, expected)
        with tempfile.TemporaryDirectory(prefix="adjudge-put-") as folder:
            file, spooled = chunked_io.create_temp_file(Path(folder))
            with file:
                await chunked_io.write_chunks(file, source)
            return await self._put(spooled, expected)

    async def open(self, digest: Digest) -> AsyncGenerator[bytes]:
        """Read and verify; an interrupted download is resumed."""
        async with aclosing(self._stored(digest)) as stored:
            async for piece in chunked_io.verify_chunks(digest, stored):
                yield piece

    async def fetch_to(self, digest: Digest, path: Path) -> None:
        """Download to a temporary file, verify, rename."""
        await chunked_io.write_verified(self.open(digest), path)

    async def exists(self, digest: Digest) -> bool:
        try:
            await self.stat(digest)
        except NotFound:
            return False
        return True

    async def stat(self, digest: Digest) -> BlobInfo:
        with self._reporting(digest):
            return _info(await obstore.head_async(self._store, _key(digest)))

    async def delete(self, digest: Digest, *, stored_before_us: int | None = None) -> bool:
        """Delete the object. S3 cannot check the age and delete atomically; milliseconds lie in between."""
        try:
            info = await self.stat(digest)
        except NotFound:
            return False
        if stored_before_us is not None and info.stored_at_us >= stored_before_us:
            return False
        with self._reporting(digest):
            await obstore.delete_async(self._store, _key(digest))
        return True

    async def list(self, prefix: str = "") -> AsyncGenerator[BlobInfo]:
        """List by pages; keys that are not blobs are ignored."""
        parse_prefix(prefix)
        folder = "/".join(part for part in (prefix[:2], prefix[2:4]) if len(part) == 2) or None
        with self._reporting():
            async for page in obstore.list(self._store, folder):
                for meta in page:
                    name = meta["path"].rsplit("/", 1)[-1]
                    if name.startswith(prefix) and meta["path"] == _path(name):
                        yield _info(meta)

    async def delete_partial_uploads(self, older_than_sec: float) -> int:  # noqa: ARG002  # the bucket's lifecycle rule does it
        """Nothing to do: the bucket needs a lifecycle rule that aborts incomplete uploads after a day."""
        return 0

    async def close(self) -> None:
        """Connections are closed when nothing refers to them any more."""

    async def _put(self, source: bytes | Path, expected: Digest | None) -> Digest:
        digest = await _digest(source)
        chunked_io.check_expected(digest, expected)
        if not await self._is_fresh(digest):
            with self._reporting():
                await obstore.put_async(
                    self._store, _key(digest), source, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
                )
        return digest

    async def _is_fresh(self, digest: Digest) -> bool:
        try:
            info = await self.stat(digest)
        except NotFound:
            return False
        return time.time() - info.stored_at_us / 1e6 < FRESH_SEC

    async def _stored(self, digest: Digest) -> AsyncGenerator[bytes]:
        key, offset, size, broken = _key(digest), 0, None, 0
        while size is None or offset < size:
            try:
                with self._reporting(digest):
                    answer = await obstore.get_async(self._store, key, options=_from(offset))
                    size = answer.meta["size"]
                    async for piece in answer.stream(min_chunk_size=chunked_io.CHUNK_BYTES):
                        offset += len(piece)
                        yield bytes(piece)
                if offset < size:
                    raise Unavailable(f"S3 at {self._endpoint}: response truncated.")
            except Unavailable:
                broken += 1
                if size is None or broken > _RESUMES:
                    raise
                await asyncio.sleep(random.uniform(0, 0.1 * 2**broken))  # noqa: S311  # jitter, no secret

    @contextmanager
    def _reporting(self, digest: Digest = "") -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            failure = translated(error, self._endpoint, digest)
            raise failure from (None if isinstance(failure, NotFound) else error)


def _check_endpoint(endpoint: str | None) -> None:
    """Reject an invalid endpoint: the library would panic at the first request."""
    if endpoint is None:
        return
    try:
        parts = urlsplit(endpoint)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise InvalidInput(
            f"s3_endpoint: {endpoint!r} is invalid; must be http://HOST:PORT or https://HOST:PORT.",
            field="s3_endpoint",
        )


def _connect(settings: S3Options) -> S3Store:
    _check_endpoint(settings.endpoint)
    optional: dict[str, Any] = {
        "endpoint": settings.endpoint,
        "access_key_id": settings.access_key_id,
        "secret_access_key": settings.secret_access_key,
        "session_token": settings.session_token,
    }
    timeout = timedelta(seconds=settings.timeout_sec)
    plain = (settings.endpoint or "").startswith("http://")
    try:
        return S3Store(
            settings.bucket,
            prefix=settings.prefix or None,
            region=settings.region,
            virtual_hosted_style_request=not settings.path_style,
            client_options={"allow_http": plain, "timeout": timeout, "connect_timeout": timedelta(seconds=5)},
            retry_config={
                "max_retries": 8,
                "retry_timeout": timedelta(seconds=settings.retry_sec),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=5),
                    "base": 2,
                },
            },
            **{name: value for name, value in optional.items() if value},
        )
    except (BaseError, ValueError) as error:
        raise InvalidInput(f"s3_endpoint: {settings.endpoint!r} is invalid.", field="s3_endpoint") from error


async def _digest(source: bytes | Path) -> Digest:
    if isinstance(source, Path):
        return await chunked_io.file_digest(source)
    return await asyncio.to_thread(lambda: sha256(source).hexdigest())


def _from(offset: int) -> Any:
    return {"range": {"offset": offset}} if offset else {}


def _key(digest: Digest) -> str:
    return _path(parse_digest(digest))


def _path(name: str) -> str:
    return f"{name[:2]}/{name[2:4]}/{name}"


def _info(meta: obstore.ObjectMeta) -> BlobInfo:
    digest = meta["path"].rsplit("/", 1)[-1]
    return BlobInfo(digest, meta["size"], int(meta["last_modified"].timestamp() * 1e6))
