"""What admission asks of the rows: how much waits, and how much of it is one user's.

Every count is taken of the rows themselves and stops at its limit, so that it costs no more when there is far more.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.driver import Tx
from adjudge.store.statement import Statement

COUNT_WAITING = Statement(
    "admission.count_waiting",
    "Count pending and queued jobs, up to a limit.",
    """
    SELECT count(*) AS n FROM (
        SELECT 1 AS one FROM jobs WHERE status IN ('pending', 'queued') LIMIT :at_most
    ) AS waiting
    """,
)

COUNT_USE = Statement(
    "admission.count_usage",
    "Count a user's unfinished submissions and executions, and those created since an id, up to the limits.",
    """
    SELECT
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM submissions WHERE user_id = :user_id AND finished_at IS NULL LIMIT :open_at_most
        ) AS unjudged) AS judging,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM executions
            WHERE user_id = :user_id AND id >= :since_id AND finished_at IS NULL LIMIT :open_at_most
        ) AS unfinished) AS executing,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM submissions WHERE user_id = :user_id AND id >= :since_id LIMIT :since_at_most
        ) AS submitted_today) AS submitted,
        (SELECT count(*) FROM (
            SELECT 1 AS one FROM executions WHERE user_id = :user_id AND id >= :since_id LIMIT :since_at_most
        ) AS executed_today) AS executed
    """,
)


@dataclass(frozen=True, slots=True)
class Use:
    """What one user has under way, and has made since the day began."""

    in_flight: int
    today: int


async def count_waiting(tx: Tx, *, at_most: int) -> int:
    """How many jobs wait for a worker."""
    return int((await tx.fetch(COUNT_WAITING, at_most=at_most))[0]["n"])


async def count_use(tx: Tx, user_id: str, *, since_id: str, open_at_most: int, since_at_most: int) -> Use:
    """Count over rows. ``since_id`` is the smallest id of the day: ids sort by the time they were made."""
    (row,) = await tx.fetch(
        COUNT_USE, user_id=user_id, since_id=since_id, open_at_most=open_at_most, since_at_most=since_at_most
    )
    return Use(int(row["judging"]) + int(row["executing"]), int(row["submitted"]) + int(row["executed"]))
