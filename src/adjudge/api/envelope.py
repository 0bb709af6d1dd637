"""What surrounds every request: its id, its log line, the security headers, and an answer whatever happens inside."""

from __future__ import annotations

import re
import time
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjudge.api.errors import unforeseen
from adjudge.domain.ids import NewId
from adjudge.observe import logs

REQUEST_ID_HEADER: Final = "X-Request-Id"
SECURITY_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The strictest that fits JSON; a route that needs another value sets its own."""

_USABLE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logs.get_logger(__name__)


class Envelope:
    """Plain ASGI rather than a response hook, so that a streamed answer streams."""

    def __init__(self, app: ASGIApp, mint_request_id: NewId) -> None:
        self._app = app
        self._mint = mint_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; other kinds of scope pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started, status = time.perf_counter(), 0

        async def send_enveloped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _dress(message, request_id)
            await send(message)

        with logs.context(request_id=request_id):
            try:
                await self._app(scope, receive, send_enveloped)
            except Exception:  # the outermost frame of a request: it must get an answer, and the log the whole story
                log.exception("request.crashed", method=scope["method"], path=scope["path"])
                if status:
                    raise  # the answer has begun: the only honest end is a broken connection
                await unforeseen(request_id)(scope, receive, send_enveloped)
            duration_ms = round((time.perf_counter() - started) * 1000, 1)
            log.info("request", method=scope["method"], path=scope["path"], status=status, duration_ms=duration_ms)

    def _request_id(self, scope: Scope) -> str:
        """The caller's id if it is harmless, so that one id follows a request through many services; else a new one."""
        offered = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        return offered if _USABLE_ID.fullmatch(offered) else self._mint()


def _dress(message: MutableMapping[str, Any], request_id: str) -> None:
    headers = MutableHeaders(scope=message)
    headers[REQUEST_ID_HEADER] = request_id
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
