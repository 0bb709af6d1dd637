"""Operations: contests, their settings, problems, roles and lifecycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, post, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.contests import (
    ContestDetail,
    ContestProblemDetail,
    ContestProblemList,
    ContestRead,
    ContestRoleRead,
    ContestStateChangeRead,
    FinalizeCheck,
    RemovedIntervalRead,
)


def contests(retry: ClientRetryPolicy, *, limit: int = 50, cursor: str | None = None) -> Program[Page[ContestRead]]:
    """A page of contests, newest first."""
    return (yield from fetch_page(ContestRead, get(path("contests"), query(limit=limit, cursor=cursor)), retry))


def contest(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """One contest with its settings, by its slug or id."""
    return (yield from fetch(ContestDetail, get(path("contests", name)), retry))


def contest_create(retry: ClientRetryPolicy, settings: Mapping[str, Any]) -> Program[ContestDetail]:
    """Create a contest as a draft; ``slug``, ``title`` and ``duration_sec`` are required."""
    return (yield from fetch(ContestDetail, post(path("contests"), dict(settings)), retry))


def contest_update(
    retry: ClientRetryPolicy, name: str, settings: Mapping[str, Any], *, version: int | None = None
) -> Program[ContestDetail]:
    """Change settings; with ``version``, ``ConflictError`` if somebody changed the contest since it was read."""
    body = dict(settings) if version is None else {**settings, "version": version}
    return (yield from fetch(ContestDetail, HttpRequest("PATCH", path("contests", name), {}, body), retry))


def contest_clone(retry: ClientRetryPolicy, name: str, *, slug: str, title: str) -> Program[ContestDetail]:
    """Copy settings, problems, groups, canned answers, materials and roles into a new draft."""
    return (yield from _act(retry, name, "clone", {"slug": slug, "title": title}))


# Problems and roles.


def contest_problems(retry: ClientRetryPolicy, name: str) -> Program[ContestProblemList]:
    """The problems of a contest in order; none while you may not see them."""
    return (yield from fetch(ContestProblemList, get(path("contests", name, "problems")), retry))


def contest_problem(
    retry: ClientRetryPolicy, name: str, label: str, *, language: str = ""
) -> Program[ContestProblemDetail]:
    """A problem of a contest by its label or slug; ``language`` is the language of the statement."""
    request = get(path("contests", name, "problems", label), query(lang=language))
    return (yield from fetch(ContestProblemDetail, request, retry))


def contest_set_problems(
    retry: ClientRetryPolicy, name: str, problems: Sequence[Mapping[str, Any]], *, version: int | None = None
) -> Program[ContestProblemList]:
    """Replace the problems; with ``version``, ``ConflictError`` if somebody changed the contest since it was read.

    The response has warnings.
    """
    body: dict[str, Any] = {"problems": [dict(problem) for problem in problems]}
    if version is not None:
        body["version"] = version
    request = HttpRequest("PUT", path("contests", name, "problems"), {}, body, is_repeatable=True)
    return (yield from fetch(ContestProblemList, request, retry))


def contest_roles(retry: ClientRetryPolicy, name: str) -> Program[tuple[ContestRoleRead, ...]]:
    """The roles in a contest."""
    return (yield from fetch_list(ContestRoleRead, get(path("contests", name, "roles")), retry))


def contest_grant_role(retry: ClientRetryPolicy, name: str, user: str, role: str) -> Program[None]:
    """Give a user, named by name or id, a role in a contest."""
    yield from send(post(path("contests", name, "roles"), {"user": user, "role": role}), retry)


def contest_revoke_role(retry: ClientRetryPolicy, name: str, user: str, role: str) -> Program[None]:
    """Take a role from a user."""
    yield from send(HttpRequest("DELETE", path("contests", name, "roles", user, role)), retry)


# The state.


def contest_publish(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Publish a draft; it needs a problem and a start."""
    return (yield from _act(retry, name, "publish"))


def contest_unpublish(retry: ClientRetryPolicy, name: str, *, reason: str = "") -> Program[ContestDetail]:
    """Turn a published contest into a draft, until 30 seconds before the start."""
    return (yield from _act(retry, name, "unpublish", {"reason": reason}))


