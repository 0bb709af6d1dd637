"""Submissions of contests: numbers, jury decisions, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.domain.errors import InvalidInput, NotFound, VersionConflict
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.activity_models import ContestSubmissionRow, NewContestSubmission
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ContestCounter:
    """The counter of a contest after numbers were taken."""

    contest_id: str
    next_number: int
    last_received_at: int


@dataclass(frozen=True, slots=True)
class SubmissionCounts:
    """How many submissions a participant has made, and the limits of the contest."""

    participant_id: str
    problem_id: str
    label: str
    per_minute: int | None
    per_problem: int | None
    last_minute: int
    """To all problems."""
    to_problem: int


@dataclass(frozen=True, slots=True)
class ProblemCount:
    """How many submissions a participant has made to a problem."""

    problem_id: str
    submissions: int


_LOCK_COUNTERS = "SELECT contest_id FROM {given} JOIN contest_counters ON contest_id = given_id"
LOCK_COUNTERS = Statement(
    "contest_counters.lock",
    "Lock the counters of several contests in order.",
    _LOCK_COUNTERS + " ORDER BY contest_id FOR NO KEY UPDATE OF contest_counters",
    sqlite_sql=_LOCK_COUNTERS,
    input_columns={"given_id": "text"},
)
TAKE_NUMBERS = Statement(
    "contest_counters.take_numbers",
    "Take numbers for submissions, with a time that never goes back.",
    """
    UPDATE contest_counters SET next_number = next_number + given_count,
        last_received_at = CASE WHEN {now} > last_received_at THEN {now} ELSE last_received_at END
    FROM {given} WHERE contest_id = given_id
    RETURNING {columns}
    """,
    input_columns={"given_id": "text", "given_count": "bigint"},
    row=ContestCounter,
)
INSERT = Statement(
    "contest_submissions.insert",
    "Add submissions to contests.",
    """
    INSERT INTO contest_submissions (submission_id, contest_id, participant_id, problem_id, number, received_at)
    SELECT given_id, given_contest_id, given_participant_id, given_problem_id, given_number, given_received_at
    FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_contest_id": "text",
        "given_participant_id": "text",
        "given_problem_id": "text",
        "given_number": "bigint",
        "given_received_at": "bigint",
    },
)
FROM = "FROM contest_submissions JOIN submissions ON submissions.id = contest_submissions.submission_id"
COLUMNS = {
    "label": """(SELECT label FROM contest_problems WHERE contest_problems.contest_id = contest_submissions.contest_id
                 AND contest_problems.problem_id = contest_submissions.problem_id)""",
    "user_id": "submissions.user_id",
    "language": "submissions.language",
    "status": "submissions.status",
    "verdict": "submissions.verdict",
    "judged_by_job_id": "submissions.judged_by_job_id",
    "finished_at": "submissions.finished_at",
}
FIND = Statement(
    "contest_submissions.find",
    "Read a submission of a contest.",
    f"SELECT {{columns:contest_submissions}} {FROM} WHERE contest_submissions.submission_id = :submission_id",
    row=ContestSubmissionRow,
    columns=COLUMNS,
)
FIND_MANY = Statement(
    "contest_submissions.find_many",
    "Read those of the given submissions that count for a participant.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON contest_submissions.submission_id = given_id
    JOIN submissions ON submissions.id = given_id
    """,
    input_columns={"given_id": "text"},
    row=ContestSubmissionRow,
    columns=COLUMNS,
)
FIND_BY_NUMBER = Statement(
    "contest_submissions.find_by_number",
    "Read a submission of a contest by its number.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM}
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.number = :number
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
)
PAGE = Statement(
    "contest_submissions.page",
    "List the submissions of a contest, newest first, keyset-paginated.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM}
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.number < :before
      AND (CAST(:participant_id AS text) IS NULL OR contest_submissions.participant_id = :participant_id)
      AND (CAST(:problem_id AS text) IS NULL OR contest_submissions.problem_id = :problem_id)
      AND (CAST(:verdict AS text) IS NULL
           OR COALESCE(contest_submissions.override_verdict, submissions.verdict) = :verdict)
    ORDER BY contest_submissions.number DESC LIMIT :limit
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
    force_custom_plan=True,
)
OF_PARTICIPANTS = Statement(
    "contest_submissions.of_participants",
    "List the submissions of participants, newest first, keyset-paginated.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON contest_submissions.participant_id = given_id
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    WHERE contest_submissions.number < :before
      AND (CAST(:problem_id AS text) IS NULL OR contest_submissions.problem_id = :problem_id)
    ORDER BY contest_submissions.number DESC LIMIT :limit
    """,
    input_columns={"given_id": "text"},
    row=ContestSubmissionRow,
    columns=COLUMNS,
)
COUNTS = Statement(
    "contest_submissions.counts",
    "Count the submissions of participants in the last minute and to problems, where the contest limits them.",
    """
    SELECT {columns} FROM {given}
    JOIN contest_problems ON contest_problems.contest_id = given_contest_id
      AND contest_problems.problem_id = given_problem_id
    JOIN contests ON contests.id = given_contest_id
      AND (contests.submissions_per_minute IS NOT NULL OR contests.submissions_per_problem IS NOT NULL)
    """,
    input_columns={"given_contest_id": "text", "given_participant_id": "text", "given_problem_id": "text"},
    row=SubmissionCounts,
    columns={
        "participant_id": "given_participant_id",
        "problem_id": "given_problem_id",
        "label": "contest_problems.label",
        "per_minute": "contests.submissions_per_minute",
        "per_problem": "contests.submissions_per_problem",
        "last_minute": "(SELECT count(*) FROM contest_submissions WHERE participant_id = given_participant_id"
        " AND ignored_at IS NULL AND received_at > {now} - 60000000)",
        "to_problem": "(SELECT count(*) FROM contest_submissions WHERE participant_id = given_participant_id"
        " AND problem_id = given_problem_id AND ignored_at IS NULL)",
    },
)
COUNT_BY_PROBLEM = Statement(
    "contest_submissions.count_by_problem",
    "Count the submissions of a participant to each problem, judged or not.",
    "SELECT {columns} FROM contest_submissions WHERE participant_id = :participant_id GROUP BY problem_id",
    row=ProblemCount,
    columns={"problem_id": "problem_id", "submissions": "count(*)"},
)
UNJUDGED = Statement(
    "contest_submissions.unjudged",
    "List submissions without a verdict that counts: pending, failed, or not verified.",
    f"""
    SELECT {{columns:contest_submissions}} {FROM} JOIN contests ON contests.id = contest_submissions.contest_id
    WHERE contest_submissions.contest_id = :contest_id AND contest_submissions.ignored_at IS NULL
      AND contest_submissions.override_verdict IS NULL AND submissions.status <> 'canceled'
      AND (submissions.verdict IS NULL OR submissions.verdict = 'SE'
           OR (verify_required AND contest_submissions.verified_at IS NULL))
    ORDER BY contest_submissions.number LIMIT :limit
    """,
    row=ContestSubmissionRow,
    columns=COLUMNS,
)
DECIDE = Statement(
    "contest_submissions.decide",
    "Store the decisions of the jury about a submission if its version is unchanged.",
    """
    UPDATE contest_submissions SET official = :official,
        ignored_at = CASE WHEN CAST(:is_ignored AS bigint) = 0 THEN NULL ELSE COALESCE(ignored_at, {now}) END,
        verified_at = CASE WHEN CAST(:verified_by AS text) IS NULL THEN NULL ELSE COALESCE(verified_at, {now}) END,
        verified_verdict = CASE WHEN CAST(:verified_by AS text) IS NOT NULL THEN
            (SELECT verdict FROM submissions WHERE submissions.id = contest_submissions.submission_id) END,
        verified_by = :verified_by, override_verdict = :override_verdict, override_score_micro = :override_score_micro,
        overridden_at = CASE WHEN CAST(:override_verdict AS text) IS NULL THEN NULL
            WHEN override_verdict = CAST(:override_verdict AS text)
                 AND COALESCE(override_score_micro, -1) = COALESCE(CAST(:override_score_micro AS bigint), -1)
            THEN overridden_at ELSE {now} END,
        overridden_by = :overridden_by, override_reason = :override_reason, version = version + 1
    WHERE submission_id = :submission_id AND version = :version
      AND (CAST(:seen_verdict AS text) IS NULL OR EXISTS (
          SELECT 1 FROM submissions
          WHERE submissions.id = contest_submissions.submission_id AND submissions.verdict = :seen_verdict))
    """,
)


