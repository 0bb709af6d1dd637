"""The audit log: manual actions with their actor and reason, written in the transaction of the action.

A user is stored by id, even if the caller passes a name, so that all actions of one user are found. Other actors
(``cli:NAME`` for the operator of the machine, ``trigger:ID``) are stored as they are: user names have no colon.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

ENTRIES = """
    SELECT {columns} FROM audit_log LEFT JOIN users ON users.id = actor
"""
COLUMNS = {"id": "audit_log.id", "actor_name": "users.name", "details": "COALESCE(details, '{}')"}

_NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class AuditLogRow:
    """One manual action."""

    id: int
    actor: str
    actor_name: str | None
    action: str
    object_kind: str
    object_id: str
    reason: str | None
    details: Mapping[str, Any]
    at: int


INSERT = Statement(
    "audit_log.insert",
    "Insert audit log entries.",
    """
    INSERT INTO audit_log (actor, action, object_kind, object_id, contest_id, reason, details, at)
    SELECT COALESCE((SELECT users.id FROM users WHERE users.name = :actor), :actor), :action, :object_kind,
           given_object_id,
           CASE CAST(:object_kind AS text) WHEN 'contest' THEN given_object_id
                WHEN 'submission' THEN (SELECT contest_id FROM submissions WHERE submissions.id = given_object_id)
                WHEN 'participant' THEN (SELECT contest_id FROM participants WHERE participants.id = given_object_id)
           END,
           :reason, given_details, {now}
    FROM {given}
    """,
    input_columns={"given_object_id": "text", "given_details": "jsonb"},
)

PAGE = Statement(
    "audit_log.page",
    "List audit log entries, newest first, keyset-paginated.",
    ENTRIES + " WHERE audit_log.id < :before ORDER BY audit_log.id DESC LIMIT :limit",
    row=AuditLogRow,
    columns=COLUMNS,
)

PAGE_BY_ACTOR = Statement(
    "audit_log.page_by_actor",
    "List audit log entries of one actor, newest first, keyset-paginated.",
    ENTRIES + " WHERE actor = :actor AND audit_log.id < :before ORDER BY audit_log.id DESC LIMIT :limit",
    row=AuditLogRow,
    columns=COLUMNS,
)

PAGE_BY_OBJECT = Statement(
    "audit_log.page_by_object",
    "List audit log entries of one object, newest first, keyset-paginated.",
    ENTRIES
    + """
    WHERE object_kind = :object_kind AND object_id = :object_id AND audit_log.id < :before
    ORDER BY audit_log.id DESC LIMIT :limit
    """,
    row=AuditLogRow,
    columns=COLUMNS,
)

PAGE_BY_CONTEST = Statement(
    "audit_log.page_by_contest",
    "List audit log entries of a contest, its participants and its submissions, newest first.",
    ENTRIES + " WHERE contest_id = :contest_id ORDER BY audit_log.id DESC LIMIT :limit",
    row=AuditLogRow,
    columns=COLUMNS,
)


DELETE_OLD = Statement(
    "audit_log.delete_old",
    "Delete the oldest audit log entries past their retention.",
    """
    DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE id > 0 ORDER BY id LIMIT :limit)
      AND at < {now} - CAST(:older_than_us AS bigint)
    """,
)


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete old entries, the oldest first; return their number."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)


async def record(
    tx: Tx,
    *,
    actor: str,
    action: str,
    object_kind: str,
    objects: Mapping[str, Mapping[str, Any]] | Sequence[str],
    reason: str,
) -> None:
    """Record that ``actor`` did ``action`` to ``objects``, which may have details each."""
    details = objects if isinstance(objects, Mapping) else {key: {} for key in objects}
    rows = [(object_id, json.dumps(detail)) for object_id, detail in details.items()]
    if rows:
        await tx.execute(INSERT, rows, actor=actor, action=action, object_kind=object_kind, reason=reason)


async def page(tx: Tx, *, actor: str = "", before: int | None = None, limit: int = 20) -> list[AuditLogRow]:
    """List entries, newest first, optionally of one actor; ``before`` is the last id of the previous page."""
    start = _NEWEST if before is None else before
    if actor:
        return await tx.fetch(PAGE_BY_ACTOR, actor=actor, before=start, limit=limit)
    return await tx.fetch(PAGE, before=start, limit=limit)


async def page_by_object(
    tx: Tx, object_kind: str, object_id: str, *, before: int | None = None, limit: int = 20
) -> list[AuditLogRow]:
    """List the entries of one object, newest first."""
    start = _NEWEST if before is None else before
    return await tx.fetch(PAGE_BY_OBJECT, object_kind=object_kind, object_id=object_id, before=start, limit=limit)


async def page_by_contest(tx: Tx, contest_id: str, *, limit: int) -> list[AuditLogRow]:
    """List the newest entries of a contest, its participants and its submissions."""
    return await tx.fetch(PAGE_BY_CONTEST, contest_id=contest_id, limit=limit)
