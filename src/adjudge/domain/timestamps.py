"""Timestamps in HTTP: RFC 3339, UTC, milliseconds. In the database they are microseconds since the Unix epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

from adjudge.domain.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def format_timestamp(us: int) -> str: ...
@overload
def format_timestamp(us: None) -> None: ...
def format_timestamp(us: int | None) -> str | None:
    """Format microseconds since the Unix epoch."""
    if us is None:
        return None
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: str, field: str) -> int:
    """Parse a timestamp; returns microseconds since the Unix epoch."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{field}: {text[:64]!r} is not an RFC 3339 timestamp (example: 2026-01-31T12:00:00Z).", field=field
        ) from None
    if parsed.tzinfo is None:
        raise InvalidInput(f"{field}: {text[:64]!r} has no time zone (append Z for UTC).", field=field)
    try:
        return (parsed - _EPOCH) // timedelta(microseconds=1)
    except OverflowError:
        raise InvalidInput(f"{field}: {text[:64]!r} is out of range.", field=field) from None
