"""``adjudge contest accounts | invitations | groups | organizations``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import parse_duration, print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.schema.contest_participants import AccountCardRead

_REASON: Final = click.option("--reason", default="", help="Kept in the audit log.")
_KIND: Final = click.option(
    "--kind", type=click.Choice(["official", "unofficial", "test"]), default="official", show_default=True
)


@click.group()
def accounts() -> None:
    """Manage the accounts that were made for a contest."""


@accounts.command("list")
@click.argument("contest")
@limit_option(default=100, maximum=1000)
@json_option
@server_option
def list_accounts(contest: str, limit: int, as_json: bool, server: str | None) -> None:
    """List accounts."""
    with open_client(server) as client:
        found = client.contest_accounts(contest, limit=limit).items
    if as_json:
        print_json(found)
        return
    table = Table("username", "name", "participant", "expires", "networks", "state")
    for item in found:
        flags = {"disabled": item.is_disabled, "staff": item.has_role}
        table.add_row(
            item.username,
            escape(item.name),
            item.participant or "",
            item.expires_at or "",
            ", ".join(item.address_ranges or ()),
            ", ".join(name for name, is_set in flags.items() if is_set),
        )
    make_console().print(table)


@accounts.command("create")
@click.argument("contest")
@click.argument("participants", nargs=-1)
@click.option("--prefix", default="", help="Beginning of the user names.")
@json_option
@server_option
def create_accounts(
    contest: str, participants: tuple[str, ...], *, prefix: str, as_json: bool, server: str | None
) -> None:
    """Make an account for each given team, or for each team without members; passwords are shown once."""
    with open_client(server) as client:
        _print_cards(client.contest_create_accounts(contest, participants, prefix=prefix), as_json=as_json)


@accounts.command("renew")
@click.argument("contest")
@click.argument("names", nargs=-1)
@json_option
@server_option
def renew_passwords(contest: str, names: tuple[str, ...], *, as_json: bool, server: str | None) -> None:
    """Generate new passwords for the accounts, or for all without a role; old ones cannot be shown."""
    with open_client(server) as client:
        _print_cards(client.contest_renew_passwords(contest, names), as_json=as_json)


@accounts.command("disable")
@click.argument("contest")
@click.argument("names", nargs=-1)
@_REASON
@server_option
def disable_accounts(contest: str, names: tuple[str, ...], *, reason: str, server: str | None) -> None:
    """Disable the accounts, or all without a role."""
    with open_client(server) as client:
        click.echo(f"Disabled: {client.contest_disable_accounts(contest, names, reason=reason).changed}")


@accounts.command("enable")
@click.argument("contest")
@click.argument("names", nargs=-1)
@_REASON
@server_option
def enable_accounts(contest: str, names: tuple[str, ...], *, reason: str, server: str | None) -> None:
    """Enable the accounts, or all without a role."""
    with open_client(server) as client:
        click.echo(f"Enabled: {client.contest_enable_accounts(contest, names, reason=reason).changed}")


@click.group()
def invitations() -> None:
    """Manage the invitations to a contest."""


@invitations.command("list")
@click.argument("contest")
@json_option
@server_option
def list_invitations(contest: str, as_json: bool, server: str | None) -> None:
    """List invitations; their codes are not stored."""
    with open_client(server) as client:
        found = client.contest_invitations(contest)
    if as_json:
        print_json(found)
        return
    table = Table("id", "kind", "note", "uses", "expires", "revoked")
    for item in found:
        uses = f"{item.uses} of {item.max_uses}"
        row = (item.id, item.kind, escape(item.note or ""), uses, item.expires_at or "", item.revoked_at or "")
        table.add_row(*row)
    make_console().print(table)


@invitations.command("create")
@click.argument("contest")
@_KIND
@click.option("--user", help="Only for this user.")
@click.option("--uses", "max_uses", type=click.IntRange(1), default=1, show_default=True, help="How many can use it.")
@click.option("--expires", "expires_at", help="Until when, for example 2026-03-01T12:00:00Z.")
@click.option("--note", help="For whom it is; shown only to organisers.")
@server_option
def create_invitation(contest: str, *, server: str | None, **fields: str | int | None) -> None:
    """Create an invitation; its code is shown once."""
    given = {name: value for name, value in fields.items() if value is not None}
    with open_client(server) as client:
        made = client.contest_invite(contest, given)
    click.echo(f"{made.code}\t/contests/{contest}/register?code={made.code}")


@invitations.command("revoke")
@click.argument("contest")
@click.argument("invitation")
@server_option
def revoke_invitation(contest: str, invitation: str, server: str | None) -> None:
    """Revoke an invitation, by ID."""
    with open_client(server) as client:
        client.contest_revoke_invitation(contest, invitation)
    click.echo("Revoked.")


@click.group()
def groups() -> None:
    """Manage the groups of a contest."""


@groups.command("list")
@click.argument("contest")
@json_option
@server_option
def list_groups(contest: str, as_json: bool, server: str | None) -> None:
    """List groups."""
    with open_client(server) as client:
        found = client.contest_groups(contest)
    if as_json:
        print_json(found)
        return
    table = Table("id", "name", "ranked", "hidden")
    for item in found:
        table.add_row(item.code, escape(item.name), "yes" if item.ranked else "no", "yes" if item.hidden else "no")
    make_console().print(table)


@groups.command("set")
@click.argument("contest")
@click.argument("given", metavar="CODE=NAME...", nargs=-1)
@click.option("--unranked", multiple=True, help="Code of a group that is not ranked. May be repeated.")
@click.option("--hidden", multiple=True, help="Code of a group that only the jury sees. May be repeated.")
@server_option
def set_groups(
    contest: str, given: tuple[str, ...], *, unranked: tuple[str, ...], hidden: tuple[str, ...], server: str | None
) -> None:
    """Replace the groups; participants of groups that are not given stay."""
    pairs = [item.partition("=") for item in given]
    body = [
        {"code": code, "name": name or code, "ranked": code not in unranked, "hidden": code in hidden}
        for code, _, name in pairs
    ]
    with open_client(server) as client:
        saved = client.contest_set_groups(contest, body)
    click.echo(f"Groups: {', '.join(item.code for item in saved) or 'none'}")


@groups.command("times")
@click.argument("contest")
@click.argument("group")
@click.option("--delay", help="Time by which its participants start and end later, for example 10m.")
@click.option("--extra", help="Time that its participants have more, for example 15m.")
@_REASON
@server_option
def group_times(
    contest: str, group: str, *, delay: str | None, extra: str | None, reason: str, server: str | None
) -> None:
    """Set delay and extra time of all participants of a group."""
    delay_sec = None if delay is None else parse_duration(delay, "delay")
    extra_sec = None if extra is None else parse_duration(extra, "extra")
    with open_client(server) as client:
        changed = client.contest_set_group_times(
            contest, group, delay_sec=delay_sec, extra_sec=extra_sec, reason=reason
        ).changed
    click.echo(f"Changed participants: {changed}")


@click.group()
def organizations() -> None:
    """Manage organisations, which all contests share."""


@organizations.command("list")
@click.argument("contest")
@json_option
@server_option
def list_organizations(contest: str, as_json: bool, server: str | None) -> None:
    """List organisations."""
    with open_client(server) as client:
        found = client.contest_organizations(contest)
    if as_json:
        print_json(found)
        return
    table = Table("id", "name", "country")
    for item in found:
        table.add_row(item.code, escape(item.name), item.country or "")
    make_console().print(table)


@organizations.command("add")
@click.argument("contest")
@click.argument("code")
@click.argument("name")
@click.option("--formal-name", help="Full name.")
@click.option("--country", help="ISO 3166-1 alpha-3, for example CHN.")
@click.option("--icpc-id", help="ID in the ICPC registration system.")
@server_option
def add_organization(contest: str, *, server: str | None, **fields: str | None) -> None:
    """Create an organisation."""
    given = {key: value for key, value in fields.items() if value is not None}
    with open_client(server) as client:
        saved = client.contest_save_organization(contest, given)
    click.echo(f"Saved {saved.code}: {saved.name}")


def _print_cards(cards: Sequence[AccountCardRead], *, as_json: bool) -> None:
    if as_json:
        print_json(cards)
        return
    for card in cards:
        click.echo(f"{card.username}\t{card.password}\t{card.name}")


ACCOUNT_COMMANDS: Final = (accounts, invitations, groups, organizations)
