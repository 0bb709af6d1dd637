"""Wire models of login, the own profile, tokens and sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adjudge.domain.permissions import ROLE_PERMISSIONS, Role
from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class LoginMethods(ResponseModel):
    """Available login methods."""

    registration: Literal["open", "invitation", "closed"]
    oidc: str | None = field(metadata=doc("Label of the OpenID Connect button; null if not configured."))


@dataclass(frozen=True, kw_only=True)
class UserRead(ResponseModel):
    """A user."""

    id: str
    name: str
    display_name: str | None
    email: str | None
    role: Role
    disabled: bool
    must_change_password: bool
    created_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class AccountRead(UserRead):
    """The current user and the permissions of this credential."""

    permissions: list[str] = field(metadata=doc(examples=[sorted(ROLE_PERMISSIONS[Role.CONTESTANT])]))
    csrf_token: str | None = field(metadata=doc("Value for X-CSRF-Token; only for sessions."))


@dataclass(frozen=True, kw_only=True)
class TokenRead(ResponseModel):
    """A token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None = field(metadata=doc("Precise to the minute."))


@dataclass(frozen=True, kw_only=True)
class TokenCreated(TokenRead):
    """A new token with its secret, shown once."""

    secret: str = field(metadata=doc(examples=["adj_…"]))


@dataclass(frozen=True, kw_only=True)
class TokenList(ResponseModel):
    """All valid tokens."""

    items: list[TokenRead]


@dataclass(frozen=True, kw_only=True)
class SessionRead(ResponseModel):
    """A browser session."""

    id: str
    address: str | None
    user_agent: str | None
    created_at: Timestamp
    seen_at: Timestamp
    expires_at: Timestamp
    current: bool = field(metadata=doc("Whether this is the current session."))


@dataclass(frozen=True, kw_only=True)
class SessionList(ResponseModel):
    """All active sessions."""

    items: list[SessionRead]
