"""Conformance of blob stores, run on every driver."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from adjudge.blobs import BlobCorrupt, BlobSource, BlobStore, Digest
from adjudge.domain.errors import InvalidInput, NotFound
from tests.conformance.blobs.conftest import BlobDriverFixture

MIB = 1 << 20
ABSENT = sha256(b"nobody stored this").hexdigest()


def name_of(content: bytes) -> Digest:
    return sha256(content).hexdigest()


async def content_of(blobs: BlobStore, digest: Digest) -> bytes:
    return b"".join([piece async for piece in blobs.open(digest)])


async def in_pieces(content: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.parametrize("size", [0, 1, 1000, 3 * MIB + 7])
@pytest.mark.parametrize("kind", ["bytes", "path", "pieces"])
async def test_put_then_open_returns_same_bytes(side: BlobDriverFixture, tmp_path: Path, size: int, kind: str) -> None:
    content = os.urandom(size)
    file = tmp_path / "source"
    file.write_bytes(content)
    sources: dict[str, BlobSource] = {"bytes": content, "path": file, "pieces": in_pieces(content, 300_000)}
    source = sources[kind]
    digest = await side.blobs.put(source)
    assert digest == name_of(content)
    assert await content_of(side.open(), digest) == content
    assert await side.blobs.exists(digest)
    info = await side.blobs.stat(digest)
    assert (info.digest, info.size_bytes) == (digest, size)


async def test_put_is_idempotent(side: BlobDriverFixture) -> None:
    first = await side.blobs.put(b"same")
    assert await side.open().put(in_pieces(b"same")) == first
    assert [info.digest async for info in side.blobs.list()] == [first]


async def test_concurrent_puts(side: BlobDriverFixture) -> None:
    contents = [b"shared"] * 8 + [f"own {number}".encode() for number in range(8)]
    digests = await asyncio.gather(*(side.open().put(content) for content in contents))
    assert digests == [name_of(content) for content in contents]
    assert await asyncio.gather(*(content_of(side.blobs, digest) for digest in digests)) == contents


async def test_reads_during_concurrent_put_are_complete(side: BlobDriverFixture) -> None:
    content = os.urandom(2 * MIB)
    digest = await side.blobs.put(content)
    writers = [side.open().put(in_pieces(content, MIB)) for _ in range(3)]
    readers = [content_of(side.open(), digest) for _ in range(3)]
    results = await asyncio.gather(*writers, *readers)
    assert results == [digest] * 3 + [content] * 3


async def test_missing_blob_raises_not_found(side: BlobDriverFixture, tmp_path: Path) -> None:
    assert not await side.blobs.exists(ABSENT)
    assert not await side.blobs.delete(ABSENT)
    for call in (content_of(side.blobs, ABSENT), side.blobs.stat(ABSENT), side.blobs.fetch_to(ABSENT, tmp_path / "x")):
        with pytest.raises(NotFound) as caught:
            await call
        assert caught.value.code == "BLOB_NOT_FOUND"
    assert list(tmp_path.glob("*x*")) == []


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "a" * 65])
async def test_invalid_digest_is_rejected(side: BlobDriverFixture, tmp_path: Path, digest: str) -> None:
    calls = (
        content_of(side.blobs, digest),
        side.blobs.fetch_to(digest, tmp_path / "x"),
        side.blobs.exists(digest),
        side.blobs.stat(digest),
        side.blobs.delete(digest),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match="digest"):
            await call


async def test_unexpected_digest_is_rejected_and_not_stored(side: BlobDriverFixture) -> None:
    with pytest.raises(InvalidInput, match="nothing was stored"):
        await side.blobs.put(b"something else", expected=name_of(b"expected"))
    assert await side.blobs.put(b"expected", expected=name_of(b"expected")) == name_of(b"expected")
    assert [info.digest async for info in side.blobs.list()] == [name_of(b"expected")]


@pytest.mark.parametrize("damage", [b"", b"sound contenT", b"sound content and more", b"sound"])
async def test_corrupt_blob_is_detected_on_read(side: BlobDriverFixture, tmp_path: Path, damage: bytes) -> None:
    digest = await side.blobs.put(b"sound content")
    await side.overwrite(digest, damage)
    with pytest.raises(BlobCorrupt) as caught:
        await content_of(side.blobs, digest)
    assert caught.value.fields == {"digest": digest}
    target = tmp_path / "target"
    with pytest.raises(BlobCorrupt):
        await side.blobs.fetch_to(digest, target)
    assert [path.name for path in tmp_path.iterdir() if "target" in path.name] == []


async def test_fetch_to_writes_and_replaces(side: BlobDriverFixture, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    digest = await side.blobs.put(b"new")
    await side.blobs.fetch_to(digest, target)
    assert target.read_bytes() == b"new"


async def test_failing_source_leaves_no_blob(side: BlobDriverFixture) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield os.urandom(2 * MIB)
        raise ConnectionResetError("the uploader went away")

    with pytest.raises(ConnectionResetError):
        await side.blobs.put(failing())
    assert [info async for info in side.blobs.list()] == []


async def test_cancelled_put_leaves_no_blob(side: BlobDriverFixture) -> None:
    started, never = asyncio.Event(), asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"beginning"
        started.set()
        await never.wait()

    putting = asyncio.create_task(side.blobs.put(stuck()))
    await started.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert [info async for info in side.blobs.list()] == []


async def test_missing_source_file_is_named_in_error(side: BlobDriverFixture, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone\.txt"):
        await side.blobs.put(tmp_path / "gone.txt")


async def test_list_by_prefix(side: BlobDriverFixture) -> None:
    digests = sorted([await side.blobs.put(f"{number}".encode()) for number in range(20)])
    assert sorted([info.digest async for info in side.blobs.list()]) == digests
    for length in (1, 2, 3, 4, 5, 64):
        prefix = digests[7][:length]
        expected = [digest for digest in digests if digest.startswith(prefix)]
        assert sorted([info.digest async for info in side.blobs.list(prefix)]) == expected
    with pytest.raises(InvalidInput, match="prefix"):
        _ = [info async for info in side.blobs.list("../")]


async def test_delete_removes_one_blob(side: BlobDriverFixture) -> None:
    gone, kept = await side.blobs.put(b"gone"), await side.blobs.put(b"kept")
    assert await side.blobs.delete(gone)
    assert not await side.blobs.exists(gone)
    assert await content_of(side.blobs, kept) == b"kept"
    assert not await side.blobs.delete(gone)


async def test_delete_keeps_younger_blobs(side: BlobDriverFixture) -> None:
    digest = await side.blobs.put(b"young")
    stored_at_us = (await side.blobs.stat(digest)).stored_at_us
    assert not await side.blobs.delete(digest, stored_before_us=stored_at_us)
    assert await side.blobs.exists(digest)
    assert await side.blobs.delete(digest, stored_before_us=stored_at_us + 1)


@pytest.mark.slow
async def test_large_file_uses_constant_memory(side: BlobDriverFixture, tmp_path: Path) -> None:
    """48 MiB there and back, by parts where the store has them, with at most a few pieces of it in memory at a time."""
    piece, total = os.urandom(MIB), sha256()

    async def large() -> AsyncIterator[bytes]:
        for number in range(48):
            content = piece[number:] + piece[:number]
            total.update(content)
            yield content

    tracemalloc.start()
    try:
        digest = await side.blobs.put(large())
        await side.blobs.fetch_to(digest, tmp_path / "large")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert digest == total.hexdigest()
    assert (tmp_path / "large").stat().st_size == 48 * MIB
    assert peak_bytes < 16 * MIB
