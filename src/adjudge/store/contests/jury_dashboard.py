"""Counts and lists of the jury's dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class SubmissionCount:
    """How many submissions of a contest have a status and a verdict."""

    status: str
    verdict: Verdict | None
    """The one that counts."""
    count: int
    unverified: int
    """Judged, and neither verified nor overridden nor ignored."""
    ignored: int


@dataclass(frozen=True, slots=True)
class AbsentParticipant:
    """An official participant of whom something is missing."""

    id: str
    code: str
    name: str
    has_login: bool
    """Whether one of its members has a session or has used an API token."""
    has_submission: bool


COUNT_SUBMISSIONS = Statement(
    "contest_submissions.count_by_verdict",
    "Count the submissions of a contest by status and verdict.",
    """
    SELECT {columns} FROM contest_submissions JOIN submissions ON submissions.id = contest_submissions.submission_id
    WHERE contest_submissions.contest_id = :contest_id
    GROUP BY submissions.status, COALESCE(override_verdict, submissions.verdict)
    """,
    row=SubmissionCount,
    columns={
        "status": "submissions.status",
        "verdict": "COALESCE(override_verdict, submissions.verdict)",
        "count": "count(*)",
        "unverified": """sum(CASE WHEN verified_at IS NULL AND submissions.verdict IS NOT NULL
            AND override_verdict IS NULL AND ignored_at IS NULL THEN 1 ELSE 0 END)""",
        "ignored": "sum(CASE WHEN ignored_at IS NULL THEN 0 ELSE 1 END)",
    },
)
ABSENT = Statement(
    "participants.absent",
    "List official participants without a login or without a submission.",
    """
    SELECT {columns} FROM (
        SELECT id, code, name,
            CASE WHEN EXISTS (SELECT 1 FROM participant_members JOIN sessions
                              ON sessions.user_id = participant_members.user_id WHERE participant_id = participants.id)
                   OR EXISTS (SELECT 1 FROM participant_members JOIN api_tokens
                              ON api_tokens.user_id = participant_members.user_id
                              WHERE participant_id = participants.id AND last_used_at IS NOT NULL)
                 THEN 1 ELSE 0 END AS has_login,
            CASE WHEN EXISTS (SELECT 1 FROM contest_submissions WHERE participant_id = participants.id)
                 THEN 1 ELSE 0 END AS has_submission
        FROM participants
        WHERE contest_id = :contest_id AND kind = 'official' AND disqualified_at IS NULL AND NOT hidden
    ) AS seen
    WHERE has_login = 0 OR has_submission = 0 ORDER BY has_login, name, id LIMIT :limit
    """,
    row=AbsentParticipant,
)
WITH_ADDED_PENALTY = Statement(
    "participants.with_added_penalty",
    "List the participants to whose penalty the jury has added something.",
    "SELECT {columns} FROM participants WHERE contest_id = :contest_id AND penalty_adjust_sec <> 0 ORDER BY name, id",
    row=ParticipantRow,
)


async def count_submissions(tx: Tx, contest_id: str) -> list[SubmissionCount]:
    """The number of submissions by status and verdict."""
    return await tx.fetch(COUNT_SUBMISSIONS, contest_id=contest_id)


async def absent_participants(tx: Tx, contest_id: str, *, limit: int) -> list[AbsentParticipant]:
    """Official participants who have not logged in or not submitted; those without a login first."""
    return await tx.fetch(ABSENT, contest_id=contest_id, limit=limit)


async def with_added_penalty(tx: Tx, contest_id: str) -> list[ParticipantRow]:
    """The participants with an added penalty, by name."""
    return await tx.fetch(WITH_ADDED_PENALTY, contest_id=contest_id)
