"""Operations: unread verdicts of own submissions in a contest."""

from __future__ import annotations

from adjudge.client.requests import fetch, get, path, post, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.contest_verdicts import VerdictUnread


def verdicts_unread(retry: ClientRetryPolicy, contest: str) -> Program[VerdictUnread]:
    """The number of unread verdicts of your submissions, and up to where to mark them as read."""
    return (yield from fetch(VerdictUnread, get(path("contests", contest, "verdicts", "unread")), retry))


def verdicts_mark_read(retry: ClientRetryPolicy, contest: str, until_us: int) -> Program[None]:
    """Mark the verdicts up to ``until_us`` as read."""
    yield from send(post(path("contests", contest, "verdicts", action="mark-read"), {"until_us": until_us}), retry)
