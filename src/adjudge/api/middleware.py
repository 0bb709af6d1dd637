"""The outermost middleware: request ids, limits, the log line, security headers, and a response to every error."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjudge.api.errors import error_response, internal_error_response
from adjudge.api.request_limits import IsKnown, OpenStreams, RequestLimiter, RequestLimits, ResponseComplete
from adjudge.domain.errors import AdjudgeError, TimedOut
from adjudge.domain.ids import IdFactory, new_id, parse_traceparent, trace_id_from
from adjudge.observe import logs

REQUEST_ID_HEADER: Final = "X-Request-Id"
_REQUEST_ID: Final = REQUEST_ID_HEADER.lower().encode()
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
"""The strictest values that suit JSON; a route that needs another value sets its own."""

_RAW_HEADERS: Final = tuple((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items())
_HTTPS_ONLY: Final = (b"strict-transport-security", b"max-age=31536000")
_USABLE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

FastResponse = Callable[[Scope], ASGIApp | None]
"""Returns the response to a request that needs no routing, or None."""

log = logs.get_logger(__name__)


class RequestMiddleware:
    """Plain ASGI instead of a response hook, so that streamed responses are not buffered."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        new_request_id: IdFactory,
        bounds: RequestLimits,
        is_known: IsKnown,
        streams: OpenStreams,
        fast_response: FastResponse | None = None,
        is_https: bool = False,
    ) -> None:
        self._app = app
        self._new_id = new_request_id
        self._bounds = bounds
        self._is_known = is_known
        self._streams = streams
        self._fast_response = fast_response
        self._headers = (*_RAW_HEADERS, _HTTPS_ONLY) if is_https else _RAW_HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; other kinds of scope pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, trace_id = self._request_and_trace_id(scope["headers"])
        scope.setdefault("state", {}).update(request_id=request_id, trace_id=trace_id)
        started = time.perf_counter()

        def dress(message: Message) -> None:
            self._add_headers(message, request_id)

        exchange = RequestLimiter(scope, receive, send, self._bounds, is_known=self._is_known, dress=dress)
        with logs.context(request_id=request_id, trace_id=trace_id):
            try:
                await self._handle(exchange, request_id)
            finally:
                log.info(
                    "request_finished",
                    method=scope["method"],
                    path=scope["path"],
                    status=exchange.status,
                    duration_ms=round((time.perf_counter() - started) * 1000, 1),
                )

    async def _handle(self, exchange: RequestLimiter, request_id: str) -> None:
        try:
            await exchange.check_length()
            ready = self._fast_response(exchange.scope) if self._fast_response is not None else None
            if ready is not None:
                await ready(exchange.scope, exchange.receive, exchange.send)
            else:
                await self._run(exchange)
        except ResponseComplete:
            return
        except AdjudgeError as error:  # only from the limits: the application handles its own errors
            if exchange.status:
                raise
            await error_response(error, request_id)(exchange.scope, exchange.receive, exchange.send)
        except Exception:  # the outermost frame: log the traceback and send a response
            log.exception("request_crashed", method=exchange.scope["method"], path=exchange.scope["path"])
            if exchange.status:
                raise  # the response has started, so the connection must be closed
            await internal_error_response(request_id)(exchange.scope, exchange.receive, exchange.send)

    async def _run(self, exchange: RequestLimiter) -> None:
        """Run the application within its time limit; at shutdown, end its event stream."""
        task = asyncio.current_task()
        if task is not None:
            exchange.on_stream = partial(self._streams.add, task)
        deadline = exchange.deadline = asyncio.timeout(exchange.seconds)
        try:
            async with deadline:
                try:
                    await self._app(exchange.scope, exchange.receive, exchange.send)
                finally:
                    exchange.deadline = None  # messages sent after this do not move the deadline
        except TimeoutError as error:
            if deadline.expired():
                raise TimedOut(limit_sec=self._bounds.seconds) from error
            raise
        except asyncio.CancelledError:
            if not (exchange.is_stream and self._streams.are_closing and task is not None):
                raise
            task.uncancel()
            await exchange.end_event_stream()

    def _request_and_trace_id(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
        """Return the ids of the request and its trace, read from the raw headers because this runs for every request.

        The id of the caller is kept if it has only allowed characters, so that one id follows a request through several
        services. A trace that starts here gets its id from the request id.
        """
        offered = traceparent = ""
        for name, value in headers:
            if name == _REQUEST_ID:
                offered = value.decode("latin-1")
            elif name == b"traceparent":
                traceparent = value.decode("latin-1")
        trace_id = parse_traceparent(traceparent) if traceparent else None
        if offered and _USABLE_ID.fullmatch(offered):
            return offered, trace_id or trace_id_from(new_id())
        generated_id = self._new_id()
        return generated_id, trace_id or trace_id_from(generated_id)

    def _add_headers(self, message: Message, request_id: str) -> None:
        """Add missing headers, directly to the raw list because this runs for every response."""
        headers = message["headers"] = list(message["headers"])
        present = {name for name, _ in headers}
        headers.append((_REQUEST_ID, request_id.encode()))
        headers.extend(pair for pair in self._headers if pair[0] not in present)
