"""Authentication and permissions: the viewer of a request.

A request is authenticated by ``Authorization: Bearer adj_…`` (or ``X-Auth-Token: adj_…``), else the session cookie;
else it is an anonymous visitor. The Contest API also accepts ``Authorization: Basic …``, a user name and a password.
A route declares the permission that it requires in its signature::

    async def submit(viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]) -> …

A request without that permission does not reach the route: the response is 401 for a visitor and 403 for a user. A test
calls every route as every role and compares the results with one table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import Depends, Request
from starlette.types import Scope

from adjudge.api.contest_only import check_path
from adjudge.api.cookies import read_session_cookie
from adjudge.api.csrf import SAFE_METHODS, check_csrf, check_origin
from adjudge.api.routing import is_ccs_path
from adjudge.domain.errors import Unauthenticated
from adjudge.domain.permissions import Permission
from adjudge.services.basic_auth import BasicAuthentication
from adjudge.services.viewer import OUTSIDER, VISITOR, ContestOnlyMode, CredentialCache, Viewer

_SCHEME: Final = "bearer "
_BASIC: Final = "basic "

Authenticate = Callable[[Request], Awaitable[Viewer]]
"""Authenticates a request. An invalid credential is rejected, not ignored."""


def require_permission(permission: Permission) -> Any:
    """The dependency of a route that requires ``permission``; its value is the viewer."""

    async def viewer_with(request: Request) -> Viewer:
        viewer = await current_viewer(request)
        viewer.require(permission)
        return viewer

    viewer_with.permission = permission  # type: ignore[attr-defined]  # read by the test that calls every route
    return Depends(viewer_with)


def client_address(request: Request) -> str:
    """The IP address of the client, as reported by a trusted proxy if there is one; empty if unknown."""
    return request.client.host if request.client else ""


async def current_viewer(request: Request) -> Viewer:
    """The viewer of the request, authenticated once per request."""
    state: dict[str, Any] = request.scope["state"]
    known: Viewer | None = state.get("viewer")
    if known is None:
        authenticate: Authenticate = request.app.state.authenticate
        known = state["viewer"] = await authenticate(request)
        mode: ContestOnlyMode = request.app.state.contest_only
        contest = state["contest_only"] = await mode.find()
        if contest is not None:
            known = state["viewer"] = await mode.limit(known, contest)
            if known.only_contest_id is not None:
                check_path(request.scope["path"], contest)
    return known


CheckUpload = Callable[[str, Viewer], Awaitable[None]]
"""Raises if a viewer may not upload a file to the page with this path."""


def make_authenticator(
    credentials: CredentialCache, basic: BasicAuthentication, *, visitors_may_read: bool
) -> Authenticate:
    visitor = VISITOR if visitors_may_read else OUTSIDER

    async def authenticate(request: Request) -> Viewer:
        given = _authorization(request)
        if given is not None:
            return await _viewer_by_header(credentials, basic, request, given)
        secret = read_session_cookie(request)
        viewer = None if secret is None else await credentials.viewer_for_session(secret)
        if viewer is None:
            return visitor  # an expired session is not an error: the browser does not know that it expired
        await check_csrf(request, viewer)
        return viewer

    return authenticate


def known_by(
    credentials: CredentialCache, basic: BasicAuthentication, check_upload: CheckUpload
) -> Callable[[Scope], Awaitable[bool]]:
    """Make the function that checks, before a large body is read, whether a request has a valid credential.

    ``check_upload`` decides on the forms of pages: the CSRF token is in the body, so the whole form is read before the
    page can check anything.
    """

    async def is_known(scope: Scope) -> bool:
        request = Request(scope)
        given = _authorization(request)
        if given is not None:
            viewer: Viewer | None = await _viewer_by_header(credentials, basic, request, given)
        else:
            secret = read_session_cookie(request)
            viewer = None if secret is None else await credentials.viewer_for_session(secret)
        if viewer is None:
            return False
        await check_upload(scope["path"], viewer)
        return True

    return is_known


def _authorization(request: Request) -> str | None:
    """The ``Authorization`` header; clients of Judge0 send the API token as ``X-Auth-Token`` instead."""
    given = request.headers.get("Authorization")
    token = request.headers.get("X-Auth-Token")
    return f"Bearer {token}" if given is None and token is not None else given


def parse_bearer_token(authorization: str) -> str | None:
    """The bearer token of an ``Authorization`` header; None for another scheme."""
    if not authorization.lower().startswith(_SCHEME):
        return None
    return authorization[len(_SCHEME) :].strip()


async def _viewer_by_header(
    credentials: CredentialCache, basic: BasicAuthentication, request: Request, given: str
) -> Viewer:
    if not (given.lower().startswith(_BASIC) and is_ccs_path(request.scope["path"])):
        return await _viewer_by_token(credentials, given)
    if request.method not in SAFE_METHODS:
        check_origin(request)  # a browser that knows the password sends it with requests of any page
    name, password = _parse_basic(given)
    return await basic.find_viewer(name, password, client_address(request))


def _parse_basic(given: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(given[len(_BASIC) :].strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    name, separator, password = text.partition(":")
    if not separator:
        raise Unauthenticated("Authorization: expected 'Basic' and the base64 of 'name:password'.")
    return name, password


async def _viewer_by_token(credentials: CredentialCache, given: str) -> Viewer:
    secret = parse_bearer_token(given)
    if secret is None:
        raise Unauthenticated("Authorization: expected 'Bearer <API token>'.")
    viewer = await credentials.viewer_for_token(secret)
    if viewer is None:
        raise Unauthenticated("Invalid API token: unknown, expired or revoked.")
    return viewer
