"""Operations: submissions."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adjudge.client.decode import decode
from adjudge.client.errors import (
    WaitTimeoutError,
)
from adjudge.client.models import Page, SubmissionEventRead, SubmissionSpec
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, post, post_idempotent, query
from adjudge.client.retry import ClientRetryPolicy, send_with_retries
from adjudge.client.sans_io import Flow, Program
from adjudge.client.sse import ServerSentEvent, events, follow_or_return
from adjudge.schema.submissions import SubmissionCreated, SubmissionFileList, SubmissionRead, SubmissionResultsRead

_POLL_AT_END_SEC: Final = 20.0
"""The last part of a wait polls instead of streaming: a stream may send nothing for 15 seconds, so that the deadline
would be missed."""
_LONG_POLL_SEC: Final = 30.0


def submit(
    retry: ClientRetryPolicy,
    problem: str,
    language: str = "",
    source: str = "",
    *,
    files: Mapping[str, bytes] | None = None,
    entry_point: str = "",
    contest: str = "",
    key: str | None = None,
) -> Program[SubmissionCreated]:
    """Submit a solution: a source, or files by their names, of which archives are unpacked.

    With ``contest`` (slug or ID) it is a submission in that contest, and ``problem`` may be a label such as ``A``.

    An output-only problem takes one output file per test and needs no language. Calls with the same ``key`` create one
    submission. Default: a new key, used by all retries.
    """
    body = _body(SubmissionSpec(problem, language, source, files, entry_point, contest))
    return (yield from fetch(SubmissionCreated, post_idempotent(path("submissions"), body, key), retry))


def _body(item: SubmissionSpec) -> dict[str, Any]:
    body: dict[str, Any] = {"problem": item.problem, "language": item.language}
    if item.entry_point:
        body["entry_point"] = item.entry_point
    if item.contest:
        body["contest"] = item.contest
    if item.files is None:
        return body | {"source": item.source}
    return body | {"files": [_file(name, data) for name, data in item.files.items()]}


def _file(name: str, data: bytes) -> dict[str, str]:
    try:
        return {"name": name, "content": data.decode()}
    except UnicodeDecodeError:
        return {"name": name, "content_base64": base64.b64encode(data).decode()}


def submit_batch(
    retry: ClientRetryPolicy, programs: Iterable[SubmissionSpec], *, key: str | None = None
) -> Program[tuple[SubmissionCreated, ...]]:
    """Submit up to 1,000 solutions (all or none)."""
    request = post_idempotent(path("submissions", action="batch"), {"items": [_body(item) for item in programs]}, key)
    return (yield from fetch_list(SubmissionCreated, request, retry))


def submission(retry: ClientRetryPolicy, submission_id: str, *, wait_sec: float = 0) -> Program[SubmissionRead]:
    """A submission by ID or number; with ``wait_sec``, returned when it has a verdict or the time is over."""
    request = get(path("submissions", submission_id), query(wait=wait_sec or None), extra_timeout_sec=wait_sec)
    return (yield from fetch(SubmissionRead, request, retry))


def submissions(
    retry: ClientRetryPolicy,
    *,
    user: str | None = None,
    problem: str | None = None,
    language: str | None = None,
    status: str | None = None,
    verdict: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[SubmissionRead]]:
    """A page of submissions, newest first."""
    wanted = query(
        user=user, problem=problem, language=language, status=status, verdict=verdict, cursor=cursor, limit=limit
    )
    return (yield from fetch_page(SubmissionRead, get(path("submissions"), wanted), retry))


def results(retry: ClientRetryPolicy, submission_id: str) -> Program[SubmissionResultsRead]:
    """The judgement, by test case."""
    return (yield from fetch(SubmissionResultsRead, get(path("submissions", submission_id, "results")), retry))


def source(retry: ClientRetryPolicy, submission_id: str) -> Program[str]:
    """The source of a submission of one file."""
    answer = yield from send_with_retries(get(path("submissions", submission_id, "source")), retry)
    return answer.body.decode()


def files(retry: ClientRetryPolicy, submission_id: str) -> Program[SubmissionFileList]:
    """All files of a submission, and its entry point."""
    return (yield from fetch(SubmissionFileList, get(path("submissions", submission_id, "files")), retry))


def archive(retry: ClientRetryPolicy, submission_id: str) -> Program[bytes]:
    """All files of a submission as a ZIP archive."""
    answer = yield from send_with_retries(get(path("submissions", submission_id, "archive")), retry)
    return answer.body


def cancel(retry: ClientRetryPolicy, submission_id: str, *, reason: str = "") -> Program[SubmissionRead]:
    """Cancel a submission that has no verdict yet."""
    request = post(path("submissions", submission_id, action="cancel"), {"reason": reason})
    return (yield from fetch(SubmissionRead, request, retry))


def watch(retry: ClientRetryPolicy, submission_id: str) -> Flow[SubmissionEventRead]:
    """The events of a submission until it has a verdict."""
    yield from events(retry, path("submissions", submission_id, "events"), _event)


def wait(
    retry: ClientRetryPolicy, submission_ids: Iterable[str], *, timeout_sec: float | None = None
) -> Program[tuple[SubmissionRead, ...]]:
    """Wait until all have a verdict; raises ``WaitTimeoutError`` after ``timeout_sec``."""
    until_sec = math.inf if timeout_sec is None else retry.clock() + timeout_sec
    ended = []
    for submission_id in submission_ids:
        ended.append((yield from _wait_finished(retry, submission_id, until_sec)))  # noqa: PERF401  # `yield from` is not allowed in a comprehension
    return tuple(ended)


def _wait_finished(retry: ClientRetryPolicy, submission_id: str, until_sec: float) -> Program[SubmissionRead]:
    """Follow the event stream; poll if it does not work, and before the deadline."""
    found = yield from submission(retry, submission_id)
    if not found.is_finished and retry.clock() < until_sec - _POLL_AT_END_SEC:
        where = path("submissions", submission_id, "events")
        yield from follow_or_return(events(retry, where, _event, until_sec=until_sec - _POLL_AT_END_SEC))
        found = yield from submission(retry, submission_id)
    while not found.is_finished:
        left_sec = until_sec - retry.clock()
        if left_sec <= 0:
            raise WaitTimeoutError(f"Submission {submission_id} is still {found.status}.")
        found = yield from submission(retry, submission_id, wait_sec=min(_LONG_POLL_SEC, left_sec))
    return found


def _event(sent: ServerSentEvent) -> SubmissionEventRead:
    data = dict(sent.data)
    status = data.pop("to", data.pop("status", None))
    return decode(SubmissionEventRead, {**data, "name": sent.name, "status": status})
