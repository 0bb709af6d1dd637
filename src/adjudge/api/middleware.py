"""The outermost middleware (request ids, limits, the log line, security headers, errors), and the index of routes.

Limits of one request:

- The body is counted as it is received. Above the limit the response is 413, whatever ``Content-Length`` says. Above a
  much smaller limit the credential is checked first: frameworks read a body before they authenticate, and an anonymous
  client must not make the server hold or parse megabytes. A large JSON body is checked by ``api.json_values``.
- The time limit ends when the response starts. Each received part of the body restarts it, so a slow upload does not
  time out unless it is slower than a minimum rate. A request with ``?wait=`` gets that much more time. A response that
  streams has no time limit.
- ``HEAD`` is ``GET`` without the response body.
- At shutdown, event streams end with the event ``reconnect``; other requests finish.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjudge.api.errors import error_response, internal_error_response
from adjudge.api.json_values import SMALL_BYTES, check_json_values
from adjudge.api.sse import OpenStreams
from adjudge.domain.errors import AdjudgeError, BodyTooLarge, TimedOut
from adjudge.domain.ids import IdFactory, new_id, parse_parent_span_id, parse_traceparent, trace_id_from
from adjudge.observe import logs, tracing
from adjudge.observe.tracing import Span, SpanKind

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
_WAIT: Final = re.compile(rb"(?:^|&)wait=(\d{1,3}(?:\.\d{1,3})?|[a-zA-Z]{1,4})(?:&|$)")
_JUDGE0: Final = "/judge0/"
_JUDGE0_WAIT_SEC: Final = 60.0
"""There ``wait`` is a truth value: the result is waited for as long as elsewhere at most."""
_SLOWEST_BYTES_PER_SEC: Final = 1024
"""Minimum average rate of a body; a slower one times out."""
_BODY_HEADERS: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_RECONNECT_EVENT: Final = b"event: reconnect\ndata: {}\n\n"

FastResponse = Callable[[Scope], ASGIApp | None]
"""Returns the response to a ``GET`` request that needs no routing, or None."""
IsKnown = Callable[[Scope], Awaitable[bool]]
"""Returns whether a request has a valid credential; raises if the credential is invalid."""

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Size and time limits of one request."""

    anonymous_bytes: int
    body_bytes: int
    upload_bytes: int
    seconds: float
    uploads: re.Pattern[str] = re.compile(r"(?!)")
    """Paths that accept file uploads."""
    imports: re.Pattern[str] = re.compile(r"(?!)")
    """Those of them whose response waits until a package is imported, at most ``import_sec``."""
    import_sec: float = 0

    def is_upload(self, scope: Scope) -> bool:
        """Whether the path of this request accepts file uploads."""
        return self.uploads.match(scope["path"]) is not None


class ResponseComplete(Exception):
    """The response is complete; what the application still sends is not needed."""


