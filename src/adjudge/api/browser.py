"""Session cookies, and protection against cross-site requests (CSRF).

A browser sends the cookie with requests of any page. Therefore an unsafe request with a session needs two more things:
it must come from our origin (``Sec-Fetch-Site`` and ``Origin``, which pages cannot forge), and it must contain the CSRF
token of the session (the header ``X-CSRF-Token`` or the form field ``csrf_token``), which other origins cannot read.
Requests with an API token need neither, because browsers do not send API tokens on their own.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import Response

from adjudge.domain.errors import CsrfRefused
from adjudge.services.viewer import Viewer

SESSION_COOKIE: Final = "adjudge_session"
CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf_token"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


def csrf_token(viewer: Viewer) -> str:
    """The CSRF token for the forms of a page; empty without a session."""
    return viewer.csrf or ""


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


def safe_redirect_path(wanted: str) -> str:
    """Return ``wanted`` if it is a path of this server, else the front page; this prevents open redirects.

    Only printable ASCII characters are accepted, because browsers remove tabs and line ends from a URL before they
    parse it.
    """
    is_plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set(' ",;\\')
    return wanted if is_plain and wanted.startswith("/") and not wanted.startswith("//") else "/"


def read_session_cookie(request: Request) -> str | None:
    """The session secret in the cookie, if any."""
    return request.cookies.get(cookie_name(SESSION_COOKIE, request)) or None


def check_origin(request: Request) -> None:
    """Reject an unsafe request from a page of another origin. Programs send neither header and are accepted."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise CsrfRefused
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() not in _our_origins(request):
        raise CsrfRefused


async def check_csrf(request: Request, viewer: Viewer) -> None:
    """Reject an unsafe request with a session, unless it comes from our origin and has the CSRF token."""
    if request.method in _SAFE_METHODS:
        return
    check_origin(request)
    offered = request.headers.get(CSRF_HEADER) or await _from_form(request)
    if not hmac.compare_digest(offered.encode(errors="replace"), csrf_token(viewer).encode()):
        raise CsrfRefused


async def _from_form(request: Request) -> str:
    if not request.headers.get("Content-Type", "").lower().startswith(_FORMS):
        return ""
    offered = (await request.form()).get(CSRF_FIELD)
    return offered if isinstance(offered, str) else ""


def _our_origins(request: Request) -> set[str]:
    public_url: str = request.app.state.public_url
    asked = f"{request.url.scheme}://{request.headers.get('Host', '')}"
    given = urlsplit(public_url)
    return {asked.lower()} | ({f"{given.scheme}://{given.netloc}".lower()} if public_url else set())
