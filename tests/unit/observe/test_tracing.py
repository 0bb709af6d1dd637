"""Sampling of traces, and ids of spans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjudge.domain.ids import new_id, parse_parent_span_id, trace_id_from
from adjudge.observe import tracing
from adjudge.observe.tracing import Span


@pytest.fixture(autouse=True)
def _restored_tracing() -> Iterator[None]:
    yield
    tracing.configure(None)


def test_without_an_exporter_nothing_is_sampled() -> None:
    assert not tracing.is_sampled(trace_id_from(new_id()))


def test_sampled_share_of_our_own_traces() -> None:
    """Their ids are UUIDs of version 7, whose first digits are times."""
    tracing.configure(lambda _: None, ratio=0.25)
    sampled = sum(tracing.is_sampled(trace_id_from(new_id())) for _ in range(4_000))
    assert 800 < sampled < 1_200
    tracing.configure(lambda _: None, ratio=1)
    assert tracing.is_sampled("f" * 32)
    assert not tracing.is_sampled(None)
    assert not tracing.is_sampled("not a trace")
    tracing.configure(lambda _: None, ratio=0)
    assert not tracing.is_sampled("0" * 32)


def test_ids_are_the_same_in_every_process() -> None:
    assert tracing.job_span_id("j1") == tracing.job_span_id("j1")
    ids = [tracing.job_span_id("j1"), tracing.request_span_id("j1"), tracing.attempt_span_id("j1", 1)]
    assert len(set(ids)) == 3
    assert {len(item) for item in ids} == {16}


def test_spans_reach_the_exporter() -> None:
    spans: list[Span] = []
    tracing.configure(spans.append)
    tracing.record(Span("compile", "0" * 31 + "1", "0" * 15 + "1", 1, 2))
    assert [span.name for span in spans] == ["compile"]


@pytest.mark.parametrize(
    ("header", "span_id"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00f067aa0ba902b7"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
        ("", None),
    ],
)
def test_parent_span_of_a_header(header: str, span_id: str | None) -> None:
    assert parse_parent_span_id(header) == span_id
