"""Events that operators are alerted to: a lost worker, a dead letter, a failed chain run. Each is recorded once."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

WORKER_LOST: Final = "ops.worker_lost"
DEAD_LETTER: Final = "ops.dead_letter"
CHAIN_FAILED: Final = "ops.chain_failed"
EVENTS: Final = (WORKER_LOST, DEAD_LETTER, CHAIN_FAILED)

_WINDOW_US: Final = 3_600_000_000
"""Older causes are not reported: after a long stop nobody wants the alerts of last week."""


@dataclass(frozen=True, slots=True)
class OperationalEventRow:
    """An event of the installation."""

    id: str
    kind: str
    subject: str
    detail: str
    created_at: int


def _unrecorded(kind: str, subject: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM operational_events WHERE kind = '{kind}' AND subject = {subject})"


_LOST = "processes.id || '@' || CAST(processes.started_at AS text)"
FIND_LOST = Statement(
    "operational_events.find_lost",
    "Find workers whose lease expired, which are not recorded yet.",
    f"""
    SELECT '{WORKER_LOST}' AS kind, {_LOST} AS subject, processes.id || ' on ' || host AS detail FROM processes
    WHERE role = 'worker' AND lease_until <= {{now}} AND lease_until > {{now}} - {_WINDOW_US}
      AND {_unrecorded(WORKER_LOST, _LOST)}
    ORDER BY lease_until LIMIT :limit
    """,
)
FIND_DEAD_LETTERS = Statement(
    "operational_events.find_dead_letters",
    "Find open dead letters that are not recorded yet.",
    f"""
    SELECT '{DEAD_LETTER}' AS kind, dead_letters.id AS subject,
           dead_letters.kind || ' job ' || job_id || ': ' || error_code AS detail
    FROM dead_letters WHERE state = 'open' AND created_at > {{now}} - {_WINDOW_US}
      AND {_unrecorded(DEAD_LETTER, "dead_letters.id")}
    ORDER BY created_at LIMIT :limit
    """,
)
FIND_FAILED_RUNS = Statement(
    "operational_events.find_failed_runs",
    "Find failed chain runs that are not recorded yet.",
    f"""
    SELECT '{CHAIN_FAILED}' AS kind, chain_runs.id AS subject,
           chains.name || ' run ' || CAST(chain_runs.number AS text) || ': ' || COALESCE(reason, '') AS detail
    FROM chain_runs JOIN chains ON chains.id = chain_id
    WHERE status = 'failed' AND finished_at > {{now}} - {_WINDOW_US}
      AND {_unrecorded(CHAIN_FAILED, "chain_runs.id")}
    ORDER BY finished_at LIMIT :limit
    """,
)
INSERT = Statement(
    "operational_events.insert",
    "Record events; one that another scheduler has recorded is left out.",
    """
    INSERT INTO operational_events (id, kind, subject, detail, created_at)
    SELECT given_id, given_kind, given_subject, given_detail, {now} FROM {given} WHERE true
    ON CONFLICT (kind, subject) DO NOTHING
    RETURNING {columns}
    """,
    input_columns={"given_id": "text", "given_kind": "text", "given_subject": "text", "given_detail": "text"},
    row=OperationalEventRow,
)
TAKE_UNMAILED = Statement(
    "operational_events.take_unmailed",
    "Take the events for the next alert mail, unless one was sent a short while ago.",
    f"""
    UPDATE operational_events SET mailed_at = {{now}}
    WHERE mailed_at IS NULL AND created_at > {{now}} - {_WINDOW_US} AND NOT EXISTS (
        SELECT 1 FROM operational_events AS earlier WHERE earlier.mailed_at > {{now}} - CAST(:interval_us AS bigint))
    RETURNING {{columns}}
    """,
    row=OperationalEventRow,
)
DELETE_OLD = Statement(
    "operational_events.delete_old",
    "Delete events after their retention time.",
    """
    DELETE FROM operational_events WHERE id IN (
        SELECT id FROM operational_events WHERE created_at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)


async def find_new(tx: Tx, *, limit: int) -> list[tuple[str, str, str]]:
    """Causes that are not recorded yet: kind, subject, detail."""
    found = []
    for statement in (FIND_LOST, FIND_DEAD_LETTERS, FIND_FAILED_RUNS):
        found += [(row["kind"], row["subject"], row["detail"]) for row in await tx.fetch(statement, limit=limit)]
    return found


async def insert(tx: Tx, rows: list[tuple[str, str, str, str]]) -> list[OperationalEventRow]:
    """Record events (id, kind, subject, detail); return those that were new."""
    return await tx.fetch(INSERT, sorted(rows, key=itemgetter(1, 2)))


async def take_unmailed(tx: Tx, *, interval_ms: int) -> list[OperationalEventRow]:
    """The events for the next alert mail, oldest first; none if one was sent within the interval."""
    taken = await tx.fetch(TAKE_UNMAILED, interval_us=interval_ms * 1_000)
    return sorted(taken, key=lambda event: (event.created_at, event.id))


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete events after their retention time; return how many."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)
