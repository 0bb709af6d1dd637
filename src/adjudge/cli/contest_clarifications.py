"""``adjudge contest clarifications``: questions, answers and announcements of a contest on a server."""

from __future__ import annotations

from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput
from adjudge.schema.clarifications import ClarificationRead

_problem = click.option("--problem", default="", help="Label of a problem.")
_groups = click.option("--group", "groups", multiple=True, help="To this group. May be repeated.")


@click.group()
def clarifications() -> None:
    """Ask and answer questions, and send announcements."""


@clarifications.command("list")
@click.argument("contest")
@click.option("--open", "only_open", is_flag=True, help="Only questions without an answer; for the jury.")
@click.option("--category", default="", help="Filter by category; for the jury.")
@click.option("--mark-read", is_flag=True, help="Mark what is listed as read.")
@limit_option(default=50, maximum=100)
@json_option
@server_option
def list_(
    contest: str,
    *,
    only_open: bool,
    category: str,
    mark_read: bool,
    limit: int,
    as_json: bool,
    server: str | None,
) -> None:
    """List clarifications, newest first."""
    with open_client(server) as client:
        found = client.clarifications(contest, only_open=only_open, category=category, limit=limit).items
        if mark_read and found:
            client.clarifications_mark_read(contest, found[0].number)
    if as_json:
        print_json(found)
        return
    table = Table("number", "from", "to", "problem", "text", "state")
    for item in found:
        table.add_row(
            str(item.number),
            escape(item.from_participant or "jury"),
            escape(_recipient(item)),
            item.problem or "",
            escape(item.body),
            _state(item),
        )
    make_console().print(table)


@clarifications.command()
@click.argument("contest")
@click.argument("text")
@_problem
@click.option("--category", default="", help="One of the categories of the contest.")
@json_option
@server_option
def ask(contest: str, text: str, *, problem: str, category: str, as_json: bool, server: str | None) -> None:
    """Ask the jury."""
    with open_client(server) as client:
        _print_sent(client.clarification_ask(contest, text, problem=problem, category=category), as_json=as_json)


@clarifications.command()
@click.argument("contest")
@click.argument("number", type=click.IntRange(min=1))
@click.argument("text")
@click.option("--to-all", is_flag=True, help="To all. Default: to who asked.")
@_groups
@json_option
@server_option
def answer(
    contest: str, number: int, text: str, *, to_all: bool, groups: tuple[str, ...], as_json: bool, server: str | None
) -> None:
    """Answer question NUMBER."""
    if to_all and groups:
        raise InvalidInput("--to-all and --group: give one of them.", field="group")
    audience = "all" if to_all else "groups" if groups else "participant"
    with open_client(server) as client:
        question = _find(client, contest, number)
        made = client.clarification_answer(contest, question.id, text, audience=audience, groups=groups)
    _print_sent(made, as_json=as_json)


@clarifications.command()
@click.argument("contest")
@click.argument("number", type=click.IntRange(min=1))
@click.option("--release", is_flag=True, help="Release a claimed question.")
@server_option
def claim(contest: str, number: int, *, release: bool, server: str | None) -> None:
    """Claim question NUMBER, so that no other judge answers it."""
    with open_client(server) as client:
        claimed = client.clarification_claim(contest, _find(client, contest, number).id, release=release)
    click.echo(f"{number}: {f'claimed by {claimed.claimed_by}' if claimed.claimed_by else 'released'}")


@clarifications.command()
@click.argument("contest")
@click.argument("number", type=click.IntRange(min=1))
@server_option
def close(contest: str, number: int, server: str | None) -> None:
    """Mark question NUMBER as answered without a reply."""
    with open_client(server) as client:
        client.clarification_close(contest, _find(client, contest, number).id)
    click.echo(f"{number}: closed")


@clarifications.command()
@click.argument("contest")
@click.argument("text")
@_problem
@click.option("--participant", default="", help="To this participant (its ID in the contest). Default: to all.")
@_groups
@json_option
@server_option
def announce(
    contest: str,
    text: str,
    *,
    problem: str,
    participant: str,
    groups: tuple[str, ...],
    as_json: bool,
    server: str | None,
) -> None:
    """Send an announcement to all, to groups or to one participant."""
    if participant and groups:
        raise InvalidInput("--participant and --group: give one of them.", field="group")
    with open_client(server) as client:
        made = client.announce(contest, text, problem=problem, participant=participant, groups=groups)
    _print_sent(made, as_json=as_json)


def _find(client: Client, contest: str, number: int) -> ClarificationRead:
    """The clarification with a number."""
    cursor: str | None = None
    while True:
        page = client.clarifications(contest, cursor=cursor, limit=100)
        found = next((item for item in page.items if item.number == number), None)
        if found is not None:
            return found
        cursor = page.next
        if cursor is None:
            raise InvalidInput(f"number: there is no clarification {number} in this contest.", field="number")


def _recipient(item: ClarificationRead) -> str:
    return ", ".join(item.groups) if item.groups else item.to_participant or item.audience


def _state(item: ClarificationRead) -> str:
    if item.audience != "jury":
        return f"answers {item.reply_to}" if item.reply_to is not None else "unread" if item.is_unread else ""
    if item.answered_at is not None:
        return "answered"
    return f"claimed by {item.claimed_by}" if item.claimed_by else "open"


def _print_sent(made: ClarificationRead, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        click.echo(f"{made.number}: sent to {_recipient(made)}")


CLARIFICATION_COMMANDS: Final = (clarifications,)
