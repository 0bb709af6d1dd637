"""The log of submission status changes, in an order from which readers can resume.

On PostgreSQL a serial number is assigned at the write, not at the commit: a reader of number 7 may find number 6 later.
So the order is (transaction, serial number), and only entries below the safe offset are read: the oldest open
transaction, below which nothing can appear any more. SQLite has one writer, whose serial numbers are in commit order;
there the safe offset is the end of the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from adjudge.domain.errors import InvalidInput
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

_COLUMNS = {
    "user_id": "submissions.user_id",
    "problem_id": "submissions.problem_id",
    "contest_id": "submissions.contest_id",
}
_FROM = "FROM submission_status_log AS log JOIN submissions ON submissions.id = log.submission_id"
_BETWEEN = "(log.xid, log.id) >= (:from_xid, :from_id) AND (log.xid, log.id) < (:to_xid, :to_id)"

_OFFSET: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


class EventOffset(NamedTuple):
    """A position in the log; in HTTP the id of an event."""

    xid: int
    id: int

    def __str__(self) -> str:
        """The id of the event in HTTP."""
        return f"{self.xid}-{self.id}"

    @property
    def next(self) -> EventOffset:
        """The offset after this one."""
        return EventOffset(self.xid, self.id + 1)


@dataclass(frozen=True, slots=True)
class SubmissionStatusEvent:
    """A status change of a submission."""

    offset: EventOffset
    submission_id: str
    from_status: str
    to_status: str
    verdict: str | None
    version: int
    at: int
    user_id: str
    problem_id: str
    contest_id: str | None


@dataclass(frozen=True, slots=True)
class JudgeProgressEvent:
    """Progress of a judge run."""

    submission_id: str
    user_id: str
    job_id: str
    attempt_id: int
    stage: str
    done: int
    total: int
    cases: Sequence[Mapping[str, Any]]
    updated_at: int
    contest_id: str | None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects the events of one submission, of one user, or all."""

    submission_id: str | None = None
    user_id: str | None = None


SAFE_OFFSET = Statement(
    "submission_status_log.safe_offset",
    "Find the offset below which no status change can still appear.",
    "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS xid, CAST(0 AS bigint) AS id",
    sqlite_sql="SELECT 0 AS xid, COALESCE(max(id), 0) + 1 AS id FROM submission_status_log",
)


def _between(name: str, purpose: str, condition: str = "") -> Statement[SubmissionStatusEvent]:
    return Statement(
        f"submission_status_log.{name}",
        purpose,
        f"SELECT {{columns:log}} {_FROM} WHERE {_BETWEEN} {condition} ORDER BY log.xid, log.id LIMIT :limit",
        row=SubmissionStatusEvent,
        columns=_COLUMNS,
    )


