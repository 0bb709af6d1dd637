"""``adjudge logout``: deletes the stored token of a server and revokes it."""

from __future__ import annotations

import click

from adjudge.cli.connection import LoginStore
from adjudge.cli.options import server_option
from adjudge.client import Client, ClientError


@click.command(name="logout")
@server_option
def command(server: str | None) -> None:
    """Log out of a server.

    A token created by `adjudge login` is revoked.
    """
    logins = LoginStore()
    url, login = logins.find(server)
    logins.drop(url)
    if login.token_id:
        try:
            with Client(url, login.token) as client:
                client.revoke_token(login.token_id)
        except ClientError as error:
            click.echo(f"adjudge: token deleted locally, but {url} did not revoke it: {error}", err=True)
    click.echo(f"Logged out of {url}")
