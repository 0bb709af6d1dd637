"""Type and size of stored pictures."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from cachetools import LRUCache

from adjudge.blobs.driver import BlobStore
from adjudge.contests.ccs.snapshot import ImageInfo
from adjudge.domain.images import image_size, image_type

_MAX_IMAGES: Final = 10_000


class ImageInfoCache:
    """Type and size of stored pictures, which never change; each is read once."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._known: LRUCache[str, ImageInfo | None] = LRUCache(_MAX_IMAGES)

    async def find(self, digests: Iterable[str]) -> dict[str, ImageInfo]:
        """Those of the pictures that can be read, by digest."""
        found = {}
        for digest in set(digests):
            if digest not in self._known:
                self._known[digest] = _describe(await self.read(digest))
            info = self._known[digest]
            if info is not None:
                found[digest] = info
        return found

    async def read(self, digest: str) -> bytes:
        """A picture."""
        async with aclosing(self._blobs.open(digest)) as pieces:
            return b"".join([piece async for piece in pieces])


def _describe(data: bytes) -> ImageInfo | None:
    kind, size = image_type(data), image_size(data)
    return None if kind is None or size is None else ImageInfo(kind, *size)
