"""Durations of contest forms."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.web.contest_durations import format_left, format_us, parse_us

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "seconds"), [("5:00:00", 18_000), ("0:30", 1_800), ("1 d 2:00:00", 93_600), ("120:00:00", 432_000)]
)
def test_duration_is_read(text: str, seconds: int) -> None:
    assert parse_us(text, "duration") == seconds * SECOND


def test_empty_duration_is_none() -> None:
    assert parse_us(" ", "duration") is None
    assert format_us(None) == ""


@pytest.mark.parametrize("text", ["5", "1:60:00", "-1:00", "5h", "1:00:61"])
def test_wrong_duration_names_its_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="duration: "):
        parse_us(text, "duration")


@pytest.mark.parametrize("us", [0, 59 * SECOND, 93_600 * SECOND])
def test_shown_duration_is_read_back(us: int) -> None:
    assert parse_us(format_us(us), "duration") == us


def test_time_left_counts_a_begun_second() -> None:
    assert (format_left(1), format_left(SECOND), format_left(-5)) == ("0:00:01", "0:00:01", "0:00:00")
