"""``adjudge submit``: submits a program to a server and follows its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adjudge.cli.connection import open_client
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.verdicts import exit_code, format_test_result, print_submission
from adjudge.client import Client, ClientError
from adjudge.client.models import SubmissionEventRead
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import SUBMISSION


@click.command(name="submit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--problem", required=True, metavar="SLUG", help="Problem (slug or ID).")
@click.option("--language", default="", help="Language. Default: detected from the file extension.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the verdict.")
@json_option
@server_option
def command(*, file: Path, problem: str, language: str, wait: bool, as_json: bool, server: str | None) -> None:
    """Submit FILE to a server and show the results live.

    Exit codes with --wait: 0 accepted, 1 any other verdict, 2 system error or server unreachable, 3 invalid request.
    With --no-wait: 0 submitted.
    """
    source = _source(file)
    with open_client(server) as client:
        made = client.submit(problem, language or _language(client, file), source)
        if not wait:
            known = {"submission_id": made.submission_id, "number": made.number, "status": made.status}
            click.echo(json.dumps(known) if as_json else made.submission_id)
            return
        console = make_console(stderr=as_json)
        seen = _watch(console, client, made.submission_id)
        (found,) = client.wait([made.submission_id])
        results = client.results(found.id)
    _print_cases(console, seen, (results.document or {}).get("cases", ()))  # those missing in the event stream
    if as_json:
        click.echo(
            json.dumps({"id": found.id, "number": found.number, "verdict": found.verdict, "result": results.document})
        )
    else:
        print_submission(console, found, results)
    raise click.exceptions.Exit(exit_code(found))


def _source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: cannot read file: {error.strerror}.", field="file") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{file}: not valid UTF-8.", field="file") from None


def _language(client: Client, file: Path) -> str:
    """What the server takes the file's ending for; several languages of one ending share a code."""
    known = client.languages()
    ending = file.suffix.removeprefix(".")
    codes = sorted({item.code for item in known if ending in item.extensions})
    if len(codes) == 1:
        return codes[0]
    reason = (
        f"ambiguous file extension {file.suffix!r}: {', '.join(codes)}"
        if codes
        else (f"unknown file extension {ending!r}")
    )
    choices = ", ".join(item.id for item in known)
    raise InvalidInput(f"{file.name}: {reason}; use --language with one of: {choices}.", field="language")


def _watch(console: Console, client: Client, submission_id: str) -> set[str]:
    """Print each test result once, with a progress bar on a terminal; return the names of the printed tests."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not (console.is_terminal and sys.stdout.isatty()),
    )
    task = bar.add_task("waiting", total=None)
    seen: set[str] = set()
    with bar:
        try:
            for event in client.watch(submission_id):
                _show(bar, console, seen, event)
                if event.stage or event.status:
                    bar.update(task, description=event.stage or event.status or "")
                if event.total:
                    bar.update(task, completed=event.done, total=event.total)
        except ClientError as error:
            console.print(f"[dim]{error}; waiting without live updates[/]")
    return seen


def _show(bar: Progress, console: Console, seen: set[str], event: SubmissionEventRead) -> None:
    if bar.disable and event.name == "status" and event.status not in SUBMISSION.terminal:  # printed at the end
        console.print(f"[dim]{event.status}[/]")
    _print_cases(console, seen, event.cases)


def _print_cases(console: Console, seen: set[str], cases: Iterable[Mapping[str, Any]]) -> None:
    for case in cases:
        name = str(case.get("name"))
        if name not in seen:
            seen.add(name)
            console.print(format_test_result(case))
