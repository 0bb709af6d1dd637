"""``adjudge contest publish | start | freeze | finalize | …``: state and clock of a contest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli import EXIT_BAD_INPUT
from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import parse_duration, print_contest, print_json
from adjudge.cli.options import json_option, reason_option, required_reason_option, server_option
from adjudge.cli.output import make_console
from adjudge.client import Client
from adjudge.schema.contests import ContestDetail

_contest = click.argument("contest")


def _change(server: str | None, as_json: bool, change: Callable[[Client], ContestDetail]) -> None:
    with open_client(server) as client:
        print_contest(change(client), as_json=as_json)


def _plain_command(name: str, help_: str, change: Callable[[Client, str], ContestDetail]) -> click.Command:
    """A command that changes a contest and needs nothing but its name."""

    @click.command(name, help=help_)
    @_contest
    @json_option
    @server_option
    def run(contest: str, as_json: bool, server: str | None) -> None:
        _change(server, as_json, lambda client: change(client, contest))

    return run


def _reason_command(name: str, help_: str, change: Callable[[Client, str, str], ContestDetail]) -> click.Command:
    """A command that changes a contest for a reason."""

    @click.command(name, help=help_)
    @_contest
    @reason_option("Reason, stored in the audit log.")
    @json_option
    @server_option
    def run(contest: str, reason: str, as_json: bool, server: str | None) -> None:
        _change(server, as_json, lambda client: change(client, contest, reason))

    return run


@click.command()
@_contest
@json_option
@server_option
def finalize(contest: str, as_json: bool, server: str | None) -> None:
    """Make the results official.

    If something is unjudged, failed or open, it is listed and nothing changes.
    """
    with open_client(server) as client:
        blockers = client.contest_blockers(contest).blockers
        if not blockers:
            print_contest(client.contest_finalize(contest), as_json=as_json)
            return
    for blocker in blockers:
        click.echo(f"  {blocker}", err=True)
    click.echo(f"adjudge: {contest} cannot be finalized", err=True)
    raise click.exceptions.Exit(EXIT_BAD_INPUT)


@click.command()
@_contest
@required_reason_option("Reason, stored in the audit log.")
@json_option
@server_option
def reopen(contest: str, reason: str, as_json: bool, server: str | None) -> None:
    """Take back the finalization. Needs the permission contest:admin."""
    _change(server, as_json, lambda client: client.contest_reopen(contest, reason=reason))


@click.command()
@_contest
@click.option("--at", metavar="TIME", help="Start at this time, e.g. 2026-01-31T12:00:00Z. Default: now.")
@json_option
@server_option
def start(contest: str, at: str | None, as_json: bool, server: str | None) -> None:
    """Start a contest now, or set its start."""
    _change(server, as_json, lambda client: client.contest_start(contest, starts_at=at))


@click.command()
@_contest
@click.option("--by", metavar="DURATION", required=True, help="How much longer, e.g. 10m; -10m makes it shorter.")
@reason_option("Reason, stored in the audit log.")
@json_option
@server_option
def extend(contest: str, by: str, reason: str, as_json: bool, server: str | None) -> None:
    """Make a contest longer or shorter."""
    extra_sec = parse_duration(by, "--by")
    _change(server, as_json, lambda client: client.contest_extend(contest, extra_sec=extra_sec, reason=reason))


@click.command()
@_contest
@reason_option("Reason, stored in the audit log.")
@json_option
@server_option
def end(contest: str, reason: str, as_json: bool, server: str | None) -> None:
    """End a running contest now."""
    _change(server, as_json, lambda client: client.contest_end(contest, reason=reason))


@click.command()
@_contest
@json_option
@server_option
def log(contest: str, as_json: bool, server: str | None) -> None:
    """List the changes of the state, oldest first."""
    with open_client(server) as client:
        found = client.contest_log(contest)
    if as_json:
        print_json(found)
        return
    table = Table("at", "from", "to", "by", "reason")
    for item in found:
        table.add_row(item.at, item.from_state, item.to_state, escape(item.actor or ""), escape(item.reason or ""))
    make_console().print(table)


@click.group()
def countdown() -> None:
    """Pause and resume the countdown before the start."""


countdown.add_command(
    _plain_command(
        "pause",
        "Pause the countdown. The time left is kept.",
        lambda client, name: client.contest_pause_countdown(name),
    )
)
countdown.add_command(
    _plain_command(
        "resume",
        "Continue the countdown with the time that was left.",
        lambda client, name: client.contest_resume_countdown(name),
    )
)


@click.group()
def interval() -> None:
    """Remove intervals of time from the contest clock, and undo that."""


@interval.command("list")
@_contest
@json_option
@server_option
def list_intervals(contest: str, as_json: bool, server: str | None) -> None:
    """List removed intervals, undone ones included."""
    with open_client(server) as client:
        found = client.contest_intervals(contest)
    if as_json:
        print_json(found)
        return
    table = Table("id", "from", "to", "undone", "reason")
    for item in found:
        table.add_row(item.id, item.from_at, item.to_at or "open", item.undone_at or "", escape(item.reason or ""))
    make_console().print(table)


@interval.command()
@_contest
@click.option("--from", "from_at", metavar="TIME", required=True, help="Begin, e.g. 2026-01-31T13:00:00Z.")
@click.option("--to", "to_at", metavar="TIME", help="End. Default: the contest is paused until it is resumed.")
@reason_option("Reason, stored in the audit log.")
@json_option
@server_option
def remove(contest: str, *, from_at: str, to_at: str | None, reason: str, as_json: bool, server: str | None) -> None:
    """Remove an interval that has passed: its time does not count."""
    _change(
        server,
        as_json,
        lambda client: client.contest_remove_interval(contest, from_at=from_at, to_at=to_at, reason=reason),
    )


@interval.command()
@_contest
@click.argument("interval_id", metavar="INTERVAL")
@reason_option("Reason, stored in the audit log.")
@json_option
@server_option
def undo(contest: str, interval_id: str, reason: str, as_json: bool, server: str | None) -> None:
    """Let the time of a removed interval, by ID, count again."""
    _change(server, as_json, lambda client: client.contest_undo_interval(contest, interval_id, reason=reason))


LIFECYCLE_COMMANDS: Final[tuple[click.Command, ...]] = (
    _plain_command(
        "publish",
        "Publish a draft. It needs a problem and a start.",
        lambda client, name: client.contest_publish(name),
    ),
    _reason_command(
        "unpublish",
        "Turn a published contest into a draft, until 30 seconds before the start.",
        lambda client, name, reason: client.contest_unpublish(name, reason=reason),
    ),
    _reason_command(
        "cancel",
        "Cancel a published contest. This is final.",
        lambda client, name, reason: client.contest_cancel(name, reason=reason),
    ),
    start,
    countdown,
    _reason_command(
        "pause",
        "Pause a running contest. Its clock stops.",
        lambda client, name, reason: client.contest_pause(name, reason=reason),
    ),
    _plain_command("resume", "Resume a paused contest.", lambda client, name: client.contest_resume(name)),
    interval,
    extend,
    end,
    _plain_command("freeze", "Freeze the public scoreboard now.", lambda client, name: client.contest_freeze(name)),
    _plain_command(
        "thaw", "Thaw the scoreboard of a contest that has ended.", lambda client, name: client.contest_thaw(name)
    ),
    finalize,
    reopen,
    _plain_command(
        "close-updates",
        "Declare that nothing changes any more. The contest must be finalized and thawed.",
        lambda client, name: client.contest_close_updates(name),
    ),
    log,
)
