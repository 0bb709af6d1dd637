"""Reading submissions and judge runs, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from adjudge.domain.errors import NotFound
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Row, Statement
from adjudge.store.judging.models import (
    JobStatusChange,
    JudgeRunRow,
    ProblemRef,
    SubmissionFilter,
    SubmissionRow,
    SubmissionState,
    SubmissionStatusChange,
)
from adjudge.store.judging.statements import SELECT_SOURCE

MAX_ID: Final = "~"
"""Sorts after every id."""

_COLUMNS = """submissions.id AS id, submissions.user_id AS user_id, users.name AS user_name,
        submissions.problem_id AS problem_id, problems.slug AS problem_slug, problems.title AS problem_title,
        problems.owner_id AS problem_owner_id,
        revision_id, contest_id, language, source_digest, source_bytes, status, verdict, score, time_ms, mem_kb,
        judged_by_job_id AS job_id, submissions.version AS version, reason, submissions.created_at AS created_at,
        submissions.updated_at AS updated_at, finished_at"""
_FROM = """FROM submissions JOIN users ON users.id = submissions.user_id
        JOIN problems ON problems.id = submissions.problem_id"""

FIND = Statement(
    "submissions.find", "Read one submission.", f"SELECT {_COLUMNS} {_FROM} WHERE submissions.id = :submission_id"
)

SELECT_RESULT = Statement(
    "jobs.select_result",
    "Read a job's result document.",
    "SELECT result FROM jobs WHERE id = :job_id",
)

_RUN = """id, kind, status, attempt_id, max_attempts, priority, submission_id, rejudge_batch_id, origin_job_id,
        lease_owner, lease_until, reason, error_code, error, trace_id, created_at, queued_at, started_at, updated_at,
        finished_at"""
FIND_RUN = Statement("jobs.find_run", "Read one judge run.", f"SELECT {_RUN} FROM jobs WHERE id = :job_id")
RUNS_OF = Statement(
    "jobs.runs_of_submission",
    "Read the judge runs of a submission, the newest first.",
    f"SELECT {_RUN} FROM jobs WHERE submission_id = :submission_id AND kind = 'judge' ORDER BY id DESC",
)
JOB_STATUS_LOG = Statement(
    "job_status_log.of_job",
    "List the status changes of a job.",
    """
    SELECT from_status, to_status, attempt_id, actor, reason, at FROM job_status_log
    WHERE job_id = :job_id ORDER BY id
    """,
)
SUBMISSION_STATUS_LOG = Statement(
    "submission_status_log.of_submission",
    "List the status changes of a submission.",
    """
    SELECT from_status, to_status, verdict, job_id, version, actor, reason, at FROM submission_status_log
    WHERE submission_id = :submission_id ORDER BY version
    """,
)
RESOLVE_PROBLEMS = Statement(
    "problems.resolve",
    "Find problems by slug or id, with their published revision.",
    """
    SELECT given_ref, problems.id AS id, published_revision_id, owner_id
    FROM {given} JOIN problems ON slug = given_ref
    UNION ALL
    SELECT given_ref, problems.id AS id, published_revision_id, owner_id
    FROM {given} JOIN problems ON problems.id = given_ref
    """,
    input_columns={"given_ref": "text"},
)
EXISTING = Statement(
    "submissions.existing",
    "Find which of the given submissions exist, after a commit with unknown outcome.",
    "SELECT submissions.id AS id FROM {given} JOIN submissions ON submissions.id = given_id",
    input_columns={"given_id": "text"},
)


_STATE = "SELECT id, status, verdict, score, time_ms, mem_kb FROM submissions WHERE id = :submission_id"
LOCK_STATE = Statement(
    "submissions.lock_state",
    "Read a submission's state under a share lock.",
    _STATE + " FOR SHARE",
    sqlite_sql=_STATE,
)


def _page(name: str, whose: str, key: str) -> Statement:
    """A statement of its own for each index that a list can go along: no plan has to guess which it is."""
    return Statement(
        f"submissions.{name}",
        f"List submissions{whose} by what they are, the newest first, from before a known one.",
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE {key} submissions.id < :before AND submissions.id >= :from_id
          AND (CAST(:user_id AS text) IS NULL OR submissions.user_id = :user_id)
          AND (CAST(:problem_id AS text) IS NULL OR submissions.problem_id = :problem_id)
          AND (CAST(:contest_id AS text) IS NULL OR contest_id = :contest_id)
          AND (CAST(:language AS text) IS NULL OR language = :language)
          AND (CAST(:status AS text) IS NULL OR status = :status)
          AND (CAST(:verdict AS text) IS NULL OR verdict = :verdict)
          AND (CAST(:since_us AS bigint) IS NULL OR submissions.created_at >= :since_us)
          AND (CAST(:until_us AS bigint) IS NULL OR submissions.created_at < :until_us)
        ORDER BY submissions.id DESC LIMIT :limit
        """,
    )


