"""Operations: submissions of a contest, as the jury sees them."""

from __future__ import annotations

from adjudge.client.models import Page
from adjudge.client.requests import fetch_page, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.contest_submissions import ContestSubmissionRead


def contest_submissions(
    retry: ClientRetryPolicy,
    contest: str,
    *,
    problem: str | None = None,
    verdict: str | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Program[Page[ContestSubmissionRead]]:
    """A page of all submissions of a contest, newest first; needs a role of the jury."""
    wanted = query(problem=problem, verdict=verdict, cursor=cursor, limit=limit)
    where = path("contests", contest, "jury", "submissions")
    return (yield from fetch_page(ContestSubmissionRead, get(where, wanted), retry))
