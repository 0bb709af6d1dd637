"""Options of commands that take a solution: ``--problem`` and ``--contest``, completed from the server."""

from __future__ import annotations

import click

from adjudge.cli.completion import complete_contest, complete_problem

problem_option = click.option(
    "--problem",
    default="",
    metavar="SLUG",
    shell_complete=complete_problem,
    help="Problem (slug or ID; in a contest also its label). Default: from the first lines or the file name.",
)
contest_option = click.option(
    "--contest",
    default="",
    metavar="SLUG",
    is_eager=True,
    shell_complete=complete_contest,
    help="Contest (slug or ID) that the submission is for.",
)
