"""Protection against cross-site requests (CSRF).

A browser sends the session cookie with requests of any page. Therefore an unsafe request with a session needs two more
things: it must come from our origin (``Sec-Fetch-Site`` and ``Origin``, which pages cannot forge), and it must contain
the CSRF token of the session (the header ``X-CSRF-Token``, or on pages the form field ``csrf_token``), which other
origins cannot read. Requests with an API token need neither, because browsers do not send API tokens on their own.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request

from adjudge.domain.errors import CsrfRefused
from adjudge.services.viewer import Viewer

CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf_token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_API: Final = "/api/"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


def csrf_token(viewer: Viewer) -> str:
    """The CSRF token for the forms of a page; empty without a session."""
    return viewer.csrf or ""


def safe_redirect_path(wanted: str) -> str:
    """Return ``wanted`` if it is a path of this server, else the front page; this prevents open redirects.

    Only printable ASCII characters are accepted, because browsers remove tabs and line ends from a URL before they
    parse it.
    """
    is_plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set(' ",;\\')
    return wanted if is_plain and wanted.startswith("/") and not wanted.startswith("//") else "/"


def check_origin(request: Request) -> None:
    """Reject an unsafe request from a page of another origin. Programs send neither header and are accepted."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise CsrfRefused
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() not in _our_origins(request):
        raise CsrfRefused


async def check_csrf(request: Request, viewer: Viewer) -> None:
    """Reject an unsafe request with a session, unless it comes from our origin and has the CSRF token."""
    if request.method in SAFE_METHODS:
        return
    check_origin(request)
    offered = request.headers.get(CSRF_HEADER) or await _from_form(request)
    if not hmac.compare_digest(offered.encode(errors="replace"), csrf_token(viewer).encode()):
        raise CsrfRefused


async def _from_form(request: Request) -> str:
    """The token in the form of a page. Forms of the API may be large and are read after the permission check."""
    if request.scope["path"].startswith(_API):
        return ""
    if not request.headers.get("Content-Type", "").lower().startswith(_FORMS):
        return ""
    offered = (await request.form()).get(CSRF_FIELD)
    return offered if isinstance(offered, str) else ""


def _our_origins(request: Request) -> set[str]:
    public_url: str = request.app.state.public_url
    asked = f"{request.url.scheme}://{request.headers.get('Host', '')}"
    given = urlsplit(public_url)
    return {asked.lower()} | ({f"{given.scheme}://{given.netloc}".lower()} if public_url else set())
