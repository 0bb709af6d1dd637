"""Polygon packages: full ones are read, standard ones get recipes, the rest is refused with the reason."""

from __future__ import annotations

import pytest

from adjudge.domain.problem import Aggregate, ProblemMode, SelfTestKind
from adjudge.domain.programs import CheckerProtocol, InteractorProtocol, NativeChecker, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.packages.findings import Findings, PackageRefused, Severity
from adjudge.packages.polygon.programs import language_of
from tests.unit.packages.conftest import Read

CHECKER = '<checker type="testlib"><source path="files/check.cpp" type="cpp.g++17"/></checker>'
SOLUTIONS = (
    '<solutions><solution tag="main"><source path="solutions/a.cpp" type="cpp.g++17"/></solution>'
    '<solution tag="time-limit-exceeded"><source path="solutions/b.py" type="python.3"/></solution></solutions>'
)
SOURCES = {
    "files/check.cpp": "",
    "files/testlib.h": "",
    "solutions/a.cpp": "",
    "solutions/b.py": "",
    "files/gen.cpp": "",
}
TESTS = '<test method="manual" sample="true"/><test method="generated" cmd="gen 5 -x \'a b\'"/>'


def _xml(
    tests: str = TESTS, *, count: int = 2, groups: str = "", assets: str = CHECKER + SOLUTIONS, judging: str = ""
) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><problem short-name="sum" revision="7">'
        '<names><name language="english" value="Sum"/><name language="russian" value="Сумма"/></names>'
        f'<judging {judging}><testset name="tests"><time-limit>1500</time-limit>'
        f"<memory-limit>268435456</memory-limit><test-count>{count}</test-count>"
        "<input-path-pattern>tests/%02d</input-path-pattern><answer-path-pattern>tests/%02d.a</answer-path-pattern>"
        f"<tests>{tests}</tests>{groups}</testset></judging>"
        '<files><executables><executable><source path="files/gen.cpp" type="cpp.g++17"/></executable></executables>'
        f'</files><assets>{assets}</assets><tags><tag value="math"/></tags></problem>'
    )


FULL = {"tests/01": "1\r\n", "tests/01.a": "1\r\n", "tests/02": "2\n", "tests/02.a": "2\n"}


def _errors(findings: Findings) -> list[str]:
    return [str(item) for item in findings.in_order() if item.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("kind", "language"),
    [
        ("cpp.gcc14-64-msys2-g++23", "cpp"),
        ("c.gcc", "c"),
        ("csharp.mono", "csharp"),
        ("java11", "java"),
        ("kotlin19", "kotlin"),
        ("python.pypy3-64", "python3"),
        ("pas.fpc", "pascal"),
        ("delphi.7", "pascal"),
        ("d", "d"),
        ("go", "go"),
        ("rust2021", "rust"),
        ("h.g++", ""),
        ("", ""),
    ],
)
def test_source_types_name_languages(kind: str, language: str) -> None:
    assert language_of(kind) == language


def test_full_package(read: Read) -> None:
    package, findings = read({"problem.xml": _xml(), **SOURCES, **FULL})
    problem = package.problem
    assert not _errors(findings)
    assert (problem.short_name, problem.titles) == ("sum", {"en": "Sum", "ru": "Сумма"})
    assert (problem.limits.run.cpu_ms, problem.limits.run.memory_bytes) == (1500, 256 << 20)
    assert problem.checker.protocol is CheckerProtocol.TESTLIB
    assert problem.checker.programs[0].support[0].name == "testlib.h"
    assert [case.is_sample for case in problem.cases] == [True, False]
    assert package.files.locate("tests/01").read_bytes() == b"1\n"
    assert not package.generated_files
    main, slow = problem.submissions
    assert main.is_model
    assert slow.expectations[0].result == {Verdict.TLE}
    assert slow.program.language == "python3"
    assert problem.keywords == ("math",)


def test_standard_package_is_generated_from_sources(read: Read) -> None:
    package, findings = read({"problem.xml": _xml(), **SOURCES, "tests/01": "1\n"})
    assert not _errors(findings)
    targets = [(recipe.target, recipe.program.name, recipe.args, recipe.stdin) for recipe in package.generated_files]
    assert targets == [
        ("tests/01.a", "a.cpp", (), "tests/01"),
        ("tests/02", "gen.cpp", ("5", "-x", "a b"), None),
        ("tests/02.a", "a.cpp", (), "tests/02"),
    ]


def test_file_that_cannot_be_generated_is_rejected_with_reason(read: Read) -> None:
    tests = '<test method="manual"/><test method="generated" cmd="other 5"/>'
    _, findings = read({"problem.xml": _xml(tests), **SOURCES})
    errors = _errors(findings)
    assert any(error.startswith("tests/01: error: is not in the package, and nothing says how") for error in errors)
    assert any(
        "its generator 'other' is not among the sources" in error and "full package" in error for error in errors
    )


@pytest.mark.parametrize(
    ("name", "native", "options"),
    [("std::wcmp.cpp", NativeChecker.WCMP, {}), ("std::rcmp6.cpp", NativeChecker.RCMP, {"epsilon": "1e-6"})],
)
def test_standard_checkers_are_built_in(read: Read, name: str, native: NativeChecker, options: dict[str, str]) -> None:
    assets = f'<checker name="{name}" type="testlib"><source path="files/check.cpp" type="cpp"/></checker>' + SOLUTIONS
    package, _ = read({"problem.xml": _xml(assets=assets), **SOURCES, **FULL})
    assert (package.problem.checker.native, package.problem.checker.options) == (native, options)


