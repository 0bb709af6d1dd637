"""The worker's blob cache: size limit, verification, one fetch, sharing between processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adjudge.blobs import BlobCorrupt, Digest
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.domain.errors import InvalidInput, NotFound, Unavailable

KIB = 1024


class CountingBlobs(DirectoryBlobStore):
    """Counts reads, and lets a test stop them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[Digest] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(self, digest: Digest) -> AsyncGenerator[bytes]:
        self.reads.append(digest)
        await self.gate.wait()
        async for piece in super().open(digest):
            yield piece


@pytest.fixture
async def blobs(tmp_path: Path) -> CountingBlobs:
    return CountingBlobs(tmp_path / "blobs")


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


async def used(cache: BlobCache, digest: Digest) -> bytes:
    async with cache.pin(digest) as path:
        return path.read_bytes()


async def test_concurrent_pins_fetch_once(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"tests")
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=KIB)
    blobs.gate.clear()
    asking = [asyncio.create_task(used(cache, digest)) for _ in range(10)]
    await asyncio.sleep(0)
    blobs.gate.set()
    assert await asyncio.gather(*asking) == [b"tests"] * 10
    assert await used(cache, digest) == b"tests"
    assert blobs.reads == [digest]


async def test_cache_is_shared_between_processes(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"tests")
    first, second = (BlobCache(blobs, tmp_path / "cache", max_bytes=KIB) for _ in range(2))
    blobs.gate.clear()
    asking = [asyncio.create_task(used(cache, digest)) for cache in (first, second, first, second)]
    while not blobs.reads:
        await asyncio.sleep(0.001)
    blobs.gate.set()
    assert await asyncio.gather(*asking) == [b"tests"] * 4
    assert blobs.reads == [digest]


async def test_least_recently_used_blob_is_evicted_first(blobs: CountingBlobs, tmp_path: Path) -> None:
    digests = [await blobs.put(bytes([number]) * 400) for number in range(3)]
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=1000)
    for digest in (digests[0], digests[1], digests[0], digests[2]):
        await used(cache, digest)
    assert files_of(tmp_path / "cache") == sorted([digests[0], digests[2]])
    assert blobs.reads == digests


async def test_pinned_blobs_are_not_evicted(blobs: CountingBlobs, tmp_path: Path) -> None:
    digests = [await blobs.put(bytes([number]) * 400) for number in range(3)]
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=1000)
    async with AsyncExitStack() as holding:
        held = [await holding.enter_async_context(cache.pin(digest)) for digest in digests[:2]]
        with pytest.raises(Unavailable, match="200 bytes short"):
            await used(BlobCache(blobs, tmp_path / "cache", max_bytes=1000), digests[2])
        assert [path.read_bytes() for path in held] == [b"\x00" * 400, b"\x01" * 400]
    assert await used(cache, digests[2]) == b"\x02" * 400
    assert len(files_of(tmp_path / "cache")) == 2


async def test_blob_larger_than_cache_is_rejected(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"x" * 2000)
    with pytest.raises(InvalidInput, match="cache_bytes"):
        await used(BlobCache(blobs, tmp_path / "cache", max_bytes=1000), digest)


def _change(path: Path) -> None:
    """Change a file at another time than it was fetched at: a kernel's clock may tick too seldom to tell."""
    path.chmod(0o644)
    path.write_bytes(b"wrong")
    os.utime(path, (1, 1))


async def test_modified_cache_file_is_fetched_again(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"sound")
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=KIB)
    await used(cache, digest)
    path = tmp_path / "cache" / digest
    _change(path)
    assert await used(cache, digest) == b"sound"
    _change(path)
    assert await used(BlobCache(blobs, tmp_path / "cache", max_bytes=KIB), digest) == b"sound"
    assert blobs.reads == [digest] * 3


async def test_corrupt_blob_is_not_cached(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"sound")
    stored = tmp_path / "blobs" / digest[:2] / digest[2:4] / digest
    stored.chmod(0o644)
    stored.write_bytes(b"rotten")
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=KIB)
    with pytest.raises(BlobCorrupt):
        await used(cache, digest)
    assert files_of(tmp_path / "cache") == []


async def test_missing_blob_raises_not_found(blobs: CountingBlobs, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await used(BlobCache(blobs, tmp_path / "cache", max_bytes=KIB), "0" * 64)
    assert files_of(tmp_path / "cache") == []


async def test_cancelled_fetch_leaves_no_file(blobs: CountingBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"tests")
    cache = BlobCache(blobs, tmp_path / "cache", max_bytes=KIB)
    blobs.gate.clear()
    asking = asyncio.create_task(used(cache, digest))
    while not blobs.reads:
        await asyncio.sleep(0.001)
    asking.cancel()
    await asyncio.wait({asking})
    assert files_of(tmp_path / "cache") == []
    blobs.gate.set()
    assert await used(cache, digest) == b"tests"


_DIE_FETCHING = """
import asyncio, os, sys
from pathlib import Path
from adjudge.blobs import chunked_io
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobStore

def die(*_):
    os.kill(os.getpid(), 9)

async def main():
    chunked_io._settle = die
    async with BlobCache(DirectoryBlobStore(Path(sys.argv[1])), Path(sys.argv[2]), max_bytes=1000).pin(sys.argv[3]):
        pass

asyncio.run(main())
"""


async def test_partial_file_of_killed_process_is_replaced(blobs: CountingBlobs, tmp_path: Path) -> None:
    digests = [await blobs.put(bytes([number]) * 700) for number in range(2)]
    folder = tmp_path / "cache"
    argv = [sys.executable, "-c", _DIE_FETCHING, str(tmp_path / "blobs"), str(folder), digests[0]]
    assert subprocess.run(argv, check=False, timeout=60).returncode == -9
    assert files_of(folder) == [f"{digests[0]}.part"]
    cache = BlobCache(blobs, folder, max_bytes=1000)
    assert await used(cache, digests[1]) == b"\x01" * 700
    assert files_of(folder) == [digests[1]]
    assert await used(cache, digests[0]) == b"\x00" * 700


_HOLD = """
import asyncio, sys
from pathlib import Path
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobStore

async def main():
    async with BlobCache(DirectoryBlobStore(Path(sys.argv[1])), Path(sys.argv[2]), max_bytes=1000).pin(sys.argv[3]):
        print("held", flush=True)
        sys.stdin.read()

asyncio.run(main())
"""


async def test_pinned_blob_is_not_evicted_by_other_process(blobs: CountingBlobs, tmp_path: Path) -> None:
    digests = [await blobs.put(bytes([number]) * 700) for number in range(2)]
    folder = tmp_path / "cache"
    argv = [sys.executable, "-c", _HOLD, str(tmp_path / "blobs"), str(folder), digests[0]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        cache = BlobCache(blobs, folder, max_bytes=1000)
        with pytest.raises(Unavailable, match="no evictable files"):
            await used(cache, digests[1])
        os.kill(holder.pid, 9)
        holder.wait()
    assert await used(cache, digests[1]) == b"\x01" * 700
