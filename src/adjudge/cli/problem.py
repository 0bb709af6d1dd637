"""``adjudge problem``: the commands for local packages, the local database and problems on a server."""

from __future__ import annotations

from typing import Final

import click

from adjudge.cli import LazyCommand

_COMMANDS: Final = (
    LazyCommand(
        "new",
        "adjudge.cli.problem_convert:new",
        "Create a working example package in DIR.",
    ),
    LazyCommand(
        "import",
        "adjudge.cli.problem_convert:import_",
        "Convert a package of any supported format to ICPC. Without --to, list the files.",
    ),
    LazyCommand(
        "check",
        "adjudge.cli.problem_show:check",
        "Validate the format of a package and list all findings.",
    ),
    LazyCommand(
        "verify",
        "adjudge.cli.problem_verify:verify",
        "Run the input validators and judge all jury solutions.",
    ),
    LazyCommand("export", "adjudge.cli.problem_convert:export", "Export a package as an ICPC 2025-09 archive."),
    LazyCommand("show", "adjudge.cli.problem_show:show", "Show the parsed contents of a package."),
    LazyCommand(
        "publish",
        "adjudge.cli.problem_publish:publish",
        "Import packages into the configured database and publish them.",
    ),
    LazyCommand("list", "adjudge.cli.problem_remote:list_", "List problems on a server."),
    LazyCommand(
        "view", "adjudge.cli.problem_remote:view", "Show a problem on a server: limits, statement and samples."
    ),
    LazyCommand(
        "upload",
        "adjudge.cli.problem_remote:upload",
        "Upload a package (ZIP or folder) to a server.",
    ),
)


@click.group("problem", commands=_COMMANDS)
def command() -> None:
    """Manage problem packages, and problems on a server."""
