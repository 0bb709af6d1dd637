"""Webhooks on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adjudge.api.schema.base import ApiModel

EventName = Literal[
    "submission.judged",
    "submission.canceled",
    "submission.rejudged",
    "clarification.answered",
    "contest.announcement",
    "contest.started",
    "contest.frozen",
    "contest.ended",
    "contest.thawed",
    "contest.finalized",
    "ops.worker_lost",
    "ops.dead_letter",
    "ops.chain_failed",
]
_URL = "https://example.org/hooks/adjudge"


class WebhookCreate(ApiModel):
    """A new webhook."""

    url: str = Field(max_length=2_000, examples=[_URL])
    events: list[EventName] = Field(min_length=1, max_length=20)


class WebhookUpdate(ApiModel):
    """Changes to a webhook; omitted fields stay."""

    url: str | None = Field(None, max_length=2_000, examples=[_URL])
    events: list[EventName] | None = Field(None, min_length=1, max_length=20)
    is_active: bool | None = None
