"""Unread verdicts of own submissions on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import ResponseModel, doc


@dataclass(frozen=True, kw_only=True)
class VerdictUnread(ResponseModel):
    """The verdicts of own submissions that are not read."""

    count: int = field(metadata=doc("Verdicts that are hidden from the participant are not counted."))
    until_us: int | None = field(
        metadata=doc("Mark up to here as read, in microseconds since the Unix epoch; null if none is unread.")
    )
