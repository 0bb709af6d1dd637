"""``adjudge workers``: lists live workers, schedulers and API servers, and controls workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.judging import with_control
from adjudge.cli.options import actor_option, json_option, required_reason_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database, open_registry
from adjudge.judge.languages import version_number
from adjudge.registry import LiveProcess, ProcessRole
from adjudge.services.judging_control import WorkerAction
from adjudge.settings import Settings


@click.group(name="workers", invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List live workers, schedulers and API servers; pause, resume and drain workers.

    Without a subcommand: the list, with role, health, version and when each was last seen.
    """
    if context.invoked_subcommand is not None:
        return
    found = asyncio.run(_list(settings_source.load()))
    if as_json:
        items = [{**asdict(item.info), **_lease(item)} for item in found]
        click.echo(json.dumps(items))
        return
    if found:
        make_console().print(_table(found))
    if not any(item.info.role is ProcessRole.WORKER for item in found):
        click.echo("No workers online. Start one with `adjudge worker`, or all roles with `adjudge up`.")


def _add_action(action: WorkerAction, done: str, text: str) -> None:
    @command.command(action, help=text)
    @click.argument("name", metavar="WORKER")
    @required_reason_option("Reason, stored in the audit log.")
    @actor_option
    def run(name: str, reason: str, actor: str) -> None:
        with_control(lambda control: control.control_worker(actor, name, action, reason=reason))
        click.echo(f"{name}: {done}")


_add_action("pause", "will start no more jobs", "Start no more jobs on a worker until it is resumed.")
_add_action("resume", "will start jobs again", "Start jobs on a paused worker again.")
_add_action("drain", "will finish its jobs and end", "Finish the jobs of a worker and end its process.")


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
