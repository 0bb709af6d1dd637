"""Dependencies of routes: the authenticated viewer and its permissions.

A route declares the permission that it requires in its signature::

    async def submit(viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]) -> …

A request without that permission does not reach the route: the response is 401 for a visitor and 403 for a user. A test
calls every route as every role and compares the results with one table.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

from fastapi import Depends, Request

from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer

_LANGUAGE: Final = re.compile(r"[a-zA-Z]{2,3}")
_HEADER_CHARACTERS: Final = 200
_STATEMENT_LANGUAGES: Final = 3

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
    known: Viewer | None = getattr(request.state, "viewer", None)
    if known is None:
        authenticate: Authenticate = request.app.state.authenticate
        known = request.state.viewer = await authenticate(request)
    return known


def statement_languages(lang: str, accept_language: str) -> tuple[str, ...]:
    """Languages for the statement: ``lang``, else the first few of the header, as they are part of cache keys."""
    if lang:
        return (lang.lower(),) if _LANGUAGE.fullmatch(lang) else ()
    return preferred_languages(accept_language[:_HEADER_CHARACTERS])[:_STATEMENT_LANGUAGES]


@lru_cache(maxsize=1024)
def preferred_languages(accept_language: str) -> tuple[str, ...]:
    """The primary language codes of an ``Accept-Language`` header, preferred first; invalid items are skipped."""
    weighted = []
    for position, item in enumerate(accept_language[:_HEADER_CHARACTERS].split(",")):
        tag, _, parameter = item.partition(";")
        code = tag.strip().partition("-")[0]
        try:
            weight = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if weight > 0 and _LANGUAGE.fullmatch(code):
            weighted.append((-weight, position, code.lower()))
    return tuple(dict.fromkeys(code for _, _, code in sorted(weighted)))
