"""Trace ids from W3C headers and from object ids."""

from __future__ import annotations

import pytest

from adjudge.domain.ids import new_id, parse_traceparent, trace_id_from

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    "header",
    [f"00-{TRACE}-00f067aa0ba902b7-01", f" 00-{TRACE}-00f067aa0ba902b7-00 ", f"01-{TRACE}-00f067aa0ba902b7-01-x"],
)
def test_traceparent_is_parsed(header: str) -> None:
    assert parse_traceparent(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "hello",
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{TRACE}-0000000000000000-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
    ],
)
def test_invalid_traceparent_is_ignored(header: str | None) -> None:
    assert parse_traceparent(header) is None


def test_id_gives_a_trace_id_that_can_be_propagated() -> None:
    trace = trace_id_from(new_id())
    assert parse_traceparent(f"00-{trace}-00f067aa0ba902b7-01") == trace
