"""``adjudge transfer``: moves an installation from SQLite to PostgreSQL and S3."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from adjudge import settings as settings_source
from adjudge.cli.wiring.drivers import existing_url, open_blobs
from adjudge.domain.errors import InvalidInput
from adjudge.services.transfer import TransferResult, transfer
from adjudge.settings import Settings
from adjudge.store.engine.connect import sqlite_path

EXIT_INCOMPLETE = 1
_SHOWN = 10


@click.command("transfer")
@click.argument("target", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--batch-rows", type=click.IntRange(1, 100_000), default=5_000, show_default=True, help="Rows per transaction."
)
@click.pass_context
def command(context: click.Context, target: Path, batch_rows: int) -> None:
    """Move an installation from SQLite to PostgreSQL and S3.

    TARGET is the adjudge.toml of the new installation, with database.url and files.s3_bucket; environment variables are
    not read for it. The source is the installation of the current settings. Stop it first; it is not changed. The
    target must be empty, or have an unfinished transfer of the same installation, which is continued.

    Exit codes: 0 complete, 1 complete, but files that the database refers to were missing, 3 refused, 2 failed.
    """
    source, new = settings_source.load(), settings_source.load(environ={}, file=target)
    database = sqlite_path(existing_url(source))
    if database is None:
        raise InvalidInput("database.url: the source of a transfer must be a SQLite database.", field="database.url")
    _check_target(new, target)
    result = asyncio.run(_run(database, source, new, batch_rows))
    click.echo(
        f"Transferred: {result.rows} rows of {result.tables} tables and {result.blobs} files of {result.blob_bytes} "
        "bytes; counts and digests are equal. Start the roles with the settings of the target."
    )
    if result.missing:
        shown = "".join(f"\n  {digest}" for digest in result.missing[:_SHOWN])
        click.echo(f"{len(result.missing)} files that the database refers to were missing:{shown}", err=True)
        context.exit(EXIT_INCOMPLETE)


def _check_target(settings: Settings, file: Path) -> None:
    if sqlite_path(settings.database.url.reveal()) is not None:
        raise InvalidInput(f"{file}: database.url must be a PostgreSQL URL.", field="database.url")
    if not settings.files.s3_bucket:
        raise InvalidInput(f"{file}: files.s3_bucket is missing.", field="files.s3_bucket")


async def _run(database: Path, source: Settings, target: Settings, batch_rows: int) -> TransferResult:
    async with open_blobs(source) as blobs, open_blobs(target) as target_blobs:
        return await transfer(
            database,
            blobs,
            target.database.url.reveal(),
            target_blobs,
            batch_rows=batch_rows,
            report=lambda line: click.echo(f"  {line}"),
        )
