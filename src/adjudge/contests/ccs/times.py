"""Times of the Contest API: ``TIME`` (ISO 8601 with zone) and ``RELTIME`` (``h:mm:ss.uuu``), out and in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.timestamps import parse_timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RELTIME: Final = re.compile(r"(-)?(\d{1,9}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_SHORT_ZONE: Final = re.compile(r"[+-]\d\d$")


def format_time(us: int) -> str:
    """A timestamp in milliseconds; the zone is ``+00:00``, because clients on Python 3.10 do not read ``Z``."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="milliseconds")


def format_reltime(us: int) -> str:
    """A relative time, for example ``-0:01:30.500``."""
    sign = "-" if us < 0 else ""
    milliseconds = abs(us) // 1_000
    seconds, milliseconds = divmod(milliseconds, 1_000)
    hours, seconds = divmod(seconds, 3_600)
    return f"{sign}{hours}:{seconds // 60:02}:{seconds % 60:02}.{milliseconds:03}"


def parse_time(text: str, field: str) -> int:
    """Microseconds since the Unix epoch; also zones without minutes (``+01``)."""
    return parse_timestamp(f"{text}:00" if _SHORT_ZONE.search(text) else text, field)


def parse_reltime(text: str, field: str) -> int:
    """The microseconds of a relative time."""
    found = _RELTIME.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{field}: {text[:64]!r} is not a relative time (example: 1:30:00.000).", field=field)
    sign, hours, minutes, seconds, fraction = found.groups()
    total_us = (int(hours) * 3_600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int(
        (fraction or "0").ljust(6, "0")
    )
    return -total_us if sign else total_us
