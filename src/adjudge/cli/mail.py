"""``adjudge mail``: checks the mail server."""

from __future__ import annotations

import asyncio

import click

from adjudge import settings as settings_source
from adjudge.cli.wiring.mail import make_smtp_client
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id


@click.group(name="mail")
def command() -> None:
    """Check the mail server."""


@command.command()
@click.argument("address")
def test(address: str) -> None:
    """Send a test mail to ADDRESS with the settings of the section mail."""
    client = make_smtp_client(settings_source.load())
    if client is None:
        raise InvalidInput(
            "mail.smtp_url: not set; set ADJUDGE_SMTP_URL=smtp://USER:PASSWORD@HOST:587.", field="mail.smtp_url"
        )
    body = "This is a test of the mail server of Adjudge.\n"
    asyncio.run(client.send(message_id=new_id(), recipient=address, subject="Adjudge: test", body=body))
    click.echo(f"sent to {address}")
