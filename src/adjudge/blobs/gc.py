"""Garbage collection: deletes unused blobs. The caller passes the digests in use.

The order makes it safe during concurrent puts and commits. First old blobs are listed; then the live digests are read,
so that everything committed before counts as live; then the others are deleted, each only if it is still old. A blob
put meanwhile is young, and a put of an old one renews it (``FRESH_SEC``).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from adjudge.blobs.driver import FRESH_SEC, BlobStore, Digest
from adjudge.domain.errors import InvalidInput

GRACE_SEC: Final = 86_400
"""How long an unused blob stays: much longer than from the put of a file to the commit that refers to it."""
_LEAST_GRACE_SEC: Final = 2 * FRESH_SEC


@dataclass(frozen=True, slots=True)
class GcResult:
    """The result of one collection."""

    removed: int
    removed_bytes: int
    kept_in_use: int
    partial_removed: int


async def collect_garbage(
    blobs: BlobStore,
    live: AsyncIterator[Digest],
    *,
    grace_sec: float = GRACE_SEC,
    dry_run: bool = False,
    now_us: Callable[[], int] | None = None,
) -> GcResult:
    """Delete blobs older than ``grace_sec`` that are not in ``live``, which is read completely first.

    With ``dry_run`` nothing is deleted.
    """
    if grace_sec < _LEAST_GRACE_SEC:
        raise InvalidInput(
            f"grace_sec: must be at least {_LEAST_GRACE_SEC}, or blobs in use may be deleted.", field="grace_sec"
        )
    now = now_us() if now_us else time.time_ns() // 1000
    before_us = now - int(grace_sec * 1e6)
    unused = {info.digest: info.size_bytes async for info in blobs.list() if info.stored_at_us < before_us}
    old = len(unused)
    async for digest in live:
        unused.pop(digest, None)
    kept, removed, removed_bytes = old - len(unused), 0, 0
    if dry_run:
        return GcResult(len(unused), sum(unused.values()), kept, 0)
    for digest, size_bytes in unused.items():
        if await blobs.delete(digest, stored_before_us=before_us):
            removed += 1
            removed_bytes += size_bytes
    return GcResult(removed, removed_bytes, kept, await blobs.delete_partial_uploads(grace_sec))
