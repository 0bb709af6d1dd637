"""Wire models of the administration of users and invitations."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.permissions import Role
from adjudge.schema.account import UserRead
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class UserPage(ResponseModel):
    """A page of users, ordered by name."""

    items: list[UserRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class UserCreated(ResponseModel):
    """A user and a one-time password, shown once; it must be changed at the first login."""

    user: UserRead
    one_time_password: str | None = field(metadata=doc(examples=["1f3a-90bc-77de-0a1b-c2d3"]))


@dataclass(frozen=True, kw_only=True)
class InvitationCreated(ResponseModel):
    """A new invitation with its code, shown once."""

    id: str
    code: str = field(metadata=doc(examples=["inv_…"]))


@dataclass(frozen=True, kw_only=True)
class InvitationRead(ResponseModel):
    """An invitation, without its code."""

    id: str
    role: Role
    note: str | None
    max_uses: int
    uses: int
    created_by: str
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked: bool


@dataclass(frozen=True, kw_only=True)
class InvitationPage(ResponseModel):
    """Invitations, newest first."""

    items: list[InvitationRead]
    next: NextCursor
