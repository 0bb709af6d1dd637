"""Revisions of cached data: a write increments those that it invalidates, in its own transaction.

All increments use one counter row, which the transaction locks until it commits. So numbers appear in commit order, and
a reader that asks for everything after number 7 misses nothing. Only rare writes increment (changes of a problem, not
verdicts), so the lock is not contended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

CHANNEL_CACHE: Final = "adjudge_cache"
"""Notified when a revision was incremented."""
CATALOGUE: Final = "catalogue"
"""Incremented by every change of the list of problems."""
_COUNTER: Final = "*"

NEXT = Statement(
    "cache_revisions.next",
    "Increment the revision counter; the row stays locked until commit.",
    """
    INSERT INTO cache_revisions (name, revision) VALUES (:name, 1)
    ON CONFLICT (name) DO UPDATE SET revision = cache_revisions.revision + 1
    RETURNING revision
    """,
)

BUMP = Statement(
    "cache_revisions.bump",
    "Set the revision of cache keys that the write invalidates.",
    """
    INSERT INTO cache_revisions (name, revision) SELECT given_name, :revision FROM {given} WHERE true
    ON CONFLICT (name) DO UPDATE SET revision = :revision
    """,
    input_columns={"given_name": "text"},
)

SELECT_SINCE = Statement(
    "cache_revisions.select_since",
    "List cache keys whose revision is newer than a given one.",
    "SELECT name, revision FROM cache_revisions WHERE revision > :revision",
)


def problem_key(name: str) -> str:
    """The key of the cached data of a problem; ``name`` is its slug or id."""
    return f"problem:{name}"


async def bump(tx: Tx, names: Iterable[str]) -> None:
    """Invalidate everything cached under ``names`` when this transaction commits."""
    rows = await tx.fetch(NEXT, name=_COUNTER)
    await tx.execute(BUMP, [(name,) for name in sorted(set(names))], revision=rows[0]["revision"])
    tx.notify(CHANNEL_CACHE)


async def find_changed_since(tx: Tx, revision: int) -> dict[str, int]:
    """The keys that were incremented after ``revision``."""
    return {row["name"]: int(row["revision"]) for row in await tx.fetch(SELECT_SINCE, revision=revision)}
