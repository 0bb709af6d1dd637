"""``adjudge problem verify``: input validators on every test, every jury submission against what is expected of it."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from adjudge.cli.judging import open_judge
from adjudge.cli.jury import Complaint, Jury, completed
from adjudge.domain.problem import JurySubmission, Problem
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge, Options, Submission
from adjudge.judge.progression import Stop
from adjudge.judge.result import JudgeResult
from adjudge.judge.sources import Source, SourceFile
from adjudge.packages.load import Package, loaded
from adjudge.packages.manifest import revision
from adjudge.packages.verify import CaseOutcome, Outcome, Suggestion, bounds_above, expected_words, suggest, unmet

EXIT_UNEXPECTED = 1
Item = TypeVar("Item")
Made = TypeVar("Made")
_STYLES = {Verdict.AC: "green", Verdict.PA: "yellow", Verdict.SE: "magenta"}


@dataclass(frozen=True, slots=True)
class Verified:
    """One jury submission, judged."""

    submission: JurySubmission
    outcome: Outcome
    language: str
    mem_kb: int
    message: str
    reasons: tuple[str, ...]


@dataclass(slots=True)
class Verification:
    """All that verifying a package found."""

    complaints: list[Complaint] = field(default_factory=list)
    judged: list[Verified] = field(default_factory=list)
    suggestion: Suggestion | None = None

    @property
    def ok(self) -> bool:
        """Whether everything is as the package says."""
        return not self.complaints and not any(item.reasons for item in self.judged)


@click.command(name="verify")
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="SRC")
@click.option("--jobs", type=click.IntRange(1, 256), default=None, help="Runs side by side. Default: one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify(source: Path, jobs: int | None, as_json: bool) -> None:
    """Run the input validators on every test and judge every jury submission.

    Every program of the package runs in the sandbox. Exit codes: 0 all is as the package says; 1 something is not;
    2 Adjudge failed; 3 the package cannot be used.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    with loaded(source) as package:
        console = Console(stderr=True, highlight=False)
        found = asyncio.run(_verify(package, jobs, console))
        problem = package.problem
    if as_json:
        click.echo(json.dumps(_document(problem, found), indent=2, ensure_ascii=False))
    else:
        _print(problem, found)
    if not found.ok:
        raise click.exceptions.Exit(EXIT_UNEXPECTED)


async def _verify(package: Package, jobs: int, console: Console) -> Verification:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        async with open_judge(jobs) as judge:
            package = await completed(package, judge)
            return await Verifier(judge, package, jobs, bar).run()


class Verifier:
    """Verifies one package with a judge that is already open."""

    def __init__(self, judge: Judge, package: Package, jobs: int, bar: Progress) -> None:
        self._judge, self._package, self._bar = judge, package, bar
        self._problem = package.problem
        self._jury = Jury(judge, package.problem, package.files)
        self._turns = asyncio.Semaphore(jobs)
        self._revision = revision(package.problem, package.files)

    async def run(self) -> Verification:
        """Validate the inputs, then judge the submissions: both side by side on all slots."""
        found = Verification()
        problem = self._problem
        cases = problem.cases if problem.input_validators else ()
        for complaints in await self._all("validating", cases, self._jury.validate_case):
            found.complaints += complaints
        for complaints in await self._all("testing the jury", problem.self_tests, self._jury.self_test):
            found.complaints += complaints
        found.judged = await self._all("judging", problem.submissions, self._judged)
        triples = [(item.submission.path, item.submission.expectations, item.outcome) for item in found.judged]
        found.suggestion = suggest(problem.limits, triples)
        return found

    async def _all(self, what: str, items: Sequence[Item], work: Callable[[Item], Awaitable[Made]]) -> list[Made]:
        task = self._bar.add_task(what, total=len(items))

        async def one(item: Item) -> Made:
            async with self._turns:
                made = await work(item)
            self._bar.advance(task)
            return made

        return list(await asyncio.gather(*(one(item) for item in items)))

    async def _judged(self, item: JurySubmission) -> Verified:
        """Judge one submission on every test; one that must be too slow gets time to show by how much."""
        problem = self._problem
        stretch = problem.limits.time_limit_to_tle if bounds_above(item.expectations) else 1.0
        stretched = replace(problem, limits=replace(problem.limits, run=problem.limits.run.scaled(stretch)))
        files = tuple(
            SourceFile(ref.name, self._package.files.locate(ref.path).read_bytes()) for ref in item.program.files
        )
        submission = Submission(Source(files, item.program.entry_point), item.program.language)
        options = Options(stop=Stop.NEVER, revision=self._revision)
        result = await self._judge.judge(stretched, self._package.files, submission, options)
        outcome = _outcome(result, problem, stretch)
        reasons = unmet(item.expectations, outcome)
        origin = result.provenance
        return Verified(item, outcome, origin.language, result.mem_kb, result.message, reasons)


