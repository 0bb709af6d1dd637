"""``adjudge contest prints``: the print queue of a contest on a server."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.client.client import Client
from adjudge.client.errors import ConflictError, ServerError, UnreachableError
from adjudge.domain.errors import InvalidInput
from adjudge.schema.prints import PrintRead


@click.group()
def prints() -> None:
    """Send texts to the printer of a contest, and print them."""


@prints.command("list")
@click.argument("contest")
@click.option(
    "--state",
    type=click.Choice(["pending", "printing", "done", "open", "all"]),
    default="open",
    show_default=True,
    help="Filter by state; open: pending or being printed.",
)
@limit_option(default=100, maximum=100)
@json_option
@server_option
def list_(contest: str, *, state: str, limit: int, as_json: bool, server: str | None) -> None:
    """List print jobs: all for the staff, else your own."""
    with open_client(server) as client:
        found = client.contest_prints(contest, state=state, limit=limit).items
    if as_json:
        print_json(found)
        return
    table = Table("number", "name", "location", "file", "pages", "state", "created")
    for item in found:
        state_text = item.state if item.claimed_by is None else f"{item.state}, {escape(item.claimed_by)}"
        where = escape(item.location or "")
        name = escape(item.file_name)
        table.add_row(str(item.number), escape(item.name), where, name, str(item.pages), state_text, item.created_at)
    make_console().print(table)


@prints.command()
@click.argument("contest")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@server_option
def send(contest: str, file: Path, *, server: str | None) -> None:
    """Send a text file to the printer."""
    try:
        content = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file.name}: not UTF-8 text.", field="file") from None
    with open_client(server) as client:
        made = client.contest_print(contest, content, file_name=file.name)
    click.echo(f"Print job {made.number}: {made.pages} pages")


@prints.command()
@click.argument("contest")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=Path(),
    show_default="current folder",
    help="Where to write the files.",
)
@click.option("--follow", is_flag=True, help="Keep waiting for new jobs.")
@click.option("--done", is_flag=True, help="Mark each job as printed when its file is written.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds between polls."
)
@server_option
def take(contest: str, *, folder: Path, follow: bool, done: bool, interval: float, server: str | None) -> None:
    """Claim pending jobs and write each to a file, in pages with titles, ready for a printer.

    Prints the path of each file. A job that cannot be written goes back into the queue.
    """
    with open_client(server) as client:
        while True:
            try:
                for item in client.contest_prints(contest, state="pending").items:
                    _take(client, contest, item, folder, is_done=done)
            except (UnreachableError, ServerError) as error:
                if not follow:
                    raise
                click.echo(f"{error}; retrying.", err=True)
            if not follow:
                return
            time.sleep(interval)


def _take(client: Client, contest: str, item: PrintRead, folder: Path, *, is_done: bool) -> None:
    try:
        client.contest_claim_print(contest, item.number)
    except ConflictError:
        return  # another print server has it
    try:
        target = folder / _file_name(item)
        partial = target.with_name(f".{target.name}.partial")
        partial.write_bytes(client.contest_print_pages(contest, item.number))
        partial.replace(target)  # a watcher of the folder never sees half a file
    except BaseException:
        client.contest_requeue_print(contest, item.number)
        raise
    if is_done:
        client.contest_finish_print(contest, item.number)
    click.echo(str(target))


def _file_name(item: PrintRead) -> str:
    owner = re.sub(r"[^A-Za-z0-9_-]+", "-", item.participant or "staff")[:40]
    return f"{item.number:04d}-{owner}.txt"


@prints.command()
@click.argument("contest")
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option("--undo", is_flag=True, help="Put the jobs back into the queue.")
@server_option
def done(contest: str, numbers: tuple[int, ...], *, undo: bool, server: str | None) -> None:
    """Mark jobs as printed."""
    with open_client(server) as client:
        action = client.contest_requeue_print if undo else client.contest_finish_print
        for number in numbers:
            click.echo(f"{number}: {action(contest, number).state}")
