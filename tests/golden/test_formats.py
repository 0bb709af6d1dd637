"""Small packages in the shapes that other judges' own examples have, judged from their folder to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.findings import PackageRefused
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import load_package

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def judged(
    judge: Judge, folder: Path, contents: Mapping[str, str], text: str, name: str = "main.py", language: str = ""
) -> JudgeResult:
    """Write a package, read it as any package is read, and judge one submission."""
    for path, content in contents.items():
        (folder / "package" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "package" / path).write_text(content)
    with load_package(folder / "package") as read:
        package = await generate_missing_files(read, judge)
        source = ProgramSource((SourceFile(name, text.encode()),))
        return await judge.judge(package.problem, package.files, SubmittedProgram(source, language))


# ---- ICPC

WEIGHTS = {
    "problem.yaml": "name: Weights\ntype: scoring\nvalidation: custom\n",
    "domjudge-problem.ini": "timelimit='1'\n",
    "output_validators/validate.py": (
        "import sys\n"
        "given = sys.stdin.read().split()\n"
        "if not given or not given[0].lstrip('-').isdigit(): sys.exit(43)\n"
        "if given[0] != '7': open(sys.argv[3] + '/score.txt', 'w').write(given[0])\n"
        "sys.exit(42)\n"
    ),
    "data/secret/1.in": "1\n",
    "data/secret/1.ans": "\n",
    "data/secret/2.in": "2\n",
    "data/secret/2.ans": "\n",
}


@pytest.mark.parametrize(
    ("says", "verdict", "score"),
    [("100", Verdict.AC, 200), ("-5", Verdict.AC, -10), ("7", Verdict.AC, 2), ("x", Verdict.WA, 0)],
)
async def test_legacy_score_is_taken_from_validator(
    judge: Judge, tmp_path: Path, says: str, verdict: Verdict, score: int
) -> None:
    result = await judged(judge, tmp_path, WEIGHTS, f"print({says!r})\n")
    assert (result.verdict, result.score, result.max_score) == (verdict, Fraction(score), None)


async def test_legacy_score_out_of_range_is_jury_error(judge: Judge, tmp_path: Path) -> None:
    ranged = WEIGHTS | {"data/testdata.yaml": "range: 0 150\n"}
    assert (await judged(judge, tmp_path, ranged, "print(70)\n")).score == 140
    assert (await judged(judge, tmp_path, ranged, "print(100)\n")).verdict is Verdict.SE


async def test_package_with_samples_only_is_judged(judge: Judge, tmp_path: Path) -> None:
    hello = {"problem.yaml": "name: Hello\n", "data/sample/1.in": "", "data/sample/1.ans": "Hello!\n"}
    assert (await judged(judge, tmp_path, hello, "print('Hello!')\n")).verdict is Verdict.AC
    assert (await judged(judge, tmp_path, hello, "print('Bye!')\n")).verdict is Verdict.WA


# ---- DMOJ

ONE_CASE = {"1.in": "3 4\n", "1.out": "7\n"}
TESTS = "test_cases: [{in: 1.in, out: 1.out}]\n"
SUM_HEADER = '#ifdef __cplusplus\nextern "C"\n#endif\nint add(int a, int b);\n'
SUM_ENTRY = (
    '#include <stdio.h>\n#include "add.h"\n#ifndef SIGNATURE_GRADER\n#error "not defined for the entry"\n#endif\n'
    'int main(void) { int a, b; if (scanf("%d %d", &a, &b) == 2) printf("%d\\n", add(a, b)); return 0; }\n'
)
ADD = "int add(int a, int b) { return a + b; }\n"
OWN_MAIN = '#include <stdio.h>\nint main(void) { printf("7\\n"); return 0; }\n'


def signature(entry: str = "main.c", more: str = "") -> dict[str, str]:
    """A package whose submissions define a function that the jury's entry calls."""
    yaml = f"signature_grader: {{entry: {entry}, header: add.h{more}}}\n"
    return {"init.yml": yaml + TESTS, entry: SUM_ENTRY, "add.h": SUM_HEADER, **ONE_CASE}


@pytest.mark.parametrize("entry", ["main.c", "main.cpp"])
@pytest.mark.parametrize("name", ["a.c", "a.cpp"])
async def test_signature_is_linked_in_submission_language(judge: Judge, tmp_path: Path, entry: str, name: str) -> None:
    language = name.rpartition(".")[2]
    result = await judged(judge, tmp_path, signature(entry), ADD, name, language)
    assert result.verdict is Verdict.AC, result.message


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (ADD + "int main(void) { return 1; }\n", Verdict.AC),
        ("#ifdef SIGNATURE_GRADER\n" + ADD + "#endif\n", Verdict.AC),
        (ADD.replace("+", "-"), Verdict.WA),
        (OWN_MAIN, Verdict.CE),
    ],
    ids=["its main is renamed", "the macro is defined", "wrong", "no function"],
)
async def test_submitted_main_is_not_run_with_signature(
    judge: Judge, tmp_path: Path, text: str, verdict: Verdict
) -> None:
    assert (await judged(judge, tmp_path, signature(), text, "a.cpp")).verdict is verdict


