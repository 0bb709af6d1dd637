"""Prints and awards of contests."""

from __future__ import annotations

import json
from collections.abc import Sequence

from adjudge.domain.errors import Conflict, NotFound
from adjudge.store.contests.activity_models import AwardRow, PrintRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

INSERT_PRINT = Statement(
    "prints.insert",
    "Create a print job.",
    """
    INSERT INTO prints (id, contest_id, participant_id, user_id, file_name, language, body, created_at)
    VALUES (:id, :contest_id, :participant_id, :user_id, :file_name, :language, :body, {now})
    """,
)
PRINTS = Statement(
    "prints.page",
    "List the print jobs of a contest by id, keyset-paginated.",
    """
    SELECT {columns} FROM prints WHERE contest_id = :contest_id AND id > :after
      AND (CAST(:participant_id AS text) IS NULL OR participant_id = :participant_id)
      AND (CAST(:only_open AS bigint) = 0 OR finished_at IS NULL)
    ORDER BY id LIMIT :limit
    """,
    row=PrintRow,
)
PRINT_BODY = Statement(
    "prints.body",
    "Read the text of a print job.",
    "SELECT body FROM prints WHERE id = :id AND contest_id = :contest_id",
)
CLAIM_PRINT = Statement(
    "prints.claim",
    "Claim a pending print job.",
    """
    UPDATE prints SET state = 'printing', claimed_by = :claimed_by
    WHERE id = :id AND contest_id = :contest_id AND state = 'pending'
    RETURNING {columns}
    """,
    row=PrintRow,
)
FINISH_PRINT = Statement(
    "prints.finish",
    "Finish a claimed print job, or put it back into the queue.",
    """
    UPDATE prints SET state = :state, finished_at = CASE WHEN CAST(:state AS text) = 'pending' THEN NULL ELSE {now} END
    WHERE id = :id AND contest_id = :contest_id AND state = 'printing'
    RETURNING {columns}
    """,
    row=PrintRow,
)
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


async def insert_print(
    tx: Tx,
    contest_id: str,
    print_id: str,
    *,
    participant_id: str | None,
    user_id: str,
    file_name: str,
    language: str | None,
    body: str,
) -> None:
    """Create a print job."""
    await tx.execute(
        INSERT_PRINT,
        id=print_id,
        contest_id=contest_id,
        participant_id=participant_id,
        user_id=user_id,
        file_name=file_name,
        language=language,
        body=body,
    )


async def prints(
    tx: Tx,
    contest_id: str,
    *,
    after: str = "",
    limit: int,
    participant_id: str | None = None,
    only_open: bool = False,
) -> list[PrintRow]:
    """List print jobs, oldest first."""
    return await tx.fetch(
        PRINTS,
        contest_id=contest_id,
        after=after,
        limit=limit,
        participant_id=participant_id,
        only_open=int(only_open),
    )


async def print_body(tx: Tx, contest_id: str, print_id: str) -> str:
    """The text of a print job."""
    row = await fetch_one(tx, PRINT_BODY, id=print_id, contest_id=contest_id)
    if row is None:
        raise NotFound("print", print_id)
    return str(row["body"])


async def claim_print(tx: Tx, contest_id: str, print_id: str, *, claimed_by: str) -> PrintRow:
    """Claim a pending print job; one that somebody has claimed is a Conflict."""
    row = await fetch_one(tx, CLAIM_PRINT, id=print_id, contest_id=contest_id, claimed_by=claimed_by)
    if row is None:
        await print_body(tx, contest_id, print_id)
        raise Conflict("The print job is claimed or finished already.")
    return row


async def finish_print(tx: Tx, contest_id: str, print_id: str, *, state: str) -> PrintRow:
    """Set a claimed print job to ``done`` or ``failed``, or back to ``pending``."""
    row = await fetch_one(tx, FINISH_PRINT, id=print_id, contest_id=contest_id, state=state)
    if row is None:
        await print_body(tx, contest_id, print_id)
        raise Conflict("The print job is not being printed; claim it first.")
    return row


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
