"""``adjudge eval``: evaluates many programs on their tests, on this machine or on a server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from adjudge.cli.connection import open_client
from adjudge.cli.eval_remote import evaluate_remotely
from adjudge.cli.output import make_console
from adjudge.cli.wiring.evaluation import open_runner
from adjudge.domain.errors import InvalidInput
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
    help="Result file; existing results are kept, errors are evaluated again. Default: RECORDS with .results.jsonl.",
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
@click.option("--server", metavar="URL", help="Evaluate on this server (see `adjudge login`), not on this machine.")
@click.option("--name", default="", help="Name of the evaluation on the server. Default: from the result file.")
def command(
    *, records: Path, output: Path | None, shape: str | None, slots: int, server: str | None, name: str
) -> None:
    """Evaluate many programs on their tests: JSON Lines in, JSON Lines out.

    RECORDS has one JSON object per line: `id`, `language`, `source` and `tests` (`input`, `output`) or `problem` (a
    package, or with --server a slug), or a record in the shape of HumanEval, MBPP, APPS or CodeContests with the
    program in `completion`. The command can be interrupted and continued: records with a result are skipped, those
    with an error are evaluated again, and a server does not evaluate twice what it has. Exit codes: 0 all records were
    evaluated, 1 some records are invalid, 2 internal error or server unreachable, 3 invalid file or request.
    """
    if name and not server:
        raise InvalidInput("--name: only with --server.", field="name")
    results = ResultFile(output or records.with_suffix(".results.jsonl"))
    results.load()
    known_shape = RecordShape(shape) if shape else None
    with _open_files(records, results) as files:
        if server:
            with open_client(server) as client:
                for document in evaluate_remotely(client, name or _default_name(results), files.source, known_shape):
                    files.write(document)
        else:
            asyncio.run(_evaluate(files, known_shape, slots))
    _print_summary(make_console(stderr=True), results, files.source.skipped)
    if results.verdicts["error"]:
        raise click.exceptions.Exit(EXIT_INVALID_RECORDS)


@dataclass(slots=True)
class _OpenFiles:
    """The open record and result files, with the progress bar."""

    source: RecordFile
    results: ResultFile
    target: IO[bytes]
    bar: Progress
    task: TaskID
    written: int = 0

    def write(self, document: Mapping[str, Any]) -> None:
        """Append a result and show it in the bar."""
        self.results.write(self.target, document)
        self.written += 1
        if self.written % _FLUSH_RESULTS == 0:
            self.target.flush()
        self.bar.update(self.task, completed=self.written + self.source.skipped)


@contextmanager
def _open_files(records: Path, results: ResultFile) -> Iterator[_OpenFiles]:
    with ExitStack() as opened:
        lines = opened.enter_context(records.open("rb"))
        target = opened.enter_context(results.path.open("ab"))
        bar = opened.enter_context(_progress())
        task = bar.add_task("evaluating", total=_count_lines(records), completed=0)
        yield _OpenFiles(RecordFile(lines, frozenset(results.done)), results, target, bar, task)


def _default_name(results: ResultFile) -> str:
    """The same for the same result file, so that the command continues its own evaluation."""
    path = results.path.resolve()
    return f"{path.name[:100]}-{sha256(str(path).encode(errors='surrogateescape')).hexdigest()[:16]}"


async def _evaluate(files: _OpenFiles, shape: RecordShape | None, slots: int) -> None:
    async with (
        open_runner(slots) as runner,
        aclosing(evaluate_stream(runner, files.source, slots, shape)) as stream,
    ):
        async for result in stream:
            files.write(result.document())


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
