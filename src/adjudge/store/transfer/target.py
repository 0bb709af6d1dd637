"""The target of a transfer: a PostgreSQL database that is empty, or that an interrupted transfer has begun to fill.

While a transfer is unfinished, foreign keys are dropped, triggers are disabled, and the schema revision is
``unfinished transfer``, so that no role starts on it. What was copied is recorded in the same transactions, in tables
of the transfer's own. The last transaction restores everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from adjudge.domain.errors import Conflict, InvalidInput, Unavailable
from adjudge.store import migrations
from adjudge.store.engine.postgres_errors import DRIVER_ERRORS, translated
from adjudge.store.engine.postgres_pool import connect
from adjudge.store.transfer.row_digest import TABLES, TableColumns, TableDigest

_PAGE: Final = 5_000
_LOCK: Final = 0x7472616E73666572
"""Key of the advisory lock of a running transfer: 'transfer' in ASCII."""
_STATE: Final = """
CREATE TABLE transfer_state (source text NOT NULL, fingerprint text NOT NULL);
CREATE TABLE transfer_positions (table_name text PRIMARY KEY, position bigint NOT NULL, row_count bigint NOT NULL);
CREATE TABLE transfer_constraints (table_name text NOT NULL, name text NOT NULL, definition text NOT NULL);
INSERT INTO transfer_constraints
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
"""
_SEQUENCES: Final = """
SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name) AS sequence
FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = ANY ($1)
  AND pg_get_serial_sequence(quote_ident(table_name), column_name) IS NOT NULL
"""


class TransferTarget:
    """Writes rows to a PostgreSQL database, over one connection without time limits."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record], url: str) -> None:
        self._connection = connection
        self._url = url

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[TransferTarget]:
        """Connect; two transfers to one database are refused."""
        connection = await connect(url)
        try:
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
                raise Conflict("Another transfer to this database is running.")
            yield cls(connection, url)
        except DRIVER_ERRORS as error:
            raise translated(error) from error
        finally:
            connection.terminate()

    async def begin(self, source: str, fingerprint: str) -> bool:
        """Prepare an empty database, or continue the unfinished transfer of ``source``; whether rows are kept."""
        revision = await migrations.find_revision(self._url)
        if revision == migrations.UNFINISHED_TRANSFER:
            return await self._resume(source, fingerprint)
        if revision is None:
            await migrations.upgrade(self._url)
        elif revision != migrations.latest_revision():
            raise Conflict(
                f"The target is at schema revision {revision}, this version needs {migrations.latest_revision()}: "
                "give a new, empty database."
            )
        await self._prepare(source, fingerprint)
        return False

    async def positions(self) -> dict[str, tuple[int, int]]:
        """Position in the source and number of rows of each table that has been begun."""
        rows = await self._connection.fetch("SELECT table_name, position, row_count FROM transfer_positions")
        return {row["table_name"]: (row["position"], row["row_count"]) for row in rows}

    async def append(self, table: TableColumns, rows: Sequence[tuple[Any, ...]], position: int) -> None:
        """Copy rows and record the position, in one transaction."""
        try:
            async with self._connection.transaction():
                await self._connection.copy_records_to_table(table.name, records=rows, columns=table.columns)
                await self._connection.execute(
                    "INSERT INTO transfer_positions VALUES ($1, $2, $3) ON CONFLICT (table_name) DO UPDATE "
                    "SET position = $2, row_count = transfer_positions.row_count + $3",
                    table.name,
                    position,
                    len(rows),
                )
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
            raise InvalidInput(f"A row of the table {table.name} cannot be stored in PostgreSQL: {error}.") from error

    async def digest(self, table: TableColumns) -> TableDigest:
        """The digest of a table, read in one snapshot."""
        digest, columns = TableDigest(), ", ".join(f'"{column}"' for column in table.columns)
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            cursor = await self._connection.cursor(f'SELECT {columns} FROM "{table.name}"')
            while rows := await cursor.fetch(_PAGE):
                await asyncio.to_thread(digest.add, table, [tuple(row) for row in rows])
        return digest

    async def finish(self) -> None:
        """Restore foreign keys, triggers, sequences and the schema revision: from now on roles can start."""
        names = [table.name for table in TABLES]
        async with self._connection.transaction():
            for row in await self._connection.fetch("SELECT * FROM transfer_constraints"):
                await self._connection.execute(
                    f"ALTER TABLE {row['table_name']} ADD CONSTRAINT {row['name']} {row['definition']}"
                )
            for name in names:
                await self._connection.execute(f'ALTER TABLE "{name}" ENABLE TRIGGER USER')
            for row in await self._connection.fetch(_SEQUENCES, names):
                await self._connection.execute(
                    f"SELECT setval('{row['sequence']}', max(\"{row['column_name']}\")) "
                    f'FROM "{row["table_name"]}" HAVING max("{row["column_name"]}") IS NOT NULL'
                )
            await self._connection.execute("DROP TABLE transfer_state, transfer_positions, transfer_constraints")
            await self._connection.execute("UPDATE alembic_version SET version_num = $1", migrations.latest_revision())
        await self._connection.execute("ANALYZE")

    async def _prepare(self, source: str, fingerprint: str) -> None:
        async with self._connection.transaction():
            for table in TABLES:
                if await self._connection.fetchval(f'SELECT EXISTS (SELECT 1 FROM "{table.name}")'):
                    raise Conflict(
                        f"The target is not empty: the table {table.name} has rows. Give a new, empty database."
                    )
            await self._connection.execute(_STATE)
            await self._connection.execute("INSERT INTO transfer_state VALUES ($1, $2)", source, fingerprint)
            for row in await self._connection.fetch("SELECT table_name, name FROM transfer_constraints"):
                await self._connection.execute(f"ALTER TABLE {row['table_name']} DROP CONSTRAINT {row['name']}")
            for table in TABLES:
                await self._connection.execute(f'ALTER TABLE "{table.name}" DISABLE TRIGGER USER')
            await self._connection.execute(
                "UPDATE alembic_version SET version_num = $1", migrations.UNFINISHED_TRANSFER
            )

    async def _resume(self, source: str, fingerprint: str) -> bool:
        state = await self._connection.fetchrow("SELECT source, fingerprint FROM transfer_state")
        if state is None:
            raise Unavailable("The state of the unfinished transfer is lost: give a new, empty database.")
        if state["source"] != source:
            raise Conflict(
                f"The target has an unfinished transfer of another installation ({state['source']}): give a new, "
                "empty database."
            )
        if state["fingerprint"] == fingerprint:
            return True
        async with self._connection.transaction():  # the source has been used since: begin again
            names = ", ".join(f'"{table.name}"' for table in TABLES)
            await self._connection.execute(f"TRUNCATE {names}, transfer_positions")
            await self._connection.execute("UPDATE transfer_state SET fingerprint = $1", fingerprint)
        return False
