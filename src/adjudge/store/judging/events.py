"""The tail of what happens to submissions, in an order that is safe to resume from.

On PostgreSQL a row's serial number says when it was written, not when it was committed: whoever has read up to 7 may
find 6 later. So the order is (transaction, serial number), and only what lies below the *horizon* is read: the oldest
transaction that is still under way, below which nothing can appear any more. SQLite has one writer, whose serial
numbers are in the order of commits; there the horizon is simply the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from adjudge.domain.errors import InvalidInput
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row, Statement

SAFE_OFFSET = Statement(
    "submission_status_log.safe_offset",
    "Find the offset below which no status change can still appear.",
    "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS xid, CAST(0 AS bigint) AS id",
    sqlite_sql="SELECT 0 AS xid, COALESCE(max(id), 0) + 1 AS id FROM submission_status_log",
)

_COLUMNS = """log.xid AS xid, log.id AS id, log.submission_id AS submission_id, from_status, to_status,
        log.verdict AS verdict, log.version AS version, log.at AS at, user_id, problem_id"""
_FROM = "FROM submission_status_log AS log JOIN submissions ON submissions.id = log.submission_id"
_BETWEEN = "(log.xid, log.id) >= (:from_xid, :from_id) AND (log.xid, log.id) < (:to_xid, :to_id)"
_ORDER = "ORDER BY log.xid, log.id LIMIT :limit"

BETWEEN = Statement(
    "submission_status_log.between",
    "List submission status changes between two offsets.",
    f"SELECT {_COLUMNS} {_FROM} WHERE {_BETWEEN} {_ORDER}",
)
BETWEEN_OF_USER = Statement(
    "submission_status_log.between_of_user",
    "List status changes of one user's submissions between two offsets.",
    f"SELECT {_COLUMNS} {_FROM} WHERE {_BETWEEN} AND user_id = :user_id {_ORDER}",
)
BETWEEN_OF_SUBMISSION = Statement(
    "submission_status_log.between_of_submission",
    "List status changes of one submission between two offsets.",
    f"SELECT {_COLUMNS} {_FROM} WHERE {_BETWEEN} AND log.submission_id = :submission_id {_ORDER}",
)
CHANGED_SINCE = Statement(
    "submission_status_log.changed_since",
    "Tell which submissions have changed since a place, above the horizon too.",
    """
    SELECT submission_id FROM submission_status_log
    WHERE (xid, id) >= (:from_xid, :from_id) ORDER BY xid DESC, id DESC LIMIT :limit
    """,
)
LAST_OF_SUBMISSION = Statement(
    "submission_status_log.last_of_submission",
    "Find the place of the last change of one submission, told or not.",
    """
    SELECT xid, id FROM submission_status_log WHERE submission_id = :submission_id
    ORDER BY version DESC LIMIT 1
    """,
)
PROGRESS_SINCE = Statement(
    "job_progress.since",
    "List judge runs whose progress changed recently.",
    # What is recent is found first, and what it belongs to by key: PostgreSQL believes the index of open submissions to
    # be nearly empty, and left free to would start from there and go through the whole backlog.
    """
    WITH recent AS MATERIALIZED (
        SELECT job_id, attempt_id, stage, done, total, cases, updated_at FROM job_progress
        WHERE updated_at >= COALESCE(CAST(:since AS bigint), {now} - 2000000))
    SELECT submission_id, user_id, job_id, recent.attempt_id AS attempt_id, stage, done, total, cases,
           recent.updated_at AS updated_at
    FROM recent JOIN jobs ON jobs.id = job_id JOIN submissions ON submissions.id = submission_id
    WHERE COALESCE(rejudge_batch_id, '') = '' AND COALESCE(submissions.finished_at, 0) = 0
    """,
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

_PLACE: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


class EventOffset(NamedTuple):
    """A place in the tail; on the wire the id of an event."""

    xid: int
    id: int

    def __str__(self) -> str:
        """As it goes over the wire."""
        return f"{self.xid}-{self.id}"

    @property
    def next(self) -> EventOffset:
        """The place right behind."""
        return EventOffset(self.xid, self.id + 1)


START: Final = EventOffset(0, 0)


def parse_event_offset(text: str) -> EventOffset:
    """Read an event's id as it came back."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"Last-Event-ID: {text[:64]!r} is not a valid event id.", field="Last-Event-ID")
    return EventOffset(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class SubmissionStatusEvent:
    """A submission changed."""

    offset: EventOffset
    submission_id: str
    from_status: str
    to_status: str
    verdict: str | None
    version: int
    at: int
    user_id: str
    problem_id: str


@dataclass(frozen=True, slots=True)
class JudgeProgressEvent:
    """A judge run came further."""

    submission_id: str
    user_id: str
    job_id: str
    attempt_id: int
    stage: str
    done: int
    total: int
    cases: Sequence[Mapping[str, Any]]
    updated_at: int


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Whose events: one submission's, one user's, or everybody's."""

    submission_id: str | None = None
    user_id: str | None = None


async def safe_offset(tx: Tx) -> EventOffset:
    """Where the tail may be read up to, in this snapshot."""
    (row,) = await tx.fetch(SAFE_OFFSET)
    return EventOffset(row["xid"], row["id"])


async def read_between(
    tx: Tx, which: EventFilter, start: EventOffset, end: EventOffset, *, limit: int
) -> list[SubmissionStatusEvent]:
    """What happened from ``start`` on and before ``end``, in order."""
    named: dict[str, object] = {
        "from_xid": start.xid,
        "from_id": start.id,
        "to_xid": end.xid,
        "to_id": end.id,
        "limit": limit,
    }
    if which.submission_id is not None:
        rows = await tx.fetch(BETWEEN_OF_SUBMISSION, submission_id=which.submission_id, **named)
    elif which.user_id is not None:
        rows = await tx.fetch(BETWEEN_OF_USER, user_id=which.user_id, **named)
    else:
        rows = await tx.fetch(BETWEEN, **named)
    return [_changed(row) for row in rows]


async def changed_since(tx: Tx, start: EventOffset, *, limit: int) -> set[str]:
    """Which submissions have a committed change at ``start`` or later; the newest where there are too many.

    With a horizon as ``start`` none is missed. Those above the horizon come again with the next question.
    """
    rows = await tx.fetch(CHANGED_SINCE, from_xid=start.xid, from_id=start.id, limit=limit)
    return {row["submission_id"] for row in rows}


async def last_place(tx: Tx, submission_id: str) -> EventOffset:
    """The place of the last committed change of a submission; the start where nothing has changed yet."""
    rows = await tx.fetch(LAST_OF_SUBMISSION, submission_id=submission_id)
    return EventOffset(rows[0]["xid"], rows[0]["id"]) if rows else START


async def progress_since(tx: Tx, since: int | None) -> list[JudgeProgressEvent]:
    """Which judge runs have come further since a moment; without one, lately."""
    return [_progress(row) for row in await tx.fetch(PROGRESS_SINCE, since=since)]


async def find_finished_submissions(tx: Tx, submission_ids: Sequence[str]) -> set[str]:
    """Those of the submissions that have ended."""
    rows = await tx.fetch(FINISHED_SUBMISSIONS, [(item,) for item in submission_ids]) if submission_ids else []
    return {row["id"] for row in rows}


async def find_finished_jobs(tx: Tx, job_ids: Sequence[str]) -> set[str]:
    """Those of the jobs that have ended."""
    rows = await tx.fetch(FINISHED_JOBS, [(item,) for item in job_ids]) if job_ids else []
    return {row["id"] for row in rows}


def _changed(row: Row) -> SubmissionStatusEvent:
    return SubmissionStatusEvent(
        EventOffset(row["xid"], row["id"]),
        row["submission_id"],
        row["from_status"],
        row["to_status"],
        row["verdict"],
        row["version"],
        row["at"],
        row["user_id"],
        row["problem_id"],
    )


def _progress(row: Row) -> JudgeProgressEvent:
    return JudgeProgressEvent(
        row["submission_id"],
        row["user_id"],
        row["job_id"],
        row["attempt_id"],
        row["stage"],
        row["done"],
        row["total"],
        json.loads(row["cases"]),
        row["updated_at"],
    )
