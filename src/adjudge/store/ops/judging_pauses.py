"""Pauses of judging that operators ordered: of everything, of a language or of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.models import HELD_AT

PauseScope = Literal["all", "language", "problem"]


@dataclass(frozen=True, slots=True)
class JudgingPauseRow:
    """A pause in force."""

    scope: PauseScope
    subject: str
    """The language or the id of the problem; empty for everything."""
    actor: str
    reason: str
    created_at: int


INSERT = Statement(
    "judging_pauses.insert",
    "Pause judging; a pause in force keeps its reason.",
    """
    INSERT INTO judging_pauses (scope, subject, actor, reason, created_at)
    VALUES (:scope, :subject, :actor, :reason, {now}) ON CONFLICT (scope, subject) DO NOTHING
    """,
)
DELETE = Statement(
    "judging_pauses.delete",
    "Resume judging.",
    "DELETE FROM judging_pauses WHERE scope = :scope AND subject = :subject",
)
LIST = Statement(
    "judging_pauses.list",
    "List the pauses in force.",
    "SELECT {columns} FROM judging_pauses ORDER BY scope, subject",
    row=JudgingPauseRow,
)

MATCHES_SUBMISSION: Final = """
    scope = 'all' OR (scope = 'language' AND subject = submissions.language)
        OR (scope = 'problem' AND subject = submissions.problem_id)
"""
"""Whether a pause concerns the joined submission."""

TO_HOLD = Statement(
    "jobs.to_hold_by_pause",
    "Find unfinished judge runs that a pause concerns and that are not held.",
    f"""
    SELECT jobs.id FROM jobs JOIN submissions ON submissions.id = jobs.submission_id
    WHERE jobs.finished_at IS NULL AND jobs.kind = 'judge' AND jobs.available_at < {HELD_AT}
      AND EXISTS (SELECT 1 FROM judging_pauses WHERE {MATCHES_SUBMISSION})
    LIMIT :limit
    """,
)


async def insert(tx: Tx, scope: PauseScope, subject: str, *, actor: str, reason: str) -> bool:
    """Pause judging; False if it was paused already."""
    return bool(await tx.execute(INSERT, scope=scope, subject=subject, actor=actor, reason=reason))


async def delete(tx: Tx, scope: PauseScope, subject: str) -> bool:
    """Resume judging; False if it was not paused."""
    return bool(await tx.execute(DELETE, scope=scope, subject=subject))


async def list_all(tx: Tx) -> list[JudgingPauseRow]:
    """The pauses in force."""
    return await tx.fetch(LIST)


async def find_to_hold(tx: Tx, *, limit: int) -> list[str]:
    """Judge runs that have to wait."""
    return [row["id"] for row in await tx.fetch(TO_HOLD, limit=limit)]
