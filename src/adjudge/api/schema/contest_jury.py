"""Request models of the jury's decisions about submissions."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.verdict import Verdict


class VerifyRequest(ApiModel):
    """Whether the verdict is confirmed."""

    is_verified: bool = True


class IgnoreRequest(ApiModel):
    """Whether the submission is left out of the scoreboard."""

    is_ignored: bool = True
    reason: str = Field(max_length=500, examples=["wrong machine"])


class OfficialRequest(ApiModel):
    """Whether a submission outside the participant's time counts."""

    is_official: bool = True
    reason: str = Field(max_length=500, examples=["network outage in room 3"])


class OverrideRequest(ApiModel):
    """A verdict that replaces the one of the judge; null takes it back."""

    verdict: Verdict | None
    score: float | None = Field(None, ge=0, le=1e9)
    reason: str = Field(max_length=500, examples=["output format accepted"])
