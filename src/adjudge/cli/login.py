"""``adjudge login``: get an API token of a server, and keep it for the other commands."""

from __future__ import annotations

import socket
import sys

import click

from adjudge.cli.connection import LoginStore, SavedLogin, normalize_url, report_api_errors
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput


@click.command(name="login")
@click.argument("url")
@click.option("--name", help="Username. Default: prompt.")
@click.option("--token", help="Use an existing API token; `-` reads it from standard input.")
@click.option("--days", default=90.0, show_default=True, help="Lifetime of the new token in days.")
def command(url: str, name: str | None, token: str | None, days: float) -> None:
    """Log in at the server at URL with a name and a password, or with an API token.

    The token is kept in a file that only you can read; `adjudge logout` revokes and removes it. The password is read
    from standard input where that is no terminal.
    """
    address = normalize_url(url)
    with report_api_errors(address):
        login = SavedLogin(_line("token") if token == "-" else token) if token else _create_token(address, name, days)  # noqa: S105  # a dash is no password
        with Client(address, login.token) as client:
            me = client.me()
    LoginStore().put(address, login)
    click.echo(f"Logged in to {address} as {me.name} ({me.role})")


def _create_token(address: str, name: str | None, days: float) -> SavedLogin:
    name = name or click.prompt("Name")
    password = click.prompt("Password", hide_input=True) if sys.stdin.isatty() else _line("password")
    with Client(address) as client:
        made = client.log_in(name, password, token_name=f"adjudge on {socket.gethostname()}", expires_in_days=days)
    return SavedLogin(made.secret, made.id)


def _line(what: str) -> str:
    given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise InvalidInput(f"{what}: standard input is empty.", field=what)
    return given
