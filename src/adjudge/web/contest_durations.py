"""Durations on contest pages: hours, minutes and seconds, as countdowns show them and forms take them."""

from __future__ import annotations

import re
from typing import Final

from adjudge.domain.contest import SECOND_US
from adjudge.domain.errors import InvalidInput

_FORM: Final = re.compile(r"(?:(\d{1,3})\s*d\s*)?(\d{1,5}):(\d{1,2})(?::(\d{1,2}))?")


def format_seconds(seconds: int) -> str:
    """A duration as ``5:00:00``, with days in front if there are any."""
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text


def format_left(left_us: int) -> str:
    """A time left; a begun second counts as a whole one."""
    return format_seconds(max(0, -(-left_us // SECOND_US)))


def format_us(us: int | None) -> str:
    """A duration of a setting; empty if there is none."""
    return "" if us is None else format_seconds(us // SECOND_US)


def parse_us(text: str, field: str) -> int | None:
    """A duration of a form as microseconds: ``5:00:00``, ``5:00`` or ``1 d 0:00:00``; None if it is empty."""
    if not text.strip():
        return None
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{field}: expected hours, minutes and seconds such as 5:00:00.", field=field)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if minutes > 59 or seconds > 59:
        raise InvalidInput(f"{field}: minutes and seconds must be below 60.", field=field)
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND_US
