"""The files that a problem's verdicts depend on, and the revision digest over them.

Includes everything that could change a verdict: tests, checker, interactor, stubs, limits, groups. Other files are left
out, so that a corrected statement is not a new revision of the test data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from adjudge.domain.problem import Problem
from adjudge.domain.programs import ProblemFiles, Program
from adjudge.packages.problem_json import encode

_DECISIVE = (
    "grading",
    "mode",
    "max_passes",
    "is_minimised",
    "limits",
    "input_file",
    "output_file",
    "allow_file_writing",
    "languages",
    "cases",
    "groups",
    "checker",
    "interactor",
    "stubs",
    "static_validator",
)
_DECISIVE_IF_SET = ("keeps_stdio",)
"""Later fields, omitted if they have their default, so that older revisions keep their digests."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file that verdicts depend on."""

    path: str
    size_bytes: int
    sha256: str


def manifest(problem: Problem, files: ProblemFiles) -> tuple[ManifestEntry, ...]:
    """Every file that judging reads, by path."""
    paths = sorted(set(judging_paths(problem)))
    return tuple(ManifestEntry(path, files.size_bytes(path), files.sha256(path)) for path in paths)


def revision_digest(problem: Problem, files: ProblemFiles) -> str:
    """The digest over the manifest and everything that decides how it is used."""
    names = (*_DECISIVE, *(name for name in _DECISIVE_IF_SET if getattr(problem, name)))
    decisive = {name: encode(getattr(problem, name)) for name in names}
    body = {"manifest": [encode(entry) for entry in manifest(problem, files)], "problem": decisive}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judging_paths(problem: Problem) -> Iterator[str]:
    """Paths of all files that judging a submission may read."""
    for case in problem.cases:
        yield case.input
        if case.answer:
            yield case.answer
        yield from (ref.path for ref in case.files)
        if case.checker:
            yield from _program_paths(case.checker.programs)
    yield from _program_paths(problem.checker.programs)
    if problem.interactor:
        yield from _program_paths((problem.interactor.program,))
    if problem.static_validator:
        yield from _program_paths((problem.static_validator,))
    for stub in problem.stubs:
        yield from (ref.path for ref in stub.files)


def all_paths(problem: Problem) -> Iterator[str]:
    """Paths of all files that the problem refers to."""
    yield from judging_paths(problem)
    yield from _program_paths(tuple(validator.program for validator in problem.input_validators))
    yield from _program_paths(problem.generators)
    yield from _program_paths(tuple(submission.program for submission in problem.submissions))
    for test in problem.self_tests:
        yield from (path for path in (test.input, test.output, test.answer) if path)
    for statement in (*problem.statements, *problem.editorials):
        yield statement.path
        yield from (ref.path for ref in statement.assets)
    yield from (ref.path for ref in problem.attachments)


def _program_paths(programs: tuple[Program, ...]) -> Iterator[str]:
    for program in programs:
        yield from (ref.path for ref in (*program.files, *program.support))
