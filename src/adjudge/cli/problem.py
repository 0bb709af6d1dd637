"""``adjudge problem``: make, check, verify, convert, show and publish packages. Each command has its own file."""

from __future__ import annotations

from typing import Final

import click

from adjudge.cli import Later

_COMMANDS: Final = (
    Later(
        "new",
        "adjudge.cli.problem_convert:new",
        "Make a new problem in DIR: statement, tests, solutions and a validator that all work.",
    ),
    Later(
        "import",
        "adjudge.cli.problem_convert:import_",
        "Read a package of any format and write it as an ICPC package; without --to, say what would be written.",
    ),
    Later(
        "check",
        "adjudge.cli.problem_show:check",
        "Check a package's form: every finding at once, with file, line and fix.",
    ),
    Later(
        "verify",
        "adjudge.cli.problem_verify:verify",
        "Run the input validators on every test and judge every jury submission.",
    ),
    Later("export", "adjudge.cli.problem_convert:export", "Write a package as an ICPC archive, version 2025-09."),
    Later("show", "adjudge.cli.problem_show:show", "Show what a package says, as the judge understands it."),
    Later(
        "publish", "adjudge.cli.problem_publish:publish", "Put packages into the configured database and publish them."
    ),
)


@click.group("problem", commands=_COMMANDS)
def command() -> None:
    """Make, check, verify, convert, show and publish problem packages."""
