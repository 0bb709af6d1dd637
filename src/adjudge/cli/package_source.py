"""The package that a command works on: a folder or an archive of the operator's own, and which links in it count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from adjudge.packages.archive import Links

follow_links_option: Callable[[Any], Any] = click.option(
    "--follow-links",
    "links",
    is_flag=True,
    callback=lambda _context, _option, value: Links.ANYWHERE if value else Links.REPOSITORY,
    help="Follow links in a folder wherever they lead. Default: inside the folder's Git repository. Never in archives.",
)
"""Gives the command ``links``, ready to be passed on."""
