"""What admission asks of the rows: how much waits, and how much of it is one user's.

Every count is taken of the rows themselves and stops at its limit, so that it costs no more when there is far more.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

COUNT_WAITING = Statement(
    "admission.count_waiting",
    "Count pending and queued jobs, up to a limit.",
    """
    SELECT count(*) AS n FROM (
        SELECT 1 AS one FROM jobs WHERE status IN ('pending', 'queued') LIMIT :limit
    ) AS waiting
    """,
)

COUNT_USAGE = Statement(
    "admission.count_usage",
    "Count a user's unfinished submissions and executions, and those created since an id, up to the limits.",
    """
    SELECT
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM submissions WHERE user_id = :user_id AND finished_at IS NULL LIMIT :open_limit
        ) AS unjudged) AS judging,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM executions
            WHERE user_id = :user_id AND id >= :since_id AND finished_at IS NULL LIMIT :open_limit
        ) AS unfinished) AS executing,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM submissions WHERE user_id = :user_id AND id >= :since_id LIMIT :since_limit
        ) AS submitted_today) AS submitted,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM executions WHERE user_id = :user_id AND id >= :since_id LIMIT :since_limit
        ) AS executed_today) AS executed
    """,
)


@dataclass(frozen=True, slots=True)
class UserUsage:
    """What one user has under way, and has made since the day began."""

    in_flight: int
    submitted_today: int


async def count_waiting(tx: Tx, *, limit: int) -> int:
    """How many jobs wait for a worker."""
    return int((await tx.fetch(COUNT_WAITING, limit=limit))[0]["n"])


async def count_usage(tx: Tx, user_id: str, *, since_id: str, open_limit: int, since_limit: int) -> UserUsage:
    """Count over rows. ``since_id`` is the smallest id of the day: ids sort by the time they were made."""
    (row,) = await tx.fetch(
        COUNT_USAGE, user_id=user_id, since_id=since_id, open_limit=open_limit, since_limit=since_limit
    )
    return UserUsage(int(row["judging"]) + int(row["executing"]), int(row["submitted"]) + int(row["executed"]))
