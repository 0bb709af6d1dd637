"""Results of records with a problem: everything for an own package, what an author may see on a server."""

from __future__ import annotations

from fractions import Fraction

import pytest

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case, Feedback, Group, PackageFormat, Problem
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.judged_result import author_result, package_result
from adjudge.judge.case_results import CaseResult, ResourceUsage
from adjudge.judge.result_document import JudgeResult, Provenance
from adjudge.judge.sources import ProgramSource, SourceFile

SECRET = "expected 42, found 7"


def judged(feedback: Feedback, verdict: Verdict = Verdict.WA) -> JudgeResult:
    """A result of three tests: a sample that passes, one that passes, and one that fails."""
    verdicts = {"sample/1": Verdict.AC, "secret/1": Verdict.AC, "secret/2": verdict}
    cases = tuple(Case(name, name.partition("/")[0], f"{name}.in", is_sample=name == "sample/1") for name in verdicts)
    groups = (Group(""), Group("sample", feedback=Feedback.COMPLETE), Group("secret", feedback=feedback))
    problem = Problem("sum", PackageFormat("plain"), cases=cases, groups=groups)
    results = [
        CaseResult(
            case.name,
            case.group,
            verdicts[case.name],
            is_sample=case.is_sample,
            run=ResourceUsage(verdicts[case.name], 7, 9, 1_500, 0, 0, None),
            message=SECRET,
        )
        for case in cases
    ]
    source = ProgramSource((SourceFile("source", b"x"),))
    origin = Provenance(source, "python3", "", "sum", "", "", {}, Limits())
    return JudgeResult(verdict, Fraction(0), None, SECRET, tuple(results), origin, problem)


def test_the_result_of_an_own_package_is_complete() -> None:
    found = package_result("a", judged(Feedback.NONE)).document()
    assert (found["verdict"], found["passed"], found["total"], found["score"]) == ("WA", 2, 3, 0)
    assert found["tests"][2] == {"verdict": "WA", "time_ms": 7, "mem_kb": 1_500, "message": SECRET}


@pytest.mark.parametrize(
    ("feedback", "passed", "shown"), [(Feedback.NONE, 1, 1), (Feedback.POINTS, 1, 1), (Feedback.COMPLETE, 2, 3)]
)
def test_an_author_sees_what_the_problem_shows(feedback: Feedback, passed: int, shown: int) -> None:
    found = author_result("a", judged(feedback)).document()
    assert (found["verdict"], found["passed"], found["total"], len(found["tests"])) == ("WA", passed, 3, shown)
    assert SECRET not in str(found)
    assert all(test["mem_kb"] == 2_048 for test in [found, *found["tests"][1:]])


def test_a_broken_problem_is_an_error() -> None:
    assert package_result("a", judged(Feedback.NONE, Verdict.SE)).document()["error"] == f"problem: {SECRET}"
    hidden = author_result("a", judged(Feedback.NONE, Verdict.SE))
    assert (hidden.verdict, SECRET in hidden.error) == (None, False)
    assert hidden.error.startswith("problem: a program or file of the problem is broken")
