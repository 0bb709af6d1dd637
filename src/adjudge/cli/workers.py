"""``adjudge workers``: lists live workers, schedulers and API servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database, open_registry
from adjudge.judge.languages import version_number
from adjudge.registry import LiveProcess, ProcessRole
from adjudge.settings import Settings


@click.command(name="workers")
@json_option
def command(as_json: bool) -> None:
    """List live workers, schedulers and API servers with role, health, version and when they were last seen."""
    found = asyncio.run(_list(settings_source.load()))
    if as_json:
        items = [{**asdict(item.info), **_lease(item)} for item in found]
        click.echo(json.dumps(items))
        return
    if found:
        make_console().print(_table(found))
    if not any(item.info.role is ProcessRole.WORKER for item in found):
        click.echo("No workers online. Start one with `adjudge worker`, or all roles with `adjudge up`.")


def _table(found: Sequence[LiveProcess]) -> Table:
    table = Table("name", "role", "health", "slots", "languages", "isolation", "version", "last seen")
    for item in found:
        info = item.info
        languages = ", ".join(f"{name} {version_number(version)}" for name, version in sorted(info.languages.items()))
        slots = str(info.slots) if info.role is ProcessRole.WORKER else ""
        seen = f"{item.seen_ago_sec:.0f} s ago"
        table.add_row(info.name, info.role, info.health, slots, languages, info.isolation, info.version, seen)
    return table


def _lease(item: LiveProcess) -> dict[str, float]:
    return {"seen_ago_sec": item.seen_ago_sec, "lease_left_sec": item.lease_left_sec}


async def _list(settings: Settings) -> list[LiveProcess]:
    async with (
        open_existing_database(settings) as database,
        open_registry(settings, database) as registry,
    ):
        return await registry.list()
