"""Operations: accounts, problems, submissions, executions, rejudging."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from adjudge.client.asking import asked, asked_all, asked_page, done, get, path, post, post_once, query
from adjudge.client.errors import ApiError, Missing, Misunderstood, NotAllowed, NotLoggedIn, Unreachable, WaitedTooLong
from adjudge.client.reading import read
from adjudge.client.retrying import Patience, perform
from adjudge.client.steps import Flow, Program, Request
from adjudge.client.streaming import Sent, events
from adjudge.client.values import (
    Event,
    Execution,
    Language,
    Me,
    NewExecution,
    NewProgram,
    Page,
    Problem,
    ProblemItem,
    RejudgeApplied,
    RejudgeBatch,
    RejudgePreview,
    Results,
    Submission,
    Submitted,
    Token,
)

_BY_ASKING_SEC: Final = 20.0
"""The end of a wait is asked for, not listened to: a stream speaks every 15 seconds, an answer comes in time."""
_ONE_WAIT_SEC: Final = 30.0


def log_in(
    patience: Patience, name: str, password: str, *, token_name: str, expires_in_days: float | None = 90
) -> Program[Token]:
    """Make an API token with a name and a password."""
    body = {"name": name, "password": password, "token_name": token_name, "expires_in_days": expires_in_days}
    return (yield from asked(Token, post(path("login", action="token"), body), patience))


def revoke_token(patience: Patience, token_id: str) -> Program[None]:
    """Let one of the caller's own tokens count no more."""
    yield from done(Request("DELETE", path("me", "tokens", token_id), is_repeatable=True), patience)


def me(patience: Patience) -> Program[Me]:
    """Who is asking, and what they may do."""
    return (yield from asked(Me, get(path("me")), patience))


def languages(patience: Patience) -> Program[tuple[Language, ...]]:
    """Every language."""
    return (yield from asked_all(Language, get(path("languages")), patience))


def problems(
    patience: Patience, *, search: str = "", tags: Sequence[str] = (), cursor: str | None = None, limit: int = 20
) -> Program[Page[ProblemItem]]:
    """A page of problems."""
    wanted = query(q=search, tag=list(tags) or None, cursor=cursor, limit=limit)
    return (yield from asked_page(ProblemItem, get(path("problems"), wanted), patience))


def problem(patience: Patience, slug: str, *, language: str = "") -> Program[Problem]:
    """One problem by its slug or id, its statement in a language of people."""
    return (yield from asked(Problem, get(path("problems", slug), query(lang=language)), patience))


# Submissions.


def submit(
    patience: Patience, problem: str, language: str, source: str, *, key: str | None = None
) -> Program[Submitted]:
    """Hand in a program. ``key`` makes one submission of several calls; without one, of this call's retries."""
    body = {"problem": problem, "language": language, "source": source}
    return (yield from asked(Submitted, post_once(path("submissions"), body, key), patience))


def submit_batch(
    patience: Patience, programs: Iterable[NewProgram], *, key: str | None = None
) -> Program[tuple[Submitted, ...]]:
    """Hand in up to 1,000 programs: all of them, or none."""
    items = [{"problem": item.problem, "language": item.language, "source": item.source} for item in programs]
    request = post_once(path("submissions", action="batch"), {"items": items}, key)
    return (yield from asked_all(Submitted, request, patience))


def submission(patience: Patience, submission_id: str, *, wait_sec: float = 0) -> Program[Submission]:
    """A submission as it stands; with ``wait_sec``, when there is a verdict or the time is over."""
    request = get(path("submissions", submission_id), query(wait=wait_sec or None), patience_sec=wait_sec)
    return (yield from asked(Submission, request, patience))


def submissions(
    patience: Patience,
    *,
    user: str | None = None,
    problem: str | None = None,
    language: str | None = None,
    status: str | None = None,
    verdict: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[Submission]]:
    """A page of submissions, the newest first."""
    wanted = query(
        user=user, problem=problem, language=language, status=status, verdict=verdict, cursor=cursor, limit=limit
    )
    return (yield from asked_page(Submission, get(path("submissions"), wanted), patience))


def results(patience: Patience, submission_id: str) -> Program[Results]:
    """What judging found, test by test."""
    return (yield from asked(Results, get(path("submissions", submission_id, "results")), patience))


def source(patience: Patience, submission_id: str) -> Program[str]:
    """The source that was handed in."""
    answer = yield from perform(get(path("submissions", submission_id, "source")), patience)
    return answer.body.decode()


def cancel(patience: Patience, submission_id: str, *, reason: str = "") -> Program[Submission]:
    """Cancel a submission that has no verdict yet."""
    request = post(path("submissions", submission_id, action="cancel"), {"reason": reason})
    return (yield from asked(Submission, request, patience))


def watch(patience: Patience, submission_id: str) -> Flow[Event]:
    """Everything that happens to a submission until there is a verdict."""
    yield from events(patience, path("submissions", submission_id, "events"), _event)