def test_points_and_groups(read: Read) -> None:
    tests = (
        '<test group="1" points="10"/><test group="1" points="0"/>'
        '<test group="2" points="40"/><test group="2" points="50"/>'
    )
    groups = (
        '<groups><group name="1" points-policy="complete-group" feedback-policy="points"/>'
        '<group name="2" points-policy="each-test"><dependencies><dependency group="1"/></dependencies></group>'
        "</groups>"
    )
    full = {f"tests/0{n}{suffix}": "1\n" for n in range(1, 5) for suffix in ("", ".a")}
    package, findings = read(
        {
            "problem.xml": _xml(tests, count=4, groups=groups, judging='treat-points-from-checker-as-percent="true"'),
            **SOURCES,
            **full,
        }
    )
    problem = package.problem
    assert not _errors(findings)
    one, two = problem.groups[2:]
    assert (one.aggregate, one.max_points) == (Aggregate.ALL, 10)
    assert (two.aggregate, two.max_points, two.depends_on) == (Aggregate.SUM, 90, ("secret/1",))
    assert [case.points for case in problem.cases] == [0, 0, 40, 50]
    assert problem.checker.score_unit is ScoreUnit.PERCENT


def test_interactor_files_and_self_tests(read: Read) -> None:
    checker = (
        '<checker type="testlib"><source path="files/check.cpp" type="cpp.g++17"/>'
        "<testset><test-count>1</test-count><input-path-pattern>files/tests/checker-tests/%02d</input-path-pattern>"
        "<output-path-pattern>files/tests/checker-tests/%02d.o</output-path-pattern>"
        "<answer-path-pattern>files/tests/checker-tests/%02d.a</answer-path-pattern>"
        '<tests><test verdict="wrong-answer"/></tests></testset></checker>'
        '<interactor><source path="files/gen.cpp" type="cpp.g++17"/></interactor>'
    )
    self_test = {f"files/tests/checker-tests/01{suffix}": "" for suffix in ("", ".o", ".a")}
    package, findings = read(
        {
            "problem.xml": _xml(assets=checker + SOLUTIONS, judging='input-file="in.txt" output-file=""'),
            **SOURCES,
            **FULL,
            **self_test,
        }
    )
    problem = package.problem
    assert not _errors(findings)
    assert problem.mode is ProblemMode.INTERACTIVE
    assert problem.interactor
    assert problem.interactor.protocol is InteractorProtocol.TESTLIB
    assert (problem.input_file, problem.output_file) == ("in.txt", "")
    assert problem.self_tests[0].kind is SelfTestKind.INVALID_OUTPUT


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        (_xml(judging='run-count="2"'), "run-twice"),
        (_xml(assets=CHECKER + "<scorer/>" + SOLUTIONS), "scorer"),
        (_xml(count=3), "test-count"),
        (_xml().replace("%02d.a", "%s"), "pattern"),
        (_xml().replace("<time-limit>1500</time-limit>", ""), "time or memory limit"),
        (_xml().replace("files/check.cpp", "files/none.cpp"), "is not in the package"),
    ],
)
def test_faults(read: Read, xml: str, expected: str) -> None:
    _, findings = read({"problem.xml": xml, **SOURCES, **FULL})
    assert any(expected in error for error in _errors(findings)), _errors(findings)


@pytest.mark.parametrize(
    "xml",
    [
        "<problem",
        "<other/>",
        '<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><problem>&b;</problem>',
        '<!DOCTYPE p SYSTEM "file:///etc/passwd"><problem/>',
        "<problem>" * 200,
        b"\xff\xfe<problem/>",
    ],
)
def test_hostile_xml_is_rejected(read: Read, xml: str | bytes) -> None:
    with pytest.raises(PackageRefused):
        read({"problem.xml": xml})


VALIDATOR = (
    '<validators><validator><source path="files/gen.cpp" type="cpp.g++17"/><testset>'
    "<input-path-pattern>files/tests/validator-tests/%02d</input-path-pattern>"
    '<tests><test verdict="VALID"/><test verdict="INVALID"/></tests></testset></validator></validators>'
)


@pytest.mark.parametrize("valid", ["1\r\n", "1\n"], ids=["windows", "linux"])
def test_line_endings_of_validator_tests_are_converted(read: Read, valid: str) -> None:
    plain = {name: text.replace("\r", "") for name, text in FULL.items()}
    inputs = {"files/tests/validator-tests/01": valid, "files/tests/validator-tests/02": "2\r\n"}
    package, findings = read(
        {"problem.xml": _xml(assets=CHECKER + SOLUTIONS + VALIDATOR), **SOURCES, **plain, **inputs}
    )
    assert not _errors(findings)
    assert [test.kind for test in package.problem.self_tests] == [SelfTestKind.VALID_INPUT, SelfTestKind.INVALID_INPUT]
    texts = [package.files.locate(test.input).read_bytes().decode() for test in package.problem.self_tests]
    assert texts == ["1\n", "2\r\n" if valid == "1\n" else "2\n"], "CRLF alone may be what makes an input invalid"


@pytest.mark.parametrize(
    ("kind", "path", "languages"),
    [
        ("cpp.*", "files/grader.cpp", ("cpp",)),
        ("cpp.*", "files/sum.h", ()),
        ("", "files/grader.cpp", ()),
    ],
    ids=["grader", "header", "for all"],
)
def test_only_languages_with_a_grader_can_be_submitted(
    read: Read, kind: str, path: str, languages: tuple[str, ...]
) -> None:
    resource = (
        f'<resources><file path="{path}" for-types="{kind}"><stages><stage name="compile"/></stages>'
        '<assets><asset name="solution"/></assets></file></resources>'
    )
    xml = _xml().replace("</files>", resource + "</files>")
    package, findings = read({"problem.xml": xml, **SOURCES, **FULL, path: ""})
    assert not _errors(findings)
    assert package.problem.stubs
    assert package.problem.languages == languages
