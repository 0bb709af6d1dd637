"""Wire models of login, the own profile, tokens and sessions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.domain.permissions import ALL_SCOPES, ROLE_PERMISSIONS, Role
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.account import CreatedToken
from adjudge.store.accounts.api_tokens import ApiTokenRow
from adjudge.store.accounts.sessions import SessionRow
from adjudge.store.accounts.users import UserRow

Name = Annotated[str, Field(min_length=1, max_length=64, examples=["ada"])]
Password = Annotated[
    str, Field(max_length=1024, examples=["correct horse battery"], json_schema_extra={"format": "password"})
]
Email = Annotated[str, Field(max_length=254, examples=["ada@example.org"])]
ShownName = Annotated[str, Field(max_length=100, examples=["Ada L."])]


class LoginRequest(ApiModel):
    """Username and password."""

    name: Name
    password: Password


class RegisterRequest(ApiModel):
    """Data of a new account."""

    name: Name
    password: Password
    email: Email | None = None
    display_name: ShownName | None = None
    invitation: Annotated[str, Field(max_length=200)] | None = Field(None, description="Invitation code, if required.")


class LoginMethods(ApiModel):
    """Available login methods."""

    registration: Literal["open", "invitation", "closed"]
    oidc: str | None = Field(description="Label of the OpenID Connect button; null if not configured.")


class UserRead(ApiModel):
    """A user."""

    id: str
    name: str
    display_name: str | None
    email: str | None
    role: Role
    disabled: bool
    must_change_password: bool
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])

    @classmethod
    def of(cls, user: UserRow) -> UserRead:
        return cls(
            id=user.id,
            name=user.name,
            display_name=user.display_name,
            email=user.email,
            role=user.role,
            disabled=user.disabled_at is not None,
            must_change_password=user.must_change_password,
            created_at=format_timestamp(user.created_at),
        )


class AccountRead(UserRead):
    """The current user and the permissions of this credential."""

    permissions: list[str] = Field(examples=[sorted(ROLE_PERMISSIONS[Role.CONTESTANT])])
    csrf_token: str | None = Field(description="Value for X-CSRF-Token; only for sessions.")


class AccountUpdate(ApiModel):
    """Profile changes; omitted fields stay, null clears."""

    email: Email | None = None
    display_name: ShownName | None = None


class PasswordChangeRequest(ApiModel):
    """Current and new password."""

    current: Password
    new: Password
    revoke_tokens: bool | None = Field(
        None,
        description="Also revoke all API tokens except the current one. "
        "Default: true, but false where a password that was given is changed for the first of one's own.",
    )


class TokenCreate(ApiModel):
    """Name, scopes and lifetime of a new token."""

    name: Annotated[str, Field(min_length=1, max_length=100, examples=["autograder"])]
    scopes: list[Annotated[str, Field(max_length=64)]] = Field(
        [ALL_SCOPES],
        max_length=100,
        description="Scopes; '*' for all your permissions.",
        examples=[["submission:create"]],
    )
    expires_in_days: float | None = Field(90, gt=0, le=3650, description="null: no expiry.")


class TokenLoginRequest(ApiModel):
    """Username, password and token name; used by `adjudge login`."""

    name: Name
    password: Password
    token_name: Annotated[str, Field(min_length=1, max_length=100, examples=["laptop"])]
    expires_in_days: float | None = Field(90, gt=0, le=3650, description="null: no expiry.")


class TokenRead(ApiModel):
    """A token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])
    expires_at: str | None
    last_used_at: str | None = Field(description="Precise to the minute.")

    @classmethod
    def of(cls, token: ApiTokenRow) -> TokenRead:
        return cls(**_token_fields(token))


class TokenCreated(TokenRead):
    """A new token with its secret, shown once."""

    secret: str = Field(examples=["adj_…"])

    @classmethod
    def of_made(cls, made: CreatedToken) -> TokenCreated:
        """Build it from a row and the secret."""
        return cls(**_token_fields(made.token), secret=made.secret)


class TokenList(ApiModel):
    """All valid tokens."""

    items: list[TokenRead]


class SessionRead(ApiModel):
    """A browser session."""

    id: str
    address: str | None
    user_agent: str | None
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])
    seen_at: str
    expires_at: str
    current: bool = Field(description="Whether this is the current session.")

    @classmethod
    def of(cls, session: SessionRow, *, current: bool) -> SessionRead:
        return cls(
            id=session.id,
            address=session.address,
            user_agent=session.user_agent,
            created_at=format_timestamp(session.created_at),
            seen_at=format_timestamp(session.seen_at),
            expires_at=format_timestamp(session.expires_at),
            current=current,
        )


class SessionList(ApiModel):
    """All active sessions."""

    items: list[SessionRead]


def _token_fields(token: ApiTokenRow) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "created_at": format_timestamp(token.created_at),
        "expires_at": format_timestamp(token.expires_at),
        "last_used_at": format_timestamp(token.last_used_at),
    }
