"""DMOJ's init.yml: batches, generators, archives, and what is refused."""

from __future__ import annotations

import io
import zipfile

import pytest

from adjudge.domain.problem import Aggregate, ProblemMode
from adjudge.domain.programs import CheckerProtocol, InteractorProtocol, NativeChecker
from adjudge.packages.findings import Findings, PackageRefused, Severity
from adjudge.packages.icpc.export import export_icpc
from tests.unit.packages.conftest import Read


def _errors(findings: Findings) -> list[str]:
    return [str(item) for item in findings.in_order() if item.severity is Severity.ERROR]


def _zip(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "1\r\n2")
    return buffer.getvalue()


def test_cases_and_batches_with_dependencies(read: Read) -> None:
    yaml = (
        "points: 5\ntest_cases:\n- {in: 1.in, out: 1.out}\n"
        "- points: 20\n  batched:\n  - {in: 1.in, out: 1.out}\n  - {in: 2.in, out: 2.out}\n"
        "- points: 30\n  dependencies: [1]\n  batched:\n  - {in: 2.in, out: 2.out}\n"
    )
    package, findings = read({"init.yml": yaml, "1.in": "1\r\n", "1.out": "1", "2.in": "2\n", "2.out": "2\n"})
    problem = package.problem
    assert not _errors(findings)
    assert problem.is_scored
    assert [case.points for case in problem.cases] == [5, 20, 20, 30]
    second = problem.group("secret/002")
    assert (second.aggregate, second.max_points) == (Aggregate.MIN, 20)
    assert problem.group("secret/003").depends_on == ("secret/002",)
    assert package.files.locate("1.in").read_bytes() == b"1\n"
    assert package.files.locate("1.out").read_bytes() == b"1\n"


def test_pretests_run_first_and_are_required(read: Read) -> None:
    yaml = "pretest_test_cases:\n- {in: 1.in, out: 1.out, points: 9}\ntest_cases:\n- {in: 1.in, out: 1.out}\n"
    package, _ = read({"init.yml": yaml, "1.in": "", "1.out": ""})
    assert [case.points for case in package.problem.cases] == [0, 1]
    assert package.problem.group("secret").depends_on == ("pretest",)


def test_zero_point_case_or_batch_is_a_gate(read: Read) -> None:
    case = "{in: 1.in, out: 1.out, points: %d}"
    yaml = "test_cases:\n" + "".join(
        f"- {line}\n"
        for line in (
            case % 5,
            case % 0,
            case % 0,
            case % 7,
            "{points: 0, batched: [{in: 1.in, out: 1.out}]}",
            "{points: 9, batched: [{in: 1.in, out: 1.out}]}",
            case % 3,
        )
    )
    package, findings = read({"init.yml": yaml, "1.in": "", "1.out": ""})
    problem = package.problem
    assert not _errors(findings)
    assert [case.group for case in problem.cases] == [
        "secret",
        "secret/002",
        "secret/002",
        "secret/004",
        "secret/005",
        "secret/006",
        "secret/007",
    ]
    gates = ("secret/002", "secret/005")
    assert {group.path: group.depends_on for group in problem.groups if group.path} == {
        "secret": (),
        "secret/002": (),
        "secret/004": gates[:1],
        "secret/005": gates[:1],
        "secret/006": gates,
        "secret/007": gates,
    }
    assert [case.points for case in problem.cases] == [5, 0, 0, 7, 0, 9, 3]


