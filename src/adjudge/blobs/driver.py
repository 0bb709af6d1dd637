"""What the rest asks of a file store: content-addressed blobs, one protocol, two drivers, one conformance suite.

A blob is named by the SHA-256 of its bytes, so storing it twice is storing it once, a name can never come to mean
something else, and every read can be checked. What belongs here: the protocol and its values. What does not: which
blobs are in use (``store``), and when to remove the others (``gc`` is told).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from adjudge.domain.errors import InternalFault, InvalidInput

Digest = str
"""SHA-256 in 64 small hexadecimal digits."""

BlobSource = bytes | Path | AsyncIterable[bytes]
"""Where a blob's bytes come from."""

FRESH_SEC: Final = 3600
"""A put of a blob that is there already may leave it as it is if it is younger than this; an older one is renewed, so
that garbage collection, which waits much longer, cannot take away what somebody is about to refer to."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class BlobCorrupt(InternalFault):
    """A stored file is not what its name says."""

    code = "BLOB_CORRUPT"


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What is known of a blob without reading it."""

    digest: Digest
    size_bytes: int
    stored_at_us: int
    """When it was stored or last renewed, by the file store's clock."""


class BlobStore(Protocol):
    """Content-addressed files. ``NotFound`` where there is no such blob, ``Unavailable`` while the store is away."""

    async def put(self, source: BlobSource, *, expected: Digest | None = None) -> Digest:
        """Store bytes and return their digest; either all of them are there under it, or nothing is.

        With ``expected``, bytes of any other digest are refused and not stored.
        """
        ...

    def open(self, digest: Digest) -> AsyncGenerator[bytes]:
        """Read in pieces; raise ``BlobCorrupt`` at the end if the bytes are not those of ``digest``.

        Whoever acts on a piece before the end acts on unverified bytes.
        """
        ...

    async def fetch_to(self, digest: Digest, path: Path) -> None:
        """Copy to ``path``, which appears at once, whole and verified, or not at all."""
        ...

    async def exists(self, digest: Digest) -> bool:
        """Whether the blob is there."""
        ...

    async def stat(self, digest: Digest) -> BlobInfo:
        """Size and age."""
        ...

    async def delete(self, digest: Digest, *, stored_before_us: int | None = None) -> bool:
        """Remove it, unless it is younger than ``stored_before_us``; return whether anything was removed."""
        ...

    def list(self, prefix: str = "") -> AsyncGenerator[BlobInfo]:
        """Name all blobs whose digest begins with ``prefix``."""
        ...

    async def delete_partial_uploads(self, older_than_sec: float) -> int:
        """Remove what interrupted puts left behind; return how much."""
        ...

    async def close(self) -> None:
        """Let go of the store."""
        ...


def parse_digest(text: str, field: str = "digest") -> Digest:
    """Return ``text`` if it is a digest. Everything that becomes a path or a key passes here."""
    if not _DIGEST.fullmatch(text):
        raise InvalidInput(
            f"{field}: {text[:80]!r} is not a SHA-256 digest (64 lowercase hexadecimal digits).", field=field
        )
    return text


def parse_prefix(text: str) -> str:
    """Return ``text`` if a digest may begin with it."""
    if not re.fullmatch(r"[0-9a-f]{0,64}", text):
        raise InvalidInput(f"prefix: {text[:80]!r} is not the beginning of a digest.", field="prefix")
    return text
