"""An OTLP receiver over HTTP, which decodes what it receives."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as the receiver decoded it; ids are hexadecimal."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    duration_ns: int
    attributes: dict[str, Any]
    is_error: bool


@dataclass
class OtlpReceiver:
    """A receiver, and what it has received."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)

    def children(self, trace_id: str, parent_id: str) -> dict[str, ReceivedSpan]:
        """The spans of a trace with one parent, by name."""
        return {span.name: span for span in self.spans if (span.trace_id, span.parent_id) == (trace_id, parent_id)}

    def names(self, trace_id: str) -> set[str]:
        return {span.name for span in self.spans if span.trace_id == trace_id}


@contextmanager
def receive_otlp() -> Iterator[OtlpReceiver]:
    """Receive traces and webhooks on a loopback port."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415

    found = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                packed = self.headers.get("Content-Encoding") == "gzip"
                request = ExportTraceServiceRequest.FromString(gzip.decompress(body) if packed else body)
                found.spans.extend(_spans(request))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


def _spans(request: Any) -> Iterator[ReceivedSpan]:
    for group in request.resource_spans:
        resource = {item.key: item.value.string_value for item in group.resource.attributes}
        for scope in group.scope_spans:
            for span in scope.spans:
                values = {item.key: item.value.string_value or item.value.int_value for item in span.attributes}
                yield ReceivedSpan(
                    service=resource["service.name"],
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    duration_ns=span.end_time_unix_nano - span.start_time_unix_nano,
                    attributes=values,
                    is_error=span.status.code == 2,
                )
