"""The contest that the whole installation serves alone, if there is one."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ContestOnlyRow:
    """A contest in contest-only mode."""

    id: str
    slug: str
    title: str
    visibility: str


FIND = Statement(
    "contests.contest_only",
    "Find the contest that the installation serves alone now.",
    """
    SELECT {columns} FROM contests WHERE contest_only AND state IN ('published', 'finalized')
      AND (contest_only_from IS NULL OR contest_only_from <= {now})
      AND (contest_only_until IS NULL OR contest_only_until > {now})
    """,
    row=ContestOnlyRow,
)
HAS_ROLE = Statement(
    "contests.has_role",
    "Whether a user has a role in a contest.",
    "SELECT 1 AS found FROM contest_roles WHERE contest_id = :contest_id AND user_id = :user_id LIMIT 1",
)


async def find(tx: Tx) -> ContestOnlyRow | None:
    """The contest that the installation serves alone at this time of the database clock."""
    return await fetch_one(tx, FIND)


async def has_role(tx: Tx, contest_id: str, user_id: str) -> bool:
    """Whether a user is staff of a contest."""
    return bool(await tx.fetch(HAS_ROLE, contest_id=contest_id, user_id=user_id))
