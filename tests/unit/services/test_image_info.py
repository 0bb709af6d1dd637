"""Type and size of stored pictures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.contests.ccs.snapshot import ImageInfo
from adjudge.domain.errors import Unavailable
from adjudge.services.image_info import ImageInfoCache

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + (640).to_bytes(4) + (480).to_bytes(4) + bytes(100)
JPEG = b"\xff\xd8\xff\xe1\xff\xff" + bytes(65_533) + b"\xff\xc0\0\x11\x08" + (20).to_bytes(2) + (30).to_bytes(2)
INFO = ImageInfo("image/png", 640, 480)


class _Blobs(DirectoryBlobStore):
    """Sends small pieces; counts them and the reads at once. Some blobs cannot be read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.failing: set[str] = set()
        self.hanging: set[str] = set()
        self.pieces = self.open_reads = self.most_reads = 0

    async def open(self, digest: str) -> AsyncGenerator[bytes]:
        self.open_reads += 1
        self.most_reads = max(self.most_reads, self.open_reads)
        try:
            await asyncio.sleep(0)
            if digest in self.hanging:
                await asyncio.Event().wait()
            if digest in self.failing:
                raise Unavailable("S3 is down.")
            data = b"".join([piece async for piece in super().open(digest)])
            for start in range(0, len(data), 16):
                self.pieces += 1
                yield data[start : start + 16]
        finally:
            self.open_reads -= 1


async def test_a_picture_is_read_once_and_only_as_far_as_necessary(tmp_path: Path) -> None:
    blobs = _Blobs(tmp_path)
    cache = ImageInfoCache(blobs)
    png, jpeg, text = [await blobs.put(data) for data in (PNG + bytes(100_000), JPEG + bytes(100), b"text")]
    assert await cache.find([png]) == {png: INFO}
    assert blobs.pieces == 4
    assert await cache.find([jpeg, png]) == {png: INFO, jpeg: ImageInfo("image/jpeg", 30, 20)}
    assert await cache.find([text]) == {}
    before = blobs.pieces
    assert (await cache.find([png, jpeg, text])).keys() == {png, jpeg}
    assert blobs.pieces == before


async def test_pictures_that_cannot_be_read_are_left_out_and_tried_again(tmp_path: Path) -> None:
    blobs = _Blobs(tmp_path)
    cache = ImageInfoCache(blobs)
    good, failing = [await blobs.put(PNG + data) for data in (b"1", b"2")]
    blobs.failing = {failing}
    assert await cache.find([good, failing, "0" * 64]) == {good: INFO}
    blobs.failing = set()
    assert await cache.find([good, failing]) == {good: INFO, failing: INFO}


async def test_a_picture_that_is_not_sent_in_time_is_left_out(tmp_path: Path) -> None:
    blobs = _Blobs(tmp_path)
    hanging = await blobs.put(PNG)
    blobs.hanging = {hanging}
    assert await ImageInfoCache(blobs, timeout_sec=0.01).find([hanging]) == {}
    assert blobs.open_reads == 0


async def test_pictures_are_read_concurrently_up_to_a_bound(tmp_path: Path) -> None:
    blobs = _Blobs(tmp_path)
    digests = [await blobs.put(PNG + bytes([number])) for number in range(20)]
    assert len(await ImageInfoCache(blobs).find(digests)) == 20
    assert blobs.most_reads == 8
