"""A cached value: bytes that can be sent as they are, with the ETag that names them."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Final

_HEAD: Final = struct.Struct(">Qd")
_MAGIC: Final = 0x61646A_0001
"""Marks the layout, so that a value of another version is a miss, not nonsense."""


@dataclass(frozen=True, slots=True)
class CachedValue:
    """What a reader gets: a value that exists."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What is remembered: a value, or that there is none."""

    value: CachedValue | None
    fresh_until: float
    """Seconds since the epoch; a copy in another tier keeps the moment, so that copying never makes it younger."""

    @property
    def size_bytes(self) -> int:
        """What it weighs."""
        return len(self.value.body) if self.value else 0


def make_entry(body: bytes | None, fresh_until: float) -> CacheEntry:
    """An entry with the ETag of its bytes."""
    if body is None:
        return CacheEntry(None, fresh_until)
    return CacheEntry(CachedValue(body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'), fresh_until)


def encode_entry(entry: CacheEntry) -> bytes:
    """As Redis holds it."""
    return _HEAD.pack(_MAGIC, entry.fresh_until) + (entry.value.body if entry.value else b"")


def decode_entry(data: bytes) -> CacheEntry | None:
    """Read what Redis holds; nothing where it is not ours."""
    if len(data) < _HEAD.size:
        return None
    magic, fresh_until = _HEAD.unpack_from(data)
    return make_entry(data[_HEAD.size :], fresh_until) if magic == _MAGIC else None
