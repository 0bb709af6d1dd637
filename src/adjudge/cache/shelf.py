"""The first tier: what this process remembers, bounded by entries and by bytes; the longest unused goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from adjudge.cache.entry import CacheEntry

_OVERHEAD_BYTES: Final = 512
"""What an entry weighs beside its body: its key, its place."""


class Shelf:
    """A least-recently-used map. One event loop uses it, so it needs no lock."""

    def __init__(self, *, max_entries: int, max_bytes: int) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> CacheEntry | None:
        """The entry, which now is the latest used."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: str, entry: CacheEntry) -> None:
        """Keep an entry; one that is larger than the whole shelf is not kept."""
        self.drop(key)
        if _weight(entry) > self._max_bytes:
            return
        self._entries[key] = entry
        self.size_bytes += _weight(entry)
        while len(self._entries) > self._max_entries or self.size_bytes > self._max_bytes:
            _, gone = self._entries.popitem(last=False)
            self.size_bytes -= _weight(gone)

    def drop(self, key: str) -> None:
        """Forget an entry."""
        gone = self._entries.pop(key, None)
        if gone is not None:
            self.size_bytes -= _weight(gone)


def _weight(entry: CacheEntry) -> int:
    return entry.size_bytes + _OVERHEAD_BYTES
