"""Type and size of stored pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from cachetools import LRUCache

from adjudge.blobs.driver import BlobStore
from adjudge.contests.ccs.snapshot import ImageInfo
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.images import image_size, image_type
from adjudge.observe.logs import get_logger

_MAX_IMAGES: Final = 10_000
_AT_ONCE: Final = 8
_HEAD_BYTES: Final = 64
"""With so many bytes the size of a PNG or WebP picture is complete; that of a JPEG may be further on."""
_TIMEOUT_SEC: Final = 5.0

_log = get_logger(__name__)


class ImageInfoCache:
    """Type and size of stored pictures, which never change; each is read once, and only as far as necessary."""

    def __init__(self, blobs: BlobStore, *, timeout_sec: float = _TIMEOUT_SEC) -> None:
        self._blobs = blobs
        self._timeout_sec = timeout_sec
        self._reads = asyncio.Semaphore(_AT_ONCE)
        self._known: LRUCache[str, ImageInfo | None] = LRUCache(_MAX_IMAGES)

    async def find(self, digests: Iterable[str]) -> dict[str, ImageInfo]:
        """Those of the pictures that can be read now, by digest; the others are tried again by the next call."""
        wanted = set(digests)
        found = {item: self._known[item] for item in wanted if item in self._known}
        missing = wanted - found.keys()
        if missing:
            try:
                async with asyncio.timeout(self._timeout_sec):
                    await asyncio.gather(*(self._load(item, found) for item in missing))
            except TimeoutError:
                _log.warning("images_skipped", count=len(missing - found.keys()), timeout_sec=self._timeout_sec)
        return {item: info for item, info in found.items() if info is not None}

    async def _load(self, digest: str, found: dict[str, ImageInfo | None]) -> None:
        async with self._reads:
            try:
                info = await self._read_info(digest)
            except AdjudgeError as error:
                _log.warning("image_skipped", digest=digest, error=str(error))
                return
        found[digest] = self._known[digest] = info

    async def _read_info(self, digest: str) -> ImageInfo | None:
        data = b""
        async with aclosing(self._blobs.open(digest)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) >= _HEAD_BYTES and (info := _describe(data)) is not None:
                    return info
        return _describe(data)

    async def read(self, digest: str) -> bytes:
        """A picture."""
        async with aclosing(self._blobs.open(digest)) as pieces:
            return b"".join([piece async for piece in pieces])


def _describe(data: bytes) -> ImageInfo | None:
    kind, size = image_type(data), image_size(data)
    return None if kind is None or size is None else ImageInfo(kind, *size)
