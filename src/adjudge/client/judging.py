"""Operations: accounts, problems, submissions, executions, rejudging."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from adjudge.client.decode import decode
from adjudge.client.errors import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    NotFoundError,
    PermissionDeniedError,
    UnreachableError,
    WaitTimeoutError,
)
from adjudge.client.models import (
    Execution,
    ExecutionSpec,
    Language,
    Me,
    Page,
    Problem,
    ProblemItem,
    RejudgeApplied,
    RejudgeBatch,
    RejudgePreview,
    Results,
    Submission,
    SubmissionEventRead,
    SubmissionSpec,
    Submitted,
    Token,
)
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, post, post_idempotent, query, send
from adjudge.client.retry import ClientRetryPolicy, send_with_retries
from adjudge.client.sans_io import Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events

_BY_ASKING_SEC: Final = 20.0
"""The end of a wait is asked for, not listened to: a stream speaks every 15 seconds, an answer comes in time."""
_ONE_WAIT_SEC: Final = 30.0


def login(
    patience: ClientRetryPolicy, name: str, password: str, *, token_name: str, expires_in_days: float | None = 90
) -> Program[Token]:
    """Make an API token with a name and a password."""
    body = {"name": name, "password": password, "token_name": token_name, "expires_in_days": expires_in_days}
    return (yield from fetch(Token, post(path("login", action="token"), body), patience))


def revoke_token(patience: ClientRetryPolicy, token_id: str) -> Program[None]:
    """Let one of the caller's own tokens count no more."""
    yield from send(HttpRequest("DELETE", path("me", "tokens", token_id), is_repeatable=True), patience)


def me(patience: ClientRetryPolicy) -> Program[Me]:
    """Who is asking, and what they may do."""
    return (yield from fetch(Me, get(path("me")), patience))


def languages(patience: ClientRetryPolicy) -> Program[tuple[Language, ...]]:
    """Every language."""
    return (yield from fetch_list(Language, get(path("languages")), patience))


def problems(
    patience: ClientRetryPolicy,
    *,
    search: str = "",
    tags: Sequence[str] = (),
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[ProblemItem]]:
    """A page of problems."""
    wanted = query(q=search, tag=list(tags) or None, cursor=cursor, limit=limit)
    return (yield from fetch_page(ProblemItem, get(path("problems"), wanted), patience))


def problem(patience: ClientRetryPolicy, slug: str, *, language: str = "") -> Program[Problem]:
    """One problem by its slug or id, its statement in a language of people."""
    return (yield from fetch(Problem, get(path("problems", slug), query(lang=language)), patience))


# Submissions.


def submit(
    patience: ClientRetryPolicy, problem: str, language: str, source: str, *, key: str | None = None
) -> Program[Submitted]:
    """Hand in a program. ``key`` makes one submission of several calls; without one, of this call's retries."""
    body = {"problem": problem, "language": language, "source": source}
    return (yield from fetch(Submitted, post_idempotent(path("submissions"), body, key), patience))


def submit_batch(
    patience: ClientRetryPolicy, programs: Iterable[SubmissionSpec], *, key: str | None = None
) -> Program[tuple[Submitted, ...]]:
    """Hand in up to 1,000 programs: all of them, or none."""
    items = [{"problem": item.problem, "language": item.language, "source": item.source} for item in programs]
    request = post_idempotent(path("submissions", action="batch"), {"items": items}, key)
    return (yield from fetch_list(Submitted, request, patience))


def submission(patience: ClientRetryPolicy, submission_id: str, *, wait_sec: float = 0) -> Program[Submission]:
    """A submission as it stands; with ``wait_sec``, when there is a verdict or the time is over."""
    request = get(path("submissions", submission_id), query(wait=wait_sec or None), patience_sec=wait_sec)
    return (yield from fetch(Submission, request, patience))


