"""``adjudge migrate``: shows and changes the schema revision. Every role upgrades the schema at its start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import click

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.wiring.drivers import existing_url
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.store import migrations
from adjudge.store.migrations import MigrationStep

EXIT_PENDING = 1


@click.group(name="migrate")
def command() -> None:
    """Show, upgrade or downgrade the database schema."""


@command.command()
@json_option
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Show the schema revision and the pending migrations.

    Exit codes: 0 up to date, 1 migrations pending, 3 no database, or its schema is newer than this version.
    """
    _, current = _found()
    pending = [step for step in migrations.steps() if current is None or step.revision > current]
    if as_json:
        steps = [{"revision": step.revision, "title": step.title} for step in pending]
        click.echo(json.dumps({"current": current, "newest": migrations.latest_revision(), "pending": steps}))
    else:
        click.echo(
            f"The schema is at {current or 'nothing'}; this version of Adjudge knows {migrations.latest_revision()}."
        )
        _list("pending", pending)
        click.echo(
            f"{len(pending)} steps are pending: any role takes them when it starts." if pending else "Up to date."
        )
    if pending:
        context.exit(EXIT_PENDING)


@command.command()
def up() -> None:
    """Apply the pending migrations, as every role does at its start."""
    url, current = _found()
    asyncio.run(migrations.upgrade(url))
    click.echo(f"The schema is at {migrations.latest_revision()}; it was at {current or 'nothing'}.")


@command.command()
@click.argument("revision")
@click.option("--yes", is_flag=True, help="Do not ask.")
def down(revision: str, yes: bool) -> None:
    """Take steps back until the schema is at REVISION, for an older version of Adjudge.

    Back up first and stop every role. All steps are undone in one transaction, or none is. What only the newer schema
    can hold is lost. Do not start this version again afterwards: it would take the steps once more.
    """
    url, current = _found()
    undone = _undone(current, revision)
    _list("undo", list(reversed(undone)))
    if not yes:
        click.confirm(
            f"Take the schema back from {current} to {revision}? Columns and tables of these steps go, with what is in "
            "them. Is there a backup, and has every role stopped?",
            abort=True,
        )
    asyncio.run(migrations.downgrade(url, revision))
    click.echo(f"The schema is at {revision}. Install the version that knows {revision} before you start a role.")


def _found() -> tuple[str, str | None]:
    """The database's address and its revision."""
    url = existing_url(settings_source.load())
    current = asyncio.run(migrations.current(url))
    if current is not None and current > migrations.latest_revision():
        raise Conflict(
            f"database_url: that database is at schema {current}; "
            f"this Adjudge knows {migrations.latest_revision()} at most. "
            "Use the newer version's own `adjudge migrate`: only it knows how to undo its steps.",
            field="database_url",
        )
    return url, current


def _undone(current: str | None, revision: str) -> list[MigrationStep]:
    """The steps between, or what is wrong with the wish."""
    steps = migrations.steps()
    known = [step.revision for step in steps]
    if revision not in known:
        raise InvalidInput(
            f"REVISION: there is no {revision!r}; there are {known[0]} to {known[-1]} (adjudge migrate status).",
            field="revision",
        )
    if current is None or revision >= current:
        raise InvalidInput(
            f"REVISION: the schema is at {current or 'nothing'}, so that there is nothing to undo down to {revision}.",
            field="revision",
        )
    return [step for step in steps if revision < step.revision <= current]


def _list(word: str, steps: Sequence[MigrationStep]) -> None:
    for step in steps:
        click.echo(f"  {word}  {step.revision}  {step.title}")
