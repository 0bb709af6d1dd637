"""Wire models of login, the own profile, tokens and sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.permissions import ALL_SCOPES

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
        "Default: true; false if the current password was set by someone else.",
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
