"""Captures the log lines of a test in the JSON format that operators get."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from adjudge.observe import logs


@contextmanager
def capture_logs() -> Iterator[io.StringIO]:
    """Capture lines of level info and above; the configuration is restored afterwards."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers, root.level
    logs.configure("info", "json", stream)
    try:
        yield stream
    finally:
        logs.configure("warning")
        root.handlers = before[0]
        root.setLevel(before[1])