@dataclass(frozen=True, slots=True)
class JuryDecision:
    """How a submission counts, apart from its judge run."""

    official: bool = False
    is_ignored: bool = False
    verified_by: str | None = None
    override_verdict: Verdict | None = None
    override_score_micro: int | None = None
    overridden_by: str | None = None
    override_reason: str | None = None
    seen_verdict: Verdict | None = None
    """The verdict of the judge that a new verification is about: it must not have changed."""


async def take_numbers(tx: Tx, counts: Mapping[str, int]) -> dict[str, ContestCounter]:
    """Take numbers from the counters of contests; the rows stay locked until the commit."""
    if len(counts) > 1:
        await tx.fetch(LOCK_COUNTERS, [(item,) for item in sorted(counts)])
    rows = await tx.fetch(TAKE_NUMBERS, sorted(counts.items()))
    found = {row.contest_id: row for row in rows}
    missing = sorted(set(counts) - set(found))
    if missing:
        raise NotFound("contest", missing[0])
    return found


async def insert(tx: Tx, items: Sequence[NewContestSubmission], counters: Mapping[str, ContestCounter]) -> None:
    """Add submissions in their order, with the numbers that were taken for them."""
    left = {contest_id: sum(item.contest_id == contest_id for item in items) for contest_id in counters}
    rows = []
    for item in items:
        counter = counters[item.contest_id]
        number = counter.next_number - left[item.contest_id]
        left[item.contest_id] -= 1
        cell = (item.participant_id, item.problem_id)
        rows.append((item.submission_id, item.contest_id, *cell, number, counter.last_received_at))
    await tx.execute(INSERT, rows)


