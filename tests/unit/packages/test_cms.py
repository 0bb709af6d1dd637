"""CMS's italy_yaml tasks and plain folders of tests."""

from __future__ import annotations

import pytest

from adjudge.domain.problem import Aggregate, ProblemMode
from adjudge.domain.programs import CheckerProtocol, InteractorProtocol, NativeChecker, ScoreUnit, UserIO
from adjudge.packages.findings import Findings, Severity
from tests.unit.packages.conftest import Read

YAML = "name: sums\ntitle: Somme\ntime_limit: 0.5\nmemory_limit: 64\n"


def _errors(findings: Findings) -> list[str]:
    return [str(item) for item in findings.in_order() if item.severity is Severity.ERROR]


def _tests(count: int) -> dict[str, str]:
    return {f"{kind}/{kind}{n}.txt": "1\n" for kind in ("input", "output") for n in range(count)}


def test_subtasks_from_gen(read: Read) -> None:
    gen = "#ST: 0\n1 2 # first\n#ST: 40\n#COPY: a.txt\n3\n# just words\n\n#ST: 60\n4\n"
    package, findings = read(
        {"task.yaml": YAML + "n_input: 4\npublic_testcases: 0,2\n", **_tests(4), "gen/GEN": gen, "sol/solution.cpp": ""}
    )
    problem = package.problem
    assert not _errors(findings)
    assert (problem.short_name, problem.titles) == ("sums", {"it": "Somme"})
    assert (problem.limits.run.cpu_ms, problem.limits.run.memory_bytes) == (500, 64 << 20)
    assert (problem.input_file, problem.output_file) == ("input.txt", "output.txt")
    groups = [(group.path, group.aggregate, group.max_points) for group in problem.groups[2:]]
    minimum = Aggregate.MIN
    assert groups == [("secret/01", minimum, 0), ("secret/02", minimum, 40), ("secret/03", minimum, 60)]
    assert [case.name for case in problem.cases] == ["secret/01/000", "secret/02/001", "secret/02/002", "secret/03/003"]
    assert [case.full_feedback for case in problem.cases] == [True, False, True, False]
    assert problem.checker.native is NativeChecker.WHITE_DIFF
    assert problem.submissions[0].path == "accepted/solution.cpp"


@pytest.mark.parametrize(
    ("gen", "expected"),
    [
        ("#ST: 50\n1\n2\n", "do not sum to 100"),
        ("1\n#ST: 100\n2\n", "lists 2 tests"),
        ("#ST: x\n1\n2\n", "GEN:1: error"),
    ],
)
def test_faults_in_gen(read: Read, gen: str, expected: str) -> None:
    _, findings = read({"task.yaml": YAML, **_tests(2), "gen/GEN": gen})
    assert any(expected in error for error in _errors(findings)), _errors(findings)


@pytest.mark.parametrize(
    ("kind", "parameters", "members"),
    [
        ("GroupMin", "[[40, 1], [60, 2]]", [1, 2]),
        ("GroupMul", '\'[[40, "00[01]"], [60, "00[12]"]]\'', [2, 2]),
        ("GroupThreshold", "[[100, ['000', '002'], 3.5]]", [2]),
        ("GroupMin", "[{max_score: 100, testcases: '00.*'}]", [3]),
    ],
)
def test_score_types(read: Read, kind: str, parameters: str, members: list[int]) -> None:
    yaml = YAML + f"score_type: {kind}\nscore_type_parameters: {parameters}\n"
    package, findings = read({"task.yaml": yaml, **_tests(3)})
    problem = package.problem
    assert not _errors(findings)
    counts = [sum(case.group == group.path for case in problem.cases) for group in problem.groups[2:]]
    assert counts == members
    if kind == "GroupThreshold":
        assert problem.groups[2].threshold == 3.5


