"""Garbage collection deletes old, unused blobs only, on every driver."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable

import pytest

from adjudge.blobs import Digest
from adjudge.blobs.gc import GRACE_SEC, collect_garbage
from adjudge.domain.errors import InvalidInput
from tests.conformance.blobs.conftest import BlobDriverFixture


async def each(digests: Iterable[Digest]) -> AsyncIterator[Digest]:
    for digest in digests:
        yield digest


def in_days(days: float) -> int:
    return time.time_ns() // 1000 + int(days * 86_400e6)


async def test_gc_deletes_old_unused_blobs_only(side: BlobDriverFixture) -> None:
    used, unused = await side.blobs.put(b"used"), await side.blobs.put(b"unused")
    done = await collect_garbage(side.blobs, each([used, "f" * 64]), now_us=lambda: in_days(2))
    assert (done.removed, done.removed_bytes, done.kept_in_use) == (1, len(b"unused"), 1)
    assert await side.blobs.exists(used)
    assert not await side.blobs.exists(unused)


async def test_gc_dry_run_deletes_nothing(side: BlobDriverFixture) -> None:
    unused = await side.blobs.put(b"unused")
    done = await collect_garbage(side.blobs, each([]), now_us=lambda: in_days(2), dry_run=True)
    assert (done.removed, done.removed_bytes) == (1, len(b"unused"))
    assert await side.blobs.exists(unused)


async def test_gc_keeps_blobs_within_grace(side: BlobDriverFixture) -> None:
    digest = await side.blobs.put(b"just uploaded, not committed yet")
    done = await collect_garbage(side.blobs, each([]), now_us=lambda: in_days(GRACE_SEC / 86_400 - 0.1))
    assert done.removed == 0
    assert await side.blobs.exists(digest)


async def test_gc_keeps_blobs_committed_during_collection(side: BlobDriverFixture) -> None:
    """The live digests are read after the listing: a commit in between is seen."""
    digest = await side.blobs.put(b"committed in between")
    listed = False

    async def live() -> AsyncIterator[Digest]:
        nonlocal listed
        listed = True
        yield digest

    await collect_garbage(side.blobs, live(), now_us=lambda: in_days(2))
    assert listed
    assert await side.blobs.exists(digest)


async def test_gc_deletes_nothing_if_live_digests_fail(side: BlobDriverFixture) -> None:
    digest = await side.blobs.put(b"precious")

    async def broken() -> AsyncIterator[Digest]:
        yield "0" * 64
        raise ConnectionError("the database went away")

    with pytest.raises(ConnectionError):
        await collect_garbage(side.blobs, broken(), now_us=lambda: in_days(2))
    assert await side.blobs.exists(digest)


async def test_gc_rejects_short_grace(side: BlobDriverFixture) -> None:
    with pytest.raises(InvalidInput, match="grace_sec"):
        await collect_garbage(side.blobs, each([]), grace_sec=60)
