"""Wire models of the operations routes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adjudge.api.schema.base import ApiModel


class DeadLetterRequest(ApiModel):
    """Dead letter IDs and a reason."""

    ids: list[Annotated[str, Field(max_length=64, examples=["019a8c5e-7c1f-7a3b-9d52-3f1f0c7d2b11"])]] = Field(
        min_length=1, max_length=1000
    )
    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["the disk was full"])]
