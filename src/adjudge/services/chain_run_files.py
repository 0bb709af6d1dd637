"""Files of chain runs: parameters and artifacts refer to them by digest.

A digest is enough to use a file: it can only be known from the file itself or from a reference to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.blobs.driver import BlobInfo, BlobStore
from adjudge.domain.errors import NotFound
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.viewer import Viewer
from adjudge.store.ops.blob_references import DIGEST


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """A file that an artifact describes."""

    name: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ChainRunFileService:
    """Files that parameters and artifacts name by digest."""

    blobs: BlobStore
    chain_runs: ChainRunService

    async def store_file(self, pieces: AsyncIterable[bytes]) -> BlobInfo:
        """Store a file; it is garbage-collected if nothing refers to it within a day."""
        digest = await self.blobs.put(pieces)
        return await self.blobs.stat(digest)

    async def find_file(self, viewer: Viewer, run_id: str, node_id: str, digest: str) -> BlobInfo:
        """A file that the artifact of a node refers to."""
        left = await self.chain_runs.get_artifact(viewer, run_id, node_id)
        if digest not in DIGEST.findall(left.decode()):
            raise NotFound("file", digest)
        return await self.blobs.stat(digest)


def list_artifact_files(artifact: Any, name: str = "") -> Iterator[ArtifactFile]:
    """The files that an artifact refers to, each named by its key in the artifact."""
    if isinstance(artifact, Mapping):
        digest, size_bytes = artifact.get("digest"), artifact.get("size_bytes")
        if isinstance(digest, str) and isinstance(size_bytes, int) and DIGEST.fullmatch(digest):
            yield ArtifactFile(name or digest[:12], digest, size_bytes)
        for key, value in artifact.items():
            yield from list_artifact_files(value, str(key))
    elif isinstance(artifact, list):
        for number, value in enumerate(artifact, 1):
            yield from list_artifact_files(value, f"{name or 'file'}-{number}")
