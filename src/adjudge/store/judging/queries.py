"""Queries of submissions and judge runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from adjudge.domain.errors import NotFound
from adjudge.store.contests.hidden import shown
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.models import (
    JobStatusChange,
    JudgeRunRow,
    SubmissionFilter,
    SubmissionNumber,
    SubmissionRow,
    SubmissionState,
    SubmissionStatusChange,
)
from adjudge.store.judging.statements import SELECT_SOURCE

MAX_ID: Final = "~"
"""Sorts after every id."""

_COLUMNS: Final = {
    "user_name": "users.name",
    "problem_slug": "problems.slug",
    "problem_title": "problems.title",
    "problem_owner_id": "problems.owner_id",
    "job_id": "judged_by_job_id",
}
_FROM = """FROM submissions JOIN users ON users.id = submissions.user_id
        JOIN problems ON problems.id = submissions.problem_id"""

FIND = Statement(
    "submissions.find",
    "Read one submission.",
    f"SELECT {{columns:submissions}} {_FROM} WHERE submissions.id = :submission_id",
    row=SubmissionRow,
    columns=_COLUMNS,
)

FIND_ALL = Statement(
    "submissions.find_all",
    "Read several submissions.",
    f"SELECT {{columns:submissions}} {_FROM} JOIN {{given}} ON given_id = submissions.id",
    input_columns={"given_id": "text"},
    row=SubmissionRow,
    columns=_COLUMNS,
)

FIND_ID = Statement(
    "submissions.find_id",
    "Read the id of the submission with a number.",
    "SELECT {columns} FROM submissions WHERE number = :number",
    row=SubmissionNumber,
)

SELECT_RESULT = Statement(
    "jobs.select_result",
    "Read a job's result document.",
    "SELECT result FROM jobs WHERE id = :job_id",
)

SELECT_RESULTS = Statement(
    "jobs.select_results",
    "Read the result documents of several jobs.",
    "SELECT id, result FROM {given} JOIN jobs ON jobs.id = given_id WHERE result IS NOT NULL",
    input_columns={"given_id": "text"},
)

_RUN_COLUMNS: Final = {
    "submission_number": "(SELECT number FROM submissions WHERE submissions.id = jobs.submission_id)",
    "rejudge_batch_number": "(SELECT number FROM rejudge_batches WHERE rejudge_batches.id = jobs.rejudge_batch_id)",
}
FIND_RUN = Statement(
    "jobs.find_run",
    "Read one judge run.",
    "SELECT {columns} FROM jobs WHERE id = :job_id",
    row=JudgeRunRow,
    columns=_RUN_COLUMNS,
)
RUNS_OF = Statement(
    "jobs.runs_of_submission",
    "List the judge runs of a submission, newest first.",
    "SELECT {columns} FROM jobs WHERE submission_id = :submission_id AND kind = 'judge' ORDER BY id DESC",
    row=JudgeRunRow,
    columns=_RUN_COLUMNS,
)
JOB_STATUS_LOG = Statement(
    "job_status_log.of_job",
    "List the status changes of a job.",
    "SELECT {columns} FROM job_status_log WHERE job_id = :job_id ORDER BY id",
    row=JobStatusChange,
)
SUBMISSION_STATUS_LOG = Statement(
    "submission_status_log.of_submission",
    "List the status changes of a submission.",
    "SELECT {columns} FROM submission_status_log WHERE submission_id = :submission_id ORDER BY version",
    row=SubmissionStatusChange,
)
SELECT_NUMBERS = Statement(
    "submissions.select_numbers",
    "Read the numbers of those of the given submissions that exist.",
    "SELECT {columns:submissions} FROM {given} JOIN submissions ON submissions.id = given_id",
    input_columns={"given_id": "text"},
    row=SubmissionNumber,
)


LOCK_STATE = Statement(
    "submissions.lock_state",
    "Read a submission's state under a share lock.",
    "SELECT {columns} FROM submissions WHERE id = :submission_id FOR SHARE",
    row=SubmissionState,
)


def _page(name: str, whose: str, key: str) -> Statement[SubmissionRow]:
    """One statement for each index, so that the planner does not have to choose."""
    return Statement(
        f"submissions.{name}",
        f"List submissions{whose} by filter, newest first, keyset-paginated.",
        f"""
        SELECT {{columns:submissions}} {_FROM}
        WHERE {key} submissions.id < :before AND submissions.id >= :from_id
          AND (CAST(:user_id AS text) IS NULL OR submissions.user_id = :user_id)
          AND (CAST(:problem_id AS text) IS NULL OR submissions.problem_id = :problem_id)
          AND (CAST(:contest_id AS text) IS NULL OR contest_id = :contest_id)
          AND (CAST(:language AS text) IS NULL OR language = :language)
          AND (CAST(:status AS text) IS NULL OR status = :status)
          AND (CAST(:verdict AS text) IS NULL OR verdict = :verdict)
          AND (CAST(:since_us AS bigint) IS NULL OR submissions.created_at >= :since_us)
          AND (CAST(:until_us AS bigint) IS NULL OR submissions.created_at < :until_us)
          AND {shown("contest_id")}
        ORDER BY submissions.id DESC LIMIT :limit
        """,
        row=SubmissionRow,
        columns=_COLUMNS,
    )


PAGE = _page("page", "", "")
PAGE_OF_USER = _page("page_of_user", " of one user", "submissions.user_id = :user_id AND")
PAGE_OF_PROBLEM = _page("page_of_problem", " to one problem", "submissions.problem_id = :problem_id AND")
PAGE_OF_CONTEST = _page("page_of_contest", " of one contest", "contest_id = :contest_id AND")


async def find_submission(tx: Tx, submission_id: str) -> SubmissionRow:
    return or_not_found(await fetch_one(tx, FIND, submission_id=submission_id), "submission", submission_id)


async def find_submissions(tx: Tx, submission_ids: Sequence[str]) -> list[SubmissionRow]:
    """Those of the given submissions that exist."""
    return await tx.fetch(FIND_ALL, [(item,) for item in submission_ids])


async def find_id(tx: Tx, number: int) -> str | None:
    """The id of the submission with a number; None if there is none."""
    found = await fetch_one(tx, FIND_ID, number=number)
    return None if found is None else found.id


async def page(tx: Tx, wanted: SubmissionFilter, *, before: str = MAX_ID, limit: int = 20) -> list[SubmissionRow]:
    """List submissions, newest first; ``before`` is the last id of the previous page."""
    statement = PAGE
    if wanted.user_id is not None:
        statement = PAGE_OF_USER
    elif wanted.problem_id is not None:
        statement = PAGE_OF_PROBLEM
    elif wanted.contest_id is not None:
        statement = PAGE_OF_CONTEST
    named = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return await tx.fetch(statement, before=before, limit=limit, **named)


async def find_result(tx: Tx, job_id: str) -> Mapping[str, Any] | None:
    row = await fetch_one(tx, SELECT_RESULT, job_id=job_id)
    return None if row is None or row["result"] is None else json.loads(row["result"])


async def find_results(tx: Tx, job_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The result documents of those jobs that have one, by job."""
    rows = await tx.fetch(SELECT_RESULTS, [(job_id,) for job_id in job_ids])
    return {row["id"]: json.loads(row["result"]) for row in rows}


