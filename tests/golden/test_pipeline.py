"""From source to result: compile errors, bombs, order, the second look near the limit, what the author may see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge.domain.problem import Case, Feedback, Grading, Group, OnReject, ProblemLimits
from adjudge.domain.retry import RetryClass
from adjudge.domain.verdict import Verdict
from adjudge.judge.early_stop import StopPolicy
from adjudge.judge.pipeline import CaseDone, CompileDone, Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import author_view
from adjudge.judge.sources import ProgramSource, SourceFile
from tests.golden.package_builder import LIMITS, PackageBuilder, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


async def test_nonretryable_compile_error_terminal_once(judge: Judge, files: PackageBuilder) -> None:
    """A compile error is final and reported once: no test runs, no attempt follows."""
    problem = files.problem(("1\n", "1\n"), ("2\n", "2\n"))
    events: list[CompileDone | CaseDone] = []
    submission = SubmittedProgram(ProgramSource((SourceFile("x.c", b"int main(void) { return missing; }"),)))
    result = await judge.judge(problem, files, submission, JudgeOptions(), events.append)
    assert result.verdict is Verdict.CE
    assert result.retry is RetryClass.FINAL
    assert result.compiled is not None
    assert result.compiled.failure is not None
    assert result.compiled.failure.retry is RetryClass.FINAL
    assert result.compiled.failure.log.startswith("main.c: In function")
    assert [type(event) for event in events] == [CompileDone]
    assert result.cases == ()
    assert "missing" in author_view(result.document())["compile"]["log"]


BOMBS = {
    "templates": "template<int N> struct A { A<N+1> a; A<N+2> b; }; int main() { A<0> a; }",
    "dev_zero": '#include "/dev/zero"\nint main() {}',
    "giant_array": "int big[1 << 28] = {1}; int huge[1 << 29] = {1}; int main() {}",
    "incbin": 'asm(".incbin \\"/etc/shadow\\""); int main() {}',
    "host_include": '#include "/etc/shadow"\nint main() {}',
    "errors": "int main() {" + "undeclared();\n" * 20_000 + "}",
    "recursion": '#include "main.cpp"\n#include "main.cpp"\nint main() {}',
}


QUICK_BOMBS = ("incbin", "host_include")
"""They are refused; the others go off, and run into a limit."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_BOMBS else pytest.mark.slow) for name in BOMBS]
)
async def test_compile_bombs_end_as_compile_errors(judge: Judge, files: PackageBuilder, name: str) -> None:
    limits = ProblemLimits(run=LIMITS, compile_ms=5_000, compile_memory_bytes=512 * 2**20, code_bytes=2**20)
    problem = replace(files.problem(("1\n", "1\n")), limits=limits)
    result = await judged(judge, problem, files, BOMBS[name], "cpp")
    assert result.verdict is Verdict.CE
    assert result.compiled is not None
    assert result.compiled.failure is not None
    assert len(result.compiled.failure.log) <= 70_000
    assert str(files.root) not in result.compiled.failure.log


async def test_same_source_is_compiled_once(judge: Judge, files: PackageBuilder) -> None:
    problem = files.problem(("1\n", "1\n"))
    text = '#include <stdio.h>\nint main(void) { puts("1"); return 0; } /* once */'
    first = await judged(judge, problem, files, text, "c")
    again = await judged(judge, problem, files, text, "c")
    assert first.compiled is not None
    assert again.compiled is not None
    assert (first.compiled.cached, again.compiled.cached) == (False, True)


async def test_oversized_source_is_compile_error(judge: Judge, files: PackageBuilder) -> None:
    problem = replace(files.problem(("1\n", "1\n")), limits=ProblemLimits(run=LIMITS, code_bytes=10))
    result = await judged(judge, problem, files, "echo 1 # too long")
    assert result.verdict is Verdict.CE
    assert "the limit is 10" in result.message


TREE = (
    Group("", on_reject=OnReject.CONTINUE, accept_if_any=True),
    Group("1", on_reject=OnReject.BREAK, feedback=Feedback.COMPLETE),
    Group("2", on_reject=OnReject.BREAK, depends_on=("1",), feedback=Feedback.POINTS),
    Group("3", on_reject=OnReject.BREAK),
)


