"""``adjudge contest balloons``: the balloon queue of a contest on a server."""

from __future__ import annotations

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.schema.balloons import BalloonRead


@click.group()
def balloons() -> None:
    """List and deliver the balloons of a contest."""


@balloons.command("list")
@click.argument("contest")
@click.option(
    "--state",
    type=click.Choice(["waiting", "delivered", "collect", "all"]),
    default="waiting",
    show_default=True,
    help="Filter by state.",
)
@limit_option(default=100, maximum=100)
@json_option
@server_option
def list_(contest: str, *, state: str, limit: int, as_json: bool, server: str | None) -> None:
    """List balloons, oldest first."""
    with open_client(server) as client:
        found = client.contest_balloons(contest, state=state, limit=limit).items
    if as_json:
        print_json(found)
        return
    table = Table("participant", "name", "location", "problem", "colour", "total", "first", "state")
    for item in found:
        table.add_row(
            item.participant,
            escape(item.name),
            escape(item.location or ""),
            item.problem,
            escape(item.color or item.rgb or ""),
            str(item.total),
            _first(item),
            item.state if item.delivered_by is None else f"{item.state}, {escape(item.delivered_by)}",
        )
    make_console().print(table)


def _first(item: BalloonRead) -> str:
    if item.is_first_of_contest:
        return "contest"
    return "problem" if item.is_first_of_problem else ""


@balloons.command()
@click.argument("contest")
@click.argument("participant")
@click.argument("label")
@click.option("--undo", is_flag=True, help="Put a delivered balloon back into the queue.")
@server_option
def deliver(contest: str, participant: str, label: str, *, undo: bool, server: str | None) -> None:
    """Mark a balloon as delivered."""
    with open_client(server) as client:
        action = client.contest_undo_balloon if undo else client.contest_deliver_balloon
        item = action(contest, participant, label)
    click.echo(f"{item.participant} {item.problem}: {item.state}")


@balloons.command()
@click.argument("contest")
@click.argument("participant")
@click.argument("label")
@server_option
def collect(contest: str, participant: str, label: str, *, server: str | None) -> None:
    """Remove a balloon of a problem that is no longer solved, after it was collected."""
    with open_client(server) as client:
        client.contest_collect_balloon(contest, participant, label)
    click.echo(f"{participant} {label}: collected")
