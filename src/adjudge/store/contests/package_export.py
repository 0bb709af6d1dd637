"""Reads for the export of a contest: its submissions with results, its users, teams and accounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.programs import SourceFormat
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ContestAccountRow, TeamRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class PackagedSubmission:
    """A submission of a contest with its result and the decisions of the jury."""

    submission_id: str
    participant_id: str
    problem_id: str
    number: int
    received_at: int
    official: bool
    score_micro: int | None
    max_score_micro: int | None
    subtasks: dict[str, int] | None
    ignored_at: int | None
    verified_at: int | None
    verified_by: str | None
    verified_verdict: Verdict | None
    override_verdict: Verdict | None
    override_score_micro: int | None
    overridden_at: int | None
    overridden_by: str | None
    override_reason: str | None
    user_id: str
    language: str
    source_digest: str
    source_format: SourceFormat
    status: SubmissionStatus
    verdict: Verdict | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    judged_by_job_id: str | None
    created_at: int
    finished_at: int | None
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PackagedCase:
    """The result of one test case of a judge run."""

    job_id: str
    name: str
    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    group_name: str | None
    score: float | None
    exit_code: int | None
    exit_signal: int | None
    limit_hit: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class PackagedUser:
    """A user who did something in a contest."""

    id: str
    name: str
    display_name: str | None


_OF_SUBMISSION = (
    "user_id",
    "language",
    "source_digest",
    "source_format",
    "status",
    "verdict",
    "score",
    "time_ms",
    "mem_kb",
    "judged_by_job_id",
    "created_at",
    "finished_at",
)
SUBMISSIONS = Statement(
    "contest_packages.submissions",
    "List the submissions of a contest with their results by number, keyset-paginated.",
    """
    SELECT {columns:contest_submissions} FROM contest_submissions
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    LEFT JOIN jobs ON jobs.id = submissions.judged_by_job_id
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.number > :after
    ORDER BY contest_submissions.number LIMIT :limit
    """,
    row=PackagedSubmission,
    columns={name: f"submissions.{name}" for name in _OF_SUBMISSION} | {"result": "jobs.result"},
)
CASES = Statement(
    "contest_packages.cases",
    "List the test case results of judge runs in their order.",
    """
    SELECT {columns:case_results} FROM {given} JOIN case_results ON case_results.job_id = given_id
    ORDER BY case_results.job_id, case_results.ordinal
    """,
    input_columns={"given_id": "text"},
    row=PackagedCase,
)
USERS = Statement(
    "contest_packages.users",
    "Read the names and display names of users, by name.",
    "SELECT {columns:users} FROM {given} JOIN users ON users.id = given_id ORDER BY users.name",
    input_columns={"given_id": "text"},
    row=PackagedUser,
)
TEAMS = Statement(
    "contest_packages.teams",
    "List the teams of the participants of a contest, with their photos.",
    "SELECT {columns} FROM teams WHERE id IN (SELECT team_id FROM participants WHERE contest_id = :contest_id)",
    row=TeamRow,
)
ACCOUNTS = Statement(
    "contest_packages.accounts",
    "List the accounts that were made for a contest or are bound to networks in it.",
    "SELECT {columns} FROM contest_accounts WHERE contest_id = :contest_id",
    row=ContestAccountRow,
)
SOURCES = Statement(
    "contest_packages.sources",
    "Read small sources by digest.",
    "SELECT digest, body FROM {given} JOIN source_texts ON digest = given_digest",
    input_columns={"given_digest": "text"},
)
ACTIVE_USERS = Statement(
    "contest_packages.active_users",
    "List everybody who submitted, judged, asked or answered in a contest, or has a role or an account in it.",
    """
    SELECT user_id FROM participant_members WHERE contest_id = :contest_id
    UNION SELECT user_id FROM contest_roles WHERE contest_id = :contest_id
    UNION SELECT user_id FROM contest_accounts WHERE contest_id = :contest_id
    UNION SELECT user_id FROM participants WHERE contest_id = :contest_id AND user_id IS NOT NULL
    UNION SELECT created_by FROM clarifications WHERE contest_id = :contest_id
    UNION SELECT claimed_by FROM clarifications WHERE contest_id = :contest_id AND claimed_by IS NOT NULL
    UNION SELECT submissions.user_id FROM contest_submissions
          JOIN submissions ON submissions.id = contest_submissions.submission_id
          WHERE contest_submissions.contest_id = :contest_id
    UNION SELECT verified_by FROM contest_submissions WHERE contest_id = :contest_id AND verified_by IS NOT NULL
    UNION SELECT overridden_by FROM contest_submissions WHERE contest_id = :contest_id AND overridden_by IS NOT NULL
    """,
)


async def submissions(tx: Tx, contest_id: str, *, after: int, limit: int) -> list[PackagedSubmission]:
    """List submissions by number; ``after`` is the last number of the previous page."""
    return await tx.fetch(SUBMISSIONS, contest_id=contest_id, after=after, limit=limit)


async def cases(tx: Tx, job_ids: Sequence[str]) -> dict[str, list[PackagedCase]]:
    """The test case results by judge run."""
    found: dict[str, list[PackagedCase]] = {}
    for row in await tx.fetch(CASES, [(item,) for item in job_ids]) if job_ids else ():
        found.setdefault(row.job_id, []).append(row)
    return found


async def users_of_contest(tx: Tx, contest_id: str) -> list[PackagedUser]:
    """Everybody who did something in a contest, by name."""
    ids = [row["user_id"] for row in await tx.fetch(ACTIVE_USERS, contest_id=contest_id)]
    return await find_users(tx, ids)


async def find_users(tx: Tx, user_ids: Iterable[str]) -> list[PackagedUser]:
    """Users by name."""
    given = [(item,) for item in sorted(set(user_ids))]
    return await tx.fetch(USERS, given) if given else []


async def teams_of_contest(tx: Tx, contest_id: str) -> dict[str, TeamRow]:
    """The teams that take part, by id."""
    return {row.id: row for row in await tx.fetch(TEAMS, contest_id=contest_id)}


async def accounts_of_contest(tx: Tx, contest_id: str) -> dict[str, ContestAccountRow]:
    """The accounts of a contest, by user."""
    return {row.user_id: row for row in await tx.fetch(ACCOUNTS, contest_id=contest_id)}


async def small_sources(tx: Tx, digests: Sequence[str]) -> dict[str, str]:
    """Those of the sources that are stored in the database, by digest; the others are blobs."""
    rows = await tx.fetch(SOURCES, [(item,) for item in digests]) if digests else []
    return {row["digest"]: row["body"] for row in rows}
