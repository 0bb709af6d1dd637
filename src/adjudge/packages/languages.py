"""Checks whether a package's programs are in known languages; their tools need not be installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Problem, ProblemMode
from adjudge.domain.programs import Program
from adjudge.judge.languages import Languages
from adjudge.packages.findings import Findings
from adjudge.packages.generated_files import GeneratedFile

_FIX = "Rewrite it, or give its file the extension of its language; 'adjudge languages' lists them."


@lru_cache(maxsize=1)
def _languages() -> Languages:
    return Languages.load()


def is_known(program: Program) -> bool:
    if program.is_binary or program.has_build_script:
        return True
    if not program.language:
        return any(_languages().for_file(ref.name) for ref in program.files)
    try:
        _languages().get(program.language)
    except InvalidInput:
        return False
    return True


def check_languages(problem: Problem, generated_files: Sequence[GeneratedFile], findings: Findings) -> None:
    """Report programs that cannot be run: an error if judging needs them, else a warning."""
    for what, program in _needed(problem, generated_files):
        if not is_known(program):
            findings.error(_path(program), f"is written in an unknown language ({what}).", _FIX)
    others = [("input validator", validator.program) for validator in problem.input_validators]
    if problem.mode is not ProblemMode.SUBMIT_ANSWER:
        others += [("jury solution", submission.program) for submission in problem.submissions]
    for what, program in others:
        if not is_known(program):
            findings.warning(_path(program), f"is written in an unknown language ({what}).", _FIX)


def _needed(problem: Problem, generated_files: Sequence[GeneratedFile]) -> Iterator[tuple[str, Program]]:
    for generated in generated_files:
        yield "test generator", generated.program
    for checker in (problem.checker, *(case.checker for case in problem.cases if case.checker)):
        yield from (("checker", program) for program in checker.programs)
    if problem.interactor:
        yield "interactor", problem.interactor.program
    if problem.static_validator:
        yield "static validator", problem.static_validator


def _path(program: Program) -> str:
    return program.files[0].path if program.files else program.name
