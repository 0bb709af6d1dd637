"""Static validators see the sources of a submission and a feedback directory that nothing of the submission lies in."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.domain.problem import Problem
from adjudge.domain.programs import Checker, CheckerProtocol, FileRef, Stub
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.sources import FILES_MAX, ProgramSource, SourceFile
from tests.golden.package_builder import PackageBuilder, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")

STATIC = """
[ -d "$3" ] && [ -z "$(ls "$3")" ] || exit 1
for name in $NAMES; do [ -f "$name" ] || exit 1; done
if grep -q forbidden main.sh; then echo "forbidden word" > "$3/judgemessage.txt"; exit 43; fi
exit 42
"""
ECHO = b"echo 1\n"
NAMES: dict[str, dict[str, bytes]] = {
    "file of the name": {"feedback": b""},
    "directory of the name": {"feedback/x.sh": b""},
    "marker": {"feedback/.keep": b""},
    "message": {"feedback/judgemessage.txt": b"forged"},
    "all the first names": dict.fromkeys(("feedback", "feedback-1", "feedback-2/x"), b""),
    "as many files as are allowed": {f"m{number}.sh": b"" for number in range(FILES_MAX - 1)},
}


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


def problem_of(files: PackageBuilder, beside: dict[str, bytes]) -> Problem:
    text = STATIC.replace("$NAMES", " ".join(beside))
    return files.problem(("1\n", "1\n"), static_validator=files.program("static.sh", text))


async def judged_files(
    judge: Judge, problem: Problem, files: PackageBuilder, contents: dict[str, bytes]
) -> JudgeResult:
    source = ProgramSource(tuple(SourceFile(path, data) for path, data in contents.items()))
    return await judge.judge(problem, files, SubmittedProgram(source, "bash"), JudgeOptions())


@pytest.mark.parametrize("name", NAMES)
async def test_source_names_do_not_affect_static_validation(judge: Judge, files: PackageBuilder, name: str) -> None:
    problem = problem_of(files, NAMES[name])
    result = await judged_files(judge, problem, files, {"main.sh": ECHO, **NAMES[name]})
    assert result.verdict is Verdict.AC, result.message
    refused = await judged_files(judge, problem, files, {"main.sh": b"# forbidden\n" + ECHO, **NAMES[name]})
    assert (refused.verdict, refused.message) == (Verdict.WA, "static validation: forbidden word")


async def test_source_that_needs_jury_files_is_compile_error(judge: Judge, files: PackageBuilder) -> None:
    (files.root / "main.sh").write_bytes(ECHO)
    stub = Stub("bash", (FileRef("main.sh", "main.sh"),))
    problem = files.problem(("1\n", "1\n"), static_validator=files.program("static.sh", "exit 42"), stubs=(stub,))
    result = await judged_files(judge, problem, files, {"readme.txt": b"", "notes.txt": b""})
    assert result.verdict is Verdict.CE, result.message
    assert "no Bash file" in result.message


MANY = """
for number in $(seq 70); do : > "$3/$number.txt"; done
{then}
"""


async def test_excess_feedback_is_jury_error(judge: Judge, files: PackageBuilder) -> None:
    program = files.program("many.sh", MANY.replace("{then}", 'echo 1 > "$3/nextpass.in"; exit 42'))
    checker = Checker(CheckerProtocol.ICPC, programs=(program,))
    result = await judged(judge, files.problem(("1\n", "1\n"), checker=checker, max_passes=3), files, "cat")
    assert result.verdict is Verdict.SE
    assert "70 feedback files" in result.cases[0].message


@pytest.mark.parametrize(("programs", "verdict"), [(1, "AC"), (2, "SE")])
async def test_excess_feedback_is_ignored_after_last_pass(
    judge: Judge, files: PackageBuilder, programs: int, verdict: str
) -> None:
    program = files.program("many.sh", MANY.replace("{then}", "exit 42"))
    checker = Checker(CheckerProtocol.ICPC, programs=(program,) * programs)
    result = await judged(judge, files.problem(("1\n", "1\n"), checker=checker), files, "cat")
    assert result.verdict == verdict, result.message
