"""In whose name commands on the machine itself act: nobody has logged in there."""

from __future__ import annotations

import getpass

import click

ACTOR = click.option(
    "--as",
    "actor",
    default=getpass.getuser,
    show_default="you",
    help="Actor recorded in the audit log as cli:NAME.",
    callback=lambda _context, _option, name: f"cli:{name}",
)
