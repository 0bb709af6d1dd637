"""Limits, title and statement of formats that have none, and programs in languages that nobody knows."""

from __future__ import annotations

import pytest

from adjudge.packages.findings import Findings, Severity
from tests.unit.packages.conftest import Read
from tests.unit.packages.test_icpc import NEW, SOLUTION, TESTS, errors

DMOJ = {"init.yml": "wall_time_factor: 4\ntest_cases: [{in: 1.in, out: 1.in}]\n", "1.in": "1\n"}
PLAIN = {"1.in": "1\n", "1.out": "1\n"}
LIMITS = "title: Sum\nlimits: {time_limit: 1.5, memory: 64}\n"


@pytest.mark.parametrize("contents", [DMOJ, PLAIN], ids=["dmoj", "plain"])
def test_limits_from_adjudge_yaml(read: Read, contents: dict[str, str]) -> None:
    silent, findings = read(contents)
    assert not silent.problem.limits.has_explicit_time_limit
    assert any("adjudge.yaml" in item.fix for item in findings.items)
    package, findings = read({**contents, "adjudge.yaml": LIMITS, "statement/problem.en.md": "Add.\n"})
    problem = package.problem
    assert not errors(findings)
    assert problem.title == "Sum"
    assert (problem.limits.run.cpu_ms, problem.limits.run.memory_bytes) == (1_500, 64 << 20)
    assert problem.limits.has_explicit_time_limit
    assert [item.path for item in problem.statements] == ["statement/problem.en.md"]
    ratio = silent.problem.limits.run.wall_ms / silent.problem.limits.run.cpu_ms
    assert problem.limits.run.wall_ms == round(1_500 * ratio)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("limits: {time: 1}\n", "adjudge.yaml:1: error: limits.time:"),
        ("limits: {time_limit: 0}\n", "adjudge.yaml:1: error: limits.time_limit:"),
        ("limits: {memory: 1000000000}\n", "adjudge.yaml:1: error: limits.memory:"),
        ("name: x\n", "adjudge.yaml:1: error: name:"),
        ("- 1\n", "adjudge.yaml:1: error: must be a map"),
    ],
)
def test_invalid_adjudge_yaml_is_reported(read: Read, yaml: str, expected: str) -> None:
    _, findings = read({**PLAIN, "adjudge.yaml": yaml})
    assert any(error.startswith(expected) for error in errors(findings)), errors(findings)


def test_adjudge_yaml_is_ignored_if_format_has_limits(read: Read) -> None:
    package, findings = read({"problem.yaml": NEW, **TESTS, **SOLUTION, "adjudge.yaml": LIMITS})
    assert not package.problem.limits.has_explicit_time_limit
    assert any(item.path == "adjudge.yaml" and item.severity is Severity.WARNING for item in findings.items)


def _severity_of(findings: Findings, path: str) -> Severity | None:
    found = [item for item in findings.items if item.path == path and "in an unknown language" in item.message]
    return found[0].severity if found else None


@pytest.mark.parametrize(
    ("contents", "path"),
    [
        (
            {"init.yml": "generator: gen.cob\ntest_cases: [{generator_args: [1]}]\n", "gen.cob": ""},
            "gen.cob",
        ),
        (
            {
                "init.yml": "checker: {name: bridged, args: {files: c.cob}}\ntest_cases: [{in: 1.in, out: 1.in}]\n",
                "c.cob": "",
                "1.in": "",
            },
            "c.cob",
        ),
        (
            {"init.yml": "interactive: {files: i.cob}\ntest_cases: [{in: 1.in, out: 1.in}]\n", "i.cob": "", "1.in": ""},
            "i.cob",
        ),
        ({"problem.yaml": NEW, **TESTS, **SOLUTION, "output_validator/v.cob": ""}, "output_validator/v.cob"),
    ],
    ids=["generator", "checker", "interactor", "output validator"],
)
def test_required_program_in_unknown_language_is_an_error(read: Read, contents: dict[str, str], path: str) -> None:
    _, findings = read(contents)
    assert _severity_of(findings, path) is Severity.ERROR


def test_other_programs_in_an_unknown_language_are_warnings(read: Read) -> None:
    more = {"submissions/accepted/b.cob": "", "input_validators/v.cob": "", "generators/README.txt": ""}
    _, findings = read({"problem.yaml": NEW, **TESTS, **SOLUTION, **more})
    assert not errors(findings)
    assert _severity_of(findings, "submissions/accepted/b.cob") is Severity.WARNING
    assert _severity_of(findings, "input_validators/v.cob") is Severity.WARNING
    assert _severity_of(findings, "submissions/accepted/a.py") is None
    assert _severity_of(findings, "generators/README.txt") is None, "judges do not run generators of this format"


def test_submitted_answers_need_no_language(read: Read) -> None:
    answers = {"submissions/accepted/right/secret/01.out": "1\n"}
    _, findings = read({"problem.yaml": NEW + "type: submit-answer\n", **TESTS, **answers})
    assert not [item for item in findings.items if "no language" in item.message]
