"""What a client does, as values: a program is a generator that yields steps and is sent what came of them.

::

    Send     → Answer                 a request and its whole answer
    Listen   → Answer                 a request whose answer goes on; for a failure, the whole answer
    Hear     → str, or None           the next line of what is listened to; None at its end
    Pause    → None
    Tell     → None                   hand a value to the caller, who may want more

A step that finds nobody raises ``Unreachable`` inside the program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, before it is sent."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    """Whether doing it twice is the same as doing it once."""
    patience_sec: float = 0.0
    """How much longer than usual the answer may take: the caller asked the server to wait, or sends much."""
    content: bytes | None = None
    """A body that is no JSON."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; its answer comes back."""

    request: HttpRequest


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Send a request whose answer goes on, and keep listening; what was listened to before is let go."""

    request: HttpRequest
    silence_sec: float


@dataclass(frozen=True, slots=True)
class ReadLine:
    """Wait for the next line; silence for longer than ``Listen`` allowed counts as a broken line."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit(Generic[E]):
    """Hand something to the caller."""

    value: E


Step = Send | OpenStream | ReadLine | Delay
Program = Generator[Step | Emit[Any], Any, T]
"""Comes to one value; what it tells on the way is passed over."""
Flow = Generator[Step | Emit[E], Any, None]
"""Tells of values, one after the other."""
Clock = Callable[[], float]
"""Seconds that only grow."""
