"""Checkers, interactors and managers by every protocol, each run in the sandbox; their own failures are SE."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from adjudge.domain.problem import Case, Grading, Group, ProblemMode
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    Interactor,
    InteractorProtocol,
    NativeChecker,
    ScoreUnit,
    Stub,
)
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.sources import ProgramSource, SourceFile
from tests.golden.package_builder import PackageBuilder, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")

TESTLIB = """
if [ "$(cat "$1")" != 7 ] || [ "$(cat "$3")" != right ]; then exit 3; fi
case $(cat "$2") in
  right) echo "ok well done" >&2; exit 0 ;;
  half) echo "points 0.5 half of it" >&2; exit 7 ;;
  partly) echo "partially correct (25) a quarter" >&2; exit 25 ;;
  odd) echo "wrong output format odd" >&2; exit 2 ;;
  fail) echo "FAIL the answer is broken" >&2; exit 3 ;;
  die) kill -SEGV $$ ;;
  *) echo "wrong answer no" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


@pytest.mark.parametrize(
    ("word", "verdict"),
    [("right", "AC"), ("wrong", "WA"), ("odd", "WA"), ("fail", "SE"), ("die", "SE"), ("half", "PA"), ("partly", "PA")],
)
async def test_testlib(judge: Judge, files: PackageBuilder, word: str, verdict: str) -> None:
    problem = files.checked(CheckerProtocol.TESTLIB, TESTLIB)
    checker = Checker(CheckerProtocol.TESTLIB, programs=problem.checker.programs, score_unit=ScoreUnit.FRACTION)
    problem = files.problem(("7\n", "right\n"), checker=checker, grading=Grading.SCORING)
    result = await judged(judge, problem, files, f"echo {word}")
    assert result.verdict == verdict, result.message
    assert float(result.score) == {"right": 1, "half": 0.5, "partly": 0.25}.get(word, 0)
    if word == "fail":
        assert "the answer is broken" in result.message


ICPC = """
read -r said
[ "$(cat "$1")" = 7 ] && [ "$(cat "$2")" = right ] && [ "${3: -1}" = / ] && [ "$4" = flag ] || exit 1
echo "jury: $said" > "$3/judgemessage.txt"
echo "team: $said" > "$3/teammessage.txt"
case $said in
  right) exit 42 ;;
  scored) echo 0.25 > "$3/score_multiplier.txt"; exit 42 ;;
  both) echo 1 > "$3/score.txt"; echo 1 > "$3/score_multiplier.txt"; exit 42 ;;
  zero) exit 0 ;;
  hang) while :; do :; done ;;
  *) exit 43 ;;
esac
"""


@pytest.mark.parametrize(
    ("word", "verdict"), [("right", "AC"), ("wrong", "WA"), ("zero", "SE"), ("both", "SE"), ("scored", "PA")]
)
async def test_icpc(judge: Judge, files: PackageBuilder, word: str, verdict: str) -> None:
    checker = Checker(CheckerProtocol.ICPC, programs=(files.program("validate.sh", ICPC),), args=("flag",))
    problem = files.problem(("7\n", "right\n"), checker=checker, grading=Grading.SCORING)
    result = await judged(judge, problem, files, f"echo {word}")
    assert result.verdict == verdict, result.message
    if verdict != "SE":
        assert result.cases[0].message == f"jury: {word}"
        assert result.cases[0].author_message == f"team: {word}"


async def test_several_icpc_validators_must_all_accept(judge: Judge, files: PackageBuilder) -> None:
    programs = (files.program("yes.sh", "cat > /dev/null; exit 42"), files.program("no.sh", "cat > /dev/null; exit 43"))
    for given, verdict in ((programs[:1], Verdict.AC), (programs, Verdict.WA)):
        problem = files.problem(("7\n", "right\n"), checker=Checker(CheckerProtocol.ICPC, programs=given))
        assert (await judged(judge, problem, files, "echo x")).verdict is verdict


CMS = """
[ "$(cat "$1")" = 7 ] && [ "$(cat "$2")" = right ] || exit 9
case $(cat "$3") in
  right) echo 1.0; echo translate:success >&2 ;;
  half) echo 0.5; echo translate:partial >&2 ;;
  wild) echo 1.5 ;;
  broken) exit 1 ;;
  *) echo 0.0; echo translate:wrong >&2 ;;
esac
"""


