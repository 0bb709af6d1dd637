"""The audit log: who did what by hand, and why. Written in the transaction that does it.

An actor is kept as a user's id, whether given by id or by name, so that one user's actions are found as one's. Others
(``cli:NAME`` for whoever has the machine, ``trigger:ID``) are kept as they are: no user's name has a colon.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row, Statement

_ENTRIES = """
    SELECT audit_log.id AS id, actor, users.name AS actor_name, action, object_kind, object_id, reason, details, at
    FROM audit_log LEFT JOIN users ON users.id = actor
"""

INSERT = Statement(
    "audit_log.insert",
    "Insert audit log entries.",
    """
    INSERT INTO audit_log (actor, action, object_kind, object_id, reason, details, at)
    SELECT COALESCE((SELECT users.id FROM users WHERE users.name = :actor), :actor), :action, :object_kind,
           given_object_id, :reason, given_details, {now}
    FROM {given}
    """,
    input_columns={"given_object_id": "text", "given_details": "jsonb"},
)

PAGE = Statement(
    "audit_log.page",
    "List audit log entries, newest first, keyset-paginated.",
    f"{_ENTRIES} WHERE audit_log.id < :before ORDER BY audit_log.id DESC LIMIT :limit",
)

PAGE_BY_ACTOR = Statement(
    "audit_log.page_by_actor",
    "List audit log entries of one actor, newest first, keyset-paginated.",
    f"{_ENTRIES} WHERE actor = :actor AND audit_log.id < :before ORDER BY audit_log.id DESC LIMIT :limit",
)

PAGE_BY_OBJECT = Statement(
    "audit_log.page_by_object",
    "List audit log entries of one object, newest first, keyset-paginated.",
    f"""
    {_ENTRIES} WHERE object_kind = :object_kind AND object_id = :object_id AND audit_log.id < :before
    ORDER BY audit_log.id DESC LIMIT :limit
    """,
)

_NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class AuditLogRow:
    """One thing done by hand."""

    id: int
    actor: str
    actor_name: str | None
    action: str
    object_kind: str
    object_id: str
    reason: str | None
    details: Mapping[str, Any]
    at: int


async def record(
    tx: Tx,
    *,
    actor: str,
    action: str,
    object_kind: str,
    objects: Mapping[str, Mapping[str, Any]] | Sequence[str],
    reason: str,
) -> None:
    """Remember that ``actor`` did ``action`` to ``objects``, with what is worth knowing of each."""
    details = objects if isinstance(objects, Mapping) else {key: {} for key in objects}
    rows = [(object_id, json.dumps(detail)) for object_id, detail in details.items()]
    if rows:
        await tx.execute(INSERT, rows, actor=actor, action=action, object_kind=object_kind, reason=reason)


async def page(tx: Tx, *, actor: str = "", before: int | None = None, limit: int = 20) -> list[AuditLogRow]:
    """Read the log, or what one actor did: ``before`` is the last id of the page before."""
    start = _NEWEST if before is None else before
    if actor:
        rows = await tx.fetch(PAGE_BY_ACTOR, actor=actor, before=start, limit=limit)
    else:
        rows = await tx.fetch(PAGE, before=start, limit=limit)
    return [_entry(row) for row in rows]


async def page_by_object(
    tx: Tx, object_kind: str, object_id: str, *, before: int | None = None, limit: int = 20
) -> list[AuditLogRow]:
    """Read what was done to one object."""
    start = _NEWEST if before is None else before
    rows = await tx.fetch(PAGE_BY_OBJECT, object_kind=object_kind, object_id=object_id, before=start, limit=limit)
    return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditLogRow:
    details = json.loads(row["details"]) if row["details"] else {}
    return AuditLogRow(
        row["id"],
        row["actor"],
        row["actor_name"],
        row["action"],
        row["object_kind"],
        row["object_id"],
        row["reason"],
        details,
        row["at"],
    )
