"""What the Contest API reads: submissions of a contest with their judge runs and tests, and its people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.domain.contest import ContestRole
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class CcsSubmissionRow:
    """A submission of a contest with what counts of it."""

    submission_id: str
    participant_id: str
    problem_id: str
    number: int
    received_at: int
    official: bool
    score_micro: int | None
    max_score_micro: int | None
    ignored_at: int | None
    verified_at: int | None
    override_verdict: Verdict | None
    override_score_micro: int | None
    overridden_at: int | None
    user_id: str
    language: str
    status: SubmissionStatus
    verdict: Verdict | None
    """Of the judge; ``override_verdict`` counts if it is set."""
    time_ms: int | None
    judged_by_job_id: str | None
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class CcsJudgeRunRow:
    """A judge run that determines or determined a verdict, or that is to determine it."""

    id: str
    submission_id: str
    started_at: int | None
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class CcsCaseRow:
    """The result of one test of a judge run."""

    job_id: str
    ordinal: int
    name: str
    verdict: Verdict
    time_ms: int


@dataclass(frozen=True, slots=True)
class CcsPersonRow:
    """A user who submits for a participant, or who has a role in a contest."""

    user_id: str
    user_name: str
    display_name: str | None
    participant_id: str | None
    role: ContestRole | None


_COLUMNS = {
    "user_id": "submissions.user_id",
    "language": "submissions.language",
    "status": "submissions.status",
    "verdict": "submissions.verdict",
    "time_ms": "submissions.time_ms",
    "judged_by_job_id": "submissions.judged_by_job_id",
    "finished_at": "submissions.finished_at",
}
SUBMISSIONS = Statement(
    "contest_submissions.ccs_all",
    "List all submissions of a contest for the Contest API, in number order.",
    """
    SELECT {columns:contest_submissions} FROM contest_submissions
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    WHERE contest_submissions.contest_id = :contest_id ORDER BY contest_submissions.number
    """,
    row=CcsSubmissionRow,
    columns=_COLUMNS,
)
SUBMISSIONS_BY_ID = Statement(
    "contest_submissions.ccs_by_id",
    "Read the given submissions of a contest for the Contest API, in number order.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON contest_submissions.submission_id = given_id
    JOIN submissions ON submissions.id = given_id
    WHERE contest_submissions.contest_id = :contest_id ORDER BY contest_submissions.number
    """,
    input_columns={"given_id": "text"},
    row=CcsSubmissionRow,
    columns=_COLUMNS,
)
SUBMISSION_ID = Statement(
    "contest_submissions.ccs_find_id",
    "Find the id of the submission with a number in a contest.",
    "SELECT submission_id FROM contest_submissions WHERE contest_id = :contest_id AND number = :number",
)
SUBMISSION_OF_RUN = Statement(
    "contest_submissions.ccs_find_by_job",
    "Find the submission of a contest that a judge run belongs to.",
    """
    SELECT contest_submissions.submission_id FROM jobs
    JOIN contest_submissions ON contest_submissions.submission_id = jobs.submission_id
    WHERE jobs.id = :job_id AND contest_submissions.contest_id = :contest_id
    """,
)
_DECIDING = """
    jobs.kind = 'judge' AND (jobs.rejudge_batch_id IS NULL OR EXISTS (
        SELECT 1 FROM submission_status_log
        WHERE submission_status_log.submission_id = jobs.submission_id AND submission_status_log.job_id = jobs.id))
    ORDER BY jobs.id
    """
JUDGE_RUNS = Statement(
    "jobs.ccs_of_contest",
    "List the judge runs of a contest that determine or determined a verdict, oldest first.",
    f"""
    SELECT {{columns:jobs}} FROM contest_submissions
    JOIN jobs ON jobs.submission_id = contest_submissions.submission_id
    WHERE contest_submissions.contest_id = :contest_id AND {_DECIDING}
    """,
    row=CcsJudgeRunRow,
)
JUDGE_RUNS_BY_SUBMISSION = Statement(
    "jobs.ccs_of_submissions",
    "List the judge runs of the given submissions that determine or determined a verdict, oldest first.",
    f"SELECT {{columns:jobs}} FROM {{given}} JOIN jobs ON jobs.submission_id = given_id WHERE {_DECIDING}",
    input_columns={"given_id": "text"},
    row=CcsJudgeRunRow,
)
CASES = Statement(
    "case_results.ccs_of_jobs",
    "List the test results of judge runs for the Contest API.",
    """
    SELECT {columns:case_results} FROM {given} JOIN case_results ON case_results.job_id = given_id
    ORDER BY case_results.job_id, case_results.ordinal
    """,
    input_columns={"given_id": "text"},
    row=CcsCaseRow,
)
PEOPLE = Statement(
    "contests.ccs_people",
    "List the members of participants and the users with a role in a contest, or one user among them.",
    """
    SELECT {columns} FROM (
        SELECT participant_members.user_id AS user_id, participant_members.participant_id AS participant_id,
               NULL AS role
        FROM participant_members JOIN participants ON participants.id = participant_members.participant_id
        WHERE participant_members.contest_id = :contest_id AND participants.kind IN ('official', 'unofficial', 'test')
        UNION ALL
        SELECT user_id, NULL, role FROM contest_roles WHERE contest_id = :contest_id
    ) AS people JOIN users ON users.id = people.user_id
    WHERE CAST(:user_id AS text) IS NULL OR people.user_id = :user_id
    ORDER BY users.name, people.role, people.participant_id
    """,
    row=CcsPersonRow,
    columns={
        "user_id": "people.user_id",
        "user_name": "users.name",
        "display_name": "users.display_name",
        "participant_id": "people.participant_id",
        "role": "people.role",
    },
)


async def submissions(tx: Tx, contest_id: str, ids: Sequence[str] | None = None) -> list[CcsSubmissionRow]:
    """All submissions of a contest, or the given ones, in number order."""
    if ids is None:
        return await tx.fetch(SUBMISSIONS, contest_id=contest_id)
    return await tx.fetch(SUBMISSIONS_BY_ID, [(item,) for item in ids], contest_id=contest_id) if ids else []


async def judge_runs(tx: Tx, contest_id: str, ids: Sequence[str] | None = None) -> list[CcsJudgeRunRow]:
    """The judge runs of a contest, or of the given submissions, that determine or determined a verdict."""
    if ids is None:
        return await tx.fetch(JUDGE_RUNS, contest_id=contest_id)
    return await tx.fetch(JUDGE_RUNS_BY_SUBMISSION, [(item,) for item in ids]) if ids else []


async def cases(tx: Tx, job_ids: Sequence[str]) -> list[CcsCaseRow]:
    """The test results of judge runs."""
    return await tx.fetch(CASES, [(item,) for item in job_ids]) if job_ids else []


async def find_submission_id(tx: Tx, contest_id: str, number: int) -> str | None:
    """The id of the submission with a number; None if there is none."""
    rows = await tx.fetch(SUBMISSION_ID, contest_id=contest_id, number=number)
    return str(rows[0]["submission_id"]) if rows else None


async def find_submission_of_run(tx: Tx, contest_id: str, job_id: str) -> str | None:
    """The submission of a contest that a judge run belongs to; None if there is none."""
    rows = await tx.fetch(SUBMISSION_OF_RUN, contest_id=contest_id, job_id=job_id)
    return str(rows[0]["submission_id"]) if rows else None


async def people(tx: Tx, contest_id: str, user_id: str | None = None) -> list[CcsPersonRow]:
    """The members of participants, and the users with a role, by name; or what one user is."""
    return await tx.fetch(PEOPLE, contest_id=contest_id, user_id=user_id)