async def find(tx: Tx, submission_id: str) -> ContestSubmissionRow:
    """Read a submission of a contest."""
    row = await fetch_one(tx, FIND, submission_id=submission_id)
    if row is None:
        raise NotFound("submission", submission_id)
    return row


async def find_many(tx: Tx, submission_ids: Sequence[str]) -> dict[str, ContestSubmissionRow]:
    """Those of the submissions that count for a participant, by id."""
    return {row.submission_id: row for row in await tx.fetch(FIND_MANY, [(item,) for item in submission_ids])}


async def find_by_number(tx: Tx, contest_id: str, number: int) -> ContestSubmissionRow:
    """Read a submission by its number in the contest."""
    row = await fetch_one(tx, FIND_BY_NUMBER, contest_id=contest_id, number=number)
    if row is None:
        raise NotFound("submission", str(number))
    return row


async def page(
    tx: Tx,
    contest_id: str,
    *,
    before: int = 2**62,
    limit: int,
    participant_id: str | None = None,
    problem_id: str | None = None,
    verdict: Verdict | None = None,
) -> list[ContestSubmissionRow]:
    """List submissions, newest first; ``before`` is the last number of the previous page."""
    return await tx.fetch(
        PAGE,
        contest_id=contest_id,
        before=before,
        limit=limit,
        participant_id=participant_id,
        problem_id=problem_id,
        verdict=None if verdict is None else str(verdict),
    )


async def of_participants(
    tx: Tx, ids: Sequence[str], *, before: int, limit: int, problem_id: str | None = None
) -> list[ContestSubmissionRow]:
    """List the submissions of participants, newest first; ``before`` is the last number of the previous page."""
    given = [(item,) for item in ids]
    return await tx.fetch(OF_PARTICIPANTS, given, before=before, limit=limit, problem_id=problem_id)


async def counts(tx: Tx, cells: Sequence[tuple[str, str, str]]) -> list[SubmissionCounts]:
    """Count submissions for limits; ``cells`` are contest, participant and problem."""
    return await tx.fetch(COUNTS, cells)


async def count_by_problem(tx: Tx, participant_id: str) -> dict[str, int]:
    """How many submissions a participant has made, by problem, whatever became of them."""
    rows = await tx.fetch(COUNT_BY_PROBLEM, participant_id=participant_id)
    return {row.problem_id: row.submissions for row in rows}


async def unjudged(tx: Tx, contest_id: str, *, limit: int) -> list[ContestSubmissionRow]:
    """The submissions that keep a contest from being finalized."""
    return await tx.fetch(UNJUDGED, contest_id=contest_id, limit=limit)


async def decide(tx: Tx, submission_id: str, version: int, decision: JuryDecision) -> None:
    """Store a decision of the jury; the caller refolds the cell and writes the audit log."""
    if decision.override_score_micro is not None and decision.override_verdict is None:
        raise InvalidInput("override_score: needs a verdict; give override_verdict.", field="override_score")
    verdict = decision.override_verdict
    changed = await tx.execute(
        DECIDE,
        submission_id=submission_id,
        version=version,
        official=decision.official,
        is_ignored=int(decision.is_ignored),
        verified_by=decision.verified_by,
        override_verdict=None if verdict is None else str(verdict),
        override_score_micro=decision.override_score_micro,
        overridden_by=decision.overridden_by,
        override_reason=decision.override_reason,
        seen_verdict=None if decision.seen_verdict is None else str(decision.seen_verdict),
    )
    if not changed:
        raise VersionConflict("The submission was changed concurrently; read it again and retry.")