def test_points_by_name_may_be_zero(read: Read) -> None:
    yaml = "archive: t.zip\ntest_cases: {case_points: [0, 5]}\n"
    package, findings = read({"init.yml": yaml, "t.zip": _zip(["1.in", "1.out", "2.in", "2.out"])})
    assert not _errors(findings)
    assert package.problem.group(package.problem.cases[1].group).depends_on == ("secret/001",)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["p.1.in", "p.1.out", "p.2.in", "p.2.out", "p.10.in", "p.10.out"], ["p.1.in", "p.2.in", "p.10.in"]),
        (
            ["p.2-1.in", "p.2-1.out", "p.1-2.in", "p.1-2.out", "p.1-1.in", "p.1-1.out"],
            ["p.1-1.in", "p.1-2.in", "p.2-1.in"],
        ),
    ],
)
def test_cases_in_archive_are_matched_by_name(read: Read, names: list[str], expected: list[str]) -> None:
    package, findings = read({"init.yml": "archive: t.zip\n", "t.zip": _zip(names)})
    assert not _errors(findings)
    assert [case.input.removeprefix("t.zip/") for case in package.problem.cases] == expected
    assert package.files.locate(package.problem.cases[0].input).read_bytes() == b"1\n2\n"


def test_cases_are_matched_by_patterns_with_points(read: Read) -> None:
    yaml = (
        "archive: t.zip\ntest_cases:\n  input_format: ^in(?P<batch>[a-z])(?P<case>\\d+)$\n"
        "  output_format: ^res(?P<batch>[a-z])(?P<case>\\d+)$\n  case_points: [10, 90]\n"
    )
    package, findings = read({"init.yml": yaml, "t.zip": _zip(["ina1", "resa1", "inb1", "resb1", "inb2", "resb2"])})
    assert not _errors(findings)
    assert [group.max_points for group in package.problem.groups[2:]] == [10, 90]
    assert len(package.problem.cases) == 3


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?=x).*", "((a|b)*)*", "(.)\\1", "[", ".*.*.*.*.*.*.*.*x"])
def test_expensive_patterns_are_rejected(read: Read, pattern: str) -> None:
    yaml = f"archive: t.zip\ntest_cases:\n  input_format: '{pattern}'\n"
    _, findings = read({"init.yml": yaml, "t.zip": _zip(["a" * 40 + str(n) + ".in" for n in range(50)])})
    assert any("input_format" in error for error in _errors(findings))


def test_generators_become_generated_files(read: Read) -> None:
    yaml = "generator: gen.py\ntest_cases:\n- {generator_args: [5, yes]}\n- {in: 1.in, out: 1.out}\n"
    package, findings = read({"init.yml": yaml, "gen.py": "", "1.in": "", "1.out": ""})
    assert not _errors(findings)
    (recipe,) = package.generated_files
    assert recipe.args == ("5", "yes")
    assert package.problem.cases[0].input == recipe.target
    assert package.problem.cases[0].answer == recipe.error_target


def test_generator_has_its_own_limits(read: Read) -> None:
    yaml = (
        "generator: {source: gen.py, args: [7], time_limit: 5, memory_limit: 65536, flags: [-O1]}\n"
        "test_cases:\n- {points: 1}\n- {generator_args: [8]}\n"
    )
    package, findings = read({"init.yml": yaml, "gen.py": ""})
    assert not findings.items or all(item.severity is Severity.INFO for item in findings.items)
    assert [(recipe.args, recipe.time_ms, recipe.memory_bytes) for recipe in package.generated_files] == [
        (("7",), 5_000, 64 << 20),
        (("8",), 5_000, 64 << 20),
    ]
    plain, _ = read({"init.yml": "generator: gen.py\ntest_cases:\n- {points: 1}\n"})
    assert (plain.generated_files[0].time_ms, plain.generated_files[0].memory_bytes) == (20_000, 512 << 20)


def test_checker_and_interactor_have_their_own_limits(read: Read) -> None:
    tests = "test_cases:\n- {in: 1.in, out: 1.out}\n"
    bridged = "checker: {name: bridged, args: {files: c.cpp, time_limit: 3, memory_limit: 1024}}\n"
    package, _ = read({"init.yml": bridged + tests, "c.cpp": "", "1.in": "", "1.out": ""})
    limits = package.problem.limits
    assert (limits.validation_ms, limits.validation_memory_bytes) == (3_000, 1 << 20)
    package, _ = read({"init.yml": "interactive: {files: c.cpp, memory_limit: 2048, compiler_time_limit: 9}\n" + tests})
    limits = package.problem.limits
    assert (limits.validation_memory_bytes, limits.compile_ms) == (2 << 20, 9_000)


@pytest.mark.parametrize(
    ("checker", "native", "options"),
    [
        ("standard", NativeChecker.DMOJ_STANDARD, {}),
        ("floatsabs", NativeChecker.DMOJ_FLOATS, {"error_mode": "absolute"}),
        ("{name: floats, args: {precision: 3}}", NativeChecker.DMOJ_FLOATS, {"precision": "3"}),
        ("identical", NativeChecker.DMOJ_IDENTICAL, {}),
    ],
)
def test_checkers(read: Read, checker: str, native: NativeChecker, options: dict[str, str]) -> None:
    yaml = f"checker: {checker}\ntest_cases:\n- {{in: 1.in, out: 1.out}}\n"
    package, findings = read({"init.yml": yaml, "1.in": "", "1.out": ""})
    assert not _errors(findings)
    assert (package.problem.checker.native, package.problem.checker.options) == (native, options)


def test_bridged_checkers_interactors_and_file_io(read: Read) -> None:
    tests = "test_cases:\n- {in: 1.in, out: 1.out}\n"
    bridged = (
        "checker: {name: bridged, args: {files: c.cpp, lang: CPP17, type: testlib}}\nsymlinks: {a.in: /dev/stdin}\n"
    )
    package, findings = read({"init.yml": bridged + tests, "c.cpp": "", "testlib.h": "", "1.in": "", "1.out": ""})
    checker = package.problem.checker
    assert not _errors(findings)
    assert checker.protocol is CheckerProtocol.TESTLIB
    assert (checker.programs[0].language, checker.programs[0].support[0].name) == ("cpp", "testlib.h")
    assert (package.problem.input_file, package.problem.keeps_stdio) == ("a.in", True)
    package, _ = read({"init.yml": "interactive: {files: c.cpp, type: testlib, preprocessing_time: 1}\n" + tests})
    assert package.problem.mode is ProblemMode.INTERACTIVE
    assert package.problem.interactor
    assert package.problem.interactor.protocol is InteractorProtocol.TESTLIB_ALONE
    assert package.problem.interactor.extra_cpu_ms == 1000


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("test_cases+: '[{}]'\n", "init.yml:1: error: test_cases+: contains Python code"),
        ("test_cases:\n- {in: 1.in, out++: x}\n", "init.yml:2: error: out++: contains Python code"),
        ("checker: mine.py\ntest_cases:\n- {in: 1.in}\n", "init.yml:1: error: checker: 'mine.py' is Python"),
        ("checker: linematches\ntest_cases:\n- {in: 1.in}\n", "init.yml:1: error: checker: 'linematches'"),
        ("custom_judge: j.py\ntest_cases:\n- {in: 1.in}\n", "init.yml:1: error: custom_judge"),
        ("test_cases:\n- {in: 9.in}\n", "init.yml:2: error: '9.in' is not in the package"),
        ("test_cases:\n- batched: [{in: 1.in}]\n  dependencies: [1]\n", "init.yml:2: error: dependencies"),
        ("archive: no.zip\n", "init.yml: error: archive: 'no.zip' is not in the package"),
    ],
)
def test_unsupported_values_are_rejected(read: Read, yaml: str, expected: str) -> None:
    _, findings = read({"init.yml": yaml, "1.in": ""})
    assert any(error.startswith(expected) for error in _errors(findings)), _errors(findings)