BETWEEN = _between("between", "List submission status changes between two offsets.")
BETWEEN_OF_USER = _between(
    "between_of_user", "List status changes of one user's submissions between two offsets.", "AND user_id = :user_id"
)
BETWEEN_OF_SUBMISSION = _between(
    "between_of_submission",
    "List status changes of one submission between two offsets.",
    "AND log.submission_id = :submission_id",
)
CHANGED_SINCE = Statement(
    "submission_status_log.changed_since",
    "Find submissions changed since an offset, including changes above the safe offset.",
    """
    SELECT submission_id FROM submission_status_log
    WHERE (xid, id) >= (:from_xid, :from_id) ORDER BY xid DESC, id DESC LIMIT :limit
    """,
)
LAST_OF_SUBMISSION = Statement(
    "submission_status_log.last_of_submission",
    "Find the offset of the last change of a submission.",
    """
    SELECT {columns} FROM submission_status_log WHERE submission_id = :submission_id
    ORDER BY version DESC LIMIT 1
    """,
    row=EventOffset,
)
PROGRESS_SINCE = Statement(
    "job_progress.since",
    "List judge runs whose progress changed recently.",
    # Recent progress first, then jobs and submissions by key: PostgreSQL assumes that the index of open submissions is
    # nearly empty, and would otherwise start there and read the whole backlog.
    """
    WITH recent AS MATERIALIZED (
        SELECT job_id, attempt_id, stage, done, total, cases, updated_at FROM job_progress
        WHERE updated_at >= COALESCE(CAST(:since AS bigint), {now} - 2000000))
    SELECT {columns:recent} FROM recent JOIN jobs ON jobs.id = job_id JOIN submissions ON submissions.id = submission_id
    WHERE COALESCE(rejudge_batch_id, '') = '' AND COALESCE(submissions.finished_at, 0) = 0
    """,
    row=JudgeProgressEvent,
    columns={
        "submission_id": "submissions.id",
        "user_id": "submissions.user_id",
        "contest_id": "submissions.contest_id",
    },
)
FINISHED_SUBMISSIONS = Statement(
    "submissions.finished",
    "Find which of the given submissions are finished.",
    """
    SELECT submissions.id AS id FROM {given} JOIN submissions ON submissions.id = given_id
    WHERE finished_at IS NOT NULL
    """,
    input_columns={"given_id": "text"},
)
FINISHED_JOBS = Statement(
    "jobs.finished",
    "Find which of the given jobs are finished.",
    "SELECT jobs.id AS id FROM {given} JOIN jobs ON jobs.id = given_id WHERE finished_at IS NOT NULL",
    input_columns={"given_id": "text"},
)


START: Final = EventOffset(0, 0)


def parse_event_offset(text: str) -> EventOffset:
    match = _OFFSET.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"Last-Event-ID: {text[:64]!r} is not a valid event id.", field="Last-Event-ID")
    return EventOffset(int(match[1]), int(match[2]))


async def safe_offset(tx: Tx) -> EventOffset:
    """The offset up to which the log may be read in this snapshot."""
    (row,) = await tx.fetch(SAFE_OFFSET)
    return EventOffset(row["xid"], row["id"])


async def read_between(
    tx: Tx, which: EventFilter, start: EventOffset, end: EventOffset, *, limit: int
) -> list[SubmissionStatusEvent]:
    """The events from ``start`` to before ``end``, in order."""
    named: dict[str, object] = {
        "from_xid": start.xid,
        "from_id": start.id,
        "to_xid": end.xid,
        "to_id": end.id,
        "limit": limit,
    }
    if which.submission_id is not None:
        return await tx.fetch(BETWEEN_OF_SUBMISSION, submission_id=which.submission_id, **named)
    if which.user_id is not None:
        return await tx.fetch(BETWEEN_OF_USER, user_id=which.user_id, **named)
    return await tx.fetch(BETWEEN, **named)


async def changed_since(tx: Tx, start: EventOffset, *, limit: int) -> set[str]:
    """The submissions with a committed change at ``start`` or later; the newest ones if there are more than ``limit``.

    If ``start`` is a safe offset, none is missed. Changes above the safe offset are returned again by the next call.
    """
    rows = await tx.fetch(CHANGED_SINCE, from_xid=start.xid, from_id=start.id, limit=limit)
    return {row["submission_id"] for row in rows}


async def find_last_offset(tx: Tx, submission_id: str) -> EventOffset:
    """The offset of the last committed change of a submission; the start of the log if there is none."""
    return await fetch_one(tx, LAST_OF_SUBMISSION, submission_id=submission_id) or START


async def progress_since(tx: Tx, since: int | None) -> list[JudgeProgressEvent]:
    """The progress of judge runs since a time; without one, of the last two seconds."""
    return await tx.fetch(PROGRESS_SINCE, since=since)


async def find_finished_submissions(tx: Tx, submission_ids: Sequence[str]) -> set[str]:
    rows = await tx.fetch(FINISHED_SUBMISSIONS, [(item,) for item in submission_ids]) if submission_ids else []
    return {row["id"] for row in rows}


async def find_finished_jobs(tx: Tx, job_ids: Sequence[str]) -> set[str]:
    rows = await tx.fetch(FINISHED_JOBS, [(item,) for item in job_ids]) if job_ids else []
    return {row["id"] for row in rows}
