"""List languages that is installed, with programs whose verdict is known: one folder each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.problem import Case, Group, PackageFormat, Problem, ProblemLimits
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import Judge, SubmittedProgram
from adjudge.judge.sources import ProgramSource, SourceFile

PROGRAMS = Path(__file__).parent / "languages"
CORE = {"c", "cpp17", "cpp20", "cpp23", "python3", "java", "javascript"}
VERDICTS = {
    "accepted": Verdict.AC,
    "wrong": Verdict.WA,
    "slow": Verdict.TLE,
    "memory": Verdict.MLE,
    "crash": Verdict.RE,
    "compile_error": Verdict.CE,
}
LANGUAGES = Languages.load()
INSTALLED = [language for language in LANGUAGES if LANGUAGES.toolchain(language).usable]
QUICK = {"c", "python3"}
"""One that is compiled and one that is not; all others, and all that must run into a limit, are slow."""
GOLDEN = [
    pytest.param(
        *(language.id, path),
        id=f"{language.id}-{path.stem}",
        marks=() if language.id in QUICK and path.stem not in ("slow", "memory") else pytest.mark.slow,
    )
    for language in INSTALLED
    for path in sorted((PROGRAMS / language.code).glob("*"))
]


class Folder:
    """Two files as a package's."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def locate(self, path: str) -> Path:
        return self.root / path

    def size_bytes(self, path: str) -> int:
        return self.locate(path).stat().st_size

    def sha256(self, path: str) -> str:
        return path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    root = tmp_path_factory.mktemp("sum")
    (root / "1.in").write_text("20000000000 22\n")
    (root / "1.ans").write_text("20000000022\n")
    return Folder(root)


PATIENT = Limits(cpu_ms=10_000, wall_ms=60_000, memory_bytes=96 * MIB)
"""A busy machine slows a runtime's start by far; only a program that is meant to be too slow is held to little time."""
PROBLEM = Problem(
    "sum",
    PackageFormat("plain"),
    limits=ProblemLimits(run=PATIENT),
    cases=(Case("1", "", "1.in", "1.ans"),),
    groups=(Group(""),),
)
HURRIED = replace(PROBLEM, limits=ProblemLimits(run=replace(PATIENT, cpu_ms=1_000)))


def test_core_languages_are_installed() -> None:
    assert {language.id for language in INSTALLED} >= CORE


def test_every_language_has_golden_programs() -> None:
    assert not [language.id for language in LANGUAGES if not (PROGRAMS / language.code).is_dir()]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("language", "path"), GOLDEN)
async def test_golden_program(judge: Judge, files: Folder, language: str, path: Path) -> None:
    submission = SubmittedProgram(ProgramSource((SourceFile(path.name, path.read_bytes()),)), language)
    problem = HURRIED if path.stem == "slow" else PROBLEM
    result = await asyncio.wait_for(judge.judge(problem, files, submission), 240)
    assert result.verdict is VERDICTS[path.stem], result.document()
