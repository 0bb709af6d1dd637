"""Limits that no machine can honour are named, in every format; none of them ends the reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.packages.conftest import Contents, Read
from tests.unit.packages.test_icpc import NEW, SOLUTION, TESTS, errors

ICPC = {**TESTS, **SOLUTION}
DMOJ = {"1.in": "1\n", "c.cpp": "", "gen.py": ""}
CASE = "test_cases: [{in: 1.in, out: 1.in}]\n"
BRIDGED = "checker: {name: bridged, args: {files: c.cpp, time_limit: %s, memory_limit: 5}}\n"
STATED: dict[str, Callable[[str], Contents]] = {
    "time limit": lambda value: {"problem.yaml": f"{NEW}limits: {{time_limit: {value}}}\n", **ICPC},
    "validation": lambda value: {"problem.yaml": f"{NEW}limits: {{validation_time: {value}}}\n", **ICPC},
    "compilation": lambda value: {"problem.yaml": f"{NEW}limits: {{compilation_time: {value}}}\n", **ICPC},
    ".timelimit": lambda value: {"problem.yaml": "name: Sum\n", ".timelimit": f"{value}\n", **ICPC},
    "domjudge": lambda value: {"problem.yaml": "name: Sum\n", "domjudge-problem.ini": f"timelimit={value}\n", **ICPC},
    "wall": lambda value: {"init.yml": f"{CASE}wall_time_factor: {value}\n", **DMOJ},
    "output": lambda value: {"init.yml": f"{CASE}output_limit_length: {value}\n", **DMOJ},
    "generator": lambda value: {
        "init.yml": f"generator: {{source: gen.py, time_limit: {value}}}\ntest_cases: [{{points: 1}}]\n",
        **DMOJ,
    },
    "checker": lambda value: {"init.yml": CASE + BRIDGED % value, **DMOJ},
    "adjudge.yaml": lambda value: {"1.in": "", "1.out": "", "adjudge.yaml": f"limits: {{time_limit: {value}}}\n"},
    "cms": lambda value: {"task.yaml": f"time_limit: {value}\n", "input/input0.txt": "", "output/output0.txt": ""},
}


@pytest.mark.parametrize("value", ["1e308", "1e15", "1e14"])
@pytest.mark.parametrize("name", STATED)
def test_excessive_limit_is_an_error(read: Read, name: str, value: str) -> None:
    _, findings = read(STATED[name](value))
    assert errors(findings)


@pytest.mark.parametrize("name", STATED)
def test_ordinary_limit_is_accepted(read: Read, name: str) -> None:
    _, findings = read(STATED[name]("2"))
    assert not errors(findings)
