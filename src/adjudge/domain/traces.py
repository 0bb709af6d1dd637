"""Trace ids: what ties a request to everything that is done for it, in the spelling of W3C Trace Context."""

from __future__ import annotations

import re
from typing import Final

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def parse_traceparent(traceparent: str | None) -> str | None:
    """The trace that a ``traceparent`` header continues; nothing if there is none, or it means nothing."""
    match = _TRACEPARENT.fullmatch((traceparent or "").strip())
    if match is None or not match[1].strip("0") or not match[2].strip("0"):
        return None
    return match[1]


def trace_id_from(object_id: str) -> str:
    """The trace that begins with an object of ours: its id, in the spelling of a trace."""
    return object_id.replace("-", "")
