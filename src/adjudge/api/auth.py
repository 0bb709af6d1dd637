"""Authentication: ``Authorization: Bearer adj_…``, else the session cookie, else an anonymous visitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Request
from starlette.types import Scope

from adjudge.api.browser import check_csrf, read_session_cookie
from adjudge.api.dependencies import Authenticate
from adjudge.domain.errors import Unauthenticated
from adjudge.services.credentials import CredentialCache
from adjudge.services.viewer import OUTSIDER, VISITOR, Viewer

_SCHEME: Final = "bearer "


def make_authenticator(credentials: CredentialCache, *, visitors_may_read: bool) -> Authenticate:
    visitor = VISITOR if visitors_may_read else OUTSIDER

    async def authenticate(request: Request) -> Viewer:
        given = request.headers.get("Authorization")
        if given is not None:
            return await _viewer_by_token(credentials, given)
        secret = read_session_cookie(request)
        viewer = None if secret is None else await credentials.viewer_for_session(secret)
        if viewer is None:
            return visitor  # an expired session is not an error: the browser does not know that it expired
        await check_csrf(request, viewer)
        return viewer

    return authenticate


def known_by(credentials: CredentialCache) -> Callable[[Scope], Awaitable[bool]]:
    """Make the function that checks, before the body is read, whether a request has a valid credential."""

    async def is_known(scope: Scope) -> bool:
        request = Request(scope)
        given = request.headers.get("Authorization")
        if given is not None:
            await _viewer_by_token(credentials, given)
            return True
        secret = read_session_cookie(request)
        return secret is not None and await credentials.viewer_for_session(secret) is not None

    return is_known


def parse_bearer_token(authorization: str) -> str | None:
    """The bearer token of an ``Authorization`` header; None for another scheme."""
    if not authorization.lower().startswith(_SCHEME):
        return None
    return authorization[len(_SCHEME) :].strip()


async def _viewer_by_token(credentials: CredentialCache, given: str) -> Viewer:
    secret = parse_bearer_token(given)
    if secret is None:
        raise Unauthenticated("Authorization: expected 'Bearer <API token>'.")
    viewer = await credentials.viewer_for_token(secret)
    if viewer is None:
        raise Unauthenticated("Invalid API token: unknown, expired or revoked.")
    return viewer