def submissions(
    patience: ClientRetryPolicy,
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
    return (yield from fetch_page(Submission, get(path("submissions"), wanted), patience))


def results(patience: ClientRetryPolicy, submission_id: str) -> Program[Results]:
    """What judging found, test by test."""
    return (yield from fetch(Results, get(path("submissions", submission_id, "results")), patience))


def source(patience: ClientRetryPolicy, submission_id: str) -> Program[str]:
    """The source that was handed in."""
    answer = yield from send_with_retries(get(path("submissions", submission_id, "source")), patience)
    return answer.body.decode()


def cancel(patience: ClientRetryPolicy, submission_id: str, *, reason: str = "") -> Program[Submission]:
    """Cancel a submission that has no verdict yet."""
    request = post(path("submissions", submission_id, action="cancel"), {"reason": reason})
    return (yield from fetch(Submission, request, patience))


def watch(patience: ClientRetryPolicy, submission_id: str) -> Flow[SubmissionEventRead]:
    """Everything that happens to a submission until there is a verdict."""
    yield from events(patience, path("submissions", submission_id, "events"), _event)


def wait(
    patience: ClientRetryPolicy, submission_ids: Iterable[str], *, timeout_sec: float | None = None
) -> Program[tuple[Submission, ...]]:
    """Wait until all have a verdict; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    ended = []
    for submission_id in submission_ids:
        ended.append((yield from _wait_finished(patience, submission_id, until_sec)))  # noqa: PERF401  # each is waited for
    return tuple(ended)


def _wait_finished(patience: ClientRetryPolicy, submission_id: str, until_sec: float) -> Program[Submission]:
    """Listen while there is time; ask where nothing is to be heard, and in the end."""
    found = yield from submission(patience, submission_id)
    if not found.is_finished and patience.clock() < until_sec - _BY_ASKING_SEC:
        where = path("submissions", submission_id, "events")
        try:
            yield from events(patience, where, _event, until_sec=until_sec - _BY_ASKING_SEC)
        except (AuthenticationError, PermissionDeniedError, NotFoundError):
            raise
        except (UnreachableError, BadResponseError, ApiError):
            pass  # something in between does not let streams through
        found = yield from submission(patience, submission_id)
    while not found.is_finished:
        left_sec = until_sec - patience.clock()
        if left_sec <= 0:
            raise WaitTimeoutError(f"Submission {submission_id} is still {found.status}.")
        found = yield from submission(patience, submission_id, wait_sec=min(_ONE_WAIT_SEC, left_sec))
    return found


def _event(sent: ServerSentEvent) -> SubmissionEventRead:
    data = dict(sent.data)
    status = data.pop("to", data.pop("status", None))
    return decode(SubmissionEventRead, {**data, "name": sent.name, "status": status})


# Executions.


def execute(
    patience: ClientRetryPolicy,
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
    wanted = ExecutionSpec(language, source, stdins, cpu_ms, wall_ms, memory_mib)
    asking = query(wait=wait_sec)
    request = post_idempotent(path("executions"), _execution(wanted), key, asked=asking, patience_sec=wait_sec)
    return (yield from fetch(Execution, request, patience))


def execute_batch(
    patience: ClientRetryPolicy, wanted: Iterable[ExecutionSpec], *, wait_sec: float = 0, key: str | None = None
) -> Program[tuple[Execution, ...]]:
    """Run many programs: all of them are taken, or none."""
    request = post_idempotent(
        path("executions", action="batch"),
        {"items": [_execution(item) for item in wanted]},
        key,
        asked=query(wait=wait_sec),
        patience_sec=wait_sec,
    )
    return (yield from fetch_list(Execution, request, patience))


def execution(patience: ClientRetryPolicy, execution_id: str, *, wait_sec: float = 0) -> Program[Execution]:
    """An execution and its outputs."""
    request = get(path("executions", execution_id), query(wait=wait_sec or None), patience_sec=wait_sec)
    return (yield from fetch(Execution, request, patience))


def _execution(wanted: ExecutionSpec) -> dict[str, Any]:
    limits = query(cpu_ms=wanted.cpu_ms, wall_ms=wanted.wall_ms, memory_mib=wanted.memory_mib)
    body = {"language": wanted.language, "source": wanted.source, "stdins": list(wanted.stdins)}
    return body | ({"limits": limits} if limits else {})


# Rejudging.


def rejudge(
    patience: ClientRetryPolicy,
    wanted: Mapping[str, Any],
    *,
    reason: str,
    policy: str = "latest",
    revision: str = "current",
) -> Program[RejudgeBatch]:
    """Judge submissions again, beside what stands; ``wanted`` is the filter, as the API has it."""
    body = {"filter": dict(wanted), "reason": reason, "policy": policy, "revision": revision}
    return (yield from fetch(RejudgeBatch, post(path("rejudge-batches"), body), patience))


def rejudge_batches(
    patience: ClientRetryPolicy, *, cursor: str | None = None, limit: int = 20
) -> Program[Page[RejudgeBatch]]:
    """A page of batches, the newest first."""
    wanted = query(cursor=cursor, limit=limit)
    return (yield from fetch_page(RejudgeBatch, get(path("rejudge-batches"), wanted), patience))


def rejudge_batch(patience: ClientRetryPolicy, batch_id: str) -> Program[RejudgeBatch]:
    """A batch and its progress."""
    return (yield from fetch(RejudgeBatch, get(path("rejudge-batches", batch_id)), patience))


def rejudge_preview(
    patience: ClientRetryPolicy,
    batch_id: str,
    *,
    only_different: bool = True,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[RejudgePreview]:
    """What applying would do."""
    wanted = query(only_different=only_different, cursor=cursor, limit=limit)
    return (yield from fetch(RejudgePreview, get(path("rejudge-batches", batch_id, "preview"), wanted), patience))


def rejudge_apply(patience: ClientRetryPolicy, batch_id: str, *, skip_changed: bool = False) -> Program[RejudgeApplied]:
    """Let the new verdicts count."""
    request = post(path("rejudge-batches", batch_id, action="apply"), {"skip_changed": skip_changed})
    return (yield from fetch(RejudgeApplied, request, patience))


def rejudge_discard(patience: ClientRetryPolicy, batch_id: str, *, reason: str = "") -> Program[RejudgeBatch]:
    """Discard a batch. Verdicts stay unchanged."""
    request = post(path("rejudge-batches", batch_id, action="discard"), {"reason": reason})
    return (yield from fetch(RejudgeBatch, request, patience))


def rejudge_cancel(patience: ClientRetryPolicy, batch_id: str, *, reason: str = "") -> Program[RejudgeBatch]:
    """Cancel a running batch."""
    request = post(path("rejudge-batches", batch_id, action="cancel"), {"reason": reason})
    return (yield from fetch(RejudgeBatch, request, patience))