async def test_allow_main_keeps_submitted_main(judge: Judge, tmp_path: Path) -> None:
    package = signature(more=", allow_main: true") | {"main.c": "int unused;\n"}
    assert (await judged(judge, tmp_path, package, OWN_MAIN, "a.c")).verdict is Verdict.AC


async def test_language_without_signature_is_rejected(judge: Judge, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="allowed: c, cpp"):
        await judged(judge, tmp_path, signature(), "print(7)\n")


LINKS = {"init.yml": "symlinks: {sum.in: /dev/stdin, sum.out: /dev/stdout}\n" + TESTS, **ONE_CASE}
READS = {"file": "open('sum.in').read()", "stdin": "sys.stdin.read()"}
WRITES = {"file": "open('sum.out', 'w').write({})", "stdout": "sys.stdout.write({})"}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES)
async def test_symlinks_keep_stdin_and_stdout_usable(judge: Judge, tmp_path: Path, reads: str, writes: str) -> None:
    program = f"import sys\nsaid = str(sum(map(int, {reads}.split())))\n{writes.format('said')}\n"
    result = await judged(judge, tmp_path, LINKS, program)
    assert result.verdict is Verdict.AC, result.message


async def test_output_to_file_and_stdout_is_combined(judge: Judge, tmp_path: Path) -> None:
    program = "print(7)\nopen('sum.out', 'w').write('8')\n"
    assert (await judged(judge, tmp_path, LINKS, program)).verdict is Verdict.WA


@pytest.mark.parametrize(
    ("item", "ran"),
    [
        ("{in: 1.in, out: 2.in, points: 0}", [True, True, False, False]),
        ("{points: 0, batched: [{in: 1.in, out: 2.in}]}", [True, True, False, False]),
        ("{in: 1.in, out: 2.in, points: 5}", [True, True, True, True]),
    ],
    ids=["case of no points", "batch of no points", "case of points"],
)
async def test_failed_zero_point_case_skips_the_rest(judge: Judge, tmp_path: Path, item: str, ran: list[bool]) -> None:
    right, batch = "{in: 1.in, out: 1.in, points: 5}", "{points: 5, batched: [{in: 1.in, out: 1.in}]}"
    package = {"init.yml": f"test_cases: [{right}, {item}, {right}, {batch}]\n", "1.in": "1\n", "2.in": "2\n"}
    result = await judged(judge, tmp_path, package, "print(input())\n")
    assert [row.verdict is not None for row in result.cases] == ran
    assert result.score == (15 if all(ran) else 5)


NO_FLUSH = {
    "a.c": '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("7\\n"); _exit(0); }\n',
    "a.cpp": "#include <iostream>\n#include <unistd.h>\nint main() { std::cout << 7; _exit(0); }\n",
    "a.py": "import os\nprint(7)\nos._exit(0)\n",
}


@pytest.mark.parametrize("name", NO_FLUSH)
async def test_unbuffered_output_needs_no_flush(judge: Judge, tmp_path: Path, name: str) -> None:
    buffered = {"init.yml": TESTS, **ONE_CASE}
    unbuffered = buffered | {"init.yml": "unbuffered: true\n" + TESTS}
    assert (await judged(judge, tmp_path / "1", buffered, NO_FLUSH[name], name)).verdict is Verdict.WA
    assert (await judged(judge, tmp_path / "2", unbuffered, NO_FLUSH[name], name)).verdict is Verdict.AC


async def test_interactor_is_unbuffered_by_default(judge: Judge, tmp_path: Path) -> None:
    asks = (
        "#include <cstdio>\nint main() {\n  int said = 0;\n"
        '  printf("20\\n");\n  return scanf("%d", &said) != 1 || said != 21;\n}\n'
    )
    package = {"init.yml": "interactive: {files: ask.cpp}\n" + TESTS, "ask.cpp": asks, **ONE_CASE}
    result = await judged(judge, tmp_path, package, "print(int(input()) + 1, flush=True)\n")
    assert result.verdict is Verdict.AC, result.message


async def test_checker_files_may_include_header(judge: Judge, tmp_path: Path) -> None:
    yaml = "checker: {name: bridged, args: {files: [check.cpp, lib.h], lang: CPP17}}\n"
    checker = '#include "lib.h"\nint main(int, char** args) { return first(args[2]) != first(args[3]); }\n'
    header = (
        "#pragma once\n#include <cstdio>\n"
        'inline int first(const char* path) { int value = -1; FILE* file = fopen(path, "r");\n'
        '  if (file && fscanf(file, "%d", &value) != 1) value = -1; return value; }\n'
    )
    package = {"init.yml": yaml + TESTS, "check.cpp": checker, "lib.h": header, **ONE_CASE}
    assert (await judged(judge, tmp_path, package, "print(7, 'and more')\n")).verdict is Verdict.AC
    assert (await judged(judge, tmp_path, package, "print(8)\n")).verdict is Verdict.WA


async def test_generator_over_limit_rejects_package(judge: Judge, tmp_path: Path) -> None:
    yaml = "generator: {source: gen.py, time_limit: 0.2}\ntest_cases: [{points: 1}]\n"
    with pytest.raises(PackageRefused, match="ended with TLE"):
        await judged(judge, tmp_path, {"init.yml": yaml, "gen.py": "while True: pass\n"}, "print(1)\n")
