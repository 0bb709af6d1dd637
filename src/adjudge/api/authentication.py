"""From credentials to a viewer: ``Authorization: Bearer adj_…``."""

from __future__ import annotations

from fastapi import Request

from adjudge.api.viewer import OUTSIDER, VISITOR, Authenticate, Via, Viewer
from adjudge.domain.access import granted
from adjudge.domain.errors import Unauthenticated
from adjudge.store import Database, tokens

_SCHEME = "bearer "


def authenticator(database: Database, *, visitors_may_read: bool) -> Authenticate:
    """Make the function that finds out who is asking."""
    visitor = VISITOR if visitors_may_read else OUTSIDER

    async def authenticate(request: Request) -> Viewer:
        given = request.headers.get("Authorization")
        if given is None:
            return visitor
        if not given.lower().startswith(_SCHEME):
            raise Unauthenticated("Authorization: give 'Bearer' and an API token.")
        secret = given[len(_SCHEME) :].strip()
        holder = await database.read(lambda tx: tokens.holder_of(tx, secret))
        if holder is None:
            raise Unauthenticated("That token is unknown, expired or revoked; make a new one.")
        return Viewer(
            holder.user_id,
            holder.name,
            holder.role,
            granted(holder.role, holder.scopes),
            Via.TOKEN,
            holder.token_id,
        )

    return authenticate
