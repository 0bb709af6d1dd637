"""Cookies: names, attributes, and the session cookie."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from fastapi.responses import Response

SESSION_COOKIE: Final = "adjudge_session"


def is_https(request: Request) -> bool:
    """Whether the browser uses https to this server or to the proxy in front of it."""
    public_url: str = request.app.state.public_url
    return public_url.startswith("https:") or request.url.scheme == "https"


def cookie_name(name: str, request: Request) -> str:
    """The cookie name; the prefix under https makes browsers reject the cookie from other hosts and plain http."""
    return f"__Host-{name}" if is_https(request) else name


def set_cookie(response: Response, request: Request, name: str, value: str, *, max_age_sec: int) -> None:
    """Set a cookie that scripts cannot read and that is not sent with requests of other sites."""
    response.set_cookie(
        cookie_name(name, request),
        value,
        max_age=max_age_sec,
        path="/",
        secure=is_https(request),
        httponly=True,
        samesite="lax",
    )


def delete_cookie(response: Response, request: Request, name: str) -> None:
    response.delete_cookie(
        cookie_name(name, request), path="/", secure=is_https(request), httponly=True, samesite="lax"
    )


def read_session_cookie(request: Request) -> str | None:
    """The session secret in the cookie, if any."""
    return request.cookies.get(cookie_name(SESSION_COOKIE, request)) or None