@pytest.mark.parametrize(
    ("yaml", "where"),
    [
        ("time_limit: 2\n", "init.yml:2: warning: time_limit:"),
        ("checker: {name: floats, args: {prec: 3}}\n", "init.yml:2: warning: checker.args.prec:"),
        ("checker: {nam: floats}\n", "init.yml:2: warning: checker.nam:"),
        ("checker: {name: bridged, args: {files: c.cpp, language: CPP}}\n", "warning: checker.args.language:"),
        ("generator: {source: c.cpp, limit: 3}\n", "init.yml:2: warning: generator.limit:"),
        ("interactive: {files: c.cpp, checker: x}\n", "init.yml:2: warning: interactive.checker:"),
        ("signature_grader: {entry: c.cpp, header: c.cpp, main: no}\n", "warning: signature_grader.main:"),
        ("pretest_test_cases: [{in: 1.in, out: 1.in, point: 3}]\n", "init.yml:2: warning: point:"),
    ],
)
def test_unknown_keys_are_reported(read: Read, yaml: str, where: str) -> None:
    tests = "test_cases: [{in: 1.in, out: 1.in}]\n"
    _, findings = read({"init.yml": tests + yaml, "1.in": "", "c.cpp": ""})
    assert not _errors(findings)
    assert any(where in str(item) for item in findings.items), [str(item) for item in findings.items]


