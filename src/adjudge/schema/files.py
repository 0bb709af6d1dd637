"""Wire models of files, which are identified by their digest."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import ResponseModel, doc


@dataclass(frozen=True, kw_only=True)
class FileCreated(ResponseModel):
    """A stored file, referenced by its digest."""

    digest: str = field(metadata=doc("SHA-256 of the content.", examples=["9f86d081884c7d659a2feaa0c55ad015" * 2]))
    size_bytes: int = field(metadata=doc(examples=[48_213]))