def test_sum_without_subtasks(read: Read) -> None:
    package, _ = read({"task.yaml": YAML + "infile:\noutfile: ''\n", **_tests(4)})
    assert [case.points for case in package.problem.cases] == [25.0] * 4
    assert (package.problem.input_file, package.problem.output_file) == ("", "")


def test_task_types(read: Read) -> None:
    base = {"task.yaml": YAML, **_tests(1)}
    package, _ = read({**base, "check/checker": b"\x7fELF", "sol/grader.cpp": "", "sol/sums.h": ""})
    assert package.problem.checker.protocol is CheckerProtocol.CMS
    assert package.problem.checker.score_unit is ScoreUnit.FRACTION
    assert package.problem.checker.programs[0].is_binary
    assert [ref.name for ref in package.problem.stubs[0].files] == ["grader.cpp", "sums.h"]
    package, _ = read({"task.yaml": YAML + "num_processes: 2\n", "check/manager.cpp": "", "sol/stub.cpp": ""})
    problem = package.problem
    assert problem.mode is ProblemMode.COMMUNICATION
    assert problem.interactor
    assert (problem.interactor.protocol, problem.interactor.processes) == (InteractorProtocol.CMS, 2)
    assert problem.interactor.user_io is UserIO.FIFO
    assert not problem.interactor.program.is_binary
    package, _ = read({"task.yaml": YAML + "output_only: true\n"})
    assert package.problem.mode is ProblemMode.SUBMIT_ANSWER
    assert package.problem.cases[0].output_name == "output_000.txt"


def test_only_languages_with_a_grader_can_be_submitted(read: Read) -> None:
    base = {"task.yaml": YAML + "infile:\noutfile:\n", **_tests(1)}
    package, _ = read(base)
    assert package.problem.languages == ()
    package, findings = read({**base, "sol/grader.cpp": "", "sol/grader.py": "", "sol/sums.h": ""})
    assert not _errors(findings)
    assert package.problem.languages == ("cpp", "python3"), "any other program would be judged without the grader"
    package, _ = read({**base, "task.yaml": YAML + "output_only: true\n"})
    assert (package.problem.stubs, package.problem.languages) == ((), ())


def test_unknown_keys_are_reported(read: Read) -> None:
    known = "score_mode: max\ntoken_mode: disabled\ntotal_value: 100\nnum_processes: 1\n"
    _, findings = read({"task.yaml": YAML + known + "time_limt: 3\n", **_tests(1)})
    said = [str(item) for item in findings.items if "not a key" in item.message]
    assert said == ["task.yaml:9: warning: time_limt: is not a key of this format. Remove it."]


def test_missing_tests_are_reported(read: Read) -> None:
    tests = _tests(3)
    del tests["output/output1.txt"], tests["input/input2.txt"]
    _, findings = read({"task.yaml": YAML + "n_input: 3\n", **tests})
    assert any(error.startswith("input/input1.txt: error: has no answer") for error in _errors(findings))
    assert any(error.startswith("task.yaml:5: error: n_input") for error in _errors(findings))


def test_plain_folder_runs_in_numeric_order(read: Read) -> None:
    package, findings = read(
        {
            "10.in": "1\r\n",
            "10.out": "1\n",
            "2.in": "1\n",
            "2.ans": "1\n",
            "sample1.in": "",
            "sample1.out": "",
            "3.out": "",
        }
    )
    problem = package.problem
    assert not _errors(findings)
    assert [case.name for case in problem.cases] == ["secret/2", "secret/10", "secret/sample1"]
    assert problem.cases[2].is_sample
    assert package.files.locate("10.in").read_bytes() == b"1\n"
    assert any(str(item).startswith("3.out: warning: is an answer without an input") for item in findings.items)
    assert any(str(item).startswith("10.in:1: info: has Windows line endings") for item in findings.items)


def test_plain_input_without_answer_is_reported(read: Read) -> None:
    _, findings = read({"a.in": "1\n"})
    assert any(
        error.startswith("a.in: error: has no answer beside it. Add a.out or a.ans.") for error in _errors(findings)
    )
