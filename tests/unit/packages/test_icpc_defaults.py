"""What an ICPC package means where it is silent: tests, scores and the default validator, version by version."""

from __future__ import annotations

import pytest

from adjudge.domain.programs import ScoreUnit
from adjudge.packages.findings import Findings, Severity
from adjudge.packages.icpc.export import export_icpc
from tests.unit.packages.conftest import Read
from tests.unit.packages.test_icpc import NEW, SOLUTION, TESTS, errors

SAMPLES = {"data/sample/1.in": "1\n", "data/sample/1.ans": "1\n"}


@pytest.mark.parametrize("yaml", ["name: Hello\n", NEW], ids=["legacy", "2025-09"])
def test_package_with_samples_only_has_warning(read: Read, yaml: str) -> None:
    package, findings = read({"problem.yaml": yaml, **SAMPLES, **SOLUTION})
    assert not errors(findings)
    assert [case.is_sample for case in package.problem.cases] == [True]
    said = next(item for item in findings.items if "judged by the samples only" in item.message)
    assert (said.severity, said.path) == (Severity.WARNING, "data/secret")


@pytest.mark.parametrize("tests", [{}, SAMPLES], ids=["no tests", "samples"])
def test_ungenerated_tests_are_reported(read: Read, tests: dict[str, str]) -> None:
    _, findings = read({"problem.yaml": NEW, "generators/generators.yaml": "data: {}\n", **tests, **SOLUTION})
    said = next(item for item in findings.items if item.path == "data/secret")
    assert said.fix == "generators/generators.yaml is there: generate the tests first."
    assert said.severity is (Severity.WARNING if tests else Severity.ERROR)


def test_legacy_score_is_unbounded_without_range(read: Read) -> None:
    yaml = {"problem.yaml": "type: scoring\nvalidation: custom score\n", "output_validators/v.py": "exit(42)\n"}
    package, findings = read({**yaml, **TESTS, **SOLUTION, "data/testdata.yaml": "accept_score: 2\n"})
    problem = package.problem
    assert not errors(findings)
    assert problem.checker.score_unit is ScoreUnit.UNBOUNDED
    assert problem.cases[0].points == 2
    assert not problem.has_maximum(problem.cases[0])
    assert [group.score_range for group in problem.groups] == [None, None]


def test_score_2025_09_has_group_maximum(read: Read) -> None:
    yaml = {"problem.yaml": NEW + "type: scoring\n", "output_validator/v.py": "exit(42)\n"}
    package, _ = read({**yaml, **TESTS, **SOLUTION})
    assert package.problem.checker.score_unit is ScoreUnit.ABSOLUTE
    assert package.problem.has_maximum(package.problem.cases[0])


@pytest.mark.parametrize(("version", "native"), [("legacy", "icpc"), ("2023-07", "icpc"), ("2025-09", "icpc-2025-09")])
def test_each_version_has_its_own_default_validator(read: Read, version: str, native: str) -> None:
    package, _ = read({"problem.yaml": f"problem_format_version: {version}\nname: Sum\n", **TESTS, **SOLUTION})
    assert package.problem.checker.native == native


def test_scores_without_a_maximum_become_unbounded_groups(read: Read) -> None:
    yaml = {"problem.yaml": "type: scoring\nvalidation: custom\n", "output_validators/v.py": "exit(42)\n"}
    package, _ = read({**yaml, **TESTS, **SOLUTION})
    findings = Findings()
    made = export_icpc(package.problem, findings).problem
    assert {group.max_points for group in made.groups if group.path} == {None}
    assert [case.points for case in made.cases] == [None]
    assert any("needs a score for every accepted test" in item.message for item in findings.items)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("float_tolerance", "needs a number"),
        ("float_tolerance much", "needs a number"),
        ("float_tolerance -1", "needs a number"),
        ("float_tolerance 1e-6 float_tolerance 1e-6", "takes float_tolerance alone"),
        ("float_tolerance 1e-6 float_absolute_tolerance 1e-6", "takes float_tolerance alone"),
        ("float_relative_tolerance 1e-6 float_absolute_tolerance 1e-6", ""),
        ("case_sensitive space_change_sensitive float_tolerance 1e-6", ""),
        ("sloppy", "has no argument 'sloppy'"),
    ],
)
def test_arguments_of_the_default_validator_are_checked(read: Read, flags: str, expected: str) -> None:
    group = {"data/secret/test_group.yaml": f"output_validator_args: [{', '.join(flags.split())}]\n"}
    _, findings = read({"problem.yaml": NEW, **TESTS, **SOLUTION, **group})
    assert bool(errors(findings)) is bool(expected)
    assert expected in " ".join(errors(findings))


def test_repeated_legacy_tolerance_is_converted(read: Read) -> None:
    flags = "validator_flags: float_tolerance 1e-6 case_sensitive float_absolute_tolerance 1e-4 float_tolerance 1e-5\n"
    package, findings = read({"problem.yaml": flags, **TESTS, **SOLUTION})
    assert not errors(findings)
    made = export_icpc(package.problem, Findings()).problem
    assert made.cases[0].checker_args == ("case_sensitive", "float_tolerance", "1e-5")
