"""Blobs in a local folder: ``ROOT/ab/cd/abcd…``, written to a temporary file, flushed and renamed.

A put becomes visible by one rename, after the file is on the disk; then the folder is flushed, too. Interrupted puts
stay below ``ROOT/partial`` until ``delete_partial_uploads`` removes them.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO

from adjudge.blobs import chunked_io
from adjudge.blobs.driver import BlobInfo, BlobSource, Digest, parse_digest, parse_prefix
from adjudge.domain.errors import NotFound, Unavailable

_PARTIAL = "partial"


class DirectoryBlobStore:
    """A folder of blobs on one machine; any number of processes may use it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._partial = root / _PARTIAL

    async def put(self, source: BlobSource, *, expected: Digest | None = None) -> Digest:
        """Write a temporary file and rename it over an existing one: renews an old blob and repairs a corrupt one."""
        with self._reporting():
            file, written = await asyncio.to_thread(self._begin)
        try:
            async with aclosing(chunked_io.read_source(source)) as incoming:
                digest = await chunked_io.write_chunks(file, incoming)
            chunked_io.check_expected(digest, expected)
            with self._reporting():
                await asyncio.to_thread(self._publish, written, digest)
        finally:
            file.close()
            written.unlink(missing_ok=True)
        return digest

    async def open(self, digest: Digest) -> AsyncGenerator[bytes]:
        path = self._path(digest)
        with self._reporting():
            if not await asyncio.to_thread(path.exists):
                raise NotFound("blob", digest)
            async with aclosing(chunked_io.read_file(path)) as stored:
                async for piece in chunked_io.verify_chunks(digest, stored):
                    yield piece

    async def fetch_to(self, digest: Digest, path: Path) -> None:
        """Copy to a temporary file, verify, rename."""
        await chunked_io.write_verified(self.open(digest), path)

    async def exists(self, digest: Digest) -> bool:
        return await asyncio.to_thread(self._path(digest).exists)

    async def stat(self, digest: Digest) -> BlobInfo:
        path = self._path(digest)
        with self._reporting():
            try:
                return _info(digest, await asyncio.to_thread(path.stat))
            except FileNotFoundError:
                raise NotFound("blob", digest) from None

    async def delete(self, digest: Digest, *, stored_before_us: int | None = None) -> bool:
        """Remove the file; checking the age and removing are atomic with respect to puts."""
        path = self._path(digest)
        with self._reporting():
            return await asyncio.to_thread(self._delete, path, stored_before_us)

    async def list(self, prefix: str = "") -> AsyncGenerator[BlobInfo]:
        """List by walking the folders that can contain such digests, in digest order."""
        parse_prefix(prefix)
        for folder in await asyncio.to_thread(_folders, self._root, prefix):
            for info in await asyncio.to_thread(_blobs_in, folder):
                if info.digest.startswith(prefix):
                    yield info

    async def delete_partial_uploads(self, older_than_sec: float) -> int:
        """Remove partial files that have not been modified for a while."""
        return await asyncio.to_thread(self._tidy, time.time() - older_than_sec)

    async def close(self) -> None:
        """Nothing to close."""

    def _path(self, digest: Digest) -> Path:
        parse_digest(digest)
        return self._root / digest[:2] / digest[2:4] / digest

    def _begin(self) -> tuple[IO[bytes], Path]:
        self._partial.mkdir(parents=True, exist_ok=True)
        return chunked_io.create_temp_file(self._partial)

    def _publish(self, written: Path, digest: Digest) -> None:
        path = self._path(digest)
        written.chmod(0o444)
        created = _make_folders(path.parent)
        with self._lock(fcntl.LOCK_SH):
            written.replace(path)
        for folder in {path.parent, *created}:
            chunked_io.sync_folder(folder)

    def _delete(self, path: Path, stored_before_us: int | None) -> bool:
        with self._lock(fcntl.LOCK_EX):
            try:
                if stored_before_us is not None and path.stat().st_mtime_ns // 1000 >= stored_before_us:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        """Shared for puts, exclusive for a delete, so that a blob renewed just now is not deleted by an older check."""
        self._partial.mkdir(parents=True, exist_ok=True)
        with (self._root / "lock").open("ab") as file:
            fcntl.flock(file, kind)
            yield

    def _tidy(self, before: float) -> int:
        removed = 0
        for path in self._partial.glob("*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
        return removed

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(f"The blob folder {self._root} cannot be used: {error.strerror}.") from error


def _folders(root: Path, prefix: str) -> list[Path]:
    """The second-level folders that can contain digests with this prefix."""
    first, second = prefix[:2].ljust(2, "?"), prefix[2:4].ljust(2, "?")
    return sorted(root.glob(f"{first}/{second}"))


def _make_folders(folder: Path) -> list[Path]:
    """Create a folder; returns all folders that got a new entry."""
    if folder.is_dir():
        return []
    created = _make_folders(folder.parent)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir()
    return [*created, folder.parent]


def _blobs_in(folder: Path) -> list[BlobInfo]:
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            found.append(_info(entry.name, entry.stat()))
    return sorted(found, key=lambda info: info.digest)


def _info(digest: Digest, stat: os.stat_result) -> BlobInfo:
    return BlobInfo(digest, stat.st_size, stat.st_mtime_ns // 1000)
