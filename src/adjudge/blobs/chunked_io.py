"""Chunked I/O: read, write and hash files of any size in constant memory, off the event loop."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import aclosing, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import IO, Final

from adjudge.blobs.driver import BlobCorrupt, BlobSource, Digest
from adjudge.domain.errors import InvalidInput, Unavailable

CHUNK_BYTES: Final = 1 << 20


async def read_source(source: BlobSource) -> AsyncGenerator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), CHUNK_BYTES):
            yield source[start : start + CHUNK_BYTES]
    elif isinstance(source, Path):
        async with aclosing(read_file(source)) as pieces:
            async for piece in pieces:
                yield piece
    else:
        async for piece in source:
            yield piece


async def read_file(path: Path) -> AsyncGenerator[bytes]:
    file = _File(path)
    try:
        while piece := await asyncio.to_thread(file.read):
            yield piece
    except FileNotFoundError:
        raise InvalidInput(f"{path}: file not found.", field="path") from None
    finally:
        file.close()


class _File:
    """A file opened and read by a thread; once closed, it stays closed.

    A caller that is canceled while the thread opens the file would lose the descriptor, so it is kept here.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._file: IO[bytes] | None = None
        self._is_closed = False

    def read(self) -> bytes:
        """The next chunk; empty at the end, or after ``close``."""
        with self._lock:
            if self._is_closed:
                return b""
            if self._file is None:
                self._file = self._path.open("rb")
            return self._file.read(CHUNK_BYTES)

    def close(self) -> None:
        """Close it after the current read."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()


async def verify_chunks(digest: Digest, pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Pass chunks on, and raise after the last one if their digest is not ``digest``."""
    total = sha256()
    async for piece in pieces:
        total.update(piece)
        yield piece
    if total.hexdigest() != digest:
        raise BlobCorrupt(f"Blob {digest}: content does not match its digest.", digest=digest)


async def write_chunks(file: IO[bytes], pieces: AsyncIterable[bytes]) -> Digest:
    """Write all chunks to an open file, flush it to the disk and return the digest."""
    total = sha256()

    def add(piece: bytes) -> None:
        total.update(piece)
        file.write(piece)

    async for piece in pieces:
        with _disk():
            await asyncio.to_thread(add, piece)
    with _disk():
        await asyncio.to_thread(_settle, file)
    return total.hexdigest()


async def write_verified(incoming: AsyncGenerator[bytes], path: Path) -> None:
    """Write verified chunks to ``path``, which appears complete or not at all."""
    file, written = await asyncio.to_thread(create_temp_file, path.parent, f".{path.name}.")
    try:
        async with aclosing(incoming):
            await write_chunks(file, incoming)
        written.replace(path)
    finally:
        file.close()
        written.unlink(missing_ok=True)


def create_temp_file(folder: Path, prefix: str = "") -> tuple[IO[bytes], Path]:
    """Create a temporary file for unverified bytes."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix)
    return os.fdopen(descriptor, "wb"), Path(name)


async def file_digest(path: Path) -> Digest:
    total = sha256()
    async for piece in read_file(path):
        await asyncio.to_thread(total.update, piece)
    return total.hexdigest()


def check_expected(digest: Digest, expected: Digest | None) -> None:
    """Reject bytes whose digest is not the expected one."""
    if expected is not None and digest != expected:
        raise InvalidInput(f"digest: the bytes are {digest}, expected {expected}; nothing was stored.", field="digest")


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _disk() -> Iterator[None]:
    """Convert errors of the disk; errors of the source belong to the caller."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"Cannot write file: {error.strerror}.") from error


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