def _outcome(result: JudgeResult, problem: Problem, stretch: float) -> Outcome:
    """Read a result against the problem's own time limit, whatever time the submission was given."""
    promised_ms = result.provenance.limits.cpu_ms / stretch
    factor = problem.limits.run.cpu_ms / promised_ms
    cases = []
    late = False
    for row in result.cases:
        verdict = row.verdict
        time_ms = row.run.time_ms if row.run else 0
        is_late = row.run is not None and verdict is not None and time_ms > promised_ms
        stopped = verdict is Verdict.TLE
        if is_late and verdict not in (Verdict.SE, Verdict.TLE):
            verdict, late = Verdict.TLE, True
        cases.append(CaseOutcome(row.name, verdict, time_ms * factor, row.message, stopped))
    groups = {row.path: float(row.earned.points) for row in result.scored.groups} if result.scored else {}
    final = result.verdict
    if late and final is not Verdict.SE:
        final = next((case.verdict for case in cases if case.verdict not in (None, Verdict.AC)), final)
    return Outcome(final, float(result.score), tuple(cases), groups)


def _document(problem: Problem, found: Verification) -> dict[str, Any]:
    suggestion = found.suggestion
    return {
        "ok": found.ok,
        "problem": problem.short_name,
        "complaints": [{"where": item.where, "message": item.message} for item in found.complaints],
        "submissions": [
            {
                "path": item.submission.path,
                "language": item.language,
                "expected": expected_words(item.submission.expectations),
                "verdict": item.outcome.verdict.value,
                "score": item.outcome.score,
                "time_ms": round(item.outcome.slowest_ms),
                "mem_kb": item.mem_kb,
                "ok": not item.reasons,
                "reasons": list(item.reasons),
                "message": item.message,
            }
            for item in found.judged
        ],
        "time_limit": {
            "stated_ms": problem.limits.run.cpu_ms if problem.limits.is_time_given else None,
            "suggested_ms": suggestion.time_limit_ms if suggestion else None,
            "lower_ms": round(suggestion.lower_ms) if suggestion else None,
            "upper_ms": round(suggestion.upper_ms) if suggestion and math.isfinite(suggestion.upper_ms) else None,
        },
    }


def _print(problem: Problem, found: Verification) -> None:
    console = Console(highlight=False)
    table = Table("", box=None, pad_edge=False)
    table.add_column("submission", overflow="fold")
    for title in ("language", "expected", "got", "slowest", "memory"):
        table.add_column(title, no_wrap=True)
    for item in found.judged:
        got = item.outcome.verdict
        score = f" {item.outcome.score:g}" if problem.is_scored else ""
        table.add_row(
            "[red]✗[/]" if item.reasons else "[green]✓[/]",
            escape(item.submission.path),
            item.language,
            expected_words(item.submission.expectations),
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
    for complaint in found.complaints:
        console.print(f"[red]{escape(complaint.where)}[/]: {escape(complaint.message)}")
    _print_suggestion(console, problem, found.suggestion)
    console.print("[green]All is as the package says.[/]" if found.ok else "[red]Not all is as the package says.[/]")


def _print_suggestion(console: Console, problem: Problem, suggestion: Suggestion | None) -> None:
    if suggestion is None:
        return
    limits = problem.limits
    above = ""
    if math.isfinite(suggestion.upper_ms):
        above = f", at most {suggestion.upper_ms:.0f} ms ({suggestion.fastest} divided by {limits.time_limit_to_tle:g})"
    console.print(
        f"time limit: at least {suggestion.lower_ms:.0f} ms "
        f"({escape(suggestion.slowest)} times {limits.ac_to_time_limit:g}){escape(above)}"
    )
    if suggestion.time_limit_ms is None:
        console.print(
            "[yellow]no time limit keeps both margins[/]: make the slow submissions slower, or the tests larger"
        )
    else:
        stated = limits.run.cpu_ms
        keeps = suggestion.lower_ms <= stated <= suggestion.upper_ms
        words = (
            f"{stated} ms, which {'keeps' if keeps else 'does not keep'} the margins"
            if limits.is_time_given
            else "none"
        )
        console.print(f"suggested: {suggestion.time_limit_ms} ms, stated: {words}")
