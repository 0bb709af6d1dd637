"""Durations of contest commands."""

from __future__ import annotations

import pytest

from adjudge.cli.contest_output import format_duration, parse_duration
from adjudge.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5h", 18_000), ("1h30m", 5_400), ("2d", 172_800), ("-10m", -600), ("90", 90), ("0.5", 0.5), ("1m1s", 61)],
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text, "--by") == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "h", "5 h", "nan", "inf"])
def test_error_names_the_option(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^--by: .* is not a duration"):
        parse_duration(text, "--by")


@pytest.mark.parametrize(
    ("seconds", "text"), [(18_000, "5h"), (90_061, "1d1h1m1s"), (0, "0s"), (-600, "-10m"), (None, None)]
)
def test_durations_are_formatted(seconds: float | None, text: str | None) -> None:
    assert format_duration(seconds) == text
