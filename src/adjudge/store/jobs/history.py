"""Deletes the history of jobs that ended long ago: outbox rows, status changes and attempts.

These tables have no index by time, which would cost every job a write. Their keys are in the order of time, so they are
read from the oldest row on, page by page; a page with rows that are too recent is the last one of a pass. Rows of jobs
that are unfinished, or have an open dead letter, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

_ENDED = """COALESCE(jobs.finished_at <= {now} - CAST(:older_than_us AS bigint), false) AND NOT EXISTS (
    SELECT 1 FROM dead_letters WHERE dead_letters.job_id = jobs.id AND dead_letters.state = 'open')"""
_RECENT = "{column} > {{now}} - CAST(:older_than_us AS bigint)"


class HistoryRow(Protocol):
    """A row of history: whether it may be deleted, and whether it is too recent in any case."""

    @property
    def key(self) -> int | str: ...

    @property
    def is_due(self) -> bool: ...

    @property
    def is_recent(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class NumberedHistoryRow:
    """A row with a serial number."""

    key: int
    is_due: bool
    is_recent: bool


@dataclass(frozen=True, slots=True)
class JobHistoryRow:
    """A row without a number of its own; its key is the id of its job."""

    key: str
    is_due: bool
    is_recent: bool


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """A table of history, with the statements that page through it and delete from it."""

    name: str
    page: Statement[HistoryRow]
    delete: Statement
    start: int | str


OUTBOX: Final = HistoryTable(
    "outbox",
    Statement(
        "outbox.page_oldest",
        "Page through the outbox from the oldest row on, and find rows of jobs that ended long ago.",
        """
        SELECT {columns} FROM outbox JOIN jobs ON jobs.id = outbox.job_id
        WHERE outbox.id > :after ORDER BY outbox.id LIMIT :limit
        """,
        row=NumberedHistoryRow,
        columns={
            "key": "outbox.id",
            "is_due": f"outbox.state <> 'pending' AND {_ENDED}",
            "is_recent": _RECENT.format(column="jobs.created_at"),
        },
    ),
    Statement(
        "outbox.delete_delivered",
        "Delete outbox rows of jobs that ended.",
        "DELETE FROM outbox WHERE id IN (SELECT given_key FROM {given}) AND COALESCE(state, '') <> 'pending'",
        input_columns={"given_key": "bigint"},
    ),
    0,
)
STATUS_LOG: Final = HistoryTable(
    "job_status_log",
    Statement(
        "job_status_log.page_oldest",
        "Page through the status changes from the oldest on, and find those of jobs that ended long ago.",
        """
        SELECT {columns} FROM job_status_log JOIN jobs ON jobs.id = job_status_log.job_id
        WHERE job_status_log.id > :after ORDER BY job_status_log.id LIMIT :limit
        """,
        row=NumberedHistoryRow,
        columns={
            "key": "job_status_log.id",
            "is_due": _ENDED,
            "is_recent": _RECENT.format(column="job_status_log.at"),
        },
    ),
    Statement(
        "job_status_log.delete_many",
        "Delete status changes of jobs.",
        "DELETE FROM job_status_log WHERE id IN (SELECT given_key FROM {given})",
        input_columns={"given_key": "bigint"},
    ),
    0,
)
ATTEMPTS: Final = HistoryTable(
    "job_attempts",
    Statement(
        "job_attempts.page_oldest",
        "Page through the attempts by job, the oldest job first, and find those of jobs that ended long ago.",
        """
        SELECT {columns} FROM job_attempts JOIN jobs ON jobs.id = job_attempts.job_id
        WHERE job_attempts.job_id > :after ORDER BY job_attempts.job_id LIMIT :limit
        """,
        row=JobHistoryRow,
        columns={
            "key": "job_attempts.job_id",
            "is_due": _ENDED,
            "is_recent": _RECENT.format(column="jobs.created_at"),
        },
    ),
    Statement(
        "job_attempts.delete_of_jobs",
        "Delete the attempts of jobs that ended.",
        "DELETE FROM job_attempts WHERE job_id IN (SELECT given_key FROM {given})",
        input_columns={"given_key": "text"},
    ),
    "",
)


async def delete_page(
    tx: Tx, position: int | str | None, *, table: HistoryTable, older_than_ms: int, limit: int = 500
) -> tuple[int, int | str | None]:
    """Delete what is due in the page after ``position``.

    Return how many rows, and the position of the next page; None if this was the last page of the pass.
    """
    after = table.start if position is None else position
    rows = await tx.fetch(table.page, after=after, older_than_us=older_than_ms * 1_000, limit=limit)
    keys = sorted({(row.key,) for row in rows if row.is_due})
    deleted = await tx.execute(table.delete, keys) if keys else 0
    is_last = len(rows) < limit or any(row.is_recent for row in rows)
    return deleted, None if is_last else rows[-1].key
