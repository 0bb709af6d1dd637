"""Files that organisers publish with a contest; the contents are blobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from adjudge.domain.errors import NotFound
from adjudge.store.contests.activity_models import MaterialRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

LIST = Statement(
    "contest_materials.list",
    "List the materials of a contest by name.",
    "SELECT {columns} FROM contest_materials WHERE contest_id = :contest_id ORDER BY name",
    row=MaterialRow,
)
FIND = Statement(
    "contest_materials.find",
    "Read a material of a contest by name.",
    "SELECT {columns} FROM contest_materials WHERE contest_id = :contest_id AND name = :name",
    row=MaterialRow,
)
UPSERT = Statement(
    "contest_materials.upsert",
    "Create materials, or replace those with the same names.",
    """
    INSERT INTO contest_materials (id, contest_id, name, title, visible, digest, size_bytes, created_by, created_at)
    SELECT given_id, given_contest_id, given_name, given_title, given_visible, given_digest, given_size_bytes,
           given_created_by, {now}
    FROM {given} WHERE true
    ON CONFLICT (contest_id, name) DO UPDATE SET title = excluded.title, visible = excluded.visible,
        digest = excluded.digest, size_bytes = excluded.size_bytes, created_by = excluded.created_by,
        created_at = CASE WHEN contest_materials.digest = excluded.digest THEN contest_materials.created_at
                     ELSE excluded.created_at END
    """,
    input_columns={
        "given_id": "text",
        "given_contest_id": "text",
        "given_name": "text",
        "given_title": "text",
        "given_visible": "text",
        "given_digest": "text",
        "given_size_bytes": "bigint",
        "given_created_by": "text",
    },
)
DELETE = Statement(
    "contest_materials.delete",
    "Delete a material.",
    "DELETE FROM contest_materials WHERE contest_id = :contest_id AND name = :name",
)


async def list_all(tx: Tx, contest_id: str) -> list[MaterialRow]:
    """The materials of a contest."""
    return await tx.fetch(LIST, contest_id=contest_id)


async def find(tx: Tx, contest_id: str, name: str) -> MaterialRow:
    """One material."""
    row = await fetch_one(tx, FIND, contest_id=contest_id, name=name)
    if row is None:
        raise NotFound("material", name)
    return row


async def upsert(tx: Tx, rows: Sequence[MaterialRow]) -> None:
    """Create or replace materials; the time is that of the database."""
    if rows:
        await tx.execute(UPSERT, [astuple(row)[:-1] for row in rows])


async def delete(tx: Tx, contest_id: str, name: str) -> None:
    """Delete a material."""
    if not await tx.execute(DELETE, contest_id=contest_id, name=name):
        raise NotFound("material", name)
