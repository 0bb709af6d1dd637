"""Renders templates to responses, and errors of page routes to error pages."""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.exceptions import HTTPException

from adjudge import __version__
from adjudge.api.auth import current_viewer
from adjudge.api.csrf import CSRF_FIELD, csrf_token
from adjudge.api.errors import MAX_REPORTED
from adjudge.domain.errors import (
    AdjudgeError,
    BodyTooLarge,
    InternalFault,
    InvalidInput,
    LoginFailed,
    PasswordChangeRequired,
    Unauthenticated,
)
from adjudge.observe.logs import get_logger
from adjudge.services.viewer import Viewer
from adjudge.web import i18n
from adjudge.web.contest_durations import format_seconds
from adjudge.web.diff import align_lines
from adjudge.web.line_links import link_lines
from adjudge.web.navigation import navigation
from adjudge.web.plots import format_duration
from adjudge.web.static_files import Assets
from adjudge.web.status_style import status_class

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The nonce, new in each response, is for the editor, which creates a style sheet."""
_PACK_FROM: Final = 1_024

_log = get_logger(__name__)


class PageRenderer:
    """Renders pages from templates, translations and assets."""

    def __init__(self) -> None:
        self.assets = Assets()
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            asset=self.assets.url,
            has_asset=self.assets.__contains__,
            align_lines=align_lines,
            status_class=status_class,
            navigation=navigation,
            link_lines=link_lines,
            version=__version__,
        )
        self._templates.filters.update(
            timestamp=timestamp, size=format_bytes, duration=format_duration, contest_duration=format_seconds
        )

    async def render(self, request: Request, template: str, *, status: int = 200, **shown: object) -> Response:
        """Render ``template`` for the viewer of the request, in their language."""
        spoken = request_translations(request)
        viewer = await current_viewer(request)
        nonce = secrets.token_urlsafe(16)
        text = self._templates.get_template(template).render(
            t=spoken,
            style_nonce=nonce,
            viewer=viewer,
            contest_only=getattr(request.state, "contest_only", None),
            csrf_field=_csrf_field(viewer),
            languages=i18n.available_languages(),
            path=request.url.path,
            done=spoken.texts.get(f"flash.{request.query_params.get('done', '')}", ""),
            **shown,
        )
        return _html(request, text, status, spoken.language, nonce)

    async def render_error(self, request: Request, error: AdjudgeError) -> Response:
        if error.http_status >= 500:
            _log.error("page_failed", code=error.code, detail=error.message, exc_info=error)
        given = getattr(request.state, "request_id", "")  # also in the log
        return await self.render(request, "error.html", status=error.http_status, error=error, request_id=given)


def _csrf_field(viewer: Viewer) -> Markup:
    return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, csrf_token(viewer))


_FORM_ERRORS: Final[Mapping[int, type[AdjudgeError]]] = {400: InvalidInput, 413: BodyTooLarge}
"""Raised by the framework for forms with too many fields or too much data."""


def page_route(pages: PageRenderer) -> type[APIRoute]:
    """Route class that renders errors as pages and redirects visitors to the login page."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_as_page(request: Request) -> Response:
                try:
                    return await handle(request)
                except HTTPException as error:
                    if error.status_code not in _FORM_ERRORS:
                        raise  # handled by the application (unknown API paths)
                    return await pages.render_error(request, _FORM_ERRORS[error.status_code](error.detail))
                except Exception as error:  # noqa: BLE001  # every error is shown as a page
                    return await _failed(pages, request, error)
                finally:
                    await request.close()  # closes uploaded files

            return handle_as_page

    return PageRoute


async def _failed(pages: PageRenderer, request: Request, error: Exception) -> Response:
    if isinstance(error, Unauthenticated) and not isinstance(error, LoginFailed):
        return redirect(f"/login?next={quote(request.url.path)}")
    if isinstance(error, PasswordChangeRequired):
        return redirect("/me/password")
    if isinstance(error, RequestValidationError):
        return await pages.render_error(request, _validation_error(error))
    if isinstance(error, AdjudgeError):
        return await pages.render_error(request, error)
    fault = InternalFault()
    fault.__cause__ = error
    return await pages.render_error(request, fault)


def _validation_error(error: RequestValidationError) -> InvalidInput:
    """Invalid query parameters as one error."""
    return InvalidInput("; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors()[:MAX_REPORTED]))


def redirect(path: str, *, done: str = "") -> Response:
    """Redirect after a form (303), so that reloading does not send it again. ``done`` is the key of a flash message."""
    return Response(status_code=303, headers={"Location": f"{path}?done={done}" if done else path})


def no_store(answer: Response) -> Response:
    """Forbid caching of a response that contains a secret."""
    answer.headers["Cache-Control"] = "no-store"
    return answer


def request_translations(request: Request) -> i18n.Translations:
    return i18n.choose_language(request.cookies.get(i18n.COOKIE), request.headers.get("Accept-Language", ""))


def timestamp(us: int | None) -> str:
    """A timestamp as RFC 3339 in UTC; the page's script shows it in the local time zone."""
    return "" if us is None else datetime.fromtimestamp(us / 1_000_000, UTC).isoformat(timespec="milliseconds")


def format_bytes(count_bytes: float) -> str:
    """A size with a binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if count_bytes < 1024:
            return f"{count_bytes:.0f} {unit}"
        count_bytes /= 1024
    return f"{count_bytes:.1f} GiB"


def _html(request: Request, text: str, status: int, language: str, nonce: str) -> Response:
    headers = {
        "Content-Security-Policy": CONTENT_SECURITY_POLICY.format(nonce=nonce),
        "Cache-Control": "private, no-cache",
        "Content-Language": language,
        "Referrer-Policy": "same-origin",  # with no-referrer, browsers send no origin with forms
        "Vary": "Accept-Encoding, Accept-Language, Cookie",
    }
    body = text.encode()
    if len(body) > _PACK_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
    return Response(body, status, headers, "text/html")


def page_router(pages: PageRenderer) -> APIRouter:
    """A router whose routes are not in the OpenAPI document and render errors as pages."""
    return APIRouter(include_in_schema=False, route_class=page_route(pages))