def wait(
    patience: Patience, submission_ids: Iterable[str], *, timeout_sec: float | None = None
) -> Program[tuple[Submission, ...]]:
    """Wait until all have a verdict; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    ended = []
    for submission_id in submission_ids:
        ended.append((yield from _ended(patience, submission_id, until_sec)))  # noqa: PERF401  # each is waited for
    return tuple(ended)


def _ended(patience: Patience, submission_id: str, until_sec: float) -> Program[Submission]:
    """Listen while there is time; ask where nothing is to be heard, and in the end."""
    found = yield from submission(patience, submission_id)
    if not found.is_over and patience.clock() < until_sec - _BY_ASKING_SEC:
        where = path("submissions", submission_id, "events")
        try:
            yield from events(patience, where, _event, until_sec=until_sec - _BY_ASKING_SEC)
        except (NotLoggedIn, NotAllowed, Missing):
            raise
        except (Unreachable, Misunderstood, ApiError):
            pass  # something in between does not let streams through
        found = yield from submission(patience, submission_id)
    while not found.is_over:
        left_sec = until_sec - patience.clock()
        if left_sec <= 0:
            raise WaitedTooLong(f"Submission {submission_id} is still {found.status}.")
        found = yield from submission(patience, submission_id, wait_sec=min(_ONE_WAIT_SEC, left_sec))
    return found


def _event(sent: Sent) -> Event:
    data = dict(sent.data)
    status = data.pop("to", data.pop("status", None))
    return read(Event, {**data, "name": sent.name, "status": status})


# Executions.


def execute(
    patience: Patience,
    language: str,
    source: str,
    *,
    stdins: Sequence[str] = ("",),
    cpu_ms: int | None = None,
    wall_ms: int | None = None,
    memory_mib: int | None = None,
    wait_sec: float = 30,
    key: str | None = None,
) -> Program[Execution]:
    """Run a program on one input for each of ``stdins``; the answer may say ``pending`` when the time is over."""
    wanted = NewExecution(language, source, stdins, cpu_ms, wall_ms, memory_mib)
    asking = query(wait=wait_sec)
    request = post_once(path("executions"), _execution(wanted), key, asked=asking, patience_sec=wait_sec)
    return (yield from asked(Execution, request, patience))


def execute_batch(
    patience: Patience, wanted: Iterable[NewExecution], *, wait_sec: float = 0, key: str | None = None
) -> Program[tuple[Execution, ...]]:
    """Run many programs: all of them are taken, or none."""
    request = post_once(
        path("executions", action="batch"),
        {"items": [_execution(item) for item in wanted]},
        key,
        asked=query(wait=wait_sec),
        patience_sec=wait_sec,
    )
    return (yield from asked_all(Execution, request, patience))


def execution(patience: Patience, execution_id: str, *, wait_sec: float = 0) -> Program[Execution]:
    """An execution and its outputs."""
    request = get(path("executions", execution_id), query(wait=wait_sec or None), patience_sec=wait_sec)
    return (yield from asked(Execution, request, patience))


def _execution(wanted: NewExecution) -> dict[str, Any]:
    limits = query(cpu_ms=wanted.cpu_ms, wall_ms=wanted.wall_ms, memory_mib=wanted.memory_mib)
    body = {"language": wanted.language, "source": wanted.source, "stdins": list(wanted.stdins)}
    return body | ({"limits": limits} if limits else {})


# Rejudging.


def rejudge(
    patience: Patience,
    wanted: Mapping[str, Any],
    *,
    reason: str,
    policy: str = "latest",
    revision: str = "current",
) -> Program[RejudgeBatch]:
    """Judge submissions again, beside what stands; ``wanted`` is the filter, as the API has it."""
    body = {"filter": dict(wanted), "reason": reason, "policy": policy, "revision": revision}
    return (yield from asked(RejudgeBatch, post(path("rejudge-batches"), body), patience))


def rejudge_batches(patience: Patience, *, cursor: str | None = None, limit: int = 20) -> Program[Page[RejudgeBatch]]:
    """A page of batches, the newest first."""
    wanted = query(cursor=cursor, limit=limit)
    return (yield from asked_page(RejudgeBatch, get(path("rejudge-batches"), wanted), patience))


def rejudge_batch(patience: Patience, batch_id: str) -> Program[RejudgeBatch]:
    """A batch and its progress."""
    return (yield from asked(RejudgeBatch, get(path("rejudge-batches", batch_id)), patience))


def rejudge_preview(
    patience: Patience, batch_id: str, *, only_different: bool = True, cursor: str | None = None, limit: int = 20
) -> Program[RejudgePreview]:
    """What applying would do."""
    wanted = query(only_different=only_different, cursor=cursor, limit=limit)
    return (yield from asked(RejudgePreview, get(path("rejudge-batches", batch_id, "preview"), wanted), patience))


def rejudge_apply(patience: Patience, batch_id: str, *, skip_changed: bool = False) -> Program[RejudgeApplied]:
    """Let the new verdicts count."""
    request = post(path("rejudge-batches", batch_id, action="apply"), {"skip_changed": skip_changed})
    return (yield from asked(RejudgeApplied, request, patience))


def rejudge_discard(patience: Patience, batch_id: str, *, reason: str = "") -> Program[RejudgeBatch]:
    """Discard a batch. Verdicts stay unchanged."""
    request = post(path("rejudge-batches", batch_id, action="discard"), {"reason": reason})
    return (yield from asked(RejudgeBatch, request, patience))


def rejudge_cancel(patience: Patience, batch_id: str, *, reason: str = "") -> Program[RejudgeBatch]:
    """Cancel a running batch."""
    request = post(path("rejudge-batches", batch_id, action="cancel"), {"reason": reason})
    return (yield from asked(RejudgeBatch, request, patience))
