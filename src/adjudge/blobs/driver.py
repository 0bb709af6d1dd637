"""The protocol of blob stores: content-addressed files, two drivers, one conformance suite.

A blob is named by the SHA-256 of its bytes, so puts are idempotent, a name never changes its meaning, and every read
can be verified. ``store`` knows which blobs are in use; ``gc`` deletes the others.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from adjudge.domain.errors import InternalFault, InvalidInput

Digest = str
"""SHA-256 as 64 lowercase hexadecimal digits."""

BlobSource = bytes | Path | AsyncIterable[bytes]
"""Where the bytes of a blob come from."""

FRESH_SEC: Final = 3600
"""A put of an existing blob that is younger than this may leave it as it is; an older one is renewed, so that garbage
collection, which waits much longer, cannot delete a blob that is about to be referenced."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class BlobCorrupt(InternalFault):
    """The content of a stored file does not match its digest."""

    code = "BLOB_CORRUPT"


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """Size and age of a blob."""

    digest: Digest
    size_bytes: int
    stored_at_us: int
    """When it was stored or last renewed, by the clock of the store."""


class BlobStore(Protocol):
    """Content-addressed files. Raises ``NotFound`` for a missing blob, ``Unavailable`` while the store is down."""

    async def put(self, source: BlobSource, *, expected: Digest | None = None) -> Digest:
        """Store bytes and return their digest, completely or not at all.

        With ``expected``, bytes with another digest are rejected.
        """
        ...

    def open(self, digest: Digest) -> AsyncGenerator[bytes]:
        """Read in chunks; raises ``BlobCorrupt`` at the end if the bytes do not match ``digest``.

        Chunks are unverified until the end is reached.
        """
        ...

    async def fetch_to(self, digest: Digest, path: Path) -> None:
        """Copy to ``path``, which appears complete and verified or not at all."""
        ...

    async def exists(self, digest: Digest) -> bool: ...

    async def stat(self, digest: Digest) -> BlobInfo: ...

    async def delete(self, digest: Digest, *, stored_before_us: int | None = None) -> bool:
        """Delete it, unless it is younger than ``stored_before_us``; returns whether it was deleted."""
        ...

    def list(self, prefix: str = "") -> AsyncGenerator[BlobInfo]:
        """List all blobs whose digest starts with ``prefix``."""
        ...

    async def delete_partial_uploads(self, older_than_sec: float) -> int:
        """Delete the remains of interrupted puts; returns their number."""
        ...

    async def close(self) -> None: ...


def parse_digest(text: str, field: str = "digest") -> Digest:
    """Validate a digest. Everything that becomes a path or a key passes here."""
    if not _DIGEST.fullmatch(text):
        raise InvalidInput(
            f"{field}: {text[:80]!r} is not a SHA-256 digest (64 lowercase hexadecimal digits).", field=field
        )
    return text


def parse_prefix(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{0,64}", text):
        raise InvalidInput(f"prefix: {text[:80]!r} is not the prefix of a digest.", field="prefix")
    return text
