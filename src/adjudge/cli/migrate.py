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


@click.group(name="migrate", invoke_without_command=True)
@click.option("--check", is_flag=True, help="Only show whether migrations are pending, as `migrate status` does.")
@click.pass_context
def command(context: click.Context, check: bool) -> None:
    """Show, upgrade or downgrade the database schema.

    Without a subcommand, applies the pending migrations, as `migrate up` does.
    """
    if context.invoked_subcommand is None:
        if check:
            _show(context, as_json=False)
        else:
            _upgrade()
    elif check:
        raise click.UsageError("--check cannot be used with a subcommand.")


@command.command()
@json_option
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Show the schema revision and the pending migrations.

    Exit codes: 0 up to date, 1 migrations pending, 3 no database, or its schema is newer than this version.
    """
    _show(context, as_json=as_json)


def _show(context: click.Context, *, as_json: bool) -> None:
    _, current = _found()
    pending = [step for step in migrations.steps() if current is None or step.revision > current]
    if as_json:
        steps = [{"revision": step.revision, "title": step.title} for step in pending]
        click.echo(json.dumps({"current": current, "newest": migrations.latest_revision(), "pending": steps}))
    else:
        click.echo(
            f"Schema revision: {current or 'none'}; latest revision of this version: {migrations.latest_revision()}."
        )
        _list("pending", pending)
        click.echo(
            f"{len(pending)} migrations pending; every role applies them at its start." if pending else "Up to date."
        )
    if pending:
        context.exit(EXIT_PENDING)


@command.command()
def up() -> None:
    """Apply the pending migrations, as every role does at its start."""
    _upgrade()


def _upgrade() -> None:
    url, current = _found()
    asyncio.run(migrations.upgrade(url))
    click.echo(f"Schema revision: {migrations.latest_revision()} (before: {current or 'none'}).")


@command.command()
@click.argument("revision")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def down(revision: str, yes: bool) -> None:
    """Downgrade the schema to REVISION, for an older version of Adjudge.

    Back up first and stop all roles. All migrations are reverted in one transaction. Data that only the newer schema
    can hold is lost. Do not start this version afterwards: it would upgrade the schema again.
    """
    url, current = _found()
    undone = _undone(current, revision)
    _list("undo", list(reversed(undone)))
    if not yes:
        click.confirm(
            f"Downgrade the schema from {current} to {revision}? The columns and tables of these migrations are "
            "deleted with their data. Is there a backup, and are all roles stopped?",
            abort=True,
        )
    asyncio.run(migrations.downgrade(url, revision))
    click.echo(
        f"Schema revision: {revision}. Install the version with latest revision {revision} before starting a role."
    )


def _found() -> tuple[str, str | None]:
    """The database URL and the current revision."""
    url = existing_url(settings_source.load())
    current = asyncio.run(migrations.current(url))
    if current is not None and current > migrations.latest_revision():
        raise Conflict(
            f"database_url: the schema revision {current} is newer than the latest of this version, "
            f"{migrations.latest_revision()}. Use `adjudge migrate` of the newer version.",
            field="database_url",
        )
    return url, current


def _undone(current: str | None, revision: str) -> list[MigrationStep]:
    """The migrations between the current revision and ``revision``."""
    steps = migrations.steps()
    known = [step.revision for step in steps]
    if revision not in known:
        raise InvalidInput(
            f"REVISION: unknown revision {revision!r}; known: {known[0]} to {known[-1]} (adjudge migrate status).",
            field="revision",
        )
    if current is None or revision >= current:
        raise InvalidInput(
            f"REVISION: the schema is at {current or 'none'}; there is nothing to revert to {revision}.",
            field="revision",
        )
    return [step for step in steps if revision < step.revision <= current]


def _list(word: str, steps: Sequence[MigrationStep]) -> None:
    for step in steps:
        click.echo(f"  {word}  {step.revision}  {step.title}")
