"""Awards of contests."""

from __future__ import annotations

import json
from collections.abc import Sequence

from adjudge.store.contests.activity_models import AwardRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

AWARDS = Statement(
    "awards.list",
    "List the awards of a contest.",
    "SELECT {columns} FROM awards WHERE contest_id = :contest_id ORDER BY ordinal, code",
    row=AwardRow,
)
UPSERT_AWARDS = Statement(
    "awards.upsert",
    "Write awards of a contest.",
    """
    INSERT INTO awards (contest_id, code, citation, participants, managed, ordinal, updated_at)
    SELECT given_contest_id, given_code, given_citation, given_participants, given_managed, given_ordinal, {now}
    FROM {given} WHERE true
    ON CONFLICT (contest_id, code) DO UPDATE SET citation = excluded.citation, participants = excluded.participants,
        managed = excluded.managed, ordinal = excluded.ordinal, version = awards.version + 1, updated_at = {now}
    """,
    input_columns={
        "given_contest_id": "text",
        "given_code": "text",
        "given_citation": "text",
        "given_participants": "jsonb",
        "given_managed": "boolean",
        "given_ordinal": "bigint",
    },
)
DELETE_AWARDS = Statement(
    "awards.delete",
    "Delete awards of a contest.",
    "DELETE FROM awards WHERE contest_id = :contest_id AND code IN (SELECT given_code FROM {given})",
    input_columns={"given_code": "text"},
)


async def awards(tx: Tx, contest_id: str) -> list[AwardRow]:
    """The awards of a contest."""
    return await tx.fetch(AWARDS, contest_id=contest_id)


async def upsert_awards(tx: Tx, items: Sequence[AwardRow]) -> None:
    """Write awards."""
    rows = [
        (item.contest_id, item.code, item.citation, json.dumps(item.participants), item.managed, item.ordinal)
        for item in items
    ]
    if rows:
        await tx.execute(UPSERT_AWARDS, rows)


async def delete_awards(tx: Tx, contest_id: str, codes: Sequence[str]) -> None:
    """Delete awards."""
    if codes:
        await tx.execute(DELETE_AWARDS, [(code,) for code in codes], contest_id=contest_id)
