"""``adjudge workers``: lists online workers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database, open_registry
from adjudge.judge.languages import version_number
from adjudge.registry import LiveWorker
from adjudge.settings import Settings


@click.command(name="workers")
@json_option
def command(as_json: bool) -> None:
    """List online workers with slots, languages and health."""
    found = asyncio.run(_list(settings_source.load()))
    if as_json:
        click.echo(json.dumps([{**asdict(item.info), "lease_left_sec": item.lease_left_sec} for item in found]))
    elif not found:
        click.echo("No workers online. Start one with `adjudge worker`, or all roles with `adjudge up`.")
    else:
        table = Table("name", "health", "slots", "languages", "isolation", "version", "lease remaining")
        for item in found:
            info = item.info
            versions = sorted(info.languages.items())
            languages = ", ".join(f"{name} {version_number(version)}" for name, version in versions)
            left = f"{item.lease_left_sec:.0f} s"
            table.add_row(info.name, info.health, str(info.slots), languages, info.isolation, info.version, left)
        make_console().print(table)


async def _list(settings: Settings) -> list[LiveWorker]:
    async with (
        open_existing_database(settings) as database,
        open_registry(settings, database) as registry,
    ):
        return await registry.list()
