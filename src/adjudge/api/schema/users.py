"""Wire models of the administration of users and invitations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adjudge.api.schema.account import Email, Name, Password, ShownName
from adjudge.api.schema.base import ApiModel
from adjudge.domain.permissions import Role

Reason = Annotated[str, Field(min_length=1, max_length=500, examples=["asked for by the organiser"])]


class UserCreate(ApiModel):
    """A new user."""

    name: Name
    role: Role = Role.CONTESTANT
    email: Email | None = None
    display_name: ShownName | None = None
    password: Password | None = Field(
        None, description=("Default: a one-time password is generated (not for the role `service`).")
    )


class UserUpdate(ApiModel):
    """Changes to a user."""

    role: Role
    reason: Reason


class ReasonBody(ApiModel):
    """Reason, stored in the audit log."""

    reason: Reason


class InvitationCreate(ApiModel):
    """A new invitation."""

    role: Role = Role.CONTESTANT
    uses: int = Field(1, ge=1, le=100_000, description="Number of accounts that can be created with it.")
    expires_in_days: float | None = Field(14, gt=0, le=3650, description="null: no expiry.")
    note: Annotated[str, Field(max_length=200, examples=["spring course"])] | None = None
    email: Annotated[str, Field(max_length=254, description="Send the link to this address.")] | None = None
