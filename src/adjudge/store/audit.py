"""The audit log: who did what by hand, and why. Written in the transaction that does it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.store.driver import Tx
from adjudge.store.statement import Statement

INSERT = Statement(
    "audit_log.insert",
    "Remember actions taken by hand.",
    """
    INSERT INTO audit_log (actor, action, object_kind, object_id, reason, details, at)
    SELECT :actor, :action, :object_kind, given_object_id, :reason, given_details, {now} FROM {given}
    """,
    given={"given_object_id": "text", "given_details": "jsonb"},
)


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
