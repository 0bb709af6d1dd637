"""Identifiers: UUID version 7 as text, which sorts by creation time; and W3C trace ids."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from typing import Final

from adjudge.domain.errors import InvalidInput, NotFound

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

IdFactory = Callable[[], str]
"""Creates ids. Passed as a parameter wherever ids are created, so that a simulation can replace it."""


def uuid7(unix_ms: int, random_bits: int) -> str:
    """Build an RFC 9562 version 7 UUID from a time in milliseconds and 74 random bits."""
    rand_a, rand_b = random_bits >> 62 & 0xFFF, random_bits & (1 << 62) - 1
    value = (unix_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_DRAWN: list[str] = []
"""Random digits drawn in advance, because the system call is the most expensive part of an id. Each is used once."""
_AT_ONCE, _DIGITS = 128, 16
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""Maps a random digit to the variant digit of a UUID: two fixed bits, two random bits."""


def new_id() -> str:
    """Create an id from the system clock and random bits; the same layout as ``uuid7``, but built from text for speed.

    The 12 bits below the milliseconds hold their fraction (RFC 9562, 6.2, method 3), so ids created within one
    millisecond still sort by creation; 62 random bits distinguish ids created within the same 244 ns.
    """
    now_ms, rest_ns = divmod(time.time_ns(), 1_000_000)
    timestamp, drawn = f"{now_ms:012x}{(rest_ns << 12) // 1_000_000:03x}", _random_digits()
    return f"{timestamp[:8]}-{timestamp[8:12]}-7{timestamp[12:]}-{_VARIANT[drawn[0]]}{drawn[1:4]}-{drawn[4:]}"


def _random_digits() -> str:
    """16 random hexadecimal digits from the system's generator; safe for threads."""
    try:
        return _DRAWN.pop()
    except IndexError:
        digits = secrets.token_hex(_AT_ONCE * _DIGITS // 2)
        first, *others = (digits[at : at + _DIGITS] for at in range(0, _AT_ONCE * _DIGITS, _DIGITS))
        _DRAWN.extend(others)
        return first


os.register_at_fork(after_in_child=_DRAWN.clear)  # parent and child must not create the same ids


def is_id(value: str) -> bool:
    """Whether ``value`` is an id in canonical form. Names chosen by people must not be ids."""
    return _ID.fullmatch(value) is not None


def parse_id(value: str, field: str = "id") -> str:
    """Return the canonical form of an id, or raise InvalidInput that names the field."""
    lowered = value.strip().lower()
    if not is_id(lowered):
        raise InvalidInput(f"{field}: {value[:64]!r} is not a valid id (lowercase UUID version 7).", field=field)
    return lowered


def parse_id_or_not_found(value: str, kind: str) -> str:
    """As ``parse_id``, but an invalid id is reported as a missing ``kind``."""
    lowered = value.strip().lower()
    if not is_id(lowered):
        raise NotFound(kind, value[:64])
    return lowered


_NUMBER: Final = re.compile(r"#?([1-9][0-9]{0,17})")


def parse_number(value: str) -> int | None:
    """The number of a row as people write it, ``1234`` or ``#1234``; None if it is something else, such as an id."""
    match = _NUMBER.fullmatch(value.strip())
    return int(match[1]) if match else None


_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def parse_traceparent(traceparent: str | None) -> str | None:
    """The trace id of a ``traceparent`` header; None if it is missing or invalid."""
    match = _match_traceparent(traceparent)
    return None if match is None else match[1]


def parse_parent_span_id(traceparent: str | None) -> str | None:
    """The span id of a ``traceparent`` header; None if it is missing or invalid."""
    match = _match_traceparent(traceparent)
    return None if match is None else match[2]


def _match_traceparent(traceparent: str | None) -> re.Match[str] | None:
    match = _TRACEPARENT.fullmatch((traceparent or "").strip())
    return None if match is None or not match[1].strip("0") or not match[2].strip("0") else match


def trace_id_from(object_id: str) -> str:
    """The trace id of a trace that starts with one of our objects: its id without hyphens."""
    return object_id.replace("-", "")
