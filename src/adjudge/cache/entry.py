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
class Found:
    """What a reader gets: a value that exists."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered: a value, or that there is none."""

    found: Found | None
    fresh_until: float
    """Seconds since the epoch; a copy in another tier keeps the moment, so that copying never makes it younger."""

    @property
    def size_bytes(self) -> int:
        """What it weighs."""
        return len(self.found.body) if self.found else 0


def make(body: bytes | None, fresh_until: float) -> Entry:
    """An entry with the ETag of its bytes."""
    if body is None:
        return Entry(None, fresh_until)
    return Entry(Found(body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'), fresh_until)


def pack(entry: Entry) -> bytes:
    """As Redis holds it."""
    return _HEAD.pack(_MAGIC, entry.fresh_until) + (entry.found.body if entry.found else b"")


def unpack(data: bytes) -> Entry | None:
    """Read what Redis holds; nothing where it is not ours."""
    if len(data) < _HEAD.size:
        return None
    magic, fresh_until = _HEAD.unpack_from(data)
    return make(data[_HEAD.size :], fresh_until) if magic == _MAGIC else None
