"""Request models of the jury's decisions about submissions."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.account import Password
from adjudge.api.schema.base import ApiModel
from adjudge.domain.verdict import Verdict
from adjudge.services.contest_submissions import MAX_PENALTY_SEC
from adjudge.services.reauthentication import Confirmation


class VerifyRequest(ApiModel):
    """The verdict that is confirmed."""

    verdict: Verdict | None = Field(
        description="The verdict that you saw: 409 if it changed since. Null takes the confirmation back."
    )


class IgnoreRequest(ApiModel):
    """Whether the submission is left out of the scoreboard."""

    is_ignored: bool = True
    reason: str = Field(max_length=500, examples=["wrong machine"])


class OfficialRequest(ApiModel):
    """Whether a submission outside the participant's time counts."""

    is_official: bool = True
    reason: str = Field(max_length=500, examples=["network outage in room 3"])


class ConfirmedRequest(ApiModel):
    """An action that changes results: the sender confirms it.

    A session needs the password, unless the login was minutes ago; a request with an API token needs `confirmed`.
    """

    password: Password = ""
    confirmed: bool = False

    def confirmation(self) -> Confirmation:
        """What the service checks."""
        return Confirmation(self.password, self.confirmed)


class OverrideRequest(ConfirmedRequest):
    """A verdict that replaces the one of the judge; null takes it back."""

    verdict: Verdict | None
    score: float | None = Field(None, ge=0, le=1e9)
    reason: str = Field(max_length=500, examples=["output format accepted"])


class PenaltyRequest(ConfirmedRequest):
    """The penalty that the jury adds to that of a participant; 0 removes it."""

    penalty_sec: int = Field(ge=-MAX_PENALTY_SEC, le=MAX_PENALTY_SEC, examples=[1200])
    reason: str = Field(max_length=500, examples=["unauthorised help"])


class JuryRejudgeRequest(ApiModel):
    """Why a submission is judged again."""

    reason: str = Field(max_length=500, examples=["the worker was overloaded"])


class PauseJudgingRequest(ApiModel):
    """Why the judging of a problem is paused or resumed."""

    reason: str = Field("", max_length=500, examples=["a test is wrong"])
