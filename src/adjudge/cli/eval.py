"""``adjudge eval``: evaluates many programs on their tests, on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from adjudge.cli.output import make_console
from adjudge.cli.wiring.evaluation import open_runner
from adjudge.evaluation.files import RecordFile, ResultFile
from adjudge.evaluation.shapes import RecordShape
from adjudge.evaluation.stream import evaluate_stream

EXIT_INVALID_RECORDS: Final = 1
_FLUSH_RESULTS: Final = 100


@click.command(name="eval")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Result file; existing results are kept and not evaluated again. Default: RECORDS with .results.jsonl.",
)
@click.option(
    "--shape",
    type=click.Choice([shape.value for shape in RecordShape]),
    help="Shape of the records. Default: by their fields.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 1024),
    default=os.cpu_count() or 1,
    show_default="cores",
    help="Programs at a time.",
)
def command(records: Path, output: Path | None, shape: str | None, slots: int) -> None:
    """Evaluate many programs on their tests: JSON Lines in, JSON Lines out.

    RECORDS has one JSON object per line: `id`, `language`, `source` and `tests` (`input`, `output`) or `problem` (a
    package), or a record in the shape of HumanEval, MBPP, APPS or CodeContests with the program in `completion`. The
    command can be interrupted and continued: records with a result are skipped. Exit codes: 0 all records were
    evaluated, 1 some records are invalid, 2 internal error, 3 invalid file.
    """
    results = ResultFile(output or records.with_suffix(".results.jsonl"))
    results.load()
    known_shape = RecordShape(shape) if shape else None
    skipped = asyncio.run(_evaluate(records, results, known_shape, slots))
    _print_summary(make_console(stderr=True), results, skipped)
    if results.verdicts["error"]:
        raise click.exceptions.Exit(EXIT_INVALID_RECORDS)


async def _evaluate(records: Path, results: ResultFile, shape: RecordShape | None, slots: int) -> int:
    with ExitStack() as files:
        lines = files.enter_context(records.open("rb"))
        target = files.enter_context(results.path.open("ab"))
        source = RecordFile(lines, frozenset(results.done))
        bar = files.enter_context(_progress())
        task = bar.add_task("evaluating", total=await asyncio.to_thread(_count_lines, records), completed=0)
        async with (
            open_runner(slots) as runner,
            aclosing(evaluate_stream(runner, source, slots, shape)) as stream,
        ):
            written = 0
            async for result in stream:
                results.write(target, result)
                written += 1
                if written % _FLUSH_RESULTS == 0:
                    target.flush()
                bar.update(task, completed=written + source.skipped)
    return source.skipped


class _RateColumn(ProgressColumn):
    """Records per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


def _progress() -> Progress:
    """A bar with the rate on standard error, on a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeElapsedColumn(),
        console=make_console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def _print_summary(console: Console, results: ResultFile, skipped: int) -> None:
    total = sum(results.verdicts.values())
    counts = ", ".join(f"{name} {count}" for name, count in results.verdicts.most_common())
    passed = results.verdicts["AC"]
    share = f"{100 * passed / total:.1f} %" if total else "none"
    console.print(f"{total} records: {counts or 'none'}; passed {share}; {skipped} had a result already.")
    console.print(f"Results: {results.path}")
