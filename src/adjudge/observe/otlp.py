"""Exports spans by OTLP over HTTP, with the SDK of OpenTelemetry, which is imported only if it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from adjudge.observe.tracing import Span


class OtlpExporter(NamedTuple):
    """Sends spans in batches, on a thread of its own."""

    export: Callable[[Span], None]
    close: Callable[[], None]
    """Sends what is left; may take a while, so it is called on a thread."""


def open_otlp_exporter(endpoint: str, resource: Mapping[str, str]) -> OtlpExporter:
    """An exporter to ``endpoint``; raises ``ImportError`` if the SDK is not installed.

    While the receiver is unavailable, spans are kept up to the limits of the SDK and then dropped.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags  # noqa: PLC0415

    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint))
    described, sampled = Resource(dict(resource)), TraceFlags(TraceFlags.SAMPLED)

    def export(span: Span) -> None:
        trace_id = int(span.trace_id, 16)
        parent = None
        if span.parent_id is not None:
            parent = SpanContext(trace_id, int(span.parent_id, 16), is_remote=True, trace_flags=sampled)
        processor.on_end(
            ReadableSpan(
                name=span.name,
                context=SpanContext(trace_id, int(span.span_id, 16), is_remote=False, trace_flags=sampled),
                parent=parent,
                resource=described,
                attributes={name: value for name, value in span.attributes.items() if value is not None},
                kind=SpanKind[span.kind.name],
                status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
                start_time=span.start_ns,
                end_time=max(span.start_ns, span.end_ns),
            )
        )

    return OtlpExporter(export, processor.shutdown)
