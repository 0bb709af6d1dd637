"""``adjudge judge``: judges one solution against one package, without server and database."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adjudge import settings as settings_source
from adjudge.cli.options import aliased_option, follow_links_option
from adjudge.cli.output import make_console
from adjudge.cli.source_files import read_source
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.problem import Problem
from adjudge.domain.verdict import Verdict
from adjudge.judge import pipeline
from adjudge.judge.case_results import CaseResult
from adjudge.judge.early_stop import StopPolicy
from adjudge.judge.pipeline import CaseDone, CompileDone, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult, score_to_json
from adjudge.packages.archive import Links
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, load_package
from adjudge.packages.manifest import revision_digest

EXIT_REJECTED: Final = 1
EXIT_INTERNAL_ERROR: Final = 2
_STYLES: Final = {Verdict.AC: "green", Verdict.PA: "yellow", Verdict.SE: "magenta"}


@click.command(name="judge")
@click.argument("solution", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--problem",
    "package",
    required=True,
    type=click.Path(path_type=Path),
    help="Problem package: a folder or a ZIP archive.",
)
@aliased_option(
    "--language",
    aliases=["--lang"],
    default="",
    help="Language (see `adjudge languages`). Default: detected from the file name.",
)
@click.option("--entry-point", default="", help="Main file or main class of a multi-file program.")
@click.option(
    "--jobs", default=1, show_default=True, type=click.IntRange(1, 256), help="Number of tests to run in parallel."
)
@click.option(
    "--stop",
    type=click.Choice([stop.value for stop in StopPolicy]),
    default=StopPolicy.POLICY.value,
    show_default=True,
    help="When to stop: as the problem defines, at the first failure, per group at its first failure, or never.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result document as JSON.")
@follow_links_option
def command(
    *,
    solution: tuple[Path, ...],
    package: Path,
    language: str,
    entry_point: str,
    jobs: int,
    stop: str,
    as_json: bool,
    links: Links,
) -> None:
    """Judge a solution against a problem package, without a server.

    SOLUTION is one or several files, a folder, or an archive (.zip, .tar, .tar.gz, .tgz); for an output-only problem,
    one file per test. Exit codes: 0 accepted, 1 any other verdict, 2 system error (SE), 3 invalid
    arguments or package.
    """
    submission = SubmittedProgram(read_source(solution, entry_point), language)
    margin = settings_source.load().judge.time_margin
    options = JudgeOptions(parallelism=jobs, stop=StopPolicy(stop), time_margin=margin)
    with load_package(package, links=links) as read:
        result = asyncio.run(_judge(read, submission, options, quiet=as_json))
    if as_json:
        click.echo(json.dumps(result.document(), ensure_ascii=False))
    else:
        _summary(make_console(), result)
    if result.verdict is Verdict.SE:
        raise click.exceptions.Exit(EXIT_INTERNAL_ERROR)
    raise click.exceptions.Exit(0 if result.verdict is Verdict.AC else EXIT_REJECTED)


async def _judge(package: Package, submission: SubmittedProgram, options: JudgeOptions, *, quiet: bool) -> JudgeResult:
    async with open_judge(options.parallelism) as judge:
        package = await generate_missing_files(package, judge)
        options = replace(options, revision=revision_digest(package.problem, package.files))
        if quiet:
            return await judge.judge(package.problem, package.files, submission, options)
        with _print_live(package.problem) as progress:
            return await judge.judge(package.problem, package.files, submission, options, progress)


@contextmanager
def _print_live(problem: Problem) -> Iterator[pipeline.JudgeProgress]:
    """Print each test result; with a progress bar on a terminal."""
    console = make_console()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not sys.stdout.isatty(),
    )
    task = bar.add_task("compiling", total=len(problem.cases))

    def show(event: CompileDone | CaseDone) -> None:
        if isinstance(event, CompileDone):
            bar.update(task, description="testing")
            return
        bar.update(task, completed=event.index + 1, description=f"testing {escape(event.result.name)}")
        console.print(_line(event.result, event.index, event.total))

    with bar:
        yield show


def _line(row: CaseResult, index: int, total: int) -> str:
    counter = f"[dim]{index + 1:>{len(str(total))}}/{total}[/]"
    if row.verdict is None:
        return f"{counter} [dim]--   {escape(row.name)}  {escape(row.message)}[/]"
    used = f"{row.run.time_ms:>6} ms {row.run.mem_kb / 1024:>7.1f} MiB" if row.run else ""
    rerun = f" [dim](rerun; first run {row.first_run.time_ms} ms)[/]" if row.first_run else ""
    message = row.message.splitlines()[0][:100] if row.message and row.verdict is not Verdict.AC else ""
    return f"{counter} {styled_verdict(row.verdict)} {used}  {escape(row.name)}{rerun}  [dim]{escape(message)}[/]"


def styled_verdict(verdict: Verdict) -> str:
    """The verdict in its colour, padded to a column."""
    return f"[bold {_STYLES.get(verdict, 'red')}]{verdict.value:<4}[/]"


def _summary(console: Console, result: JudgeResult) -> None:
    accepted = sum(case.verdict is Verdict.AC for case in result.cases)
    console.print()
    console.print(f"{styled_verdict(result.verdict)} {result.verdict.title}")
    if result.cases:
        maximum = "" if result.max_score is None else f" of {score_to_json(result.max_score)}"
        console.print(f"tests    {accepted} of {len(result.cases)} accepted")
        console.print(f"score    {score_to_json(result.score)}{maximum}")
        console.print(f"time     {result.time_ms} ms, memory {result.mem_kb / 1024:.1f} MiB (maximum over all tests)")
    if (first := result.first_failure) is not None:
        console.print(f"first failure  {escape(first.name)}")
    if result.message:
        console.print(escape(result.message))
    if result.compiled is not None and result.compiled.failure is not None:
        console.print(escape(result.compiled.failure.log))
