"""``adjudge gc``: deletes stored files that nothing refers to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import click

from adjudge import settings as settings_source
from adjudge.blobs.gc import GRACE_SEC, GcResult, collect_garbage
from adjudge.chains.artifacts import iter_nested_digests
from adjudge.cli.wiring.drivers import open_blobs, open_existing_database
from adjudge.settings import Settings
from adjudge.store.ops.blob_references import iter_referenced_digests

_HOUR_SEC = 3600


@click.command(name="gc")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, without deleting.")
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=2),
    default=GRACE_SEC / _HOUR_SEC,
    show_default=True,
    help="Keep files newer than this many hours; they may belong to uncommitted work.",
)
def command(dry_run: bool, grace_hours: float) -> None:
    """Delete stored files that nothing refers to.

    Safe to run while the system is up: recent uploads are never deleted.
    """
    done = asyncio.run(_collect_garbage(settings_source.load(), dry_run, grace_hours * _HOUR_SEC))
    word = "would be deleted" if dry_run else "deleted"
    click.echo(f"{done.removed} files ({done.removed_bytes} bytes) {word}, {done.kept_in_use} in use.")
    if done.partial_removed:
        click.echo(f"{done.partial_removed} unfinished uploads deleted.")


async def _collect_garbage(settings: Settings, dry_run: bool, grace_sec: float) -> GcResult:
    async with open_existing_database(settings) as database, open_blobs(settings) as blobs:

        async def live() -> AsyncIterator[str]:
            async for digest in iter_referenced_digests(database):
                yield digest
            async for digest in iter_nested_digests(database, blobs):
                yield digest

        return await collect_garbage(blobs, live(), grace_sec=grace_sec, dry_run=dry_run)
