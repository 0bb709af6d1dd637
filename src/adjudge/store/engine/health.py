"""Whether the database answers."""

from __future__ import annotations

from typing import Final

from adjudge.store.engine.driver import Database, Tx, fetch_one
from adjudge.store.engine.statement import Statement

PING: Final = Statement("health.ping", "Check that the database responds.", "SELECT 1 AS answer")


async def ping(database: Database) -> None:
    """Return if the database answers, raise what it failed with if not."""

    async def ask(tx: Tx) -> None:
        await fetch_one(tx, PING)

    await database.read(ask)
