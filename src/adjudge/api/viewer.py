"""Who is asking, and whether they may.

A route says which permission point it needs, in its signature::

    async def submit(viewer: Annotated[Viewer, needs(Permission.SUBMISSION_CREATE)]) -> …

Nobody's request reaches a route that asks for more than visitors have: it is answered 401 (who are you?) or 403 (you
may not). A test walks every route as every role and compares with one table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastapi import Depends, Request

from adjudge.domain.access import NOBODY, Permission, Role
from adjudge.domain.errors import Forbidden, PasswordChangeRequired, Unauthenticated


class Via(StrEnum):
    """By what somebody is known."""

    NOTHING = "nothing"
    TOKEN = "token"  # noqa: S105  # a name, not a secret
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever is asking."""

    user_id: str | None
    name: str
    role: Role | None
    permissions: frozenset[Permission]
    via: Via
    credential_id: str | None = None
    """The token or the session, for the audit log and to revoke it."""
    must_change_password: bool = False
    csrf: str | None = None
    """What a page must send back with an unsafe request of this session."""

    def may(self, permission: Permission) -> bool:
        """Whether the point is theirs."""
        return permission in self.permissions

    def require(self, permission: Permission) -> None:
        """Refuse, unless the point is theirs."""
        if self.may(permission):
            return
        if self.user_id is None:
            raise Unauthenticated
        if self.must_change_password:
            raise PasswordChangeRequired
        raise Forbidden(f"That needs the permission {permission}, which you do not have.", permission=str(permission))

    @property
    def id(self) -> str:
        """The user's id, for routes that only users reach."""
        if self.user_id is None:
            raise Unauthenticated
        return self.user_id


VISITOR: Final = Viewer(None, "visitor", None, NOBODY, Via.NOTHING)
OUTSIDER: Final = Viewer(None, "visitor", None, frozenset(), Via.NOTHING)
"""A visitor where the settings let none in."""

Authenticate = Callable[[Request], Awaitable[Viewer]]
"""Finds out who is asking. A credential that is given and wrong is refused, not ignored."""


def needs(permission: Permission) -> Any:
    """The dependency of a route that asks for ``permission``; its value is the viewer."""

    async def viewer_with(request: Request) -> Viewer:
        viewer = await viewer_of(request)
        viewer.require(permission)
        return viewer

    viewer_with.permission = permission  # type: ignore[attr-defined]  # read by the test that walks every route
    return Depends(viewer_with)


def address_of(request: Request) -> str:
    """From where somebody asks: of a trusted proxy, what it says; an empty text where nobody can tell."""
    return request.client.host if request.client else ""


async def viewer_of(request: Request) -> Viewer:
    """Who is asking, found out once per request."""
    known: Viewer | None = getattr(request.state, "viewer", None)
    if known is None:
        authenticate: Authenticate = request.app.state.authenticate
        known = request.state.viewer = await authenticate(request)
    return known