@pytest.mark.parametrize(
    ("word", "verdict"), [("right", "AC"), ("half", "PA"), ("wrong", "WA"), ("wild", "SE"), ("broken", "SE")]
)
async def test_cms(judge: Judge, files: PackageBuilder, word: str, verdict: str) -> None:
    problem = files.checked(CheckerProtocol.CMS, CMS, grading=Grading.SCORING)
    assert (await judged(judge, problem, files, f"echo {word}")).verdict == verdict


@pytest.mark.parametrize(
    ("protocol", "text", "verdict"),
    [
        (CheckerProtocol.DMOJ, 'cmp -s "$2" "$3"', "AC"),
        (CheckerProtocol.DMOJ, "exit 1", "WA"),
        (CheckerProtocol.DMOJ, "exit 2", "SE"),
        (CheckerProtocol.COCI, "echo partial 1/4 >&2; exit 7", "PA"),
        (CheckerProtocol.COCI, "exit 0", "AC"),
        (CheckerProtocol.PEG, 'cmp -s "$1" "$2" && printf "3\\n4\\n"', "PA"),
        (CheckerProtocol.PEG, "exit 1", "WA"),
    ],
)
async def test_bridged(judge: Judge, files: PackageBuilder, protocol: CheckerProtocol, text: str, verdict: str) -> None:
    problem = files.checked(protocol, text, grading=Grading.SCORING)
    assert (await judged(judge, problem, files, "echo right")).verdict == verdict


async def test_checker_compile_error_is_system_error(judge: Judge, files: PackageBuilder) -> None:
    problem = files.checked(CheckerProtocol.TESTLIB, "int main() { broken }", "checker.cpp")
    result = await judged(judge, problem, files, "echo right")
    assert result.verdict is Verdict.SE
    assert "checker.cpp: compilation failed" in result.message


