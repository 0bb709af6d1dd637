"""Times of contest packages: TIME (ISO 8601 with zone) and RELTIME (``(-)h:mm:ss(.uuu)``), as microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from adjudge.domain.contest import MINUTE_US, SECOND_US

_RELTIME: Final = re.compile(r"(-?)([0-9]{1,5}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?")
_HOURS_ONLY: Final = re.compile(r"(.*T.*[+-][0-9]{2})")
_MINUTES: Final = re.compile(r"[0-9]{1,7}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_reltime(text: str) -> int | None:
    """A relative time in microseconds; None if the text is none."""
    found = _RELTIME.fullmatch(text.strip())
    if found is None:
        return None
    sign, hours, minutes, seconds, fraction = found.groups()
    us = (int(hours) * 3_600 + int(minutes) * 60 + int(seconds)) * SECOND_US + int((fraction or "").ljust(6, "0"))
    return -us if sign else us


def parse_penalty(text: str) -> int | None:
    """A penalty time in microseconds: whole minutes (2023-06) or RELTIME (2026-01)."""
    return int(text) * MINUTE_US if _MINUTES.fullmatch(text.strip()) else parse_reltime(text)


def parse_time(text: str) -> int | None:
    """A time in microseconds since the Unix epoch; a zone of hours alone (``+01``) is allowed."""
    text = text.strip()
    try:
        parsed = datetime.fromisoformat(f"{text}:00" if _HOURS_ONLY.fullmatch(text) else text)
        return None if parsed.tzinfo is None else (parsed - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def format_reltime(us: int) -> str:
    """A relative time; milliseconds, or microseconds where it has them."""
    seconds, rest = divmod(abs(us), SECOND_US)
    fraction = f"{rest // 1_000:03}" if rest % 1_000 == 0 else f"{rest:06}"
    sign = "-" if us < 0 else ""
    return f"{sign}{seconds // 3_600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction}"


def format_time(us: int) -> str:
    """A time in UTC; milliseconds, or microseconds where it has them."""
    precision = "milliseconds" if us % 1_000 == 0 else "microseconds"
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec=precision)
