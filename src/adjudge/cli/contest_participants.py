"""``adjudge contest participants`` and ``adjudge contest import-teams``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import InvalidInput
from adjudge.schema.contest_participants import TeamImportRead


@click.group()
def participants() -> None:
    """Manage the participants of a contest."""


@participants.command("list")
@click.argument("contest")
@click.option("--kind", type=click.Choice([item.value for item in ParticipantKind]), help="Filter by kind.")
@click.option("--group", help="Filter by group.")
@click.option("--search", help="Filter by part of the name or ID.")
@limit_option(default=100, maximum=1000)
@json_option
@server_option
def list_(
    contest: str,
    *,
    kind: str | None,
    group: str | None,
    search: str | None,
    limit: int,
    as_json: bool,
    server: str | None,
) -> None:
    """List participants."""
    with open_client(server) as client:
        found = client.contest_participants(contest, kind=kind, group=group, search=search, limit=limit).items
    if as_json:
        print_json(found)
        return
    table = Table("id", "name", "kind", "organisation", "groups", "members", "state")
    for item in found:
        flags = {"hidden": item.hidden, "disqualified": item.is_disqualified}
        table.add_row(
            item.code,
            escape(item.name),
            item.kind,
            escape(item.organization.name if item.organization else ""),
            ", ".join(item.groups),
            ", ".join(item.members or ()),
            ", ".join(name for name, is_set in flags.items() if is_set),
        )
    make_console().print(table)


@participants.command()
@click.argument("contest")
@click.option("--user", help="Add this user.")
@click.option("--team", help="Add a new team with this name.")
@click.option("--code", help="ID of the participant in the contest.")
@click.option("--member", "members", multiple=True, help="User of the team. May be repeated.")
@click.option("--group", "groups", multiple=True, help="Group. May be repeated.")
@click.option("--kind", type=click.Choice(["official", "unofficial", "test"]), default="official", show_default=True)
@server_option
def add(
    contest: str,
    *,
    user: str | None,
    team: str | None,
    code: str | None,
    members: tuple[str, ...],
    groups: tuple[str, ...],
    kind: str,
    server: str | None,
) -> None:
    """Add a user or a team."""
    if (user is None) == (team is None):
        raise InvalidInput("--user or --team: give one of them.", field="user")
    body = {"user": user, "name": team, "code": code, "members": list(members), "groups": list(groups), "kind": kind}
    with open_client(server) as client:
        added = client.contest_add_participant(
            contest, {name: value for name, value in body.items() if value not in (None, [])}
        )
    click.echo(f"Added {added.code}: {added.name}")


@participants.command("set")
@click.argument("contest")
@click.argument("participant")
@click.option("--name", help="Name on the scoreboard.")
@click.option("--kind", type=click.Choice(["official", "unofficial", "test"]))
@click.option("--hidden/--shown", default=None, help="Hide or show it.")
@click.option("--disqualified/--qualified", default=None, help="Disqualify it, or undo that.")
@click.option("--delay", "delay_sec", type=float, help="Seconds by which it starts and ends later.")
@click.option("--extra", "extra_sec", type=float, help="Seconds that it has more.")
@click.option("--organization", help="Code of its organisation.")
@click.option("--location", help="Where it sits.")
@click.option("--member", "members", multiple=True, help="User of the team; replaces the members. May be repeated.")
@click.option("--group", "groups", multiple=True, help="Group; replaces the groups. May be repeated.")
@click.option("--reason", default="", help="Kept in the audit log.")
@server_option
def set_(contest: str, participant: str, *, server: str | None, **changes: object) -> None:
    """Change a participant: name, kind, hidden, disqualified, delay, extra time, members, groups, place."""
    given = {name: value for name, value in changes.items() if value not in (None, ())}
    with open_client(server) as client:
        changed = client.contest_update_participant(contest, participant, given)
    click.echo(f"Changed {changed.code}: {changed.name}")


@participants.command()
@click.argument("contest")
@click.argument("participant")
@server_option
def remove(contest: str, participant: str, server: str | None) -> None:
    """Remove a participant without submissions."""
    with open_client(server) as client:
        client.contest_remove_participant(contest, participant)
    click.echo(f"Removed {participant}.")


@click.command("import-teams")
@click.argument("contest")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show what would happen; import nothing.")
@json_option
@server_option
def import_teams(contest: str, files: tuple[Path, ...], *, dry_run: bool, as_json: bool, server: str | None) -> None:
    """Import teams, groups, organisations and accounts from JSON, YAML or TSV files, all or nothing."""
    texts = {file.name: _read(file) for file in files}
    with open_client(server) as client:
        report = client.contest_import_teams(contest, texts, preview=dry_run)
    if as_json:
        print_json(report)
        return
    _print_report(report)
    if any(item.severity == "error" for item in report.findings):
        raise click.exceptions.Exit(3)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file.name}: not UTF-8 text.", field="files") from None


def _print_report(report: TeamImportRead) -> None:
    for finding in report.findings:
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path
        click.echo(f"{where}: {finding.severity}: {finding.message} {finding.fix}".rstrip(), err=True)
    counts: dict[tuple[str, str], int] = {}
    for item in report.items:
        counts[item.kind, item.action] = counts.get((item.kind, item.action), 0) + 1
    for (kind, action), count in counts.items():
        click.echo(f"{kind}: {count} {action}")
    if report.accounts:
        click.echo("Generated passwords (shown once):")
        for card in report.accounts:
            click.echo(f"{card.username}\t{card.password}\t{card.name}")


PARTICIPANT_COMMANDS: Final = (participants, import_teams)