class RequestLimiter:
    """Wraps ``receive`` and ``send`` of one request and enforces its limits."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        bounds: RequestLimits,
        *,
        is_known: IsKnown,
        dress: Callable[[Message], None],
    ) -> None:
        self.is_head = scope["method"] == "HEAD"
        self.scope: Scope = {**scope, "method": "GET"} if self.is_head else scope
        self.status = 0
        self.is_stream = False
        self._is_sse = False
        self.has_ended = False
        self.deadline: asyncio.Timeout | None = None
        self.on_stream: Callable[[], None] | None = None
        """Called once, when an event stream has started."""
        self._dress = dress
        self._receive, self._send = receive, send
        self._is_upload = bounds.is_upload(scope)
        self._seconds = bounds.seconds + _wait_sec(scope)
        if self._is_upload and bounds.imports.match(scope["path"]):
            self._seconds += bounds.import_sec
        self._max_bytes = bounds.upload_bytes if self._is_upload else bounds.body_bytes
        self._limit = min(bounds.anonymous_bytes, self._max_bytes)
        self._is_known = is_known
        self._received = 0
        self._first_piece_at: float | None = None

    @property
    def seconds(self) -> float:
        """Time limit until the response starts."""
        return self._seconds

    async def check_length(self) -> None:
        """Reject a body whose ``Content-Length`` is too large, before reading it."""
        for name, length in self.scope["headers"]:
            if name == b"content-length" and length.isdigit() and int(length[:20]) > self._limit:
                await self._check_size(int(length[:20]))

    async def checked_receive(self) -> Receive:
        """``receive``; if the body may be large JSON, the body is read and its number of values checked first."""
        return await check_json_values(self.receive) if self._may_be_large_json() else self.receive

    def _may_be_large_json(self) -> bool:
        """Whether there is a body that may be JSON and does not declare a small length.

        A missing or repeated media type counts as JSON, because frameworks differ in which one they read. Uploads are
        streamed, so they are never held in memory here.
        """
        if self.scope["method"] not in _WITH_BODY or self._is_upload:
            return False
        given: dict[bytes, list[bytes]] = {}
        for name, value in self.scope["headers"]:
            if name in _BODY_HEADERS:
                given.setdefault(name, []).append(value)
        if b"content-length" not in given and b"transfer-encoding" not in given:
            return False
        length = given.get(b"content-length", [b""])[0]
        if length.isdigit() and int(length[:20]) <= SMALL_BYTES:
            return False
        kinds = given.get(b"content-type", [])
        return len(kinds) != 1 or b"json" in kinds[0].lower()

    async def receive(self) -> Message:
        """Pass on a message of the client and count the bytes of the body."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._limit:
                try:
                    await self._check_size(self._received)
                except AdjudgeError as error:
                    # While it reads a body, the framework passes on only its own error class.
                    raise HTTPException(error.http_status, error.message, {"Connection": "close"}) from error
            if self.deadline is not None and not self.status:
                self.deadline.reschedule(self._next_deadline())
        return message

    async def _check_size(self, size: int) -> None:
        """Reject a body of this size; a valid credential raises the limit."""
        if self._limit < self._max_bytes and await self._is_known(self.scope):
            self._limit = self._max_bytes
        if size > self._max_bytes:
            raise BodyTooLarge(f"The body is larger than {self._max_bytes} bytes.", limit_bytes=self._max_bytes)
        if size > self._limit:
            raise BodyTooLarge(
                f"The body is larger than {self._limit} bytes, which is the most without a valid credential: log in "
                "or send an API token.",
                limit_bytes=self._limit,
            )

    def _next_deadline(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._first_piece_at is None:
            self._first_piece_at = now
        allowed_sec = self._received / _SLOWEST_BYTES_PER_SEC
        return min(now, self._first_piece_at + allowed_sec) + self._seconds

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.deadline is not None:
                self.deadline.reschedule(None)
            headers = dict(message["headers"])
            self._is_sse = headers.get(b"content-type", b"").startswith(b"text/event-stream")
            self.is_stream = self._is_sse or headers.get(b"x-accel-buffering") == b"no"
            self._dress(message)
        elif message["type"] == "http.response.body":
            if self.is_head:
                await self._send_no_body(is_last=not message.get("more_body", False))
                return
            self.has_ended = not message.get("more_body", False)
        await self._send(message)
        if self.is_stream and self.on_stream is not None:
            self.on_stream()
            self.on_stream = None

    async def end_event_stream(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            body = _RECONNECT_EVENT if self._is_sse and not self.is_head else b""
            await self._send({"type": "http.response.body", "body": body})

    async def _send_no_body(self, *, is_last: bool) -> None:
        if not self.has_ended:
            self.has_ended = True
            await self._send({"type": "http.response.body", "body": b""})
        if not is_last:
            raise ResponseComplete


def _record_span(scope: Scope, status: int, seconds: float) -> None:
    """The span of a request, whose parent is that of the caller."""
    headers, now_ns = dict(scope["headers"]), time.time_ns()
    request_id, trace_id = scope["state"]["request_id"], scope["state"]["trace_id"]
    route = getattr(scope.get("route"), "path", None)
    tracing.record(
        Span(
            name=f"{scope['method']} {route or ''}".strip(),
            trace_id=trace_id,
            span_id=tracing.request_span_id(request_id),
            start_ns=now_ns - round(seconds * 1e9),
            end_ns=now_ns,
            parent_id=parse_parent_span_id(headers.get(b"traceparent", b"").decode("latin-1")),
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": scope["method"],
                "http.response.status_code": status,
                "http.route": route,
                "url.path": scope["path"],
                "adjudge.request.id": request_id,
            },
            error=f"HTTP {status}" if status >= 500 else None,
        )
    )


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
                if tracing.state.is_on and tracing.is_sampled(trace_id):
                    _record_span(scope, exchange.status, time.perf_counter() - started)

    async def _handle(self, exchange: RequestLimiter, request_id: str) -> None:
        try:
            await exchange.check_length()
            ready = None
            if exchange.scope["method"] == "GET" and self._fast_response is not None:
                ready = self._fast_response(exchange.scope)
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
                    await self._app(exchange.scope, await exchange.checked_receive(), exchange.send)
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


def _wait_sec(scope: Scope) -> float:
    query: bytes = scope.get("query_string", b"")
    match = _WAIT.search(query) if query else None
    if match is None:
        return 0.0
    return float(match[1]) if match[1][:1].isdigit() and not scope["path"].startswith(_JUDGE0) else _JUDGE0_WAIT_SEC


class RouteIndex:
    """Finds the route of a request by the start of its path; the router of the framework tries one after another.

    Of several routes that match, the first one added is called, as by the router. If none matches, the router responds.
    """

    def __init__(self, router: Router) -> None:
        self._routes = router.routes
        self._app = router.app
        self._indexed = 0
        self._slashes = 0
        """The most slashes in a prefix."""
        self._by_prefix: dict[str, list[tuple[int, BaseRoute]]] = {}
        """Routes with parameters, by the part of their path before the segment of the first parameter."""
        self._by_path: dict[str, list[BaseRoute]] = {}
        """All routes that may match the path of a route without parameters."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._indexed < len(self._routes):
            self._build()
        if scope["type"] == "http":
            path: str = scope["path"]
            for route in self._by_path.get(path) or self._by_parameters(path):
                match, matched = route.matches(scope)
                if match is Match.FULL:
                    scope.update(matched)
                    await route.handle(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _by_parameters(self, path: str) -> list[BaseRoute]:
        return [route for _, route in sorted(self._with_prefix_of(path))]

    def _with_prefix_of(self, path: str) -> list[tuple[int, BaseRoute]]:
        found: list[tuple[int, BaseRoute]] = []
        end = 0
        for _ in range(self._slashes):
            end = path.find("/", end) + 1
            if not end:
                break
            found += self._by_prefix.get(path[:end], ())
        return found

    def _build(self) -> None:
        self._by_prefix = {}
        literal: dict[str, list[tuple[int, BaseRoute]]] = {}
        for number, route in enumerate(self._routes):
            path = route.path if isinstance(route, Route) else "/{}"
            start, parameter, _ = path.partition("{")
            if parameter:
                self._by_prefix.setdefault(start[: start.rindex("/") + 1], []).append((number, route))
            else:
                literal.setdefault(path, []).append((number, route))
        self._slashes = max((prefix.count("/") for prefix in self._by_prefix), default=0)
        self._by_path = {
            path: [route for _, route in sorted(own + self._with_prefix_of(path))] for path, own in literal.items()
        }
        self._indexed = len(self._routes)
