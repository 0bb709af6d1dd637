"""``adjudge judging``: pauses and resumes judging."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TypeVar

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import actor_option, json_option, required_reason_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import open_existing_database, open_registry
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.cli.wiring.judge import load_languages
from adjudge.domain.errors import InvalidInput
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.judging_control import JudgingControlService
from adjudge.store.ops.judging_pauses import PauseScope

T = TypeVar("T")

_REASON = required_reason_option("Reason, stored in the audit log.")
_ALL = click.option("--all", "everything", is_flag=True, help="All judging.")
_LANGUAGE = click.option("--language", default="", help="One language, as in `adjudge languages`.")
_PROBLEM = click.option("--problem", default="", help="One problem: its slug or id.")


@click.group(name="judging")
def command() -> None:
    """Pause and resume judging. Submissions are accepted meanwhile and wait; begun runs are finished."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List what is paused."""
    found = with_control(lambda control: control.list_pauses())
    if as_json:
        click.echo(json.dumps([{**asdict(pause.row), "subject": pause.subject} for pause in found]))
    elif not found:
        click.echo("Nothing is paused.")
    else:
        table = Table("scope", "subject", "since", "by", "reason")
        for pause in found:
            row = pause.row
            table.add_row(row.scope, pause.subject, format_timestamp(row.created_at), row.actor, row.reason)
        make_console().print(table)


@command.command()
@_ALL
@_LANGUAGE
@_PROBLEM
@_REASON
@actor_option
def pause(everything: bool, language: str, problem: str, reason: str, actor: str) -> None:
    """Pause judging of everything, of a language or of a problem."""
    scope, subject = _target(everything, language, problem)
    with_control(lambda control: control.pause(actor, scope, subject, reason=reason))
    click.echo(f"paused: {subject or 'all judging'}")


@command.command()
@_ALL
@_LANGUAGE
@_PROBLEM
@_REASON
@actor_option
def resume(everything: bool, language: str, problem: str, reason: str, actor: str) -> None:
    """Resume judging; what waited is judged in its order."""
    scope, subject = _target(everything, language, problem)
    with_control(lambda control: control.resume(actor, scope, subject, reason=reason))
    click.echo(f"resumed: {subject or 'all judging'}")


def _target(everything: bool, language: str, problem: str) -> tuple[PauseScope, str]:
    if sum((everything, bool(language), bool(problem))) != 1:
        raise InvalidInput("Give exactly one of --all, --language and --problem.", field="all")
    if everything:
        return "all", ""
    return ("language", language) if language else ("problem", problem)


def with_control(work: Callable[[JudgingControlService], Awaitable[T]]) -> T:
    """Open the database, do something with the service, and close it."""
    settings = settings_source.load()

    async def run() -> T:
        async with (
            open_existing_database(settings) as database,
            open_registry(settings, database) as registry,
        ):
            jobs = make_jobs(settings)
            return await work(JudgingControlService(database, jobs, registry, load_languages()))

    return asyncio.run(run())
