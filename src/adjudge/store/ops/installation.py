"""The id of an installation: created once and stored in the database, so that backups keep it."""

from __future__ import annotations

from typing import Final

from adjudge.domain.ids import new_id
from adjudge.store.engine.driver import Database, Tx
from adjudge.store.engine.statement import Statement

ADD: Final = Statement(
    "installation.add",
    "Give the installation an id, unless it has one.",
    "INSERT INTO installation (only_row, id) VALUES (1, :id) ON CONFLICT (only_row) DO NOTHING",
)

SELECT: Final = Statement("installation.select", "Read the id of the installation.", "SELECT id FROM installation")


async def installation_id(database: Database) -> str:
    """The id of the installation of this database; created by the first call.

    It is not created by a migration, because copies of an empty, migrated database are different installations.
    """
    rows = await database.read(lambda tx: tx.fetch(SELECT))
    if not rows:

        async def add(tx: Tx) -> list[str]:
            await tx.execute(ADD, id=new_id())
            return [row["id"] for row in await tx.fetch(SELECT)]

        return (await database.transact(add))[0]
    return str(rows[0]["id"])
