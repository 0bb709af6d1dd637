"""``adjudge test``: runs a solution on the samples of its problem, on this machine, as the server would."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.markup import escape

from adjudge.cli.connection import open_client
from adjudge.cli.judge import styled_verdict
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.solution_options import contest_option, problem_option
from adjudge.cli.source_files import read_source
from adjudge.cli.source_hints import find_problem, read_hints
from adjudge.cli.submit import detect_language
from adjudge.cli.wiring.evaluation import open_runner
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits
from adjudge.domain.problem import ProblemMode
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.records import ComparatorChoice, EvaluationRecord, EvaluationResult, EvaluationTest
from adjudge.judge.sources import ProgramSource
from adjudge.schema.problems import ProblemRead, SampleRead

EXIT_REJECTED: Final = 1
_JURY_COMPARATOR: Final = ComparatorChoice("token")


@click.command(name="test")
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@problem_option
@contest_option
@click.option("--language", default="", help="Language. Default: from the first lines or the file extensions.")
@click.option("--entry-point", default="", help="Main class (Java, Kotlin) or main file of a program of several files.")
@json_option
@server_option
def command(
    *,
    file: tuple[Path, ...],
    problem: str,
    contest: str,
    language: str,
    entry_point: str,
    as_json: bool,
    server: str | None,
) -> None:
    """Run a solution on the samples of its problem, on this machine.

    Samples, limits and comparison are those of the server; the program runs in the sandbox of this machine. Problem and
    language are found as by `adjudge submit`. Exit codes: 0 all samples passed, 1 some did not, 3 invalid request.
    """
    source = read_source(file, entry_point, "file")
    hints = read_hints(source.files)
    source = replace(source, entry_point=source.entry_point or hints.entry_point)
    contest, language = contest or hints.contest, language or hints.language
    with open_client(server) as client:
        problem = problem or hints.problem or find_problem(client, file, contest)
        language = language or detect_language(client, problem, contest, source.files)
        found = _problem(client, problem, contest)
    samples = _samples(found)
    result = asyncio.run(_run(_record(found, samples, source, language)))
    if as_json:
        click.echo(json.dumps(result.document(), ensure_ascii=False))
    else:
        _print(make_console(), found, samples, result)
    if result.error:
        raise InvalidInput(result.error)
    raise click.exceptions.Exit(0 if result.verdict is Verdict.AC else EXIT_REJECTED)


def _problem(client: Client, problem: str, contest: str) -> ProblemRead:
    return client.contest_problem(contest, problem).problem if contest else client.problem(problem)


def _samples(problem: ProblemRead) -> list[SampleRead]:
    """The samples that can be run here."""
    if problem.mode != ProblemMode.BATCH.value:
        raise InvalidInput(
            f"{problem.slug}: its programs exchange data with a program of the jury, or it takes output files; "
            "submit it to test it.",
            field="problem",
        )
    if problem.input_file or problem.output_file:
        raise InvalidInput(f"{problem.slug}: its programs read and write files; submit it to test it.", field="problem")
    found = [sample for sample in problem.samples if not sample.is_cut]
    if not found:
        raise InvalidInput(f"{problem.slug}: it has no samples that can be run here.", field="problem")
    return found


def _record(problem: ProblemRead, samples: list[SampleRead], source: ProgramSource, language: str) -> EvaluationRecord:
    limits = problem.limits
    compared = problem.comparator
    return EvaluationRecord(
        id=problem.slug,
        language=language,
        source=source,
        tests=tuple(EvaluationTest(sample.input.encode(), sample.output.encode()) for sample in samples),
        limits=Limits(limits.time_ms, 3 * limits.time_ms, limits.memory_bytes, output_bytes=limits.output_bytes),
        comparator=ComparatorChoice(compared.kind, tuple(compared.args), tuple(compared.options.items()))
        if compared
        else _JURY_COMPARATOR,
        stops=False,
        checks_scripts=True,
    )


async def _run(record: EvaluationRecord) -> EvaluationResult:
    async with open_runner(1) as runner:
        return await runner.run(record)


def _print(console: Console, problem: ProblemRead, samples: list[SampleRead], result: EvaluationResult) -> None:
    if result.compile_message:
        console.print(escape(result.compile_message))
    for sample, test in zip(samples, result.tests, strict=False):
        message = escape(test.message.splitlines()[0][:100]) if test.message else ""
        used = f"{test.time_ms:>6} ms {test.mem_kb / 1024:>7.1f} MiB"
        console.print(f"{styled_verdict(test.verdict)} {used}  {escape(sample.name)}  [dim]{message}[/]")
    if result.verdict is not None:
        console.print(f"{styled_verdict(result.verdict)} {result.passed} of {result.total} samples passed")
    if problem.comparator is None and result.verdict is Verdict.WA:
        console.print("[dim]A program of the jury decides on this problem: another output may be correct, too.[/]")
