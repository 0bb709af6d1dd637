"""What browsers need: the session's cookie, and proof that a request comes from a page of ours.

A browser sends our cookie with whatever page asked for it, so an unsafe request that is authenticated by a session must
show two more things: it comes from our origin (``Sec-Fetch-Site`` and ``Origin``, which pages cannot forge), and it
carries the session's own token (the header ``X-CSRF-Token`` or the form field ``csrf_token``), which other pages cannot
read. API tokens are not sent by browsers on their own and need neither.
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
    """What a page puts into its forms; empty for whoever has no session."""
    return viewer.csrf or ""


def is_https(request: Request) -> bool:
    """Whether the browser speaks https to us, or to the proxy in front of us."""
    public_url: str = request.app.state.public_url
    return public_url.startswith("https:") or request.url.scheme == "https"


def cookie_name(name: str, request: Request) -> str:
    """Under https the name itself forbids other hosts and plain http to set the cookie."""
    return f"__Host-{name}" if is_https(request) else name


def set_cookie(response: Response, request: Request, name: str, value: str, *, max_age_sec: int) -> None:
    """Give the browser a cookie that no script and no other site gets."""
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
    """Take a cookie back."""
    response.delete_cookie(
        cookie_name(name, request), path="/", secure=is_https(request), httponly=True, samesite="lax"
    )


def safe_redirect_path(wanted: str) -> str:
    """``wanted`` if it is a path of ours, else the front page: nobody is sent elsewhere by a link they were given.

    Browsers drop tabs and line ends from an address before they read it, so nothing but plain characters passes.
    """
    is_plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set(' ",;\\')
    return wanted if is_plain and wanted.startswith("/") and not wanted.startswith("//") else "/"


def read_session_cookie(request: Request) -> str | None:
    """The session that the browser says it has."""
    return request.cookies.get(cookie_name(SESSION_COOKIE, request)) or None


def check_origin(request: Request) -> None:
    """Refuse an unsafe request that another site's page sent. Programs send neither header, and pass."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise CsrfRefused
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() not in _our_origins(request):
        raise CsrfRefused


async def check_csrf(request: Request, viewer: Viewer) -> None:
    """Refuse an unsafe request with a session, unless it comes from our page and knows the session's token."""
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
