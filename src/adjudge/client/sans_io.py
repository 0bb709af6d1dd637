"""Operations without I/O: a program is a generator that yields steps and receives their results.

::

    Send        → HttpResponse         a request and its complete response
    OpenStream  → HttpResponse         a request with a streamed response; for an error, the complete response
    ReadLine    → str or None          the next line of the open stream; None at its end
    Delay       → None
    Emit        → None                 pass a value to the caller

A step that does not reach the server raises ``UnreachableError`` inside the program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to be sent."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    """Whether it is safe to send it twice."""
    extra_timeout_sec: float = 0.0
    """Added to the timeout: the server was asked to wait, or a file is transferred."""
    content: bytes | None = None
    """A body other than JSON."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request and receive its response."""

    request: HttpRequest


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Send a request and keep its response open as a stream; closes the previous stream."""

    request: HttpRequest
    silence_sec: float


@dataclass(frozen=True, slots=True)
class ReadLine:
    """Read the next line; fails if nothing arrives for ``silence_sec`` of the stream."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Sleep."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit(Generic[E]):
    """Pass a value to the caller."""

    value: E


Step = Send | OpenStream | ReadLine | Delay
Program = Generator[Step | Emit[Any], Any, T]
"""Returns one value; emitted values are dropped."""
Flow = Generator[Step | Emit[E], Any, None]
"""Emits values and returns nothing."""
Clock = Callable[[], float]
"""A monotonic clock, in seconds."""
