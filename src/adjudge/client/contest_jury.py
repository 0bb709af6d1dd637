"""Operations: submissions of a contest, for everybody and for its jury."""

from __future__ import annotations

from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_page, get, path, post, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.contest_submissions import (
    ContestSubmissionDetail,
    ContestSubmissionRead,
    PenaltyAdjustmentRead,
    VisibleSubmissionRead,
)


def contest_submissions(
    retry: ClientRetryPolicy,
    contest: str,
    *,
    participant: str | None = None,
    problem: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Program[Page[VisibleSubmissionRead]]:
    """A page of the submissions of all participants, newest first, as far as you may see them."""
    asked = query(participant=participant, problem=problem, limit=limit, cursor=cursor)
    return (yield from fetch_page(VisibleSubmissionRead, get(path("contests", contest, "submissions"), asked), retry))


def jury_submissions(
    retry: ClientRetryPolicy,
    contest: str,
    *,
    problem: str | None = None,
    participant: str | None = None,
    language: str | None = None,
    verdict: str | None = None,
    unverified: bool | None = None,
    waiting: bool | None = None,
    ignored: bool | None = None,
    late: bool | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Program[Page[ContestSubmissionRead]]:
    """A page of all submissions that match, newest first; needs a role of the jury."""
    asked = query(
        problem=problem,
        participant=participant,
        language=language,
        verdict=verdict,
        unverified=unverified,
        waiting=waiting,
        ignored=ignored,
        late=late,
        limit=limit,
        cursor=cursor,
    )
    request = get(path("contests", contest, "jury", "submissions"), asked)
    return (yield from fetch_page(ContestSubmissionRead, request, retry))


def jury_submission(retry: ClientRetryPolicy, contest: str, number: int) -> Program[ContestSubmissionDetail]:
    """A submission by its number in the contest, with the decisions about it."""
    request = get(path("contests", contest, "jury", "submissions", str(number)))
    return (yield from fetch(ContestSubmissionDetail, request, retry))


def jury_verify(
    retry: ClientRetryPolicy, contest: str, number: int, *, verdict: str | None
) -> Program[ContestSubmissionRead]:
    """Confirm the verdict that you saw of a submission; None takes that back."""
    return (yield from _decide(retry, contest, number, "verify", {"verdict": verdict}))


def jury_ignore(
    retry: ClientRetryPolicy, contest: str, number: int, *, reason: str, is_ignored: bool = True
) -> Program[ContestSubmissionRead]:
    """Leave a submission out of the scoreboard, or count it again."""
    return (yield from _decide(retry, contest, number, "ignore", {"is_ignored": is_ignored, "reason": reason}))


def jury_make_official(
    retry: ClientRetryPolicy, contest: str, number: int, *, reason: str, is_official: bool = True
) -> Program[ContestSubmissionRead]:
    """Count a submission that was received outside the participant's time, or stop counting it."""
    body = {"is_official": is_official, "reason": reason}
    return (yield from _decide(retry, contest, number, "make-official", body))


def jury_override(
    retry: ClientRetryPolicy,
    contest: str,
    number: int,
    *,
    verdict: str | None,
    reason: str,
    score: float | None = None,
) -> Program[ContestSubmissionRead]:
    """Replace the verdict of the judge; None takes that back. The token needs the scope ``contest:jury``."""
    body = {"verdict": verdict, "score": score, "reason": reason, "confirmed": True}
    return (yield from _decide(retry, contest, number, "override", body))


def jury_adjust_penalty(
    retry: ClientRetryPolicy, contest: str, participant: str, *, penalty_sec: int, reason: str
) -> Program[PenaltyAdjustmentRead]:
    """Set the penalty that the jury adds to a participant; the token needs the scope ``contest:jury``."""
    body = {"penalty_sec": penalty_sec, "reason": reason, "confirmed": True}
    request = post(path("contests", contest, "jury", "participants", f"{participant}:adjust-penalty"), body)
    return (yield from fetch(PenaltyAdjustmentRead, request, retry))


def jury_pause_judging(
    retry: ClientRetryPolicy, contest: str, label: str, *, is_paused: bool = True, reason: str = ""
) -> Program[None]:
    """Pause or resume the judging of a problem."""
    action = "pause-judging" if is_paused else "resume-judging"
    yield from send(post(path("contests", contest, "jury", "problems", f"{label}:{action}"), {"reason": reason}), retry)


def _decide(
    retry: ClientRetryPolicy, contest: str, number: int, action: str, body: dict[str, Any]
) -> Program[ContestSubmissionRead]:
    request = post(path("contests", contest, "jury", "submissions", f"{number}:{action}"), body)
    return (yield from fetch(ContestSubmissionRead, request, retry))
