"""Wire models of the administration of users and invitations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adjudge.api.schema.account import Email, Name, Password, ShownName, UserRead
from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.domain.permissions import Role
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.users import CreatedInvitation, CreatedUser
from adjudge.store.accounts.invitations import InvitationRow

Reason = Annotated[str, Field(min_length=1, max_length=500, examples=["asked for by the organiser"])]


class UserPage(ApiModel):
    """A page of users, ordered by name."""

    items: list[UserRead]
    next: str | None = Field(description="The cursor of the next page; null at the end.")


class UserCreate(ApiModel):
    """A new user."""

    name: Name
    role: Role = Role.CONTESTANT
    email: Email | None = None
    display_name: ShownName | None = None
    password: Password | None = Field(
        None, description=("Default: a one-time password is generated (not for the role `service`).")
    )


class UserCreated(ApiModel):
    """A user and a one-time password, shown once; it must be changed at the first login."""

    user: UserRead
    one_time_password: str | None = Field(examples=["1f3a-90bc-77de-0a1b-c2d3"])

    @classmethod
    def of(cls, made: CreatedUser) -> UserCreated:
        """Build it from the result of the service."""
        return cls(user=UserRead.of(made.user), one_time_password=made.one_time_password)


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


class InvitationCreated(ApiModel):
    """A new invitation with its code, shown once."""

    id: str
    code: str = Field(examples=["inv_…"])

    @classmethod
    def of(cls, made: CreatedInvitation) -> InvitationCreated:
        """Build it from the result of the service."""
        return cls(id=made.id, code=made.code)


class InvitationRead(ApiModel):
    """An invitation, without its code."""

    id: str
    role: Role
    note: str | None
    max_uses: int
    uses: int
    created_by: str
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])
    expires_at: str | None
    revoked: bool

    @classmethod
    def of(cls, row: InvitationRow) -> InvitationRead:
        return cls(
            id=row.id,
            role=Role(row.role),
            note=row.note,
            max_uses=row.max_uses,
            uses=row.uses,
            created_by=row.created_by,
            created_at=format_timestamp(row.created_at),
            expires_at=format_timestamp(row.expires_at),
            revoked=row.revoked_at is not None,
        )


class InvitationPage(ApiModel):
    """Invitations, newest first."""

    items: list[InvitationRead]
    next: str | None = Field(description="The cursor of the next page; null at the end.")
