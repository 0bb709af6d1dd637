"""Times of the Contest API."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests.ccs.times import format_reltime, format_time, parse_reltime, parse_time
from adjudge.domain.errors import InvalidInput

MILLISECOND = 1_000


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0:00:00.000"),
        (90_500_000, "0:01:30.500"),
        (-90_500_000, "-0:01:30.500"),
        (123 * 3_600_000_000, "123:00:00.000"),
        (999, "0:00:00.000"),
    ],
)
def test_reltime(us: int, text: str) -> None:
    assert format_reltime(us) == text


@given(st.integers(-(10**12), 10**12))
def test_reltime_is_read_as_it_is_written(ms: int) -> None:
    assert parse_reltime(format_reltime(ms * MILLISECOND), "x") == ms * MILLISECOND


@given(st.integers(0, 4 * 10**12))
def test_time_is_read_as_it_is_written_also_by_others(ms: int) -> None:
    text = format_time(ms * MILLISECOND)
    assert text.endswith("+00:00"), "datetime.fromisoformat of Python 3.10 does not read Z"
    assert parse_time(text, "x") == ms * MILLISECOND
    assert round(datetime.fromisoformat(text).timestamp() * 1000) == ms


def test_zone_without_minutes() -> None:
    assert parse_time("2014-06-25T10:00:00+01", "x") == parse_time("2014-06-25T09:00:00Z", "x")


@pytest.mark.parametrize("text", ["", "1:00", "1:60:00", "1:00:60", "1h", "1:00:00.", "+1:00:00", "9" * 20 + ":00:00"])
def test_what_is_no_reltime_is_refused_with_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="countdown_pause_time"):
        parse_reltime(text, "countdown_pause_time")


@pytest.mark.parametrize("text", ["", "tomorrow", "2014-06-25T10:00:00", "2014-06-25"])
def test_what_is_no_time_is_refused_with_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="start_time"):
        parse_time(text, "start_time")
