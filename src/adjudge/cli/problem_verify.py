"""``adjudge problem verify``: runs the input validators and judges the jury solutions of a package."""

from __future__ import annotations

import asyncio
import json
import math
import os
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from adjudge.cli.options import follow_links_option, json_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.problem import Problem
from adjudge.domain.verdict import Verdict
from adjudge.packages.archive import Links
from adjudge.packages.expectations import TimeLimitSuggestion, describe_expectations
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, load_package
from adjudge.packages.verifier import VerificationReport, Verifier, verification_to_json

EXIT_UNEXPECTED = 1
_STYLES = {Verdict.AC: "green", Verdict.PA: "yellow", Verdict.SE: "magenta"}


@click.command(name="verify")
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="SRC")
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=None, help=("Number of parallel runs. Default: number of cores.")
)
@json_option
@follow_links_option
def verify(source: Path, jobs: int | None, as_json: bool, links: Links) -> None:
    """Run the input validators and judge all jury solutions.

    All programs run in the sandbox. Exit codes: 0 all checks passed, 1 some failed, 2 internal error, 3 invalid
    package.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    with load_package(source, links=links) as package:
        console = make_console(stderr=True)
        found = asyncio.run(_verify(package, jobs, console))
        problem = package.problem
    if as_json:
        click.echo(json.dumps(verification_to_json(problem, found), indent=2, ensure_ascii=False))
    else:
        _print(problem, found)
    if not found.ok:
        raise click.exceptions.Exit(EXIT_UNEXPECTED)


async def _verify(package: Package, jobs: int, console: Console) -> VerificationReport:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            task = tasks.get(what)
            tasks[what] = task if task is not None else bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        async with open_judge(jobs) as judge:
            package = await generate_missing_files(package, judge)
            return await Verifier(judge, package, jobs, show).run()


def _print(problem: Problem, found: VerificationReport) -> None:
    console = make_console()
    table = Table("", box=None, pad_edge=False)
    table.add_column("solution", overflow="fold")
    for title in ("language", "expected", "actual", "slowest", "memory"):
        table.add_column(title, no_wrap=True)
    for item in found.judged:
        got = item.outcome.verdict
        score = f" {item.outcome.score:g}" if problem.is_scored else ""
        table.add_row(
            "[red]✗[/]" if item.reasons else "[green]✓[/]",
            escape(item.submission.path),
            item.language,
            describe_expectations(item.submission.expectations),
            f"[{_STYLES.get(got, 'red')}]{got}[/]{score}",
            f"{item.outcome.slowest_ms:.0f} ms",
            f"{item.mem_kb / 1024:.1f} MiB",
        )
    console.print(table)
    for item in found.judged:
        for reason in item.reasons:
            console.print(f"[red]{escape(item.submission.path)}[/]: {escape(reason)}")
        if item.reasons and item.message:
            console.print(f"  [dim]{escape(item.message[:300])}[/]")
    for issue in found.issues:
        console.print(f"[red]{escape(issue.where)}[/]: {escape(issue.message)}")
    _print_suggestion(console, problem, found.suggestion)
    console.print("[green]All checks passed.[/]" if found.ok else "[red]Some checks failed.[/]")


def _print_suggestion(console: Console, problem: Problem, suggestion: TimeLimitSuggestion | None) -> None:
    if suggestion is None:
        return
    limits = problem.limits
    above = ""
    if math.isfinite(suggestion.upper_ms):
        above = f", at most {suggestion.upper_ms:.0f} ms ({suggestion.fastest} / {limits.time_limit_to_tle:g})"
    console.print(
        f"time limit: at least {suggestion.lower_ms:.0f} ms ({escape(suggestion.slowest)} x "
        f"{limits.ac_to_time_limit:g}){escape(above)}"
    )
    if suggestion.time_limit_ms is None:
        console.print(
            "[yellow]no time limit satisfies both margins[/]: make the slow solutions slower or the tests larger"
        )
    else:
        stated = limits.run.cpu_ms
        keeps = suggestion.lower_ms <= stated <= suggestion.upper_ms
        words = (
            f"{stated} ms, {'keeps' if keeps else 'does not keep'} the margins"
            if limits.has_explicit_time_limit
            else "none"
        )
        console.print(f"suggested: {suggestion.time_limit_ms} ms, in the package: {words}")
