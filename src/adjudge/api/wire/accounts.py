"""Accounts on the wire: login, one's own profile, tokens, sessions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from adjudge.api.actions.accounts import MadeToken
from adjudge.api.moments import moment
from adjudge.api.wire.base import MOMENT_EXAMPLE, Wire
from adjudge.domain.access import EVERYTHING, ROLE_PERMISSIONS, Role
from adjudge.store.sessions import Session
from adjudge.store.tokens import Token
from adjudge.store.users import User

Name = Annotated[str, Field(min_length=1, max_length=64, examples=["ada"])]
Password = Annotated[
    str, Field(max_length=1024, examples=["correct horse battery"], json_schema_extra={"format": "password"})
]
Email = Annotated[str, Field(max_length=254, examples=["ada@example.org"])]
ShownName = Annotated[str, Field(max_length=100, examples=["Ada L."])]


class LoginOrder(Wire):
    """A name and its password."""

    name: Name
    password: Password


class RegisterOrder(Wire):
    """What a new account begins with."""

    name: Name
    password: Password
    email: Email | None = None
    display_name: ShownName | None = None
    invitation: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="The code of an invitation, where one is needed."
    )


class LoginMethods(Wire):
    """How one gets in here."""

    registration: Literal["open", "invitation", "closed"]
    oidc: str | None = Field(description="What the button of the other provider says, if there is one.")


class UserInfo(Wire):
    """A user, as they and admins see them."""

    id: str
    name: str
    display_name: str | None
    email: str | None
    role: Role
    disabled: bool
    must_change_password: bool
    created_at: str = Field(examples=[MOMENT_EXAMPLE])

    @classmethod
    def of(cls, user: User) -> UserInfo:
        """Make it of a row."""
        return cls(
            id=user.id,
            name=user.name,
            display_name=user.display_name,
            email=user.email,
            role=user.role,
            disabled=user.disabled_at is not None,
            must_change_password=user.must_change_password,
            created_at=moment(user.created_at),
        )


class Me(UserInfo):
    """Who I am, and what I may do with what I came by."""

    permissions: list[str] = Field(examples=[sorted(ROLE_PERMISSIONS[Role.CONTESTANT])])
    csrf_token: str | None = Field(description="To be sent back as X-CSRF-Token; only with a session.")


class MePatch(Wire):
    """What to change; what is left out stays, null removes."""

    email: Email | None = None
    display_name: ShownName | None = None


class PasswordChange(Wire):
    """The old password and the new one."""

    current: Password
    new: Password
    revoke_tokens: bool | None = Field(
        None,
        description="Whether API tokens end too, all but the one that is used here. "
        "Default: true, but false where a password that was given is changed for the first of one's own.",
    )


class TokenOrder(Wire):
    """What a new token may do, and for how long."""

    name: Annotated[str, Field(min_length=1, max_length=100, examples=["autograder"])]
    scopes: list[Annotated[str, Field(max_length=64)]] = Field(
        [EVERYTHING],
        max_length=100,
        description="Permission points; '*' for all that you have.",
        examples=[["submission:create"]],
    )
    expires_in_days: float | None = Field(90, gt=0, le=3650, description="null: it never expires.")


class LoginTokenOrder(Wire):
    """A name, its password, and what the token is to be called: how a command line logs in."""

    name: Name
    password: Password
    token_name: Annotated[str, Field(min_length=1, max_length=100, examples=["laptop"])]
    expires_in_days: float | None = Field(90, gt=0, le=3650, description="null: it never expires.")


class TokenInfo(Wire):
    """A token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: str = Field(examples=[MOMENT_EXAMPLE])
    expires_at: str | None
    last_used_at: str | None = Field(description="To the minute.")

    @classmethod
    def of(cls, token: Token) -> TokenInfo:
        """Make it of a row."""
        return cls(**_token_fields(token))


class TokenMade(TokenInfo):
    """A new token with its secret, shown this once."""

    secret: str = Field(examples=["adj_…"])

    @classmethod
    def of_made(cls, made: MadeToken) -> TokenMade:
        """Make it of a row and the secret."""
        return cls(**_token_fields(made.token), secret=made.secret)


class TokenList(Wire):
    """All tokens that can still be used."""

    items: list[TokenInfo]


class SessionInfo(Wire):
    """Somebody at a browser."""

    id: str
    address: str | None
    user_agent: str | None
    created_at: str = Field(examples=[MOMENT_EXAMPLE])
    seen_at: str
    expires_at: str
    current: bool = Field(description="Whether this request came with it.")

    @classmethod
    def of(cls, session: Session, *, current: bool) -> SessionInfo:
        """Make it of a row."""
        return cls(
            id=session.id,
            address=session.address,
            user_agent=session.user_agent,
            created_at=moment(session.created_at),
            seen_at=moment(session.seen_at),
            expires_at=moment(session.expires_at),
            current=current,
        )


class SessionList(Wire):
    """All sessions that still last."""

    items: list[SessionInfo]


def _token_fields(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at),
        "last_used_at": moment(token.last_used_at),
    }
