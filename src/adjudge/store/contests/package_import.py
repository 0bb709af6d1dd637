"""Writes for the import of a contest: rows with the times of the contest that was exported.

A judged submission is inserted with its result, its finished judge run and the entries of its status log. Nothing is
queued, and no listener is called: the caller computes the scoreboard afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.store.contests.clarifications import INSERT_GROUPS
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.rows import column_values, given_columns
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.statements import INSERT_CASES, INSERT_SOURCES


@dataclass(frozen=True, slots=True)
class ParticipantMarks:
    """What is set after a participant was created."""

    id: str
    disqualified_at: int | None
    penalty_adjust_sec: int


@dataclass(frozen=True, slots=True)
class RestoredInterval:
    """A removed interval."""

    id: str
    contest_id: str
    from_at: int
    to_at: int | None
    undone_at: int | None
    reason: str | None
    created_by: str


@dataclass(frozen=True, slots=True)
class RestoredClarification:
    """A clarification with its number and times."""

    id: str
    contest_id: str
    number: int
    from_participant_id: str | None
    audience: str
    to_participant_id: str | None
    reply_to_id: str | None
    problem_id: str | None
    category: str | None
    body: str
    created_by: str
    created_at: int
    claimed_by: str | None
    answered_at: int | None


@dataclass(frozen=True, slots=True)
class RestoredSubmission:
    """A row of ``submissions``; ``version`` counts the entries of its status log."""

    id: str
    user_id: str
    problem_id: str
    revision_id: str
    contest_id: str
    language: str
    source_digest: str
    source_format: str
    source_bytes: int
    status: str
    prior_status: str | None
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None
    judged_by_job_id: str | None
    version: int
    actor: str
    created_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class RestoredContestSubmission:
    """A row of ``contest_submissions``."""

    submission_id: str
    contest_id: str
    participant_id: str
    problem_id: str
    number: int
    received_at: int
    official: bool
    score_micro: int | None
    max_score_micro: int | None
    subtasks: Mapping[str, int] | None
    ignored_at: int | None
    verified_at: int | None
    verified_by: str | None
    verified_verdict: str | None
    override_verdict: str | None
    override_score_micro: int | None
    overridden_at: int | None
    overridden_by: str | None
    override_reason: str | None


@dataclass(frozen=True, slots=True)
class RestoredRun:
    """A finished judge run."""

    id: str
    submission_id: str
    status: str
    payload: Mapping[str, Any]
    result: Mapping[str, Any] | None
    actor: str
    trace_id: str
    created_at: int
    finished_at: int


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """An entry of a status log; ``version`` is the attempt in the log of jobs."""

    key: str
    from_status: str
    to_status: str
    verdict: str | None
    job_id: str | None
    version: int
    actor: str
    at: int


REASON = "'imported'"
SET_MARKS = Statement(
    "contest_packages.set_participant_marks",
    "Set the disqualification and the added penalty of new participants.",
    """
    UPDATE participants SET disqualified_at = given_disqualified_at, penalty_adjust_sec = given_penalty_adjust_sec
    FROM {given} WHERE id = given_id
    """,
    input_columns=given_columns(ParticipantMarks),
)
INSERT_INTERVALS = Statement(
    "contest_packages.insert_intervals",
    "Add removed intervals of an imported contest.",
    """
    INSERT INTO removed_intervals (id, contest_id, from_at, to_at, undone_at, reason, created_by, created_at)
    SELECT given_id, given_contest_id, given_from_at, given_to_at, given_undone_at, given_reason, given_created_by,
           {now}
    FROM {given}
    """,
    input_columns=given_columns(RestoredInterval),
)
INSERT_CLARIFICATIONS = Statement(
    "contest_packages.insert_clarifications",
    "Add clarifications of an imported contest with their numbers.",
    """
    INSERT INTO clarifications (id, contest_id, number, from_participant_id, audience, to_participant_id, reply_to_id,
                                problem_id, category, body, created_by, created_at, claimed_by, answered_at)
    SELECT given_id, given_contest_id, given_number, given_from_participant_id, given_audience,
           given_to_participant_id, given_reply_to_id, given_problem_id, given_category, given_body, given_created_by,
           given_created_at, given_claimed_by, given_answered_at
    FROM {given} ORDER BY given_number
    """,
    input_columns=given_columns(RestoredClarification),
)
_COLUMNS = """id, user_id, problem_id, revision_id, contest_id, language, source_digest, source_format, source_bytes,
    status, prior_status, verdict, score, time_ms, mem_kb, judged_by_job_id, version, actor, reason, created_at,
    updated_at, finished_at"""
_VALUES = f"""given_id, given_user_id, given_problem_id, given_revision_id, given_contest_id, given_language,
    given_source_digest, given_source_format, given_source_bytes, given_status, given_prior_status, given_verdict,
    given_score, given_time_ms, given_mem_kb, given_judged_by_job_id, given_version, given_actor, {REASON},
    given_created_at, COALESCE(given_finished_at, given_created_at), given_finished_at"""
INSERT_SUBMISSIONS = Statement(
    "contest_packages.insert_submissions",
    "Add submissions of an imported contest with their results, numbered in the order of their ids.",
    f"INSERT INTO submissions ({_COLUMNS}) SELECT {_VALUES} FROM {{given}} ORDER BY given_id",
    sqlite_sql=f"""
    INSERT INTO submissions (number, {_COLUMNS})
    SELECT (SELECT COALESCE(max(number), 0) FROM submissions) + row_number() OVER (ORDER BY given_id), {_VALUES}
    FROM {{given}}
    """,
    input_columns=given_columns(RestoredSubmission),
)
_CONTEST_SUBMISSION = tuple(name.removeprefix("given_") for name in given_columns(RestoredContestSubmission))
INSERT_CONTEST_SUBMISSIONS = Statement(
    "contest_packages.insert_contest_submissions",
    "Add the contest rows of imported submissions with their numbers and the decisions of the jury.",
    f"""
    INSERT INTO contest_submissions ({", ".join(_CONTEST_SUBMISSION)})
    SELECT {", ".join(f"given_{name}" for name in _CONTEST_SUBMISSION)} FROM {{given}}
    """,
    input_columns=given_columns(RestoredContestSubmission),
)
INSERT_RUNS = Statement(
    "contest_packages.insert_runs",
    "Add the finished judge runs of imported submissions; they have no outbox rows, so nothing runs.",
    f"""
    INSERT INTO jobs (id, kind, dedupe_key, submission_id, status, prior_status, attempt_id, available_at, payload,
                      result, actor, reason, error_code, trace_id, created_at, updated_at, started_at, finished_at)
    SELECT given_id, 'judge', given_submission_id, given_submission_id, given_status, 'running', 1, given_created_at,
           given_payload, given_result, given_actor, {REASON},
           CASE WHEN given_status = 'failed' THEN 'UNKNOWN' END, given_trace_id, given_created_at, given_finished_at,
           given_created_at, given_finished_at
    FROM {{given}}
    """,
    input_columns=given_columns(RestoredRun),
)
LOG_SUBMISSIONS = Statement(
    "contest_packages.log_submissions",
    "Append the status changes of imported submissions to the status log.",
    f"""
    INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason,
                                       at)
    SELECT given_key, given_from_status, given_to_status, given_verdict, given_job_id, given_version, given_actor,
           {REASON}, given_at
    FROM {{given}}
    """,
    input_columns=given_columns(LoggedChange),
)
LOG_RUNS = Statement(
    "contest_packages.log_runs",
    "Append the status changes of imported judge runs to the status log.",
    f"""
    INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
    SELECT given_job_id, 'pending', 'running', 1, given_actor, {REASON}, given_at FROM {{given}}
    UNION ALL
    SELECT given_job_id, 'running', given_status, 1, given_actor, {REASON}, given_finished_at FROM {{given}}
    """,
    input_columns={
        "given_job_id": "text",
        "given_status": "text",
        "given_actor": "text",
        "given_at": "bigint",
        "given_finished_at": "bigint",
    },
)
SET_COUNTERS = Statement(
    "contest_packages.set_counters",
    "Let the counters of an imported contest continue after its submissions and clarifications.",
    """
    UPDATE contest_counters SET
        next_number = 1 + COALESCE((SELECT max(number) FROM contest_submissions WHERE contest_id = :contest_id), 0),
        last_received_at = COALESCE(
            (SELECT max(received_at) FROM contest_submissions WHERE contest_id = :contest_id), 0),
        next_clarification = 1 + COALESCE((SELECT max(number) FROM clarifications WHERE contest_id = :contest_id), 0)
    WHERE contest_id = :contest_id
    """,
)
MARK_READ = Statement(
    "contest_packages.mark_read",
    "Mark everything of an imported contest as read by its participants.",
    """
    INSERT INTO contest_read_marks (contest_id, user_id, clarification_number, verdicts_until)
    SELECT :contest_id, user_id,
           COALESCE((SELECT max(number) FROM clarifications WHERE contest_id = :contest_id), 0), {now}
    FROM participant_members WHERE contest_id = :contest_id GROUP BY user_id
    """,
)
SET_FINALIZED = Statement(
    "contest_packages.set_finalized",
    "Set when an imported contest was finalized and when its updates ended.",
    """
    UPDATE contests SET finalized_at = :finalized_at, end_of_updates_at = :end_of_updates_at, version = version + 1,
        updated_at = {now}
    WHERE id = :contest_id AND state = 'finalized'
    """,
)


async def set_participant_marks(tx: Tx, rows: Sequence[ParticipantMarks]) -> None:
    """Set disqualifications and added penalties."""
    if rows:
        await tx.execute(SET_MARKS, [tuple(column_values(item).values()) for item in rows])


async def insert_intervals(tx: Tx, rows: Sequence[RestoredInterval]) -> None:
    """Add removed intervals."""
    if rows:
        await tx.execute(INSERT_INTERVALS, [tuple(column_values(item).values()) for item in rows])


async def insert_clarifications(
    tx: Tx, rows: Sequence[RestoredClarification], groups: Sequence[tuple[str, str]]
) -> None:
    """Add clarifications and the groups that they are sent to: clarification, group."""
    if rows:
        await tx.execute(INSERT_CLARIFICATIONS, [tuple(column_values(item).values()) for item in rows])
    if groups:
        await tx.execute(INSERT_GROUPS, groups)


async def insert_sources(tx: Tx, texts: Mapping[str, str]) -> None:
    """Store small sources by digest; those that exist are kept."""
    if texts:
        await tx.execute(INSERT_SOURCES, sorted(texts.items()))


async def insert_submissions(
    tx: Tx,
    rows: Sequence[RestoredSubmission],
    *,
    in_contest: Sequence[RestoredContestSubmission],
    runs: Sequence[RestoredRun],
    cases: Sequence[tuple[object, ...]],
    log: Sequence[LoggedChange],
) -> None:
    """Add submissions with everything that belongs to them."""
    await tx.execute(INSERT_SUBMISSIONS, [tuple(column_values(item).values()) for item in rows])
    await tx.execute(INSERT_CONTEST_SUBMISSIONS, [tuple(column_values(item).values()) for item in in_contest])
    if runs:
        await tx.execute(INSERT_RUNS, [tuple(column_values(item).values()) for item in runs])
        changes = [(item.id, item.status, item.actor, item.created_at, item.finished_at) for item in runs]
        await tx.execute(LOG_RUNS, changes)
    if cases:
        await tx.execute(INSERT_CASES, cases)
    if log:
        await tx.execute(LOG_SUBMISSIONS, [tuple(column_values(item).values()) for item in log])


async def set_counters(tx: Tx, contest_id: str) -> None:
    """Continue the numbers of a contest after its last ones."""
    await tx.execute(SET_COUNTERS, contest_id=contest_id)


async def mark_read(tx: Tx, contest_id: str) -> None:
    """Let nobody be notified of what happened before the import."""
    await tx.execute(MARK_READ, contest_id=contest_id)


async def set_finalized(tx: Tx, contest_id: str, *, finalized_at: int, end_of_updates_at: int | None) -> None:
    """Set the times of a finalized contest; after an end of updates the database refuses further changes."""
    await tx.execute(
        SET_FINALIZED, contest_id=contest_id, finalized_at=finalized_at, end_of_updates_at=end_of_updates_at
    )
