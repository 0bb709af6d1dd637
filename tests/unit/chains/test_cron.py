"""Cron schedules: their planned times, across clock changes and after downtime."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.chains.cron import MAX_CATCH_UP, CronSchedule, MisfirePolicy, parse_cron, parse_timestamp
from adjudge.domain.errors import InvalidInput

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US


def us(text: str) -> int:
    return parse_timestamp(text, "t")


def utc(timestamp_us: int) -> str:
    return datetime.fromtimestamp(timestamp_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M")


def timestamps(cron: str, zone: str, start: str, count: int) -> list[str]:
    schedule = parse_cron({"cron": cron, "timezone": zone})
    return [utc(timestamp) for timestamp in islice(schedule.times_after(us(start)), count)]


def test_fields_names_ranges_and_steps() -> None:
    start = "2026-01-01T00:00:00+00:00"  # a Thursday
    assert timestamps("*/20 9-10 * * *", "UTC", start, 4) == [
        *("2026-01-01 09:00", "2026-01-01 09:20", "2026-01-01 09:40", "2026-01-01 10:00")
    ]
    assert timestamps("30 3 * * mon-fri", "UTC", start, 3) == [
        "2026-01-01 03:30",
        "2026-01-02 03:30",
        "2026-01-05 03:30",
    ]
    assert timestamps("0 0 1 jan,jul *", "UTC", start, 2) == ["2026-07-01 00:00", "2027-01-01 00:00"]
    assert timestamps("0 0 13 * 5", "UTC", start, 3) == ["2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00"]


def test_a_time_that_spring_skips_runs_right_after_the_gap_on_that_day() -> None:
    """Berlin, 29 March 2026: 02:00 becomes 03:00."""
    found = timestamps("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00+01:00", 3)
    assert found == ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]


def test_a_time_that_autumn_repeats_runs_once() -> None:
    """Berlin, 25 October 2026: 03:00 becomes 02:00."""
    found = timestamps("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00+02:00", 3)
    assert found == ["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"]


@pytest.mark.parametrize("day", ["2026-03-29T00:30:00+01:00", "2026-10-25T00:30:00+02:00"])
def test_every_hour_means_every_hour_that_passes(day: str) -> None:
    schedule = parse_cron({"cron": "0 * * * *", "timezone": "Europe/Berlin"})
    found = list(islice(schedule.times_after(us(day)), 6))
    assert [later - earlier for earlier, later in pairwise(found)] == [HOUR_US] * 5


def test_zones_shift_the_same_time_of_day() -> None:
    start = "2026-01-01T00:00:00+00:00"
    assert timestamps("0 3 * * *", "Asia/Tokyo", start, 1) == ["2026-01-01 18:00"]
    assert timestamps("0 3 * * *", "America/New_York", start, 1) == ["2026-01-01 08:00"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"cron": "* * * *"}, "five fields"),
        ({"cron": "* * * * * *"}, "five fields"),
        ({"cron": "61 * * * *"}, "Bad minute"),
        ({"cron": "* * * * mon#2/2"}, "cannot be read"),
        ({"cron": "0 0 30 2 *"}, "Bad day-of-month"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "there is no time zone 'Mars/Olympus'"),
        ({"cron": "* * * * *", "timezone": "../etc/passwd"}, "there is no time zone"),
    ],
)
def test_refusals(spec: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_cron(spec)


def test_timestamps_need_an_offset() -> None:
    assert us("2026-05-01T18:00:00+02:00") == us("2026-05-01T16:00:00Z")
    for text in ("2026-05-01T18:00:00", "tomorrow", ""):
        with pytest.raises(InvalidInput, match="is not an RFC 3339 timestamp"):
            us(text)


def table(misfire: str, cap: int = 10, cron: str = "*/10 * * * *") -> CronSchedule:
    return parse_cron({"cron": cron, "misfire": misfire, "misfire_cap": cap})


NOON = us("2026-01-01T12:00:00Z")


def test_planned_time_that_is_met_starts_one_run_with_any_rule() -> None:
    for misfire in MisfirePolicy:
        assert table(misfire).due(NOON, NOON + 3_000_000) == ([NOON], NOON + 10 * MINUTE_US)


def test_downtime_by_each_rule() -> None:
    now = NOON + 35 * MINUTE_US  # 12:00, 12:10, 12:20 and 12:30 were missed
    missed = [NOON + n * 10 * MINUTE_US for n in range(4)]
    after = NOON + 40 * MINUTE_US
    assert table("skip").due(NOON, now) == ([], after)
    assert table("once").due(NOON, now) == ([missed[-1]], after)
    assert table("all").due(NOON, now) == (missed, after)
    assert table("all", cap=2).due(NOON, now) == (missed[-2:], after)


def test_catch_up_once_is_not_needed_for_a_planned_time_that_is_due_now() -> None:
    now = NOON + 30 * MINUTE_US + 1
    assert table("once").due(NOON, now)[0] == [NOON + 30 * MINUTE_US]
    assert table("skip").due(NOON, now)[0] == [NOON + 30 * MINUTE_US]


def test_a_year_of_minutes_is_caught_up_without_walking_through_it() -> None:
    now = NOON + 365 * 24 * HOUR_US + 30 * MINUTE_US
    found, after = table("all", cap=1000, cron="* * * * *").due(NOON, now)
    assert found[-1] == now
    assert len(found) <= MAX_CATCH_UP + 2
    assert after == now + MINUTE_US


@settings(max_examples=60, deadline=None)
@given(
    cron=st.sampled_from(["* * * * *", "*/7 * * * *", "15 */3 * * *", "30 2 * * *", "0 0 * * sun"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]),
    misfire=st.sampled_from(list(MisfirePolicy)),
    start_min=st.integers(0, 60 * 24 * 365),
    steps_min=st.lists(st.integers(1, 3_000), min_size=1, max_size=8),
)
def test_no_planned_time_is_returned_twice_whenever_the_scheduler_wakes(
    cron: str, zone: str, misfire: MisfirePolicy, start_min: int, steps_min: list[int]
) -> None:
    schedule = parse_cron({"cron": cron, "timezone": zone, "misfire": misfire.value})
    now = NOON + start_min * MINUTE_US
    following = schedule.next_after(now)
    given_out: list[int] = []
    for step in steps_min:
        now += step * MINUTE_US
        if following is None or following > now:
            continue
        found, following = schedule.due(following, now)
        given_out += found
        assert all(timestamp <= now for timestamp in found)
        assert following is None or following > now
    assert given_out == sorted(set(given_out))
