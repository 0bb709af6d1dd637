"""``adjudge doctor``: what isolation holds on this machine, and how to get the rest."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Final

import click

from adjudge.sandbox.doctor import CheckState, Diagnosis, examine

EXIT_UNSAFE: Final = 1
_COLOURS: Final = {CheckState.OK: "green", CheckState.DEGRADED: "yellow", CheckState.MISSING: "red"}


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(as_json: bool) -> None:
    """Say what isolation holds on this machine, and how to get what is missing.

    A probe is really run in the box. Exit code 0: code that nobody trusts may run here. Exit code 1: it may not; runs
    are refused unless --unsafe is given to the command that runs them.
    """
    diagnosis = asyncio.run(examine())
    if as_json:
        click.echo(json.dumps(as_dict(diagnosis), indent=2))
    else:
        _print(diagnosis)
    raise click.exceptions.Exit(0 if diagnosis.may_run_untrusted else EXIT_UNSAFE)


def as_dict(diagnosis: Diagnosis) -> dict[str, object]:
    """The diagnosis as the JSON that --json prints."""
    return {"may_run_untrusted": diagnosis.may_run_untrusted, "checks": [asdict(check) for check in diagnosis.checks]}


def _print(diagnosis: Diagnosis) -> None:
    for check in diagnosis.checks:
        state = click.style(f"{check.state:<9}", fg=_COLOURS[check.state])
        click.echo(f"{state} {check.name}: {check.found}")
        click.echo(f"          {check.meaning}")
        if check.state is not CheckState.OK:
            click.echo(f"          How to fix it: {check.fix}")
    if diagnosis.may_run_untrusted:
        click.echo("Code that nobody trusts may run on this machine.")
    else:
        warning = "Code that nobody trusts may NOT run on this machine: it is refused, unless --unsafe is given."
        click.echo(click.style(warning, fg="red"))
