"""Operations: evaluations of programs in bulk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adjudge.client.errors import BadResponseError
from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_bytes, fetch_page, get, path, post, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.evaluations import EvaluationRead, EvaluationRecordsAdded, EvaluationSummary

_UPLOAD_SEC: Final = 120.0


def evaluate(
    retry: ClientRetryPolicy, name: str, records: Iterable[Mapping[str, Any]], *, shape: str | None = None
) -> Program[EvaluationRecordsAdded]:
    """Create the evaluation ``name``, or continue it, with at most 1,000 records; those it has already are ignored."""
    request = _upload(path("evaluations"), records, query(name=name, shape=shape))
    return (yield from fetch(EvaluationRecordsAdded, request, retry))


def evaluation_add(
    retry: ClientRetryPolicy, evaluation_id: str, records: Iterable[Mapping[str, Any]], *, shape: str | None = None
) -> Program[EvaluationRecordsAdded]:
    """Add records to an evaluation."""
    request = _upload(path("evaluations", evaluation_id, "records"), records, query(shape=shape))
    return (yield from fetch(EvaluationRecordsAdded, request, retry))


def evaluations(
    retry: ClientRetryPolicy, *, cursor: str | None = None, limit: int | None = None
) -> Program[Page[EvaluationSummary]]:
    """A page of your evaluations, newest first."""
    return (
        yield from fetch_page(EvaluationSummary, get(path("evaluations"), query(cursor=cursor, limit=limit)), retry)
    )


def evaluation(retry: ClientRetryPolicy, evaluation_id: str) -> Program[EvaluationRead]:
    """An evaluation and its counts by verdict."""
    return (yield from fetch(EvaluationRead, get(path("evaluations", evaluation_id)), retry))


def evaluation_results(
    retry: ClientRetryPolicy, evaluation_id: str, *, after: int = 0, limit: int | None = None, wait_sec: float = 0
) -> Program[tuple[Mapping[str, Any], ...]]:
    """Results whose ``sequence`` is greater than ``after``, in completion order."""
    parameters = query(after=after, limit=limit, wait=wait_sec or None)
    request = get(path("evaluations", evaluation_id, "results"), parameters, extra_timeout_sec=wait_sec)
    body = yield from fetch_bytes(request, retry)
    try:
        return tuple(json.loads(line) for line in body.splitlines())
    except ValueError:
        raise BadResponseError("The response is not JSON Lines. Is the URL an Adjudge server?") from None


def evaluation_cancel(retry: ClientRetryPolicy, evaluation_id: str) -> Program[EvaluationRead]:
    """Cancel the pending records of an evaluation."""
    return (yield from fetch(EvaluationRead, post(path("evaluations", evaluation_id, action="cancel")), retry))


def _upload(where: str, records: Iterable[Mapping[str, Any]], asked: Mapping[str, Any]) -> HttpRequest:
    """Records as JSON Lines. It is safe to send them twice: known records are ignored."""
    return HttpRequest(
        "POST",
        where,
        asked,
        content=b"".join(json.dumps(record).encode() + b"\n" for record in records),
        headers={"Content-Type": "application/x-ndjson"},
        is_repeatable=True,
        extra_timeout_sec=_UPLOAD_SEC,
    )