def grouped(files: PackageBuilder) -> tuple[Case, ...]:
    plain = files.cases(*((f"{number}\n", "ok\n") for number in range(9)))
    return tuple(
        replace(case, name=f"{1 + index // 3}/{index}", group=str(1 + index // 3)) for index, case in enumerate(plain)
    )


@pytest.mark.parametrize("stop", list(StopPolicy))
@pytest.mark.parametrize("bad", [0, 1, 4, 8])
async def test_parallel_judging_equals_sequential(
    judge: Judge, files: PackageBuilder, stop: StopPolicy, bad: int
) -> None:
    problem = files.problem(cases=grouped(files), groups=TREE, grading=Grading.SCORING)
    program = f"read -r n; if [ $n = {bad} ]; then echo no; else echo ok; fi"
    one = await judged(judge, problem, files, program, parallelism=1, stop=stop)
    many = await judged(judge, problem, files, program, parallelism=4, stop=stop)
    assert [row.verdict for row in one.cases] == [row.verdict for row in many.cases]
    assert [row.name for row in many.cases] == [case.name for case in problem.cases]
    assert (one.verdict, one.score, one.message) == (many.verdict, many.score, many.message)


@pytest.mark.slow
async def test_run_slightly_over_limit_is_repeated_exclusively(judge: Judge, files: PackageBuilder) -> None:
    """Both figures are kept, and only the second one is believed."""
    spin = "import time\nwhile time.process_time() < 0.35: pass\nprint(1)\n"
    limits = replace(LIMITS, cpu_ms=300)
    problem = replace(files.problem(("1\n", "1\n")), limits=ProblemLimits(run=limits))
    result = await judged(judge, problem, files, spin, "python3", time_margin=9.0)
    row = result.cases[0]
    assert result.verdict is Verdict.TLE
    assert row.first_run is not None
    assert row.run is not None
    assert min(row.first_run.time_ms, row.run.time_ms) > 300
    far = await judged(judge, problem, files, "while True: pass", "python3", time_margin=0.1)
    assert far.verdict is Verdict.TLE
    assert far.cases[0].first_run is None


@pytest.mark.slow
async def test_exit_status_is_recorded(judge: Judge, files: PackageBuilder) -> None:
    problem = files.problem(("1\n", "1\n"))
    killed = await judged(judge, problem, files, "kill -SEGV $$")
    assert killed.document()["cases"][0]["exit_signal"] == 11
    assert "SIGSEGV" in killed.message
    left = await judged(judge, problem, files, "exit 42")
    assert left.document()["cases"][0]["exit_code"] == 42
    flood = await judged(judge, problem, files, "while :; do echo $$$$$$$$$$$$$$$$$$$$$$$$; done > /dev/null")
    assert flood.document()["cases"][0]["limit"] in ("cpu", "wall")


async def test_author_view_hides_test_data(judge: Judge, files: PackageBuilder) -> None:
    problem = files.problem(cases=grouped(files), groups=TREE, grading=Grading.SCORING)
    secrets = ("SECRET-IN", "SECRET-ANS")
    for case in problem.cases:
        files.locate(case.input).write_text(f"{case.name} {secrets[0]}\n")
        files.locate(case.answer or "").write_text(f"{secrets[1]}\n")
    result = await judged(judge, problem, files, "cat; cat /judge/* >&2; exit 3", stop=StopPolicy.NEVER)
    whole = json.dumps(result.document())
    assert "exit code 3" in whole
    wrong = await judged(judge, problem, files, "cat", stop=StopPolicy.NEVER)
    assert secrets[1] in json.dumps(wrong.document())
    for document in (result.document(), wrong.document()):
        view = author_view(document)
        assert not any(secret in json.dumps(view) for secret in secrets)
        assert {row["group"] for row in view["cases"]} == {"1", "3"}
        assert [row["name"] for row in view["cases"] if row["group"] == "3"] == ["3/6"]
        assert len([row for row in view["cases"] if row["group"] == "1"]) == 3


async def test_author_view_shows_samples(judge: Judge, files: PackageBuilder) -> None:
    sample = replace(files.cases(("1\n", "2\n"))[0], is_sample=True)
    result = await judged(judge, files.problem(cases=(sample,)), files, "echo 3")
    row = author_view(result.document())["cases"][0]
    assert "expected '2', found '3'" in row["message"]
    assert row["written"] == {"expected": "2\n", "got": "3\n"}


async def test_wrong_output_excerpt_is_truncated(judge: Judge, files: PackageBuilder) -> None:
    sample = replace(files.cases(("1\n", "2\n"))[0], is_sample=True)
    result = await judged(judge, files.problem(cases=(sample,)), files, "yes | head -c 100000; printf '\\0'")
    written = result.document()["cases"][0]["written"]
    assert (len(written["got"]), written["got"][-1]) == (2049, "…")


async def test_outputs_of_secret_tests_are_not_recorded(judge: Judge, files: PackageBuilder) -> None:
    result = await judged(judge, files.problem(("1\n", "2\n")), files, "echo 3")
    assert result.document()["cases"][0]["written"] is None
