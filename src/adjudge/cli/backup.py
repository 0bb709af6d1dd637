"""``adjudge backup | restore | verify-backup``: backups of an installation on SQLite."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from adjudge import settings as settings_source
from adjudge.cli.wiring.drivers import existing_url, open_blobs
from adjudge.domain.errors import InvalidInput
from adjudge.services import backup as backups
from adjudge.services.backup_archive import Manifest
from adjudge.settings import Settings
from adjudge.store.engine.connect import sqlite_path

EXIT_INCOMPLETE = 1
_SHOWN = 10
_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command("backup")
@_FILE
@click.pass_context
def create(context: click.Context, file: Path) -> None:
    """Back up an installation on SQLite, while it runs.

    Writes the database and all files that it refers to, as of one point in time, to FILE, a tar archive. The keys of
    the secrets of chains (secrets.key) are not in it: keep them elsewhere.

    Exit codes: 0 complete, 1 written, but files that the database refers to were missing, 3 nothing written.
    """
    settings = settings_source.load()
    database = _database(settings, existing_url(settings))

    async def run() -> Manifest:
        async with open_blobs(settings) as blobs:
            return await backups.create_backup(database, blobs, file)

    _report(context, f"Backup written to {file}", asyncio.run(run()))


@click.command("verify-backup")
@_FILE
@click.pass_context
def verify(context: click.Context, file: Path) -> None:
    """Check every digest of a backup, and its database.

    Exit codes: 0 complete, 1 intact, but files were missing when it was made, 3 damaged.
    """
    _report(context, f"{file} is intact", asyncio.run(backups.verify_backup(file)))


@click.command("restore")
@_FILE
@click.option("--replace", is_flag=True, help="Replace an existing database. Stop Adjudge first.")
@click.pass_context
def restore(context: click.Context, file: Path, replace: bool) -> None:
    """Restore a backup into the data directory.

    Refuses an existing database unless --replace is given, and one that a process uses in any case. Everything in FILE
    is verified before the database is replaced. Unfinished jobs are run again at the next start.

    Exit codes: 0 complete, 1 restored, but files were missing when the backup was made, 3 nothing restored.
    """
    settings = settings_source.load()
    database = _database(settings, settings.database.url.reveal())

    async def run() -> Manifest:
        async with open_blobs(settings) as blobs:
            return await backups.restore_backup(file, database, blobs, replace=replace)

    _report(context, f"Restored {file} to {database}", asyncio.run(run()))


def _database(settings: Settings, url: str) -> Path:
    path = sqlite_path(url)
    if path is None:
        raise InvalidInput(
            f"database.url ({settings.sources['database.url']}): only SQLite databases are backed up by this command; "
            "use pg_dump and pg_restore for PostgreSQL, and a copy of the bucket.",
            field="database.url",
        )
    return path


def _report(context: click.Context, done: str, manifest: Manifest) -> None:
    click.echo(
        f"{done}: database of {manifest.database_bytes} bytes (schema revision {manifest.schema_revision}), "
        f"{manifest.blob_count} files of {manifest.blob_bytes} bytes, made at {manifest.created_at}."
    )
    if manifest.missing:
        shown = "".join(f"\n  {digest}" for digest in manifest.missing[:_SHOWN])
        click.echo(f"{len(manifest.missing)} files that the database refers to were missing:{shown}", err=True)
        context.exit(EXIT_INCOMPLETE)
