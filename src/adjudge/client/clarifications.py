"""Operations: clarifications of contests: questions, answers and announcements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_page, get, path, post, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.clarifications import ClarificationRead, ClarificationUnread


def clarifications(
    retry: ClientRetryPolicy,
    contest: str,
    *,
    only_open: bool = False,
    category: str = "",
    cursor: str | None = None,
    limit: int = 50,
) -> Program[Page[ClarificationRead]]:
    """A page of clarifications that you may see, newest first; ``only_open`` and ``category`` are for the jury."""
    wanted = query(open=only_open or None, category=category, cursor=cursor, limit=limit)
    return (yield from fetch_page(ClarificationRead, get(path("contests", contest, "clarifications"), wanted), retry))


def clarification_ask(
    retry: ClientRetryPolicy, contest: str, body: str, *, problem: str = "", category: str = ""
) -> Program[ClarificationRead]:
    """Ask the jury, about a problem (its label) or the contest."""
    question = {"body": body, "problem": problem, "category": category}
    return (yield from fetch(ClarificationRead, post(path("contests", contest, "clarifications"), question), retry))


def clarification_answer(
    retry: ClientRetryPolicy,
    contest: str,
    clarification_id: str,
    body: str,
    *,
    audience: str = "participant",
    groups: Sequence[str] = (),
) -> Program[ClarificationRead]:
    """Answer a question to who asked; with ``audience`` to ``groups`` or to ``all``. Needs the role judge."""
    answer = {"body": body, "audience": audience, "groups": list(groups)}
    where = path("contests", contest, "clarifications", clarification_id, action="answer")
    return (yield from fetch(ClarificationRead, post(where, answer), retry))


def clarification_claim(
    retry: ClientRetryPolicy, contest: str, clarification_id: str, *, release: bool = False
) -> Program[ClarificationRead]:
    """Claim a question, so that no other judge answers it, or release it."""
    action = "release" if release else "claim"
    where = path("contests", contest, "clarifications", clarification_id, action=action)
    return (yield from fetch(ClarificationRead, post(where), retry))


def clarification_close(retry: ClientRetryPolicy, contest: str, clarification_id: str) -> Program[ClarificationRead]:
    """Mark a question as answered without a reply."""
    where = path("contests", contest, "clarifications", clarification_id, action="close")
    return (yield from fetch(ClarificationRead, post(where), retry))


def announce(
    retry: ClientRetryPolicy,
    contest: str,
    body: str,
    *,
    problem: str = "",
    participant: str = "",
    groups: Sequence[str] = (),
) -> Program[ClarificationRead]:
    """Send an announcement to all, to one participant (its code) or to groups. Needs the role judge."""
    audience = "participant" if participant else "groups" if groups else "all"
    message: dict[str, Any] = {"body": body, "audience": audience, "groups": list(groups)}
    message |= {"participant": participant, "problem": problem}
    return (yield from fetch(ClarificationRead, post(path("contests", contest, "announcements"), message), retry))


def clarifications_unread(retry: ClientRetryPolicy, contest: str) -> Program[ClarificationUnread]:
    """The number of unread clarifications; for the jury: of questions without an answer."""
    where = path("contests", contest, "clarifications", "unread")
    return (yield from fetch(ClarificationUnread, get(where), retry))


def clarifications_mark_read(retry: ClientRetryPolicy, contest: str, number: int) -> Program[None]:
    """Mark the clarifications up to a number as read."""
    yield from send(post(path("contests", contest, "clarifications", action="mark-read"), {"number": number}), retry)
