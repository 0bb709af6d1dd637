"""Computes when a cron trigger ticks: five fields in a time zone, and the rule for missed times.

Expressions are parsed by cronsim, which follows Debian cron at clock changes. A job at a fixed time that is skipped in
spring runs immediately after the gap, on that day only; a fixed time that is repeated in autumn runs once, the first
time. A job whose hour or minute starts with ``*`` follows elapsed time: it runs neither less nor more often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from adjudge.domain.errors import InvalidInput

SECOND_US: Final = 1_000_000
MAX_CATCH_UP: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = re.compile(r"[0-9A-Za-z*,/#-]+(?:\s+[0-9A-Za-z*,/#-]+){4}")


class MisfirePolicy(StrEnum):
    """What happens with times that passed while no scheduler ran."""

    SKIP = "skip"
    """They are skipped."""
    ONCE = "once"
    """One run for all of them, for the latest time."""
    ALL = "all"
    """One run each, oldest first, at most the latest ``cap`` of them."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A cron expression with its time zone and its rule for missed times."""

    expression: str
    zone: ZoneInfo
    misfire: MisfirePolicy = MisfirePolicy.ONCE
    max_catch_up: int = 10
    grace_us: int = 60 * SECOND_US
    """A time that is processed with this delay still counts as on time."""

    def times_after(self, timestamp_us: int) -> Iterator[int]:
        """The times after ``timestamp_us``, endless unless the expression ends."""
        start = (_EPOCH + timedelta(microseconds=timestamp_us)).astimezone(self.zone)
        for timestamp in CronSim(self.expression, start):
            yield _microseconds(timestamp)

    def next_after(self, timestamp_us: int) -> int | None:
        """The first time after ``timestamp_us``; None if there is none in the next decades."""
        return next(self.times_after(timestamp_us), None)

    def due(self, next_us: int, now_us: int) -> tuple[list[int], int | None]:
        """Which of the times from ``next_us`` to ``now_us`` start a run, and the first one after now."""
        timestamps = self._between(next_us, now_us)
        late_before = now_us - self.grace_us
        missed = [timestamp for timestamp in timestamps if timestamp < late_before]
        kept = [timestamp for timestamp in timestamps if timestamp >= late_before]
        if self.misfire is MisfirePolicy.SKIP:
            missed = []
        elif self.misfire is MisfirePolicy.ONCE:
            missed = [] if kept else missed[-1:]
        else:
            missed = missed[-self.max_catch_up :]
        return [*missed, *kept], self.next_after(now_us)

    def _between(self, first_us: int, last_us: int) -> list[int]:
        """The times between two timestamps, both included; of very many only the latest."""
        found = [first_us]
        for timestamp in self.times_after(first_us):
            if timestamp > last_us:
                return found
            if len(found) >= MAX_CATCH_UP:
                return self._latest(last_us)
            found.append(timestamp)
        return found

    def _latest(self, last_us: int) -> list[int]:
        start = (_EPOCH + timedelta(microseconds=last_us + SECOND_US)).astimezone(self.zone)
        backwards = (_microseconds(timestamp) for timestamp in CronSim(self.expression, start, reverse=True))
        return [timestamp for timestamp in islice(backwards, MAX_CATCH_UP + 1) if timestamp <= last_us][::-1]


def _microseconds(timestamp: datetime) -> int:
    return round((timestamp - _EPOCH) / timedelta(microseconds=1))


def parse_cron(spec: Mapping[str, Any], place: str = "spec") -> CronSchedule:
    """Parse the spec of a cron trigger; errors name the field."""
    expression, zone = str(spec.get("cron", "")).strip(), str(spec.get("timezone", "UTC"))
    if not _FIELDS.fullmatch(expression):
        raise InvalidInput(
            f"{place}.cron: {expression!r} needs five fields, as in '0 3 * * mon-fri': minute, hour, day of the month, "
            "month, day of the week.",
            field=f"{place}.cron",
        )
    schedule = CronSchedule(
        expression,
        _zone(zone, place),
        MisfirePolicy(spec.get("misfire", MisfirePolicy.ONCE)),
        int(spec.get("misfire_cap", 10)),
        round(float(spec.get("grace_sec", 60)) * SECOND_US),
    )
    try:
        first = schedule.next_after(0)
    except (CronSimError, AssertionError) as error:
        raise InvalidInput(f"{place}.cron: {expression!r} cannot be read: {error}.", field=f"{place}.cron") from None
    if first is None:
        raise InvalidInput(f"{place}.cron: {expression!r} never matches a date.", field=f"{place}.cron")
    return schedule


def _zone(name: str, place: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"{place}.timezone: there is no time zone {name[:64]!r}; write it as in 'Europe/Berlin'.",
            field=f"{place}.timezone",
        ) from None


def parse_timestamp(text: str, place: str) -> int:
    """Parse an ISO 8601 timestamp with offset, as microseconds since the Unix epoch."""
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        timestamp = datetime.min  # noqa: DTZ901  # has no zone, so it is refused below
    if timestamp.tzinfo is None:
        raise InvalidInput(
            f"{place}: {text[:64]!r} is not an RFC 3339 timestamp (example: 2026-05-01T18:00:00+02:00).", field=place
        )
    try:
        timestamp_us = _microseconds(timestamp.astimezone(UTC))
    except OverflowError:
        timestamp_us = -1
    if timestamp_us < 0:
        raise InvalidInput(f"{place}: {text[:64]!r} is out of range (1970 to 9999).", field=place)
    return timestamp_us
