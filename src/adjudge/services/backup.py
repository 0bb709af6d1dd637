"""Backups of an installation on SQLite, made while it runs: create, verify, restore.

A backup is a copy of the database at one point in time and the blobs that it refers to. Blobs are stored before the
rows that refer to them and are never changed, so those that exist after the copy are complete for it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from adjudge import __version__
from adjudge.blobs.chunked_io import file_digest, sync_folder
from adjudge.blobs.driver import BlobStore, Digest
from adjudge.chains.artifacts import iter_nested_digests
from adjudge.domain.errors import BackupDamaged, Conflict, InvalidInput, NotFound, Unavailable
from adjudge.services.backup_archive import (
    FORMAT,
    VERSION,
    ArchiveReader,
    ArchiveWriter,
    Manifest,
    Member,
    blob_list,
    write_file,
)
from adjudge.store import Database, migrations, open_database
from adjudge.store.engine.sqlite_file import copy_consistently, exclusively, find_damage
from adjudge.store.ops.blob_references import iter_referenced_digests, iter_required_digests

_RESTORING: Final = ".restoring"


@dataclass(frozen=True, slots=True)
class BlobReferences:
    """The blobs that a database refers to: those that exist with their sizes, and those that should exist."""

    sizes: dict[Digest, int]
    missing: list[Digest]


async def find_blobs(database: Database, blobs: BlobStore) -> BlobReferences:
    """Look up every blob that the rows of a database, and the artifacts of its chains, refer to."""
    sizes: dict[Digest, int] = {}
    absent: set[Digest] = set()
    async for digest in _references(database, blobs):
        if digest not in sizes and digest not in absent:
            try:
                sizes[digest] = (await blobs.stat(digest)).size_bytes
            except (NotFound, InvalidInput):  # no blob, or no digest
                absent.add(digest)
    missing = {digest async for digest in iter_required_digests(database) if digest in absent}
    return BlobReferences(dict(sorted(sizes.items())), sorted(missing))


async def _references(database: Database, blobs: BlobStore) -> AsyncIterator[Digest]:
    async for digest in iter_referenced_digests(database):
        yield digest
    async for digest in iter_nested_digests(database, blobs):
        yield digest


async def create_backup(database: Path, blobs: BlobStore, target: Path) -> Manifest:
    """Back up a database, which other processes may write to meanwhile, and its blobs."""
    _check_target(target)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        copy = Path(folder) / "adjudge.db"
        await asyncio.to_thread(copy_consistently, database, copy)
        manifest, sizes = await _describe(copy, blobs)
        with ArchiveWriter(target).open() as archive:
            await archive.add_head(manifest, blob_list(sizes), copy)
            for digest in sizes:
                await archive.add_blob(blobs, digest)
    sync_folder(target.parent)
    return manifest


def _check_target(target: Path) -> None:
    if target.exists():
        raise Conflict(f"{target}: exists; give another name, or delete it first.", field="file")
    if not target.parent.is_dir():
        raise NotFound("directory", str(target.parent))


async def _describe(copy: Path, blobs: BlobStore) -> tuple[Manifest, dict[Digest, int]]:
    url = f"sqlite:///{copy}"
    revision = await migrations.current(url)
    if revision != migrations.latest_revision():
        raise Conflict(
            f"The database is at schema revision {revision or 'none'}, this version writes backups of "
            f"{migrations.latest_revision()}: run `adjudge migrate up` first, or use the version that runs."
        )
    async with open_database(url, migrate=False) as database:
        found = await find_blobs(database, blobs)
    damage, size_bytes = await asyncio.to_thread(lambda: (find_damage(copy), copy.stat().st_size))
    if damage is not None:
        raise Unavailable(f"The database is damaged, nothing was backed up: {damage}.")
    manifest = Manifest(
        format=FORMAT,
        version=VERSION,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        adjudge_version=__version__,
        schema_revision=revision,
        database_bytes=size_bytes,
        database_sha256=await file_digest(copy),
        blob_count=len(found.sizes),
        blob_bytes=sum(found.sizes.values()),
        blob_list_sha256=sha256(blob_list(found.sizes)).hexdigest(),
        missing=found.missing,
    )
    return manifest, found.sizes


async def verify_backup(path: Path) -> Manifest:
    """Read a whole backup and check every digest and the database; ``BackupDamaged`` names what is wrong."""
    with ArchiveReader.open(path) as archive, tempfile.TemporaryDirectory(prefix="adjudge-verify-") as folder:
        copy = Path(folder) / "adjudge.db"
        async for member in archive.members():
            if member.is_database:
                await write_file(member.chunks, copy)
                await _check_database(path, copy)
            else:
                async for _ in member.chunks:
                    pass
        return archive.manifest


async def restore_backup(path: Path, database: Path, blobs: BlobStore, *, replace: bool = False) -> Manifest:
    """Restore a backup: first the blobs, at last the database, which appears complete or not at all.

    An existing database is replaced only with ``replace``, and only if no process uses it.
    """
    _check_replaceable(database, replace=replace)
    with ArchiveReader.open(path) as archive:
        revision = archive.manifest.schema_revision
        if revision > migrations.latest_revision():
            raise Conflict(
                f"{path}: its schema revision {revision} is newer than this version supports "
                f"({migrations.latest_revision()}): upgrade Adjudge first."
            )
        database.parent.mkdir(parents=True, exist_ok=True)
        copy = database.with_name(database.name + _RESTORING)
        try:
            async for member in archive.members():
                await _restore_member(path, member, copy, blobs)
            await asyncio.to_thread(_exchange, copy, database)
        finally:
            copy.unlink(missing_ok=True)
        return archive.manifest


def _check_replaceable(database: Path, *, replace: bool) -> None:
    if not database.exists():
        return
    if not replace:
        raise Conflict(
            f"{database}: a database exists. Restore into an empty data directory, or replace it with --replace.",
            field="file",
        )
    with exclusively(database):
        pass


async def _restore_member(path: Path, member: Member, copy: Path, blobs: BlobStore) -> None:
    if member.is_database:
        await write_file(member.chunks, copy)
        await _check_database(path, copy)
    else:
        await blobs.put(member.chunks, expected=member.digest)  # repairs a damaged one, too


async def _check_database(path: Path, copy: Path) -> None:
    damage = await asyncio.to_thread(find_damage, copy)
    if damage is not None:
        raise BackupDamaged(f"{path}: the database in it is damaged: {damage}.")


def _exchange(copy: Path, database: Path) -> None:
    """Put the copy in the place of the database. An old write-ahead log would corrupt it, so it goes first."""
    _check_replaceable(database, replace=True)
    for suffix in ("-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    copy.replace(database)
    sync_folder(database.parent)
