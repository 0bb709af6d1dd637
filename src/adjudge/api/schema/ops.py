"""Wire models of the operations routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.services.dead_letters import DeadLetterSelection


class DeadLetterRequest(ApiModel):
    """Dead letter IDs and a reason."""

    ids: list[Annotated[str, Field(max_length=64, examples=["019a8c5e-7c1f-7a3b-9d52-3f1f0c7d2b11"])]] = Field(
        min_length=1, max_length=1000
    )
    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["the disk was full"])]


Reason = Annotated[str, Field(min_length=1, max_length=500, examples=["the compiler is replaced"])]
_Filter = Annotated[str, Field(max_length=200)]


class DeadLetterMatchRequest(ApiModel):
    """Filters of open dead letters, at least one, and a reason."""

    kind: _Filter = Field("", description="Kind of the job.", examples=["judge"])
    error_code: _Filter = Field("", description="Error code.", examples=["INTERNAL"])
    problem: _Filter = Field("", description="Problem slug or ID.")
    user: _Filter = Field("", description="Username.")
    every: bool = Field(False, description="Required if no filter is given: all open dead letters.")
    reason: Reason

    def selection(self) -> DeadLetterSelection:
        return DeadLetterSelection(self.kind, self.error_code, self.problem, self.user)


class JudgingPauseRequest(ApiModel):
    """What to pause or resume, and why."""

    scope: Literal["all", "language", "problem"]
    subject: str = Field("", max_length=200, description="Language, or problem slug or ID; empty for all.")
    reason: Reason


class WorkerControlRequest(ApiModel):
    """What a worker is to do, and why."""

    action: Literal["pause", "resume", "drain"]
    reason: Reason
