"""The acting user of a request, with role and permissions. ``api.auth`` creates it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adjudge.domain.errors import Forbidden, PasswordChangeRequired, Unauthenticated
from adjudge.domain.permissions import ANONYMOUS_PERMISSIONS, ROLE_PERMISSIONS, Permission, Role


class AuthMethod(StrEnum):
    """How the viewer was authenticated."""

    NOTHING = "nothing"
    TOKEN = "token"  # noqa: S105  # a name, not a secret
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Viewer:
    """The user or visitor who makes a request."""

    user_id: str | None
    name: str
    role: Role | None
    permissions: frozenset[Permission]
    via: AuthMethod
    credential_id: str | None = None
    """The id of the token or session, for the audit log and for revoking it."""
    must_change_password: bool = False
    csrf: str | None = None
    """The CSRF token that pages must send with unsafe requests of this session."""

    def can(self, permission: Permission) -> bool:
        return permission in self.permissions

    def require(self, permission: Permission) -> None:
        """Raise, unless the viewer has the permission."""
        if self.can(permission):
            return
        if self.user_id is None:
            raise Unauthenticated
        if self.must_change_password:
            raise PasswordChangeRequired
        message = f"Permission required: {permission}."
        if self.role is not None and permission in ROLE_PERMISSIONS[self.role]:
            message += f" Your role has it, but this API token does not: use a token with the scope {permission}."
        raise Forbidden(message, permission=str(permission))

    @property
    def id(self) -> str:
        """The user id; raises ``Unauthenticated`` for visitors."""
        if self.user_id is None:
            raise Unauthenticated
        return self.user_id


VISITOR: Final = Viewer(None, "visitor", None, ANONYMOUS_PERMISSIONS, AuthMethod.NOTHING)
OUTSIDER: Final = Viewer(None, "visitor", None, frozenset(), AuthMethod.NOTHING)
"""A visitor without any permission, for installations that require a login."""
