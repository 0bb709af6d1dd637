"""Operations: the balloon queue of a contest."""

from __future__ import annotations

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_page, get, path, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.balloons import BalloonRead


def contest_balloons(
    retry: ClientRetryPolicy, name: str, *, state: str = "all", limit: int = 100, cursor: str | None = None
) -> Program[Page[BalloonRead]]:
    """A page of balloons, oldest first; ``state`` is ``waiting``, ``delivered``, ``collect`` or ``all``."""
    request = get(path("contests", name, "balloons"), query(state=state, limit=limit, cursor=cursor))
    return (yield from fetch_page(BalloonRead, request, retry))


def contest_deliver_balloon(retry: ClientRetryPolicy, name: str, participant: str, label: str) -> Program[BalloonRead]:
    """Mark a balloon as delivered; repeating it changes nothing."""
    return (yield from fetch(BalloonRead, _action(name, participant, label, "deliver"), retry))


def contest_undo_balloon(retry: ClientRetryPolicy, name: str, participant: str, label: str) -> Program[BalloonRead]:
    """Put a delivered balloon back into the queue; repeating it changes nothing."""
    return (yield from fetch(BalloonRead, _action(name, participant, label, "undo"), retry))


def contest_collect_balloon(retry: ClientRetryPolicy, name: str, participant: str, label: str) -> Program[None]:
    """Remove a balloon that was delivered for a problem that is no longer solved, and is collected."""
    where = path("contests", name, "balloons", participant, label, action="collect")
    yield from send(HttpRequest("POST", where), retry)


def _action(name: str, participant: str, label: str, action: str) -> HttpRequest:
    where = path("contests", name, "balloons", participant, label, action=action)
    return HttpRequest("POST", where, is_repeatable=True)
