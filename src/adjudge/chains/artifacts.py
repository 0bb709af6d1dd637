"""Artifacts of nodes: any JSON value, in the node's row if it fits, otherwise in a blob."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Final

from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.strict_json import encode_json
from adjudge.store import Database
from adjudge.store.chains.models import NO_ARTIFACT, Artifact
from adjudge.store.ops import blob_references

INLINE_BYTES: Final = 256 * 1024
"""Maximum size of an artifact in its node's row; a larger one becomes a blob."""
ARTIFACT_BYTES_MAX: Final = 64 * 1024 * 1024


def inline_artifact(value: Any) -> Artifact:
    """An artifact that is stored in its node's row, whatever its size; null gives none."""
    text = None if value is None else encode_json(value, "artifact")
    return NO_ARTIFACT if text is None else Artifact(text, None, len(text.encode()))


async def load_artifact(found: Artifact, blobs: BlobStore) -> bytes:
    """An artifact as JSON, from its row or its blob."""
    if found.digest is None:
        return b"null" if found.text is None else found.text.encode()
    data = bytearray()
    async with aclosing(blobs.open(found.digest)) as pieces:
        async for piece in pieces:
            data += piece
    return bytes(data)


async def iter_nested_digests(database: Database, blobs: BlobStore) -> AsyncIterator[str]:
    """The digests that artifacts in blobs refer to, which no statement can search."""
    async for digest in blob_references.iter_artifact_digests(database):
        with suppress(NotFound):  # lost already, or deleted with its run
            for named in blob_references.DIGEST.findall(
                (await load_artifact(Artifact(None, digest, 0), blobs)).decode()
            ):
                yield named


async def store_artifact(value: Any, blobs: BlobStore, inline_bytes: int = INLINE_BYTES) -> Artifact:
    """An artifact stored by its size; one that is too large for both is refused."""
    found = inline_artifact(value)
    if found.text is None or found.size_bytes <= inline_bytes:
        return found
    if found.size_bytes > ARTIFACT_BYTES_MAX:
        raise InvalidInput(
            f"artifact: {found.size_bytes} bytes are more than {ARTIFACT_BYTES_MAX}; store files as blobs and name "
            "them.",
            field="artifact",
        )
    return Artifact(None, await blobs.put(found.text.encode()), found.size_bytes)
