"""Counts for admission control: waiting jobs, and the usage of one user.

Rows are counted up to a limit, so that the cost does not grow with the backlog.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class UserUsage:
    """A user's unfinished submissions, executions and records of evaluations, and those created today."""

    in_flight: int
    submitted_today: int


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
    "Count a user's unfinished submissions, executions and evaluated records, and those since an id, up to the limits.",
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
        ) AS executed_today) AS executed,
        (SELECT COALESCE(SUM(total - finished), 0) FROM evaluations WHERE user_id = :user_id) AS evaluating,
        (SELECT COALESCE(SUM(total), 0) FROM evaluations WHERE user_id = :user_id AND id >= :since_id) AS evaluated
    """,
)


async def count_waiting(tx: Tx, *, limit: int) -> int:
    """The number of waiting jobs, up to ``limit``."""
    return int((await tx.fetch(COUNT_WAITING, limit=limit))[0]["n"])


async def count_usage(tx: Tx, user_id: str, *, since_id: str, open_limit: int, since_limit: int) -> UserUsage:
    """Count a user's usage. ``since_id`` is the smallest id of the day: ids sort by creation time."""
    (row,) = await tx.fetch(
        COUNT_USAGE, user_id=user_id, since_id=since_id, open_limit=open_limit, since_limit=since_limit
    )
    in_flight = sum(int(row[name]) for name in ("judging", "executing", "evaluating"))
    return UserUsage(in_flight, sum(int(row[name]) for name in ("submitted", "executed", "evaluated")))
