"""Server-sent events: parses lines into events and resumes interrupted streams."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

from adjudge.client.errors import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    ClientError,
    NotFoundError,
    PermissionDeniedError,
    UnreachableError,
    WaitTimeoutError,
    error_from_response,
)
from adjudge.client.retry import ClientRetryPolicy, is_transient
from adjudge.client.sans_io import Delay, Emit, Flow, HttpRequest, HttpResponse, OpenStream, Program, ReadLine, Step

E = TypeVar("E")


class Finishing(Protocol):
    """An object that finishes: a run, an import."""

    @property
    def id(self) -> str: ...

    @property
    def is_finished(self) -> bool: ...


F = TypeVar("F", bound=Finishing)
SILENCE_SEC: Final = 45.0
"""The server sends a keep-alive line every 15 seconds; after three missing ones the stream counts as interrupted."""
_POLL_SEC: Final = 1.0
_MEDIA_TYPE: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event."""

    name: str
    data: Mapping[str, Any]


@dataclass(slots=True)
class _EventParser:
    """Assembles events from lines."""

    last_id: str = ""
    count: int = 0
    """Number of events so far."""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Discard an incomplete event."""
        self._name, self._data = "", []

    def take(self, line: str) -> ServerSentEvent | None:
        """Process one line; an empty line ends an event."""
        if not line:
            return self._ended()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.last_id = value
        return None

    def _ended(self) -> ServerSentEvent | None:
        name, data = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if not data:
            return None
        self.count += 1
        try:
            return ServerSentEvent(name or "message", json.loads(data))
        except ValueError:
            raise BadResponseError("Invalid JSON in an event.") from None


def events(
    retry: ClientRetryPolicy, path: str, convert: Callable[[ServerSentEvent], E], *, until_sec: float = math.inf
) -> Flow[E]:
    """Emit the events of a stream up to its event ``end``; interrupted streams resume after the last event ID.

    ``until_sec`` is a deadline on the clock of ``retry``, checked whenever a line arrives (keep-alive lines included).
    """
    request = HttpRequest("GET", path, headers={"Accept": _MEDIA_TYPE}, is_repeatable=True)
    parser, failures, heard = _EventParser(), 0, 0
    while True:
        failure: ClientError = UnreachableError("The event stream was interrupted.", was_sent=True)
        try:
            yield from _open(request, parser.last_id)
            if (yield from _emit_events(parser, convert, lambda: retry.clock() >= until_sec)):
                return
        except UnreachableError as lost:
            failure = lost
        except ApiError as error:
            if not is_transient(request, HttpResponse(error.status, {}, b"")):
                raise
            failure = error
        failures = 1 if parser.count > heard else failures + 1
        heard = parser.count
        pause_sec = retry.delay_sec(failures, failure)
        if pause_sec is None:
            raise failure
        yield Delay(pause_sec)


def _emit_events(
    parser: _EventParser, convert: Callable[[ServerSentEvent], E], is_time_over: Callable[[], bool]
) -> Generator[Step | Emit[E], Any, bool]:
    """Emit events; return whether the stream has ended for good."""
    parser.begin()
    while (line := (yield ReadLine())) is not None:
        if is_time_over():
            return True
        event = parser.take(line)
        if event is None:
            continue
        if event.name == "reconnect":
            return False
        yield Emit(convert(event))
        if event.name == "end":
            return True
    return False


def _open(request: HttpRequest, last_id: str) -> Program[None]:
    resumed = replace(request, headers={**request.headers, "Last-Event-ID": last_id}) if last_id else request
    answer: HttpResponse = yield OpenStream(resumed, SILENCE_SEC)
    if answer.status != 200:
        raise error_from_response(answer)
    if not answer.headers.get("content-type", "").startswith(_MEDIA_TYPE):
        raise BadResponseError("Unexpected response: expected an event stream.")


def follow_or_return(stream: Flow[Any]) -> Program[None]:
    """Follow an event stream to its end. If streams do not work (a proxy may block them), return: the caller polls."""
    try:
        yield from stream
    except (AuthenticationError, PermissionDeniedError, NotFoundError):
        raise
    except (UnreachableError, BadResponseError, ApiError):
        pass


def wait_until_finished(
    retry: ClientRetryPolicy, stream: Flow[Any], read: Callable[[], Program[F]], until_sec: float, name: str
) -> Program[F]:
    """Follow an event stream, then poll until the object has finished; raise ``WaitTimeoutError`` at ``until_sec``."""
    yield from follow_or_return(stream)
    while not (found := (yield from read())).is_finished:
        if retry.clock() >= until_sec:
            raise WaitTimeoutError(f"{name} {found.id} has not finished.")
        yield Delay(_POLL_SEC)
    return found
