"""``adjudge contest``: contests on a server. The other ``contest_*`` modules have further commands."""

from __future__ import annotations

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_accounts import ACCOUNT_COMMANDS
from adjudge.cli.contest_balloons import balloons
from adjudge.cli.contest_clarifications import CLARIFICATION_COMMANDS
from adjudge.cli.contest_jury import JURY_COMMANDS
from adjudge.cli.contest_lifecycle import LIFECYCLE_COMMANDS
from adjudge.cli.contest_materials import materials
from adjudge.cli.contest_output import print_json, print_settings, status
from adjudge.cli.contest_package import import_
from adjudge.cli.contest_participants import PARTICIPANT_COMMANDS
from adjudge.cli.contest_prints import prints
from adjudge.cli.contest_problems import PROBLEM_COMMANDS
from adjudge.cli.contest_scoreboard import SCOREBOARD_COMMANDS
from adjudge.cli.contest_settings import SETTINGS_COMMANDS
from adjudge.cli.contest_simulate import simulate
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console


@click.group(name="contest")
def command() -> None:
    """Manage contests on a server."""


for _command in (
    *SETTINGS_COMMANDS,
    *PROBLEM_COMMANDS,
    *LIFECYCLE_COMMANDS,
    *PARTICIPANT_COMMANDS,
    *ACCOUNT_COMMANDS,
    *SCOREBOARD_COMMANDS,
    balloons,
    *CLARIFICATION_COMMANDS,
    *JURY_COMMANDS,
    prints,
    materials,
    import_,
    simulate,
):
    command.add_command(_command)


@command.command("list")
@limit_option(default=50, maximum=100)
@json_option
@server_option
def list_(limit: int, as_json: bool, server: str | None) -> None:
    """List contests, newest first."""
    with open_client(server) as client:
        found = client.contests(limit=limit).items
    if as_json:
        print_json(found)
        return
    table = Table("contest", "title", "format", "state", "starts", "ends", "roles")
    for item in found:
        times = (item.starts_at or "", item.ends_at or "")
        table.add_row(item.slug, escape(item.title), item.format, status(item), *times, ", ".join(item.roles))
    make_console().print(table)


@command.command()
@click.argument("contest")
@json_option
@server_option
def show(contest: str, as_json: bool, server: str | None) -> None:
    """Show a contest, by slug or ID: its times and all settings."""
    with open_client(server) as client:
        found = client.contest(contest)
    if as_json:
        print_json(found)
    else:
        print_settings(found)
