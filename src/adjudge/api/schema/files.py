"""Wire models of files, which are identified by their digest."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel


class FileCreated(ApiModel):
    """A stored file, referenced by its digest."""

    digest: str = Field(description="SHA-256 of the content.", examples=["9f86d081884c7d659a2feaa0c55ad015" * 2])
    size_bytes: int = Field(examples=[48_213])
