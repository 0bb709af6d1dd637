"""Traces: spans of requests, deliveries, jobs, attempts, compilations and test cases (docs/adr/0154).

The row of a job has its trace id. Span ids are derived from what a span describes, so that each process can name the
parent of its spans without stored or transmitted context. Sampling is decided by the trace id: all processes decide
alike. Without an exporter nothing is recorded: callers look at ``state.is_on`` first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

AttributeValue = str | int | float | bool

_SAMPLED_DIGITS: Final = 12
"""The last digits of a trace id decide about sampling: those of a UUID are random, others encode its time and version.
"""


class SpanKind(StrEnum):
    """The kind of a span, as OpenTelemetry names it."""

    INTERNAL = "internal"
    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Span:
    """A finished span; times are nanoseconds since the Unix epoch."""

    name: str
    trace_id: str
    span_id: str
    start_ns: int
    end_ns: int
    parent_id: str | None = None
    kind: SpanKind = SpanKind.INTERNAL
    attributes: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    error: str | None = None


class TracingState:
    """The exporter of the process, set by :func:`configure`."""

    def __init__(self) -> None:
        self.is_on = False
        """Checked before anything is called for traces."""
        self.export: Callable[[Span], None] | None = None
        self.bound = 0


def configure(export: Callable[[Span], None] | None, *, ratio: float = 1.0) -> None:
    """Export the spans of a share of all traces; None ends that."""
    state.is_on, state.export, state.bound = export is not None, export, round(ratio * 16**_SAMPLED_DIGITS)


def is_sampled(trace_id: str | None) -> bool:
    """Whether spans of this trace are recorded."""
    return state.is_on and trace_id is not None and _is_below(trace_id, state.bound)


def record(span: Span) -> None:
    """Export a span of a sampled trace."""
    if state.export is not None:
        state.export(span)


def derive_span_id(*parts: object) -> str:
    """The id of the span that describes an object: its kind and its ids."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:16]


def request_span_id(request_id: object) -> str:
    return derive_span_id("request", request_id)


def job_span_id(job_id: str) -> str:
    return derive_span_id("job", job_id)


def attempt_span_id(job_id: str, attempt_id: int) -> str:
    return derive_span_id("attempt", job_id, attempt_id)


def chain_run_span_id(run_id: str) -> str:
    return derive_span_id("run", run_id)


def _is_below(trace_id: str, bound: int) -> bool:
    try:
        return int(trace_id[-_SAMPLED_DIGITS:], 16) < bound
    except ValueError:  # not a trace id of W3C
        return False


state: Final = TracingState()
