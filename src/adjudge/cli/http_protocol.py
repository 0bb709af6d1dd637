"""HTTP/1.1 protocol of uvicorn and httptools with limits on request lines and headers.

httptools buffers a URL, header or trailer in memory without limit, and uvicorn sets no limit and no timeout. This
protocol limits the request line, the headers and any other data between two parser events, and disconnects a client
that does not finish its headers in time.
Bodies are bounded by ``adjudge.api.middleware``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adjudge.api.errors import MEDIA_TYPE, problem_json
from adjudge.domain.ids import new_id

_HEADERS_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Limits of the request head."""

    url_bytes: int = 16 * 1024
    head_bytes: int = 64 * 1024
    """Total size of the headers, and of any data that the parser buffers."""
    headers: int = _HEADERS_MOST
    seconds: float = 10.0
    """Timeout for the request line and headers, from the connection or their first byte."""


class _RequestRefused(Exception):
    """Raised in a parser callback; the parser reports only that a callback failed."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    limits: ClassVar = HeadLimits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._has_moved = False
        self._is_small = self._began_here = False
        """Whether the data being parsed came in one small piece, so that no part can exceed a limit."""
        self._held_bytes = 0
        """Bytes received since the last parser event, which the parser buffers."""
        self._refusal = HTTPStatus.BAD_REQUEST
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # signature of uvicorn
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; reject a request if the parser buffers too much."""
        if self.transport.is_closing():
            return
        self._has_moved = False
        self._is_small = len(data) <= self.limits.url_bytes
        self._began_here = False
        super().data_received(data)
        self._held_bytes = 0 if self._has_moved else self._held_bytes + len(data)
        if self.transport.is_closing():
            return
        if self._held_bytes > self.limits.head_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._in_head or not self._is_answering():
            self._start_timer()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # uvicorn declares it as never None
        return cycle is not None and not cycle.response_complete

    def on_message_begin(self) -> None:
        self._in_head = self._has_moved = self._began_here = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the headers before the application sees them."""
        self._in_head, self._has_moved = False, True
        if self._timer is not None:
            self._stop_timer()
        if not (self._is_small and self._began_here):
            self._check_sizes()
        if len(self.headers) > self.limits.headers:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _RequestRefused
        super().on_headers_complete()

    def _check_sizes(self) -> None:
        if len(self.url) > self.limits.url_bytes:
            self._refusal = HTTPStatus.REQUEST_URI_TOO_LONG
            raise _RequestRefused
        if sum([len(name) + len(value) for name, value in self.headers]) > self.limits.head_bytes:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _RequestRefused

    def on_body(self, body: bytes) -> None:
        self._has_moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request was read completely."""
        self._has_moved = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # the status is enough
        """Reject a request that cannot be parsed or exceeds a limit."""
        self._refuse(self._refusal)

    def _refuse(self, status: HTTPStatus) -> None:
        request_id = new_id()
        body = problem_json(status.value, f"{status.description or status.phrase}.", request_id)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.logger.warning("request refused: %s", status.phrase)
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)


def bounded(limits: HeadLimits) -> type[BoundedProtocol]:
    """The protocol with these limits, for ``uvicorn.Config(http=…)``, which takes a class."""
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": limits})