async def find_judge_run(tx: Tx, job_id: str) -> JudgeRunRow:
    run = await fetch_one(tx, FIND_RUN, job_id=job_id)
    if run is None or run.kind != "judge":
        raise NotFound("judge_run", job_id)
    return run


async def list_judge_runs(tx: Tx, submission_id: str) -> list[JudgeRunRow]:
    """List the judge runs of a submission, newest first."""
    return await tx.fetch(RUNS_OF, submission_id=submission_id)


async def list_job_status_log(tx: Tx, job_id: str) -> list[JobStatusChange]:
    return await tx.fetch(JOB_STATUS_LOG, job_id=job_id)


async def list_submission_status_log(tx: Tx, submission_id: str) -> list[SubmissionStatusChange]:
    return await tx.fetch(SUBMISSION_STATUS_LOG, submission_id=submission_id)


async def find_source_text(tx: Tx, digest: str) -> str | None:
    """A source that is stored in the database; None if it is a blob."""
    row = await fetch_one(tx, SELECT_SOURCE, digest=digest)
    return None if row is None else str(row["body"])


async def find_numbers(tx: Tx, submission_ids: Sequence[str]) -> dict[str, int]:
    """The numbers of the submissions that exist, by id."""
    return {row.id: row.number for row in await tx.fetch(SELECT_NUMBERS, [(item,) for item in submission_ids])}


async def lock_submission_state(tx: Tx, submission_id: str) -> SubmissionState | None:
    """Read the state of a submission and lock it against changes until the transaction ends."""
    return await fetch_one(tx, LOCK_STATE, submission_id=submission_id)
