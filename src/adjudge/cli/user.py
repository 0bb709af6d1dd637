"""``adjudge user``: people and programs, from the machine itself; for the first admin, and when nobody can log in."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.api.account_parts import AccountParts
from adjudge.api.actions import accounts, users
from adjudge.api.actions.users import UserOrder
from adjudge.api.moments import moment
from adjudge.cli.accounting import open_accounts
from adjudge.cli.acting import ACTOR
from adjudge.cli.terminal import console as open_console
from adjudge.domain.access import EVERYTHING, Role, user_name
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.store import users as rows
from adjudge.store.users import User

T = TypeVar("T")

_ROLE = click.Choice([role.value for role in Role])
_REASON = click.option("--reason", default="by hand", show_default=True, help="Why; the audit log keeps it.")


@click.group(name="user")
def command() -> None:
    """Manage accounts: add, list, disable, enable, password, token."""


@command.command()
@click.argument("name")
@click.option("--role", type=_ROLE, default="contestant", show_default=True)
@click.option("--email")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; it need not be changed.")
@ACTOR
def add(name: str, role: str, email: str | None, password_stdin: bool, actor: str) -> None:
    """Create a user, and print a one-time password unless one is given."""
    password = _password() if password_stdin else None
    order = UserOrder(name, Role(role), email, password=password, must_change_password=not password_stdin)
    made = _with_parts(lambda parts: users.make_user(parts, order, actor=actor), may_be_new=True)
    click.echo(f"{made.user.name} is {made.user.role}, id {made.user.id}")
    if made.one_time_password:
        click.echo(f"One-time password, shown this once: {made.one_time_password}")


@command.command("list")
@click.option("--search", default="", help="A part of the name.")
@click.option("--role", type=_ROLE)
@click.option("--after", default="", metavar="NAME", help="Go on after this one.")
@click.option("--at-most", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_(search: str, role: str | None, after: str, at_most: int, as_json: bool) -> None:
    """List users by name."""
    found = _with_parts(
        lambda parts: users.list_users(parts, search=search, role=role or "", after=after, at_most=at_most)
    )
    if as_json:
        click.echo(json.dumps([_shown(user) for user in found]))
        return
    table = Table("name", "role", "state", "since", "id")
    for user in found:
        state = "disabled" if user.disabled_at else "must change password" if user.must_change_password else "ok"
        table.add_row(user.name, user.role, state, moment(user.created_at), user.id)
    open_console().print(table)


@command.command()
@click.argument("name")
@_REASON
@ACTOR
def disable(name: str, reason: str, actor: str) -> None:
    """Shut a user out."""
    _change(name, lambda parts, user: users.set_disabled(parts, actor, user.id, disabled=True, reason=reason))
    click.echo(f"{name} is disabled")


@command.command()
@click.argument("name")
@_REASON
@ACTOR
def enable(name: str, reason: str, actor: str) -> None:
    """Let a user in again."""
    _change(name, lambda parts, user: users.set_disabled(parts, actor, user.id, disabled=False, reason=reason))
    click.echo(f"{name} is enabled")


@command.command()
@click.argument("name")
@_REASON
@ACTOR
def password(name: str, reason: str, actor: str) -> None:
    """Give a user a one-time password; whatever they were logged in by ends."""
    made = _change(name, lambda parts, user: users.reset_password(parts, actor, user.id, reason=reason))
    click.echo(f"One-time password, shown this once: {made.one_time_password}")


@command.command()
@click.argument("name")
@click.option("--name", "token_name", default="command line", show_default=True, help="What it is for.")
@click.option("--scope", "scopes", multiple=True, help="A permission point; several times for several. Default: all.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="When it expires. Default: never.")
def token(name: str, token_name: str, scopes: tuple[str, ...], days: float | None) -> None:
    """Make an API token for a user and print it: alone on its line, for scripts."""

    async def create(parts: AccountParts, user: User) -> str:
        if user.disabled_at is not None:
            raise Conflict(f"{user.name} is disabled, so no token of theirs works: adjudge user enable {user.name}")
        if user.must_change_password:
            click.echo(
                f"{user.name} has yet to choose a password, in a browser. Until then the token is refused, and "
                "choosing one ends it unless that box is unticked: better make the token afterwards.",
                err=True,
            )
        viewer = accounts.viewer_for(user)
        made = await accounts.create_token(
            parts, viewer, name=token_name, scopes=scopes or (EVERYTHING,), expires_in_days=days
        )
        return made.secret

    click.echo(_change(name, create))


def _password() -> str:
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise InvalidInput("--password-stdin: there was nothing on standard input.", field="password")
    return given


def _change(name: str, change: Callable[[AccountParts, User], Awaitable[T]]) -> T:
    async def find_and_change(parts: AccountParts) -> T:
        spelled = user_name(name)
        known = await parts.database.read(lambda tx: rows.known_by_name(tx, spelled))
        if known is None:
            raise NotFound("user", name)
        return await change(parts, known.user)

    return _with_parts(find_and_change)


def _with_parts(action: Callable[[AccountParts], Awaitable[T]], *, may_be_new: bool = False) -> T:
    async def run() -> T:
        async with open_accounts(settings_source.load(), may_be_new=may_be_new) as parts:
            return await action(parts)

    return asyncio.run(run())


def _shown(user: User) -> dict[str, object]:
    return {
        "id": user.id,
        "name": user.name,
        "role": user.role,
        "email": user.email,
        "disabled": user.disabled_at is not None,
        "created_at": moment(user.created_at),
    }
