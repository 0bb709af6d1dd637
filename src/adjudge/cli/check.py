"""``adjudge check``: runs one checker on one output, for testing checkers."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Final

import click

from adjudge.cli.options import aliased_option
from adjudge.cli.source_files import read_source
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import ProblemLimits
from adjudge.domain.programs import Checker, CheckerProtocol
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CheckResult
from adjudge.judge.case_runner import check_result_from_comparison
from adjudge.judge.checkers import CheckRequest, ProgramChecker, validation_limits
from adjudge.judge.comparators import BUILTIN_COMPARATORS, build_comparator
from adjudge.judge.sources import ProgramSource
from adjudge.judge.workspace import Workspace

EXIT_REJECTED: Final = 1
EXIT_INTERNAL_ERROR: Final = 2
_PROTOCOLS: Final = [protocol.value for protocol in CheckerProtocol if protocol is not CheckerProtocol.NATIVE]


@click.command(name="check")
@click.option(
    "--checker", "kind", required=True, metavar="KIND", help=("Built-in comparator or path of a checker program.")
)
@click.option(
    "--flags",
    default="",
    help=('Checker options, for example "float_tolerance 1e-6", "case_insensitive", "epsilon=1e-4".'),
)
@click.option("--input", "input_file", type=click.Path(path_type=Path), help="Test input, for a checker program.")
@click.option("--answer", required=True, type=click.Path(path_type=Path), help="Jury answer.")
@click.option(
    "--protocol",
    type=click.Choice(_PROTOCOLS),
    help=("Protocol of the checker program. Default: detected from its source."),
)
@aliased_option(
    "--language",
    aliases=["--lang"],
    default="",
    help="Language of the checker program. Default: detected from the file name.",
)
@click.argument("output", type=click.Path(path_type=Path))
def command(
    *, kind: str, flags: str, input_file: Path | None, answer: Path, protocol: str | None, language: str, output: Path
) -> None:
    """Run a checker on one output and print the verdict.

    KIND is a built-in comparator (see docs/reference/checkers.md) or the path of a checker program: a source file or a
    folder. A program that includes testlib is run with the testlib protocol, any other with the ICPC protocol, unless
    --protocol is given.

    Exit codes: 0 accepted, 1 rejected, 2 checker or internal error, 3 invalid arguments.
    """
    for name, path in (("--answer", answer), ("--input", input_file), ("output", output)):
        if path is not None and not path.is_file():
            raise InvalidInput(f"{name}: file not found: {str(path)!r}.", field=name)
    words = shlex.split(flags)
    if kind in BUILTIN_COMPARATORS:
        said = check_result_from_comparison(build_comparator(kind, words).compare_files(answer, output))
    else:
        source = _program(kind)
        question = (input_file, answer, output)
        said = asyncio.run(_ask(source, language, protocol or _guess(source), words, question))
    click.echo(f"{said.verdict.value} {said.message}".rstrip())
    if said.author_message:
        click.echo(f"message to the author: {said.author_message}")
    if said.score is not None:
        click.echo(f"score {float(said.score.value):g} ({said.score.unit.value})")
    if said.verdict is Verdict.SE:
        raise click.exceptions.Exit(EXIT_INTERNAL_ERROR)
    raise click.exceptions.Exit(0 if said.verdict is Verdict.AC else EXIT_REJECTED)


def _program(kind: str) -> ProgramSource:
    path = Path(kind)
    if not path.exists():
        raise InvalidInput(
            f"--checker: {kind!r} is neither a file nor one of {', '.join(BUILTIN_COMPARATORS)}.", field="--checker"
        )
    return read_source([path])


def _guess(source: ProgramSource) -> str:
    uses_testlib = any(b"testlib" in file.data for file in source.files if not file.name.endswith("testlib.h"))
    return (CheckerProtocol.TESTLIB if uses_testlib else CheckerProtocol.ICPC).value


async def _ask(
    source: ProgramSource, language: str, protocol: str, words: list[str], question: tuple[Path | None, Path, Path]
) -> CheckResult:
    input_file, answer, output = question
    checker = Checker(CheckerProtocol(protocol), args=tuple(words))
    async with open_judge(slots=1) as judge:
        languages = judge.languages
        found = (
            languages.get(language)
            if language
            else next(filter(None, (languages.for_file(f.name) for f in source.files)), None)
        )
        if found is None:
            raise InvalidInput(
                "--language: cannot detect the checker's language from its file name.", field="--language"
            )
        compiled = await judge.compiler.compile(found, source)
        if compiled.executable is None:
            failure = compiled.failure
            return CheckResult(
                Verdict.SE, f"checker compilation failed: {failure.message}\n{failure.log}" if failure else ""
            )
        program = ProgramChecker(checker, (compiled.executable,), validation_limits(ProblemLimits()), judge.sandbox)
        with Workspace() as workspace, workspace.scratch() as scratch:
            return await program.check(
                CheckRequest(
                    (input_file or workspace.empty).resolve(), answer.resolve(), output.resolve(), (), scratch.feedback
                )
            )
