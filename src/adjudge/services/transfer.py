"""Moves an installation from SQLite to PostgreSQL and another blob store.

Rows are copied in batches, each with its position in one transaction, so that an interrupted transfer continues where
it was. Then both databases are compared by counts and digests, the blobs are copied, and the target is released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.blobs.driver import BlobStore, Digest
from adjudge.domain.errors import Conflict, InternalFault
from adjudge.services.backup import find_blobs
from adjudge.store import migrations, open_database
from adjudge.store.transfer.row_digest import TABLES, TableColumns, TableDigest
from adjudge.store.transfer.source import TransferSource, fingerprint
from adjudge.store.transfer.target import TransferTarget

_BLOBS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What was transferred."""

    tables: int
    rows: int
    blobs: int
    blob_bytes: int
    missing: list[Digest]
    """Blobs that the database refers to and that the source does not have."""
    is_resumed: bool


async def transfer(
    database: Path,
    blobs: BlobStore,
    target_url: str,
    target_blobs: BlobStore,
    *,
    batch_rows: int,
    report: Callable[[str], None],
) -> TransferResult:
    """Copy everything; the source stays unchanged, and no process can use it meanwhile."""
    revision = await migrations.current(f"sqlite:///{database}")
    if revision != migrations.latest_revision():
        raise Conflict(
            f"The source is at schema revision {revision or 'none'}, this version needs "
            f"{migrations.latest_revision()}: run `adjudge migrate up` first."
        )
    with TransferSource.open(database) as source:
        digests = await asyncio.to_thread(source.digests)
        async with TransferTarget.open(target_url) as target:
            is_resumed = await target.begin(source.installation_id(), fingerprint(digests))
            report("continuing an unfinished transfer" if is_resumed else "copying rows")
            await _copy_rows(source, target, batch_rows, report)
            await _compare(target, digests)
            report("rows are equal in both databases; copying files")
            count, size_bytes, missing = await _copy_blobs(target_url, blobs, target_blobs, report)
            await target.finish()
    rows = sum(digest.rows for digest in digests.values())
    return TransferResult(len(TABLES), rows, count, size_bytes, missing, is_resumed)


async def _copy_rows(
    source: TransferSource, target: TransferTarget, batch_rows: int, report: Callable[[str], None]
) -> None:
    begun = await target.positions()
    for table in TABLES:
        position, count = begun.get(table.name, (-1, 0))
        while True:
            rows, position = await asyncio.to_thread(source.page, table, position, batch_rows)
            if not rows:
                break
            await target.append(table, rows, position)
            count += len(rows)
        if count:
            report(f"{table.name}: {count} rows")


async def _compare(target: TransferTarget, digests: dict[str, TableDigest]) -> None:
    for table in TABLES:
        found = await target.digest(table)
        expected = digests[table.name]
        if str(found) != str(expected):
            raise InternalFault(_difference(table, expected, found))


def _difference(table: TableColumns, expected: TableDigest, found: TableDigest) -> str:
    return (
        f"The table {table.name} differs: {expected.rows} rows with digest {expected.total:064x} in the source, "
        f"{found.rows} with {found.total:064x} in the target. Give a new, empty database and transfer again."
    )


async def _copy_blobs(
    target_url: str, blobs: BlobStore, target_blobs: BlobStore, report: Callable[[str], None]
) -> tuple[int, int, list[Digest]]:
    async with open_database(target_url, migrate=False) as database:
        found = await find_blobs(database, blobs)
    slots = asyncio.Semaphore(_BLOBS_AT_ONCE)

    async def copy(digest: Digest) -> None:
        async with slots:
            if not await target_blobs.exists(digest):
                await target_blobs.put(blobs.open(digest), expected=digest)
                async for _ in target_blobs.open(digest):  # reading verifies what was stored
                    pass

    async with asyncio.TaskGroup() as tasks:
        for digest in found.sizes:
            tasks.create_task(copy(digest))
    report(f"{len(found.sizes)} files copied")
    return len(found.sizes), sum(found.sizes.values()), found.missing
