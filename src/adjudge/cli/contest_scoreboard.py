"""``adjudge contest scoreboard | export | awards``: the scoreboard of a contest on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.contest_package import export_package
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.domain.errors import InvalidInput
from adjudge.schema.scoreboard import ScoreboardCellRead, ScoreboardRead

_FILES: Final = ("scoreboard.json", "awards.json", "results.tsv", "scoreboard.csv", "scoreboard.html")
_jury = click.option("--jury", is_flag=True, help="The jury's view; needs a role in the contest.")


@click.command()
@click.argument("contest")
@_jury
@click.option("--group", default="", help="Filter by group ID.")
@click.option("--offset", default=0, show_default=True, type=click.IntRange(min=0), help="First row.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of rows.")
@json_option
@server_option
def scoreboard(
    *, contest: str, jury: bool, group: str, offset: int, limit: int, as_json: bool, server: str | None
) -> None:
    """Show rows of the scoreboard."""
    with open_client(server) as client:
        found = client.scoreboard(contest, view=_view(jury), group=group, offset=offset, limit=limit)
    if as_json:
        print_json(found)
        return
    _print(found)


@click.command()
@click.argument("contest")
@click.argument("name", metavar="FILE")
@_jury
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: print.")
@click.option("--without-submissions", is_flag=True, help="A package without what happened in the contest.")
@server_option
def export(
    contest: str, name: str, *, jury: bool, output: Path | None, without_submissions: bool, server: str | None
) -> None:
    """Export the contest as a package (a FILE that ends with .zip), or the scoreboard, the awards or the results.

    FILE is scoreboard.json, awards.json, results.tsv, scoreboard.csv, scoreboard.html, or the path of a .zip file.
    """
    if name.lower().endswith(".zip"):
        export_package(contest, output or Path(name), without_submissions=without_submissions, server=server)
        return
    if name not in _FILES:
        raise InvalidInput(f"file: expected {', '.join(_FILES)}, or a file that ends with .zip.", field="file")
    with open_client(server) as client:
        body = client.scoreboard_export(contest, name, view=_view(jury))
    if output is None:
        click.echo(body, nl=False)
    else:
        output.write_bytes(body)


@click.command()
@click.argument("contest")
@_jury
@json_option
@server_option
def awards(contest: str, *, jury: bool, as_json: bool, server: str | None) -> None:
    """List the awards."""
    with open_client(server) as client:
        found = client.awards(contest, view=_view(jury))
    if as_json:
        print_json(found)
        return
    table = Table("award", "citation", "participants", "")
    for item in found:
        names = ", ".join(item.participant_ids)
        table.add_row(escape(item.id), escape(item.citation), names, "" if item.is_managed else "edited")
    make_console().print(table)


def _view(jury: bool) -> str:  # a flag of the command line
    return "jury" if jury else "public"


def scoreboard_table(found: ScoreboardRead, *, limit: int | None = None) -> Table:
    """The first rows of a scoreboard."""
    totals = ("solved", "penalty") if found.is_pass_fail else ("score",)
    table = Table("rank", "participant", *totals, *(item.label for item in found.problems))
    for row in found.rows[:limit]:
        penalty = str((row.penalty_sec or 0) // 60)
        scores = (str(row.solved), penalty) if found.is_pass_fail else (f"{row.score:g}",)
        rank = "" if row.rank is None else str(row.rank)
        table.add_row(rank, escape(row.name), *scores, *(_cell(item) for item in row.cells))
    return table


def _print(found: ScoreboardRead) -> None:
    console = make_console()
    console.print(scoreboard_table(found))
    if found.replay_sec is not None:
        console.print(f"Replay of the contest at minute {found.replay_sec // 60} of your virtual participation.")
    if found.frozen_min is not None:
        console.print(f"Frozen with {found.frozen_min} minutes remaining.")


def _cell(cell: ScoreboardCellRead) -> str:
    pending = f"?{cell.pending}" if cell.pending else ""
    if cell.score is not None:
        return f"{cell.score:g}{pending}" if cell.attempts or cell.score else pending
    if cell.is_solved:
        return f"{'*' if cell.is_first else '+'}{cell.attempts}{pending}"
    return f"-{cell.attempts}{pending}" if cell.attempts else pending


SCOREBOARD_COMMANDS: Final = (scoreboard, export, awards)
