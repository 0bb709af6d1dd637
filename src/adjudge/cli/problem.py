"""``adjudge problem``: make, check, verify, convert, show and publish packages. Each command has its own file."""

from __future__ import annotations

import click

from adjudge.cli.problem_convert import export, import_, new
from adjudge.cli.problem_publish import publish
from adjudge.cli.problem_show import check, show
from adjudge.cli.problem_verify import verify


@click.group(name="problem")
def command() -> None:
    """Make, check, verify, convert, show and publish problem packages."""


for _command in (new, import_, check, verify, export, show, publish):
    command.add_command(_command)