def contest_cancel(retry: ClientRetryPolicy, name: str, *, reason: str = "") -> Program[ContestDetail]:
    """Cancel a published contest for good."""
    return (yield from _act(retry, name, "cancel", {"reason": reason}))


def contest_blockers(retry: ClientRetryPolicy, name: str) -> Program[FinalizeCheck]:
    """What prevents that a contest is finalized."""
    return (yield from fetch(FinalizeCheck, get(path("contests", name, "blockers")), retry))


def contest_finalize(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Make the results official; ``ConflictError`` with what is unjudged, failed or open."""
    return (yield from _act(retry, name, "finalize"))


def contest_reopen(retry: ClientRetryPolicy, name: str, *, reason: str) -> Program[ContestDetail]:
    """Take back the finalization; needs the permission ``contest:admin``."""
    return (yield from _act(retry, name, "reopen", {"reason": reason}))


def contest_close_updates(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Declare that nothing changes any more; the contest must be finalized and thawed."""
    return (yield from _act(retry, name, "close-updates"))


def contest_log(retry: ClientRetryPolicy, name: str) -> Program[tuple[ContestStateChangeRead, ...]]:
    """The changes of the state, oldest first."""
    return (yield from fetch_list(ContestStateChangeRead, get(path("contests", name, "log")), retry))


# The clock. Times are RFC 3339.


def contest_start(retry: ClientRetryPolicy, name: str, *, starts_at: str | None = None) -> Program[ContestDetail]:
    """Set the start; without a time, start now."""
    return (yield from _act(retry, name, "start", {"starts_at": starts_at}))


def contest_pause_countdown(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Pause the countdown before the start."""
    return (yield from _act(retry, name, "pause-countdown"))


def contest_resume_countdown(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Continue the countdown with the time that was left."""
    return (yield from _act(retry, name, "resume-countdown"))


def contest_end(retry: ClientRetryPolicy, name: str, *, reason: str = "") -> Program[ContestDetail]:
    """End a running contest now."""
    return (yield from _act(retry, name, "end", {"reason": reason}))


def contest_extend(
    retry: ClientRetryPolicy, name: str, *, extra_sec: float, reason: str = ""
) -> Program[ContestDetail]:
    """Make a contest longer, or shorter by a negative value."""
    return (yield from _act(retry, name, "extend", {"extra_sec": extra_sec, "reason": reason}))


def contest_pause(retry: ClientRetryPolicy, name: str, *, reason: str = "") -> Program[ContestDetail]:
    """Stop the clock of a running contest."""
    return (yield from _act(retry, name, "pause", {"reason": reason}))


def contest_resume(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Resume a paused contest."""
    return (yield from _act(retry, name, "resume"))


def contest_freeze(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Freeze the public scoreboard now."""
    return (yield from _act(retry, name, "freeze"))


def contest_thaw(retry: ClientRetryPolicy, name: str) -> Program[ContestDetail]:
    """Thaw the scoreboard of a contest that has ended."""
    return (yield from _act(retry, name, "thaw"))


def contest_intervals(retry: ClientRetryPolicy, name: str) -> Program[tuple[RemovedIntervalRead, ...]]:
    """The removed intervals of a contest, undone ones included."""
    return (yield from fetch_list(RemovedIntervalRead, get(path("contests", name, "intervals")), retry))


def contest_remove_interval(
    retry: ClientRetryPolicy, name: str, *, from_at: str, to_at: str | None = None, reason: str = ""
) -> Program[ContestDetail]:
    """Remove an interval that has passed from the contest clock; without an end the contest is paused."""
    body = {"from_at": from_at, "to_at": to_at, "reason": reason}
    return (yield from fetch(ContestDetail, post(path("contests", name, "intervals"), body), retry))


def contest_undo_interval(
    retry: ClientRetryPolicy, name: str, interval_id: str, *, reason: str = ""
) -> Program[ContestDetail]:
    """Let the time of a removed interval count again."""
    where = path("contests", name, "intervals", interval_id, action="undo")
    return (yield from fetch(ContestDetail, post(where, {"reason": reason}), retry))


def _act(
    retry: ClientRetryPolicy, name: str, action: str, body: Mapping[str, Any] | None = None
) -> Program[ContestDetail]:
    request = post(path("contests", name, action=action), None if body is None else dict(body))
    return (yield from fetch(ContestDetail, request, retry))
