"""``adjudge user``: manages users directly in the database, for the first admin and when nobody can log in."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import actor_option, after_option, aliased_option, json_option, limit_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.accounts import AccountServices, open_account_services
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.permissions import ALL_SCOPES, ROLE_PERMISSIONS, Permission, Role, parse_user_name
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.account import CreatedToken, viewer_for_user
from adjudge.services.users import UserSpec
from adjudge.store.accounts.users import UserRow

T = TypeVar("T")

_ROLE = click.Choice([role.value for role in Role])
_TOKEN_SCOPES: Final = tuple(
    str(point)
    for point in (
        Permission.PROBLEM_READ,
        Permission.SUBMISSION_CREATE,
        Permission.SUBMISSION_READ,
        Permission.SUBMISSION_CANCEL,
        Permission.EXECUTION_CREATE,
        Permission.CONTEST_READ,
        Permission.CONTEST_JOIN,
        Permission.ACCOUNT_OWN,
    )
)
"""Default scopes: submit, read, take part in contests, and look up the own account (needed by ``adjudge login``).

A leaked token of an admin does not grant everything.
"""
_REASON = click.option("--reason", default="manual", show_default=True, help="Reason, stored in the audit log.")


@click.group(name="user")
def command() -> None:
    """Manage users in the configured database."""


@command.command()
@click.argument("name")
@click.option("--role", type=_ROLE, default="contestant", show_default=True)
@click.option("--email")
@click.option(
    "--password-stdin",
    is_flag=True,
    help=("Read the password from standard input; the user does not have to change it."),
)
@actor_option
def add(name: str, role: str, email: str | None, password_stdin: bool, actor: str) -> None:
    """Create a user and print a one-time password."""
    password = _password() if password_stdin else None
    order = UserSpec(name, Role(role), email, password=password, must_change_password=not password_stdin)
    made = _with_services(lambda services: services.users.create_user(order, actor=actor), may_be_new=True)
    click.echo(f"Created {made.user.name} ({made.user.role}), ID {made.user.id}")
    if made.one_time_password:
        click.echo(f"One-time password (shown once): {made.one_time_password}")


@command.command("list")
@click.option("--search", default="", help="Filter by name.")
@click.option("--role", type=_ROLE)
@after_option("name")
@limit_option(default=100, maximum=1000)
@json_option
def list_(search: str, role: str | None, after: str, limit: int, as_json: bool) -> None:
    """List users."""
    found = _with_services(
        lambda services: services.users.list_users(search=search, role=role or "", after=after, limit=limit)
    )
    if as_json:
        click.echo(json.dumps([_user_json(user) for user in found]))
        return
    table = Table("name", "role", "state", "joined", "id")
    for user in found:
        state = "disabled" if user.disabled_at else "must change password" if user.must_change_password else "ok"
        table.add_row(user.name, user.role, state, format_timestamp(user.created_at), user.id)
    make_console().print(table)


@command.command()
@click.argument("name")
@_REASON
@actor_option
def disable(name: str, reason: str, actor: str) -> None:
    """Disable a user."""
    _change(name, lambda services, user: services.users.set_user_disabled(actor, user.id, disabled=True, reason=reason))
    click.echo(f"Disabled {name}")


@command.command()
@click.argument("name")
@_REASON
@actor_option
def enable(name: str, reason: str, actor: str) -> None:
    """Enable a user."""
    _change(
        name, lambda services, user: services.users.set_user_disabled(actor, user.id, disabled=False, reason=reason)
    )
    click.echo(f"Enabled {name}")


@command.command()
@click.argument("name")
@_REASON
@actor_option
def password(name: str, reason: str, actor: str) -> None:
    """Reset a password. Prints a one-time password and ends all sessions and tokens."""
    made = _change(name, lambda services, user: services.users.reset_password(actor, user.id, reason=reason))
    click.echo(f"One-time password (shown once): {made.one_time_password}")


@command.command("reset-link")
@click.argument("name")
@_REASON
@actor_option
def reset_link(name: str, reason: str, actor: str) -> None:
    """Create a one-time link with which a user sets a new password; valid for three days."""
    path = _change(name, lambda services, user: services.password_resets.create_link(actor, user.id, reason=reason))
    click.echo(f"One-time link (shown once): {settings_source.load().server.public_url}{path}")


@command.command()
@click.argument("name")
@click.option("--name", "token_name", default="command line", show_default=True, help="Token name.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="Scope, or '*' for all permissions of the user. May be repeated. "
    f"Default: {', '.join(_TOKEN_SCOPES)}, limited to the permissions of the user's role.",
)
@aliased_option(
    "--expires-in-days",
    aliases=["--days"],
    type=click.FloatRange(min=0, max=3650, min_open=True),
    default=90.0,
    show_default=True,
    help="Lifetime in days.",
)
@click.option("--no-expiry", is_flag=True, help="Create a token that does not expire; overrides --expires-in-days.")
def token(name: str, token_name: str, scopes: tuple[str, ...], expires_in_days: float, no_expiry: bool) -> None:
    """Create an API token for a user and print it.

    Only the token is printed to standard output; its lifetime and permissions are printed to standard error. The token
    works even if the user must still change the one-time password.
    """

    async def create(services: AccountServices, user: UserRow) -> CreatedToken:
        if user.disabled_at is not None:
            raise Conflict(f"{user.name} is disabled; enable the user first: adjudge user enable {user.name}")
        return await services.accounts.create_token(
            viewer_for_user(user),
            name=token_name,
            scopes=scopes or [scope for scope in _TOKEN_SCOPES if scope in ROLE_PERMISSIONS[user.role]],
            expires_in_days=None if no_expiry else expires_in_days,
        )

    made = _change(name, create)
    until = "without expiry" if made.token.expires_at is None else f"until {format_timestamp(made.token.expires_at)}"
    may = "all permissions of the user (*)" if ALL_SCOPES in made.token.scopes else ", ".join(made.token.scopes)
    click.echo(f"Valid {until}; permissions: {may}. Others: --scope.", err=True)
    click.echo(made.secret)


def _password() -> str:
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise InvalidInput("--password-stdin: standard input is empty.", field="password")
    return given


def _change(name: str, change: Callable[[AccountServices, UserRow], Awaitable[T]]) -> T:
    async def find_and_change(services: AccountServices) -> T:
        user = await services.users.find_by_name(parse_user_name(name))
        if user is None:
            raise NotFound("user", name)
        return await change(services, user)

    return _with_services(find_and_change)


def _with_services(action: Callable[[AccountServices], Awaitable[T]], *, may_be_new: bool = False) -> T:
    async def run() -> T:
        async with open_account_services(settings_source.load(), may_be_new=may_be_new) as services:
            return await action(services)

    return asyncio.run(run())


def _user_json(user: UserRow) -> dict[str, object]:
    return {
        "id": user.id,
        "name": user.name,
        "role": user.role,
        "email": user.email,
        "disabled": user.disabled_at is not None,
        "created_at": format_timestamp(user.created_at),
    }
