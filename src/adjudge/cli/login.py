"""``adjudge login``: creates an API token on a server and stores it for the other commands."""

from __future__ import annotations

import socket
import sys

import click

from adjudge.cli.connection import LoginStore, SavedLogin, normalize_url, report_api_errors
from adjudge.cli.options import aliased_option
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput


@click.command(name="login")
@click.argument("url")
@click.option("--name", help="Username. Default: prompt.")
@click.option("--token", help="Use an existing API token; `-` reads it from standard input.")
@aliased_option(
    "--expires-in-days",
    aliases=["--days"],
    default=90.0,
    show_default=True,
    help="Lifetime of the new token in days.",
)
def command(url: str, name: str | None, token: str | None, expires_in_days: float) -> None:
    """Log in to a server with a password or an API token.

    The token is stored in a file readable only by you; `adjudge logout` revokes and deletes it. The password is read
    from standard input if that is not a terminal.
    """
    address = normalize_url(url)
    with report_api_errors(address):
        login = _given_token(token) if token else _create_token(address, name, expires_in_days)
        with Client(address, login.token) as client:
            me = client.me()
    LoginStore().put(address, login)
    click.echo(f"Logged in to {address} as {me.name} ({me.role})")


def _given_token(token: str) -> SavedLogin:
    return SavedLogin(_line("token") if token == "-" else token)  # noqa: S105  # a dash is not a password


def _create_token(address: str, name: str | None, days: float) -> SavedLogin:
    name = name or click.prompt("Name")
    password = click.prompt("Password", hide_input=True) if sys.stdin.isatty() else _line("password")
    with Client(address) as client:
        made = client.login(name, password, token_name=f"adjudge on {socket.gethostname()}", expires_in_days=days)
    return SavedLogin(made.secret, made.id)


def _line(what: str) -> str:
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise InvalidInput(f"{what}: standard input is empty.", field=what)
    return given
