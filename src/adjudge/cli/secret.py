"""``adjudge secret``: manages the secrets of chains and the key that encrypts them."""

from __future__ import annotations

import asyncio
import sys

import click
from rich.markup import escape
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.chains.secrets import Keyring, check_name, check_value, new_key
from adjudge.cli.connection import open_client
from adjudge.cli.options import server_option
from adjudge.cli.output import make_console
from adjudge.store import Tx, open_database
from adjudge.store.chains import secrets


@click.group(name="secret")
def command() -> None:
    """Manage the secrets of chains: set, list, delete, rotate, key."""


@command.command(name="set")
@click.argument("name")
@server_option
def set_(name: str, server: str | None) -> None:
    """Set the secret NAME to the text on standard input, without a final newline.

    Chains refer to it as {{ secrets.NAME }}. The value cannot be read back.
    """
    check_name(name)
    value = sys.stdin.read()
    value = check_value(value.removesuffix("\n").removesuffix("\r"))
    with open_client(server) as client:
        client.secret_set(name, value)
    click.echo(f"{name}: set")


@command.command(name="list")
@server_option
def list_(server: str | None) -> None:
    """List the names of secrets."""
    with open_client(server) as client:
        found = client.secrets()
    table = Table("name", "updated", "by")
    for item in found:
        table.add_row(escape(item.name), item.updated_at, escape(item.updated_by or ""))
    make_console().print(table if found else "No secrets.")


@command.command()
@click.argument("name")
@server_option
def delete(name: str, server: str | None) -> None:
    """Delete the secret NAME. Nodes that refer to it will fail."""
    with open_client(server) as client:
        client.secret_delete(name)
    click.echo(f"{name}: deleted")


@command.command()
def rotate() -> None:
    """Encrypt all secrets with a new key. Run it on the machine that has the key file.

    If the keys are set by chains.secret_keys, put the new key first there and then run this command.
    """
    settings = settings_source.load()
    keys = Keyring.of(settings.server.data_dir, settings.chains.secret_keys.reveal())
    count = asyncio.run(_encrypt_anew(keys, settings.database.url.reveal()))
    keys.forget_old_keys()
    click.echo(f"secrets encrypted with the new key: {count}")


async def _encrypt_anew(keys: Keyring, database_url: str) -> int:
    """Encrypt all secrets with the newest key; a new key is created only if the existing keys decrypt every secret."""

    async def each(tx: Tx) -> int:
        found = await secrets.read_all(tx)
        changed = [
            await secrets.replace(tx, name, stale=stale, fresh=keys.fresh(stale)) for name, stale in found.items()
        ]
        return sum(changed)

    async with open_database(database_url) as database:
        for stale in (await database.read(secrets.read_all)).values():
            keys.fresh(stale)
        if not keys.given:
            keys.add_key()
        return await database.transact(each)


@command.command()
def key() -> None:
    """Print a new key for chains.secret_keys."""
    click.echo(new_key())