ASK = """
read -r secret < "$1"
for turn in 1 2 3; do
  read -r guess || { echo "wrong answer no guess" >&2; exit 1; }
  if [ "$guess" = "$secret" ]; then echo found; echo "$turn" > "$2"; echo "ok" >&2; exit 0; fi
  echo again
done
echo "wrong answer too many" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("echo 1; read r; echo 7; read r", "AC"),
        ("echo 1; read r; echo 2; read r; echo 3; read r", "WA"),
        ("exit 0", "WA"),
        ("exit 3", "RE"),
    ],
)
async def test_testlib_interactor_then_checker(judge: Judge, files: PackageBuilder, program: str, verdict: str) -> None:
    interactor = Interactor(InteractorProtocol.TESTLIB, files.program("ask.sh", ASK))
    checker = Checker(native=NativeChecker.TOKEN)
    problem = files.problem(("7\n", "2\n"), mode=ProblemMode.INTERACTIVE, interactor=interactor, checker=checker)
    result = await judged(judge, problem, files, program)
    assert result.verdict == verdict, result.message


NEXT = """
read -r said
count=$(cat "$3/count" 2>/dev/null || echo 0)
echo $((count + 1)) > "$3/count"
if [ "$count" -lt "$4" ]; then echo "$said" > "$3/nextpass.in"; exit 42; fi
if [ "$said" = "$(cat "$2")" ]; then exit 42; else exit 43; fi
"""


@pytest.mark.parametrize(("passes", "answer", "verdict"), [(1, "9", "AC"), (1, "8", "WA"), (5, "9", "SE")])
async def test_multi_pass(judge: Judge, files: PackageBuilder, passes: int, answer: str, verdict: str) -> None:
    checker = Checker(CheckerProtocol.ICPC, programs=(files.program("next.sh", NEXT),), args=(str(passes),))
    problem = files.problem(("7\n", f"{answer}\n"), checker=checker, max_passes=3)
    result = await judged(judge, problem, files, "read -r n; echo $((n + 1))")
    assert result.verdict == verdict, result.message
    assert result.cases[0].passes == min(passes + 1, 3)


async def test_feedback_of_pass_is_kept_if_next_crashes(judge: Judge, files: PackageBuilder) -> None:
    said = NEXT.replace("exit 42; fi", 'echo "pass $count is fine" >> "$3/judgemessage.txt"; exit 42; fi', 1)
    checker = Checker(CheckerProtocol.ICPC, programs=(files.program("next.sh", said),), args=("2",))
    problem = files.problem(("7\n", "9\n"), checker=checker, max_passes=3)
    result = await judged(judge, problem, files, "read -r n; [ $n -lt 9 ] || exit 3; echo $((n + 1))")
    (case,) = result.cases
    assert (result.verdict, case.passes) == (Verdict.RE, 3)
    assert case.message.startswith("pass 0 is fine\npass 1 is fine\n")
    assert "3" in case.message.splitlines()[2], "and how it ended"


async def test_named_files(judge: Judge, files: PackageBuilder) -> None:
    problem = files.problem(("7\n", "8\n"), input_file="number.in", output_file="number.out")
    good = await judged(judge, problem, files, "read -r n < number.in; echo $((n + 1)) > number.out")
    assert good.verdict is Verdict.AC
    assert (await judged(judge, problem, files, "echo 8")).verdict is Verdict.WA


async def test_submitted_answers(judge: Judge, files: PackageBuilder) -> None:
    cases = files.cases(("1", "one\n"), ("2", "two\n"))
    named = tuple(Case(c.name, c.group, c.input, c.answer, output_name=f"{c.name}.txt") for c in cases)
    problem = files.problem(mode=ProblemMode.SUBMIT_ANSWER, cases=named, grading=Grading.SCORING)
    answers = ProgramSource((SourceFile("1.txt", b"one"),))
    result = await judge.judge(problem, files, SubmittedProgram(answers), JudgeOptions())
    assert result.verdict is Verdict.PA
    assert result.cases[1].message == "no file 2.txt was submitted"


async def test_graders_are_compiled_with_submission(judge: Judge, files: PackageBuilder) -> None:
    files.program("grader.cpp", '#include <cstdio>\n#include "task.h"\nint main() { std::printf("%d\\n", twice(4)); }')
    files.program("task.h", "int twice(int);")
    stub = Stub("cpp", (FileRef("grader.cpp", "grader.cpp"), FileRef("task.h", "task.h")))
    problem = files.problem(("", "8\n"), stubs=(stub,))
    good = await judged(judge, problem, files, '#include "task.h"\nint twice(int n) { return 2 * n; }', "cpp")
    assert good.verdict is Verdict.AC, good.message
    assert (await judged(judge, problem, files, "int once(int n) { return n; }", "cpp")).verdict is Verdict.CE


async def test_case_files_and_arguments_reach_the_program(judge: Judge, files: PackageBuilder) -> None:
    files.program("table", "5")
    case = files.cases(("", "5 x\n"), files=(FileRef("table.txt", "table"),), args=("x",))
    result = await judged(judge, files.problem(cases=case), files, 'echo "$(cat table.txt) $1"')
    assert result.verdict is Verdict.AC, result.message


STATIC = """
[ "$1" = bash ] && [ "$2" = main.sh ] && [ "$4" = short ] || exit 1
if [ "$(wc -c < main.sh)" -gt 20 ]; then echo "too long" > "$3/judgemessage.txt"; exit 43; fi
exit 42
"""


async def test_static_validator_inspects_source(judge: Judge, files: PackageBuilder) -> None:
    validator = files.program("static.sh", STATIC)
    plain = Group("", static_validator_args=("short",))
    problem = files.problem(("1\n", "1\n"), static_validator=validator, groups=(plain,))
    assert (await judged(judge, problem, files, "echo 1")).verdict is Verdict.AC
    long = await judged(judge, problem, files, "echo 1 # and many words")
    assert (long.verdict, long.message) == (Verdict.WA, "static validation: too long")
    assert [row.verdict for row in long.cases] == [None]
    scored = Group("", static_validator_args=("short",), static_points=9, max_points=10)
    problem = replace(problem, groups=(scored,), grading=Grading.SCORING)
    assert (await judged(judge, problem, files, "echo 1")).score == 10
    partial = await judged(judge, problem, files, "echo 1 # and many words")
    assert (partial.verdict, partial.score) == (Verdict.PA, Fraction(1))
