"""A worker's cache of blobs on the local disk: fetched once, shared by slots and processes, with a size limit.

The folder has one file per blob, named by its digest. Processes coordinate by file locks, which the kernel releases
when a process dies: a file in use is locked shared; a file being fetched is locked exclusively under the name
``DIGEST.part``, so one process fetches and the others wait; one process at a time frees space. The access time, set at
each use, gives the LRU order. Files that this process has not fetched or checked itself are verified by their digest
before use.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from adjudge.blobs import chunked_io
from adjudge.blobs.driver import BlobStore, Digest, parse_digest
from adjudge.domain.errors import InvalidInput, Unavailable

_PART: Final = ".part"
_POLL_SEC: Final = 0.02
"""Poll interval while another process fetches; a file lock cannot wake an event loop."""

_Signature = tuple[int, int, int]


class BlobCache:
    """Blobs on the local disk, at most ``max_bytes``."""

    def __init__(self, blobs: BlobStore, folder: Path, *, max_bytes: int) -> None:
        self._blobs, self._folder, self._max_bytes = blobs, folder, max_bytes
        self._flights: dict[Digest, asyncio.Lock] = {}
        self._checked: dict[Digest, _Signature] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"cache_dir: {folder} cannot be created: {error.strerror}.", field="cache_dir"
            ) from error

    @asynccontextmanager
    async def pin(self, digest: Digest) -> AsyncIterator[Path]:
        """The verified, read-only file of a blob; it is not evicted while the block runs."""
        descriptor = await self._held(parse_digest(digest))
        try:
            yield self._folder / digest
        finally:
            os.close(descriptor)

    async def _held(self, digest: Digest) -> int:
        """A descriptor that holds the shared lock of the file. In this process one caller fetches, others wait."""
        flight = self._flights.setdefault(digest, asyncio.Lock())
        try:
            async with flight:
                while True:
                    if (descriptor := await self._lent(digest)) is not None:
                        return descriptor
                    if (descriptor := await self._fetched(digest)) is not None:
                        return descriptor
                    await asyncio.sleep(_POLL_SEC)
        finally:
            if not flight.locked() and self._flights.get(digest) is flight:
                del self._flights[digest]

    async def _lent(self, digest: Digest) -> int | None:
        """Lock the file if it is present and valid; a corrupt one is removed."""
        path = self._folder / digest
        descriptor = await asyncio.to_thread(_locked, path, os.O_RDONLY, fcntl.LOCK_SH)
        if descriptor is None:
            self._checked.pop(digest, None)  # another process removed it
            return None
        try:
            found = _signature(os.fstat(descriptor))
            if self._checked.get(digest) != found:
                if await chunked_io.file_digest(path) != digest:
                    path.unlink(missing_ok=True)
                    os.close(descriptor)
                    return None
                self._checked[digest] = found
            _touch(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    async def _fetched(self, digest: Digest) -> int | None:
        """Fetch the file, unless another process does; returns it locked."""
        size_bytes = (await self._blobs.stat(digest)).size_bytes
        if size_bytes > self._max_bytes:
            raise InvalidInput(
                f"cache_bytes: blob {digest} has {size_bytes} bytes, the cache holds {self._max_bytes}; enlarge it.",
                field="cache_bytes",
            )
        path = self._folder / digest
        part = path.with_name(digest + _PART)
        descriptor = await asyncio.to_thread(_locked, part, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        if descriptor is None:
            return None
        try:
            if path.exists():  # another process finished between our check and our lock
                part.unlink(missing_ok=True)
                os.close(descriptor)
                return None
            await asyncio.to_thread(self._reserve, descriptor, size_bytes)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                async with aclosing(self._blobs.open(digest)) as incoming:
                    await chunked_io.write_chunks(file, incoming)
            os.fchmod(descriptor, 0o444)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            part.replace(path)
            self._checked[digest] = _signature(os.fstat(descriptor))
        except BaseException:
            part.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return descriptor

    def _reserve(self, descriptor: int, size_bytes: int) -> None:
        """Allocate the final size at once, so that other processes count it, and evict old files until it fits."""
        with self._freeing_space():
            os.truncate(descriptor, 0)
            sizes, idle = self._survey()
            excess = sum(sizes.values()) + size_bytes - self._max_bytes
            for path in idle:
                if excess <= 0:
                    break
                if _removed(path):
                    excess -= sizes[path]
                    self._checked.pop(path.name, None)
            if excess > 0:
                raise Unavailable(f"Blob cache {self._folder}: no evictable files left; {excess} bytes short.")
            os.truncate(descriptor, size_bytes)

    def _survey(self) -> tuple[dict[Path, int], list[Path]]:
        """Sizes of all files, and the eviction order: abandoned parts, then least recently used."""
        sizes: dict[Path, int] = {}
        order: list[tuple[bool, int, Path]] = []
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):
                stat, path = entry.stat(), Path(entry.path)
                if entry.name != "lock":
                    sizes[path] = stat.st_size
                    order.append((not entry.name.endswith(_PART), stat.st_atime_ns, path))
        return sizes, [path for _, _, path in sorted(order)]

    @contextmanager
    def _freeing_space(self) -> Iterator[None]:
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _locked(path: Path, flags: int, kind: int) -> int | None:
    """Open and lock without waiting; None if the file is missing, locked, or was removed meanwhile."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def _removed(path: Path) -> bool:
    """Remove a file that is not in use."""
    descriptor = _locked(path, os.O_RDONLY, fcntl.LOCK_EX)
    if descriptor is None:
        return False
    path.unlink(missing_ok=True)
    os.close(descriptor)
    return True


def _signature(stat: os.stat_result) -> _Signature:
    """What changes if the content of a file is modified."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _touch(descriptor: int) -> None:
    """Record the use. The modification time is kept: it is part of the signature."""
    with suppress(PermissionError):  # another user's file: it ages as if unused
        os.utime(descriptor, ns=(time.time_ns(), os.fstat(descriptor).st_mtime_ns))
