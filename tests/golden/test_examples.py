"""The example problems: what every jury submission must get, and a few results to the last detail.

The packages themselves say what is expected of their submissions; the tables here say it once more, so that neither a
judge that accepts everything nor a package that expects nothing can pass.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.cli.source_files import read_source
from adjudge.domain.verdict import Verdict
from adjudge.judge.early_stop import StopPolicy
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.packages.findings import Severity
from adjudge.packages.load import load_package
from adjudge.packages.verifier import Verifier

PROBLEMS = Path(__file__).parents[2] / "examples" / "problems"
NAMES = sorted(path.name for path in PROBLEMS.iterdir() if path.is_dir())
MAX_TEST_BYTES = 200_000
AC, PA, WA, TLE, RE = Verdict.AC, Verdict.PA, Verdict.WA, Verdict.TLE, Verdict.RE

JURY: dict[str, dict[str, Verdict]] = {
    "multiples": {
        "accepted/Formula.java": AC,
        "accepted/formula.cpp": AC,
        "accepted/formula.py": AC,
        "run_time_error/deep_gcd.py": RE,
        "run_time_error/paint_bucket.cpp": RE,
        "time_limit_exceeded/post_by_post.c": TLE,
        "wrong_answer/counts_twice.py": WA,
        "wrong_answer/product.py": WA,
        "wrong_answer/thirty_two_bits.c": WA,
    },
    "smallroot": {
        "accepted/stable.cpp": AC,
        "accepted/stable.py": AC,
        "run_time_error/short_array.cpp": RE,
        "time_limit_exceeded/inch_by_inch.cpp": TLE,
        "wrong_answer/doubles_only.cpp": WA,
        "wrong_answer/six_digits.py": WA,
        "wrong_answer/textbook.py": WA,
    },
    "farneighbours": {
        "accepted/evens_first.cpp": AC,
        "accepted/downwards.py": AC,
        "wrong_answer/never_no.py": WA,
        "wrong_answer/odds_first.py": WA,
        "wrong_answer/with_words.py": WA,
        "time_limit_exceeded/every_order.cpp": TLE,
        "rejected/recursive.py": RE,
    },
    "dressing": {
        "accepted/from_the_end.py": AC,
        "accepted/queue.cpp": AC,
        "run_time_error/recursive.py": RE,
        "time_limit_exceeded/looks_everywhere.py": TLE,
        "wrong_answer/ignores_rings.cpp": WA,
        "wrong_answer/sorts_by_waits.py": WA,
    },
    "guess": {
        "accepted/halving.cpp": AC,
        "accepted/halving.py": AC,
        "run_time_error/never_lower.py": RE,
        "time_limit_exceeded/no_last_flush.c": TLE,
        "wrong_answer/flood_of_digits.c": WA,
        "wrong_answer/flood_of_guesses.c": WA,
        "wrong_answer/gives_up.py": WA,
        "wrong_answer/one_by_one.py": WA,
        "wrong_answer/talks_on.py": WA,
    },
    "paving": {
        "accepted/doubling.cpp": AC,
        "accepted/doubling.py": AC,
        "brute_force/loop.cpp": PA,
        "brute_force/recurrence.py": PA,
        "wrong_answer/golden_ratio.py": PA,
        "wrong_answer/starts_at_one.py": WA,
        "wrong_answer/twenty_four_bits.cpp": PA,
    },
    "halves": {"accepted/exact": AC, "partly_even/greedy": PA, "wrong_answer/spoiled": PA},
    "postcards": {
        "accepted/bits.cpp": AC,
        "accepted/bits.py": AC,
        "run_time_error/knows_only_ada.py": RE,
        "time_limit_exceeded/counts_up.cpp": TLE,
        "wrong_answer/one_card_twice.py": WA,
        "wrong_answer/thirty_two_bits.c": WA,
        "wrong_answer/trusts_the_order.py": WA,
    },
    "shout": {
        "accepted/swap.cpp": AC,
        "accepted/swap.py": AC,
        "run_time_error/table.py": RE,
        "time_limit_exceeded/starts_again.py": TLE,
        "wrong_answer/shouts_only.py": WA,
        "wrong_answer/tidies_up.py": WA,
    },
    "harvest": {
        "accepted/solution.cpp": AC,
        "other/cubic.cpp": PA,
        "other/may_rent_nothing.cpp": WA,
        "other/narrow_sums.cpp": PA,
    },
    "change": {},
    "backwards": {},
}
SCORES: dict[str, dict[str, float]] = {
    "paving": {
        "accepted/doubling.cpp": 100,
        "accepted/doubling.py": 100,
        "brute_force/loop.cpp": 75,
        "brute_force/recurrence.py": 20,
        "wrong_answer/golden_ratio.py": 20,
        "wrong_answer/starts_at_one.py": 0,
        "wrong_answer/twenty_four_bits.cpp": 62.5,
    },
    "halves": {"accepted/exact": 100, "partly_even/greedy": 75, "wrong_answer/spoiled": 27.5},
    "harvest": {
        "accepted/solution.cpp": 100,
        "other/cubic.cpp": 40,
        "other/may_rent_nothing.cpp": 0,
        "other/narrow_sums.cpp": 40,
    },
}


def test_every_example_has_expected_results() -> None:
    assert sorted(JURY) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_example_package_has_no_findings(name: str) -> None:
    with load_package(PROBLEMS / name) as package:
        assert [str(item) for item in package.findings if item.severity is not Severity.INFO] == []
        used = {path for case in package.problem.cases for path in (case.input, case.answer) if path}
        assert sum(package.files.size_bytes(path) for path in used) < MAX_TEST_BYTES


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", NAMES)
async def test_jury_solutions_get_expected_verdicts(judge: Judge, name: str) -> None:
    with load_package(PROBLEMS / name) as package:
        found = await Verifier(judge, package, 2).run()
    assert found.issues == []
    assert [(item.submission.path, item.reasons) for item in found.judged if item.reasons] == []
    assert {item.submission.path: item.outcome.verdict for item in found.judged} == JURY[name]
    if name in SCORES:
        assert {item.submission.path: item.outcome.score for item in found.judged} == SCORES[name]


# ---- a few results in detail: verdict, score, first failing test, message to the jury

Detail = tuple[Verdict, float, str | None, str]
DETAILS: dict[tuple[str, str], Detail] = {
    ("multiples", "submissions/accepted/formula.py"): (AC, 1, None, ""),
    ("multiples", "submissions/wrong_answer/thirty_two_bits.c"): (
        WA,
        0,
        "secret/07-past-32-bits",
        "expected '5726644907', found '1431677611'",
    ),
    ("multiples", "submissions/run_time_error/paint_bucket.cpp"): (RE, 0, "secret/06-exactly-at-the-end", "SIGABRT"),
    ("smallroot", "submissions/wrong_answer/textbook.py"): (WA, 0, "secret/05-narrow", ""),
    ("farneighbours", "solutions/odds_first.py"): (WA, 0, "secret/005", "3 sits beside 2"),
    ("farneighbours", "solutions/with_words.py"): (WA, 0, "secret/001", "'row:' is no number"),
    ("dressing", "submissions/wrong_answer/ignores_rings.cpp"): (WA, 0, "sample/2", "nothing is printed"),
    ("guess", "submissions/wrong_answer/one_by_one.py"): (WA, 0, "sample/1", "not found in 20 guesses"),
    ("paving", "submissions/wrong_answer/twenty_four_bits.cpp"): (PA, 62.5, "secret/3-endless/2", ""),
    ("halves", "submissions/wrong_answer/spoiled"): (PA, 27.5, "secret/2", "not 8 letters L and R"),
    ("postcards", "submissions/wrong_answer/trusts_the_order.py"): (
        WA,
        0,
        "secret/04-seventeen-bits",
        "Bela reads",
    ),
    ("shout", "submissions/wrong_answer/tidies_up.py"): (WA, 0, "sample/1", ""),
    ("harvest", "sol/narrow_sums.cpp"): (PA, 40, "secret/02/004", ""),
    # DMOJ's format and plain folders have no place for jury solutions: theirs are judged here only.
    ("change", "solutions/table.cpp"): (AC, 10, None, ""),
    ("change", "solutions/ones.py"): (PA, 5, "secret/003/001", ""),
    ("change", "solutions/greedy.py"): (PA, 5, "secret/003/002", ""),
    ("change", "solutions/tens_only.py"): (PA, 1, "secret/002/001", "10 is paid, not 4"),
    ("change", "solutions/crash.py"): (PA, 1, "secret/002/001", "exit code 1"),
    ("backwards", "solutions/right.py"): (AC, 1, None, ""),
    ("backwards", "solutions/right.cpp"): (AC, 1, None, ""),
    ("backwards", "solutions/letters.py"): (WA, 0, "secret/1", ""),
}


async def judged(judge: Judge, name: str, solution: str, stop: StopPolicy = StopPolicy.POLICY) -> JudgeResult:
    with load_package(PROBLEMS / name) as package:
        submission = SubmittedProgram(read_source([PROBLEMS / name / solution]))
        return await judge.judge(package.problem, package.files, submission, JudgeOptions(parallelism=2, stop=stop))


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("name", "solution"),
    [pytest.param(*key, marks=() if key[1].endswith((".py", ".c")) else pytest.mark.slow) for key in DETAILS],
)
async def test_result_in_detail(judge: Judge, name: str, solution: str) -> None:
    result = await judged(judge, name, solution)
    first = result.first_failure
    said = first.message if first else ""
    verdict, score, failure, message = DETAILS[name, solution]
    assert (result.verdict, float(result.score), first.name if first else None) == (verdict, score, failure)
    assert message in said


@pytest.mark.asyncio(loop_scope="session")
async def test_group_that_depends_on_a_failed_one_is_not_run(judge: Judge) -> None:
    result = await judged(judge, "paving", "submissions/wrong_answer/starts_at_one.py")
    ran = [case.name for case in result.cases if case.verdict is not None]
    assert ran == ["sample/1", "secret/1-short/1"]
    assert float(result.score) == 0


@pytest.mark.asyncio(loop_scope="session")
async def test_group_that_depends_on_a_failed_one_earns_nothing_if_it_is_run(judge: Judge) -> None:
    result = await judged(judge, "paving", "submissions/wrong_answer/starts_at_one.py", StopPolicy.NEVER)
    accepted = [case.name for case in result.cases if case.verdict is AC]
    assert "secret/3-endless/4" in accepted
    assert float(result.score) == 0


@pytest.mark.asyncio(loop_scope="session")
async def test_compile_error_skips_all_tests(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "broken.cpp").write_text("int main() { return undeclared; }\n")
    with load_package(PROBLEMS / "multiples") as package:
        submission = SubmittedProgram(read_source([tmp_path / "broken.cpp"]))
        result = await judge.judge(package.problem, package.files, submission)
    assert (result.verdict, result.cases) == (Verdict.CE, ())
    assert result.compiled is not None
    assert result.compiled.failure is not None
    assert "undeclared" in result.compiled.failure.log


# ---- the tutorial: the mistakes that it makes on purpose get what it says

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "judge-your-first-solution.md"
MISTAKES = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("mistake", "verdict"),
    [
        pytest.param(mistake, verdict, id=name, marks=pytest.mark.slow if verdict is TLE else ())
        for mistake, verdict, name in zip(MISTAKES, (TLE, WA, Verdict.CE), ("slow", "wrong", "broken"), strict=True)
    ],
)
async def test_tutorial_output_is_correct(judge: Judge, tmp_path: Path, mistake: str, verdict: Verdict) -> None:
    (tmp_path / "mine.py").write_text(mistake)
    with load_package(PROBLEMS / "multiples") as package:
        submission = SubmittedProgram(read_source([tmp_path / "mine.py"]))
        result = await judge.judge(package.problem, package.files, submission)
    assert result.verdict is verdict


# ---- generators


GENERATORS = sorted(PROBLEMS.glob("*/gen*/generate.py"))


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda path: path.parents[1].name)
def test_generator_is_deterministic(generator: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, generator, tmp_path], check=True)
    problem = generator.parents[1]
    root = problem / "data" / "secret" if (problem / "data").is_dir() else problem
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    tests = [path for path in root.rglob("*") if path.suffix in (".in", ".ans") or path.match("*put/*put*.txt")]
    assert made == {path.relative_to(root): path.read_bytes() for path in tests}


def test_public_chest_files_equal_test_inputs() -> None:
    halves = PROBLEMS / "halves"
    secret = {path.name: path.read_bytes() for path in (halves / "data" / "secret").glob("*.in")}
    assert secret == {path.name: path.read_bytes() for path in (halves / "attachments").glob("*.in")}
