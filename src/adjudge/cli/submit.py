"""``adjudge submit``: submits a program to a server and follows its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adjudge.cli.connection import open_client
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.solution_options import contest_option, problem_option
from adjudge.cli.source_files import read_source
from adjudge.cli.source_hints import find_problem, read_hints
from adjudge.cli.verdicts import exit_code, format_test_result, print_submission
from adjudge.client import Client, ClientError
from adjudge.client.models import SubmissionEventRead
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import SUBMISSION
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.schema.submissions import SubmissionCreated


@click.command(name="submit")
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@problem_option
@contest_option
@click.option("--language", default="", help="Language. Default: from the first lines or the file extensions.")
@click.option("--entry-point", default="", help="Main class (Java, Kotlin) or main file of a program of several files.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the verdict.")
@json_option
@server_option
def command(
    *,
    file: tuple[Path, ...],
    problem: str,
    contest: str,
    language: str,
    entry_point: str,
    wait: bool,
    as_json: bool,
    server: str | None,
) -> None:
    """Submit FILE to a server and show the results live.

    FILE is one or several files, a folder, or an archive (.zip, .tar, .tar.gz, .tgz); for an output-only problem, one
    file per test. Without --problem, a comment `adjudge: problem=SLUG language=ID contest=SLUG` in the first lines
    names it, or the name of the file or folder does.

    Exit codes with --wait: 0 accepted, 1 any other verdict, 2 system error or server unreachable, 3 invalid request.
    With --no-wait: 0 submitted.
    """
    source = read_source(file, entry_point, "file")
    hints = read_hints(source.files)
    source = replace(source, entry_point=source.entry_point or hints.entry_point)
    contest, language = contest or hints.contest, language or hints.language
    with open_client(server) as client:
        problem = problem or hints.problem or find_problem(client, file, contest)
        language = language or detect_language(client, problem, contest, source.files)
        made = _submit(client, problem, language, source, contest)
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


def _submit(client: Client, problem: str, language: str, source: ProgramSource, contest: str) -> SubmissionCreated:
    """Submit one text as a source, everything else as files."""
    if len(source.files) > 1 or source.entry_point or not language:
        files = {file.name: file.data for file in source.files}
        return client.submit(problem, language, files=files, entry_point=source.entry_point, contest=contest)
    (file,) = source.files
    try:
        return client.submit(problem, language, file.data.decode(), contest=contest)
    except UnicodeDecodeError:
        raise InvalidInput(f"{file.name}: not valid UTF-8.", field="file") from None


def detect_language(client: Client, problem: str, contest: str, files: Sequence[SourceFile]) -> str:
    """The language that the server selects for the file extensions; languages of one extension share a code.

    Output files have no language.
    """
    known = client.languages()
    endings = {file.name.rpartition("/")[2].rpartition(".")[2] for file in files}
    codes = sorted({item.code for item in known if endings.intersection(item.extensions)})
    if len(codes) == 1:
        return codes[0]
    if not codes and _takes_output_files(client, problem, contest):
        return ""
    shown = ", ".join(sorted(endings))
    reason = f"ambiguous file extension: {', '.join(codes)}" if codes else f"unknown file extension {shown!r}"
    choices = ", ".join(item.id for item in known)
    raise InvalidInput(f"{files[0].name}: {reason}; use --language with one of: {choices}.", field="language")


def _takes_output_files(client: Client, problem: str, contest: str) -> bool:
    found = client.contest_problem(contest, problem).problem if contest else client.problem(problem)
    return bool(found.output_names)


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
