"""A cached value: response bytes with their ETag."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Final

_HEAD: Final = struct.Struct(">Qd")
_MAGIC: Final = 0x61646A_0001
"""Identifies the layout; a value of another version is a miss."""


@dataclass(frozen=True, slots=True)
class CachedValue:
    """A value that exists."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cached value, or the fact that it does not exist."""

    value: CachedValue | None
    fresh_until: float
    """Unix time in seconds. A copy in another tier keeps it, so copying does not extend the lifetime."""

    @property
    def size_bytes(self) -> int:
        return len(self.value.body) if self.value else 0


def make_entry(body: bytes | None, fresh_until: float) -> CacheEntry:
    if body is None:
        return CacheEntry(None, fresh_until)
    return CacheEntry(CachedValue(body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'), fresh_until)


def encode_entry(entry: CacheEntry) -> bytes:
    return _HEAD.pack(_MAGIC, entry.fresh_until) + (entry.value.body if entry.value else b"")


def decode_entry(data: bytes) -> CacheEntry | None:
    """Decode a value from Redis; None if its layout is unknown."""
    if len(data) < _HEAD.size:
        return None
    magic, fresh_until = _HEAD.unpack_from(data)
    return make_entry(data[_HEAD.size :], fresh_until) if magic == _MAGIC else None