def test_known_keys_are_not_reported_in_either_spelling(read: Read) -> None:
    yaml = (
        "output-limit-length: 100\nwall_time_factor: 2\nshort_circuit: true\nhints: [unicode]\nunbuffered: true\n"
        "output_prefix_length: 0\ntest_cases:\n- points: 5\n  dependencies: []\n  batched: [{in: 1.in, out: 1.in}]\n"
    )
    package, findings = read({"init.yml": yaml, "1.in": ""})
    assert [item for item in findings.items if item.severity is not Severity.INFO] == []
    assert package.problem.limits.run.output_bytes == 100


def test_headers_of_checker_are_not_sources(read: Read) -> None:
    yaml = (
        "checker: {name: bridged, args: {files: [testlib.h, c.cpp], lang: CPP17, type: testlib}}\n"
        "test_cases: [{in: 1.in, out: 1.in}]\n"
    )
    package, findings = read({"init.yml": yaml, "c.cpp": "", "testlib.h": "", "other.h": "", "1.in": ""})
    program = package.problem.checker.programs[0]
    assert not _errors(findings)
    assert [ref.name for ref in program.files] == ["c.cpp"]
    assert [ref.name for ref in program.support] == ["testlib.h", "other.h"]
    exported = Findings()
    export_icpc(package.problem, exported)
    assert not _errors(exported)


@pytest.mark.parametrize("allow_main", [False, True])
def test_signature_entry_uses_submission_language(read: Read, allow_main: bool) -> None:
    yaml = (
        f"signature_grader: {{entry: main.c, header: f.h, allow_main: {allow_main}}}\n"
        "test_cases: [{in: 1.in, out: 1.in}]\n"
    )
    package, findings = read({"init.yml": yaml, "main.c": "", "f.h": "", "1.in": ""})
    problem = package.problem
    assert not _errors(findings)
    assert problem.languages == ("c", "cpp"), "no other language can be linked with the entry"
    for stub, extension in zip(problem.stubs, ("c", "cpp"), strict=True):
        assert [ref.path for ref in stub.files] == ["main.c", "f.h"]
        assert stub.files[0].name.endswith(f".{extension}")
        assert stub.compile_flags == ("-DSIGNATURE_GRADER",)
        assert ("#define main" in stub.prelude) is not allow_main


def test_conversion_keeps_limits(read: Read) -> None:
    package, _ = read({"init.yml": "test_cases: [{in: 1.in, out: 1.in}]\n", "1.in": ""})
    exported = Findings()
    made = export_icpc(package.problem, exported).problem
    assert (made.limits.run.cpu_ms, made.limits.has_explicit_time_limit) == (2_000, True)
    assert any("time_limit" in item.message for item in exported.items)


def test_hostile_inner_archive_is_rejected(read: Read) -> None:
    _, findings = read({"init.yml": "archive: t.zip\n", "t.zip": _zip(["../1.in", "1.out"])})
    assert any("leaves the package" in error for error in _errors(findings))


def test_non_map_is_rejected(read: Read) -> None:
    with pytest.raises(PackageRefused):
        read({"init.yml": "- 1\n"})
