"""``adjudge dlq``: lists, shows, replays and discards dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import actor_option, after_option, json_option, limit_option, required_reason_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import parse_id
from adjudge.services.dead_letters import (
    ANY_DEAD_LETTER,
    DeadLetterSelection,
    discard_matching,
    list_dead_letters,
    replay_matching,
)
from adjudge.store import Database
from adjudge.store.jobs import dead_letters

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_IDS = click.argument("letter_ids", nargs=-1, metavar="[ID…]")
_FILTERS: Final = (
    click.option("--kind", default="", help="Kind of the job, for example judge or node."),
    click.option("--error-code", default="", help="Error code, as `adjudge dlq list` shows it."),
    click.option("--problem", default="", help="Problem slug or id."),
    click.option("--user", default="", help="Username of the submitter."),
)
_EVERY = click.option("--all", "every", is_flag=True, help="All open dead letters.")
_REASON = required_reason_option("Reason, stored in the audit log.")


def _filter_options(function: F) -> F:
    for option in reversed(_FILTERS):
        function = option(function)
    return function


@click.group(name="dlq")
def command() -> None:
    """Manage dead letters: jobs that failed on their last attempt."""


@command.command("list")
@click.option("--state", type=click.Choice(["open", "replayed", "discarded"]), default="open", show_default=True)
@_filter_options
@after_option("ID")
@limit_option(default=50, maximum=1000)
@json_option
def list_(
    *, state: str, kind: str, error_code: str, problem: str, user: str, after: str, limit: int, as_json: bool
) -> None:
    """List dead letters, oldest first."""
    match = DeadLetterSelection(kind, error_code, problem, user)
    found = _with_store(
        lambda database: list_dead_letters(database, state=state, match=match, after=after, limit=limit)
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
@_filter_options
@_EVERY
@_REASON
@actor_option
def replay(
    *,
    letter_ids: Sequence[str],
    kind: str,
    error_code: str,
    problem: str,
    user: str,
    every: bool,
    reason: str,
    actor: str,
) -> None:
    """Replay dead letters as new jobs: those named (all or none), or all that match the filters."""
    match = _selection(letter_ids, DeadLetterSelection(kind, error_code, problem, user), every)
    keys, jobs = [parse_id(letter_id) for letter_id in letter_ids], make_jobs(settings_source.load())

    async def run(database: Database) -> dict[str, str | None]:
        if match is not None:
            return await replay_matching(database, jobs, match, actor=actor, reason=reason)
        return await database.transact(lambda tx: dead_letters.replay(tx, jobs, keys, actor=actor, reason=reason))

    replayed = _with_store(run)
    for letter_id, job_id in replayed.items():
        again = f"replayed as job {job_id}" if job_id else "replayed; waits for the chain's concurrency limit"
        click.echo(f"{letter_id} {again}")
    if not replayed:
        click.echo("No open dead letter matches.")


@command.command()
@_IDS
@_filter_options
@_EVERY
@_REASON
@actor_option
def discard(
    *,
    letter_ids: Sequence[str],
    kind: str,
    error_code: str,
    problem: str,
    user: str,
    every: bool,
    reason: str,
    actor: str,
) -> None:
    """Discard dead letters: those named (all or none), or all that match the filters. Their history is kept."""
    match = _selection(letter_ids, DeadLetterSelection(kind, error_code, problem, user), every)
    keys, jobs = [parse_id(letter_id) for letter_id in letter_ids], make_jobs(settings_source.load())

    async def run(database: Database) -> int:
        if match is not None:
            return await discard_matching(database, jobs, match, actor=actor, reason=reason)
        await database.transact(lambda tx: dead_letters.discard(tx, jobs, keys, actor=actor, reason=reason))
        return len(keys)

    click.echo(f"{_with_store(run)} discarded")


def _selection(letter_ids: Sequence[str], match: DeadLetterSelection, every: bool) -> DeadLetterSelection | None:
    """The filters, or None if ids were given. Exactly one way of choosing must be used."""
    by_filter = match != ANY_DEAD_LETTER
    if bool(letter_ids) + by_filter + every != 1:
        raise InvalidInput("Give ids, or filters (--kind, --error-code, --problem, --user), or --all.", field="ids")
    return None if letter_ids else match


def _with_store(work: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_existing_database(settings_source.load()) as database:
            return await work(database)

    return asyncio.run(run())


def _time(timestamp_us: int) -> str:
    return datetime.fromtimestamp(timestamp_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
