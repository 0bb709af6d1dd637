"""Backoff during an outage is exponential and random; begin and end are logged."""

from __future__ import annotations

import json

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from tests.support.log_capture import capture_logs

AWAY = Unavailable("Redis is away.")


def test_delays_double_up_to_limit_and_reset_on_success() -> None:
    outage = Outage(get_logger("t"), "read_retrying", first_sec=0.5, longest_sec=4.0, random_unit=lambda: 1.0)
    assert [outage.failed(AWAY) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    outage.over()
    assert outage.failed(AWAY) == 0.5


def test_delays_are_random_in_upper_half() -> None:
    units = iter([0.0, 0.0, 0.5])
    outage = Outage(get_logger("t"), "read_retrying", first_sec=1.0, longest_sec=8.0, random_unit=lambda: next(units))
    assert [outage.failed(AWAY) for _ in range(3)] == [0.5, 1.0, 3.0]


def test_long_outage_does_not_overflow() -> None:
    outage = Outage(get_logger("t"), "read_retrying", random_unit=lambda: 1.0)
    assert {outage.failed(AWAY) for _ in range(5_000)} <= {0.2 * 2**n for n in range(6)} | {10.0}


def test_outage_and_recovery_are_logged_once() -> None:
    now = iter([100.0, 160.0])
    outage = Outage(get_logger("t"), "read_retrying", clock=lambda: next(now))
    with capture_logs() as stream:
        outage.over()
        for _ in range(3):
            outage.failed(AWAY, jobs=2)
        outage.over()
        outage.over()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["read_retrying", "read_recovered"]
    assert lines[0]["reason"] == "UNAVAILABLE"
    assert lines[0]["error"] == "Redis is away."
    assert lines[0]["jobs"] == 2
    assert (lines[1]["failures"], lines[1]["lasted_sec"]) == (3, 60.0)