PAGE = _page("page", "", "")
PAGE_OF_USER = _page("page_of_user", " of one user", "submissions.user_id = :user_id AND")
PAGE_OF_PROBLEM = _page("page_of_problem", " to one problem", "submissions.problem_id = :problem_id AND")
PAGE_OF_CONTEST = _page("page_of_contest", " of one contest", "contest_id = :contest_id AND")
FIND_DEFINITION = Statement(
    "problems.find_definition",
    "Read the judging definition of a revision.",
    "SELECT definition FROM problem_revisions WHERE id = :revision_id",
)


async def find_submission(tx: Tx, submission_id: str) -> SubmissionRow:
    """Read one submission."""
    row = await fetch_one(tx, FIND, submission_id=submission_id)
    if row is None:
        raise NotFound("submission", submission_id)
    return _submission(row)


async def page(tx: Tx, wanted: SubmissionFilter, *, before: str = MAX_ID, limit: int = 20) -> list[SubmissionRow]:
    """List submissions by key, the newest first: ``before`` is the last id of the page before."""
    statement = PAGE
    if wanted.user_id is not None:
        statement = PAGE_OF_USER
    elif wanted.problem_id is not None:
        statement = PAGE_OF_PROBLEM
    elif wanted.contest_id is not None:
        statement = PAGE_OF_CONTEST
    named = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return [_submission(row) for row in await tx.fetch(statement, before=before, limit=limit, **named)]


async def find_result(tx: Tx, job_id: str) -> Mapping[str, Any] | None:
    """What a job found, as the judge's document."""
    row = await fetch_one(tx, SELECT_RESULT, job_id=job_id)
    return None if row is None or row["result"] is None else json.loads(row["result"])


async def find_judge_run(tx: Tx, job_id: str) -> JudgeRunRow:
    """Read one judge run."""
    row = await fetch_one(tx, FIND_RUN, job_id=job_id)
    if row is None or row["kind"] != "judge":
        raise NotFound("judge_run", job_id)
    return JudgeRunRow(*row)


async def list_judge_runs(tx: Tx, submission_id: str) -> list[JudgeRunRow]:
    """The judge runs of a submission, the newest first."""
    return [JudgeRunRow(*row) for row in await tx.fetch(RUNS_OF, submission_id=submission_id)]


async def list_job_status_log(tx: Tx, job_id: str) -> list[JobStatusChange]:
    """Every change of a job's status."""
    return [JobStatusChange(*row) for row in await tx.fetch(JOB_STATUS_LOG, job_id=job_id)]


async def list_submission_status_log(tx: Tx, submission_id: str) -> list[SubmissionStatusChange]:
    """Every change of a submission."""
    return [SubmissionStatusChange(*row) for row in await tx.fetch(SUBMISSION_STATUS_LOG, submission_id=submission_id)]


async def resolve_problems(tx: Tx, refs: Sequence[str]) -> dict[str, ProblemRef]:
    """The problems that slugs or ids name."""
    rows = await tx.fetch(RESOLVE_PROBLEMS, [(ref,) for ref in dict.fromkeys(refs)])
    return {row["given_ref"]: ProblemRef(row["id"], row["published_revision_id"], row["owner_id"]) for row in rows}


async def find_definition(tx: Tx, revision_id: str) -> Mapping[str, Any]:
    """How a revision is judged, as a document."""
    row = await fetch_one(tx, FIND_DEFINITION, revision_id=revision_id)
    if row is None:
        raise NotFound("revision", revision_id)
    document: Mapping[str, Any] = json.loads(row["definition"])
    return document


async def find_source_text(tx: Tx, digest: str) -> str | None:
    """A source that is kept in the database; nothing where it is a blob."""
    row = await fetch_one(tx, SELECT_SOURCE, digest=digest)
    return None if row is None else str(row["body"])


async def find_existing(tx: Tx, submission_ids: Sequence[str]) -> set[str]:
    """Those of the submissions that exist."""
    return {row["id"] for row in await tx.fetch(EXISTING, [(item,) for item in submission_ids])}


def _submission(row: Row) -> SubmissionRow:
    return SubmissionRow(*row)


async def lock_submission_state(tx: Tx, submission_id: str) -> SubmissionState | None:
    """Where a submission stands; nobody can change it before this transaction ends."""
    row = await fetch_one(tx, LOCK_STATE, submission_id=submission_id)
    return SubmissionState(*row) if row else None
