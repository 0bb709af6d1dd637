"""``adjudge contest problems`` and ``adjudge contest role``: the problems and the staff of a contest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import format_duration, print_json
from adjudge.cli.contest_settings import read_file
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput
from adjudge.schema.contests import ContestProblemList

_role = click.argument("role", type=click.Choice([str(item) for item in ContestRole]))


@click.group()
def problems() -> None:
    """List and set the problems of a contest."""


@problems.command("list")
@click.argument("contest")
@json_option
@server_option
def list_problems(contest: str, as_json: bool, server: str | None) -> None:
    """List the problems of a contest in order."""
    with open_client(server) as client:
        _print_problems(client.contest_problems(contest), as_json=as_json)


@problems.command("set")
@click.argument("contest")
@click.argument("names", nargs=-1, metavar="[LABEL=PROBLEM|PROBLEM]...")
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML or JSON file with a list of problems: problem, label, revision, alias, rgb, color, points, ...",
)
@json_option
@server_option
def set_problems(contest: str, names: tuple[str, ...], path: Path | None, as_json: bool, server: str | None) -> None:
    """Replace the problems of a contest, from arguments or a file.

    Problems are named by slug or ID. Without labels they get letters by position.
    """
    if bool(names) == (path is not None):
        raise InvalidInput("Missing argument: problems, or --file with a list of them.", field="problems")
    wanted = [_named(name) for name in names] if path is None else _read(path)
    with open_client(server) as client:
        saved = client.contest_set_problems(contest, wanted)
    _print_problems(saved, as_json=as_json)
    for warning in saved.warnings:
        click.echo(f"adjudge: warning: {warning}", err=True)


def _named(name: str) -> dict[str, Any]:
    label, is_labelled, problem = name.partition("=")
    return {"label": label, "problem": problem} if is_labelled else {"problem": name}


def _read(path: Path) -> list[dict[str, Any]]:
    document = read_file(path)
    items = document.get("problems") if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise InvalidInput(f"{path}: expected a list of problems.", field="file")
    return [{"problem": item} if isinstance(item, str) else item for item in items]


def _print_problems(found: ContestProblemList, *, as_json: bool) -> None:
    if as_json:
        print_json(found.items)
        return
    table = Table("label", "problem", "revision", "title", "points", "color", "opens", "closes", "state")
    for item in found.items:
        closed = "" if item.accepts else "does not accept"
        paused = "judging paused" if item.judging_paused else ""
        table.add_row(
            item.label,
            item.slug,
            str(item.revision),
            escape(item.title),
            f"{item.points:g}",
            escape(item.color or item.rgb or ""),
            format_duration(item.opens_after_sec) or "",
            format_duration(item.closes_after_sec) or "",
            ", ".join(text for text in (closed, paused) if text),
        )
    make_console().print(table)


@click.group()
def role() -> None:
    """Grant, revoke and list roles in a contest."""


@role.command("list")
@click.argument("contest")
@json_option
@server_option
def list_roles(contest: str, as_json: bool, server: str | None) -> None:
    """List the roles in a contest."""
    with open_client(server) as client:
        found = client.contest_roles(contest)
    if as_json:
        print_json(found)
        return
    table = Table("user", "role", "since")
    for item in found:
        table.add_row(escape(item.user_name), item.role, item.created_at)
    make_console().print(table)


@role.command()
@click.argument("contest")
@click.argument("user")
@_role
@server_option
def grant(contest: str, user: str, role: str, server: str | None) -> None:
    """Give a user, by name or ID, a role in a contest."""
    with open_client(server) as client:
        client.contest_grant_role(contest, user, role)
    click.echo(f"{user}: {role}")


@role.command()
@click.argument("contest")
@click.argument("user")
@_role
@server_option
def revoke(contest: str, user: str, role: str, server: str | None) -> None:
    """Take a role from a user."""
    with open_client(server) as client:
        client.contest_revoke_role(contest, user, role)
    click.echo(f"{user}: no longer {role}")


PROBLEM_COMMANDS: Final = (problems, role)
