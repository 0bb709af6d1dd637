"""``adjudge dlq``: lists, shows, replays and discards dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TypeVar

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import actor_option, after_option, json_option, limit_option, required_reason_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.domain.ids import parse_id
from adjudge.store import Database
from adjudge.store.jobs import dead_letters

T = TypeVar("T")

_IDS = click.argument("letter_ids", nargs=-1, required=True, metavar="ID…")
_REASON = required_reason_option("Reason, stored in the audit log.")


@click.group(name="dlq")
def command() -> None:
    """Manage dead letters: jobs that failed on their last attempt."""


@command.command("list")
@click.option("--state", type=click.Choice(["open", "replayed", "discarded"]), default="open", show_default=True)
@after_option("ID")
@limit_option(default=50, maximum=1000)
@json_option
def list_(state: str, after: str, limit: int, as_json: bool) -> None:
    """List dead letters, oldest first."""
    found = _with_store(
        lambda database: database.read(lambda tx: dead_letters.page(tx, state=state, after=after, limit=limit))
    )
    if as_json:
        click.echo(json.dumps([asdict(letter) for letter in found]))
    elif not found:
        click.echo(f"No {state} dead letters.")
    else:
        table = Table("id", "failed at", "kind", "attempts", "error")
        for letter in found:
            summary = f"{letter.error_code}: {letter.error or ''}"
            table.add_row(letter.id, _time(letter.created_at), letter.kind, str(letter.attempt_id), summary)
        make_console().print(table)


@command.command()
@click.argument("letter_id", metavar="ID")
@json_option
def show(letter_id: str, as_json: bool) -> None:
    """Show a dead letter with all attempts of its job."""
    key = parse_id(letter_id)
    letter, attempts = _with_store(lambda database: database.read(lambda tx: dead_letters.find(tx, key)))
    if as_json:
        click.echo(json.dumps({**asdict(letter), "attempts": [asdict(attempt) for attempt in attempts]}))
        return
    click.echo(f"{letter.kind} job {letter.job_id}: {letter.state}")
    click.echo(f"  {letter.error_code}: {letter.error or 'no message'}")
    if letter.replayed_by_job_id:
        click.echo(f"  replayed as job {letter.replayed_by_job_id}")
    if letter.resolved_by:
        click.echo(f"  {letter.state} by {letter.resolved_by}: {letter.note}")
    for attempt in attempts:
        click.echo(
            f"  attempt {attempt.attempt_id} on {attempt.worker}, {_time(attempt.started_at)}: {attempt.outcome}"
        )
        if attempt.error:
            click.echo(f"    {attempt.error}")


@command.command()
@_IDS
@_REASON
@actor_option
def replay(letter_ids: Sequence[str], reason: str, actor: str) -> None:
    """Replay dead letters as new jobs (all or none)."""
    keys = [parse_id(letter_id) for letter_id in letter_ids]
    jobs = make_jobs(settings_source.load())
    replayed = _with_store(
        lambda database: database.transact(lambda tx: dead_letters.replay(tx, jobs, keys, actor=actor, reason=reason))
    )
    for letter_id, job_id in replayed.items():
        again = f"replayed as job {job_id}" if job_id else "replayed; waits for the chain's concurrency limit"
        click.echo(f"{letter_id} {again}")


@command.command()
@_IDS
@_REASON
@actor_option
def discard(letter_ids: Sequence[str], reason: str, actor: str) -> None:
    """Discard dead letters (all or none). Their history is kept."""
    keys = [parse_id(letter_id) for letter_id in letter_ids]
    jobs = make_jobs(settings_source.load())
    _with_store(
        lambda database: database.transact(lambda tx: dead_letters.discard(tx, jobs, keys, actor=actor, reason=reason))
    )
    click.echo(f"{len(keys)} discarded")


def _with_store(work: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_existing_database(settings_source.load()) as database:
            return await work(database)

    return asyncio.run(run())


def _time(timestamp_us: int) -> str:
    return datetime.fromtimestamp(timestamp_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
