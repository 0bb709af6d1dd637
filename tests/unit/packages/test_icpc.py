"""The ICPC format: each version's rules, and findings that name file and line."""

from __future__ import annotations

import pytest

from adjudge.domain.problem import Aggregate, Expectation, GroupVerdict, OnReject, ProblemMode, TimeBound
from adjudge.domain.programs import CheckerProtocol, InteractorProtocol, NativeChecker
from adjudge.domain.verdict import Verdict
from adjudge.packages.findings import Findings, Severity
from tests.unit.packages.conftest import Read

NEW = "problem_format_version: 2025-09\nname: Sum\nuuid: 1\n"
TESTS = {"data/secret/01.in": "1\n", "data/secret/01.ans": "1\n"}
SOLUTION = {"submissions/accepted/a.py": "print(1)\n"}


def errors(findings: Findings) -> list[str]:
    return [str(item) for item in findings.in_order() if item.severity is Severity.ERROR]


def test_metadata_is_parsed_by_schema(read: Read) -> None:
    yaml = (
        "problem_format_version: 2025-09\nname: {en: 'No', sv: on}\nuuid: 1e3\nversion: 5:00:00\n"
        "type: [scoring]\nkeywords: [yes, 1_000]\nlicense: cc by\nrights_owner: 0x10\n"
        "credits: {authors: [A <a@x>, {name: B}], translators: {de: C}}\nsource: [{name: S, url: u}, T]\n"
        "limits: {time_limit: 1.5, memory: 256, time_multipliers: {ac_to_time_limit: 3}, code: 64}\n"
    )
    package, findings = read({"problem.yaml": yaml, **TESTS, **SOLUTION})
    problem = package.problem
    assert not errors(findings)
    assert problem.titles == {"en": "No", "sv": "on"}
    assert (problem.uuid, problem.version, problem.rights_owner) == ("1e3", "5:00:00", "0x10")
    assert problem.keywords == ("yes", "1_000")
    assert problem.credits == {"authors": ("A <a@x>", "B"), "translators.de": ("C",)}
    assert [(source.name, source.url) for source in problem.sources] == [("S", "u"), ("T", "")]
    limits = problem.limits
    assert (limits.run.cpu_ms, limits.run.memory_bytes, limits.ac_to_time_limit) == (1500, 256 << 20, 3.0)
    assert limits.has_explicit_time_limit
    assert limits.code_bytes == 65536


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        (NEW + "colour: red\n", "problem.yaml:4: error: colour"),
        (
            NEW + "type: [pass-fail, scoring]\n",
            "problem.yaml:4: error: type: pass-fail and scoring are mutually exclusive",
        ),
        (NEW + "limits:\n  time_limit: fast\n", "problem.yaml:5: error: limits.time_limit: must be a number"),
        (NEW + "limits:\n  memory: 1e12\n", "problem.yaml:5: error: limits.memory"),
        (NEW + "limits: {validation_passes: 3}\n", "problem.yaml:4: error: limits.validation_passes"),
        (NEW + "license: mine\n", "problem.yaml:4: error: license"),
        (NEW + "embargo_until: tomorrow\n", "problem.yaml:4: error: embargo_until"),
        (NEW + "name: again\n", "problem.yaml:4: error: has the key 'name' twice"),
        ("problem_format_version: '1999'\n", "problem.yaml:1: error: problem_format_version"),
        ("validation: magic\n", "problem.yaml:1: error: validation"),
        ("type: scoring\nproblem_format_version: legacy-icpc\n", "problem.yaml:1: error: type"),
        ("- a\n", "problem.yaml:1: error: must be a map"),
        ("a: [\n", "problem.yaml:2: error: is not valid YAML"),
    ],
)
def test_errors_have_file_and_line(read: Read, yaml: str, expected: str) -> None:
    _, findings = read({"problem.yaml": yaml, **TESTS, **SOLUTION})
    assert any(error.startswith(expected) for error in errors(findings)), errors(findings)


def test_all_findings_are_reported_at_once(read: Read) -> None:
    _, findings = read({"problem.yaml": NEW + "a: 1\nb: 2\n", "data/secret/1.in": "1\n", **SOLUTION})
    assert len(errors(findings)) == 3


def test_non_utf_8_file_is_reported_with_line(read: Read) -> None:
    _, findings = read({"problem.yaml": b"# ok\nname: \xff\n", **TESTS, **SOLUTION})
    assert "problem.yaml:2: error: is not UTF-8: byte 0xff. Save it as UTF-8." in errors(findings)


@pytest.mark.parametrize("kind", ["interactive", "pass-fail interactive", "[pass-fail, interactive]"])
def test_type_as_word_words_or_list(read: Read, kind: str) -> None:
    package, _ = read({"problem.yaml": NEW + f"type: {kind}\n", **TESTS, **SOLUTION, "output_validator/v.py": ""})
    problem = package.problem
    assert problem.mode is ProblemMode.INTERACTIVE
    assert problem.interactor
    assert problem.interactor.protocol is InteractorProtocol.ICPC
    assert problem.interactor.program.files[0].path == "output_validator/v.py"


def test_multi_pass_and_submit_answer(read: Read) -> None:
    yaml = NEW + "type: multi-pass\nlimits: {validation_passes: 4}\n"
    package, findings = read({"problem.yaml": yaml, **TESTS, **SOLUTION, "output_validator/v/v.py": ""})
    assert package.problem.max_passes == 4
    assert not errors(findings)
    package, _ = read({"problem.yaml": NEW + "type: submit-answer\n"})
    assert package.problem.mode is ProblemMode.SUBMIT_ANSWER
    assert package.problem.cases[0].output_name == "secret/01.out"


def test_interactive_problem_requires_validator(read: Read) -> None:
    _, findings = read({"problem.yaml": NEW + "type: interactive\n", **TESTS, **SOLUTION})
    assert any(error.startswith("output_validator: error") for error in errors(findings))


def test_cases_run_in_byte_order_with_samples_first(read: Read) -> None:
    names = ["secret/b", "secret/a10", "secret/a2", "secret/A", "sample/2", "sample/1"]
    tests = {f"data/{name}.{extension}": "1\n" for name in names for extension in ("in", "ans")}
    package, _ = read({"problem.yaml": NEW, **tests, **SOLUTION, "data/secret/.hidden.in": ""})
    found = [case.name for case in package.problem.cases]
    assert found == ["sample/1", "sample/2", "secret/A", "secret/a10", "secret/a2", "secret/b"]
    assert [case.is_sample for case in package.problem.cases] == [True, True, False, False, False, False]


def test_case_settings_files_and_arguments(read: Read) -> None:
    package, findings = read(
        {
            "problem.yaml": NEW,
            **TESTS,
            **SOLUTION,
            "data/secret/test_group.yaml": "output_validator_args: [float_tolerance, 1e-6]\n",
            "data/secret/01.yaml": "args: [-x, '1']\nhint: h\ndescription: d\nfull_feedback: true\n",
            "data/secret/01.files/d/table.txt": "t",
            "data/secret/02.in": "1\n",
            "data/secret/02.ans": "1\n",
            "data/secret/02.yaml": "output_validator_args: []\n",
        }
    )
    one, two = package.problem.cases
    assert not errors(findings)
    assert (one.args, one.hint, one.description, one.full_feedback) == (("-x", "1"), "h", "d", True)
    assert one.checker_args == ("float_tolerance", "1e-6")
    assert [(ref.name, ref.path) for ref in one.files] == [("d/table.txt", "data/secret/01.files/d/table.txt")]
    assert two.checker_args == ()


def test_default_validator_arguments_per_case_are_checked(read: Read) -> None:
    group = {"data/secret/test_group.yaml": "output_validator_args: [floats, float_tolerance]\n"}
    _, findings = read({"problem.yaml": NEW, **TESTS, **SOLUTION, **group})
    assert len([error for error in errors(findings) if error.startswith("data/secret/01.in")]) == 2


def test_scoring_groups_2025_09(read: Read) -> None:
    tests = {
        f"data/secret/{group}/{n}.{extension}": "1\n" for group in "abc" for n in (1, 2) for extension in ("in", "ans")
    }
    package, findings = read(
        {
            "problem.yaml": NEW + "type: scoring\n",
            **tests,
            **SOLUTION,
            "data/sample/1.in": "",
            "data/sample/1.ans": "",
            "data/secret/a/test_group.yaml": "max_score: 20\n",
            "data/secret/b/test_group.yaml": "max_score: 30\nscore_aggregation: sum\nrequire_pass: [sample, a]\n",
            "data/secret/c/test_group.yaml": "max_score: 50\nscore_aggregation: min\nrequire_pass: secret/a\n",
        }
    )
    problem = package.problem
    assert not errors(findings)
    a, b, c = (problem.group(f"secret/{name}") for name in "abc")
    assert (a.aggregate, a.max_points) == (Aggregate.ALL, 20)
    assert (b.aggregate, b.depends_on, b.on_reject) == (Aggregate.SUM, ("sample", "secret/a"), OnReject.CONTINUE)
    assert (c.aggregate, c.depends_on) == (Aggregate.MIN, ("secret/a",))
    assert problem.group("secret").max_points == 100
    assert problem.group("").ignore_sample
    points = {case.name: case.points for case in problem.cases}
    assert (points["sample/1"], points["secret/a/1"], points["secret/b/1"], points["secret/c/1"]) == (0, 0, 15, 50)


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({"data/secret/g/1.in": "", "data/secret/g/1.ans": ""}, "contains both tests and the group 'g'"),
        ({"data/secret/test_group.yaml": "max_score: 5\n"}, "max_score: is only for scoring"),
        ({"data/secret/test_group.yaml": "accept_score: 5\n"}, "accept_score: is not a key"),
        ({"data/secret/01.yaml": "colour: red\n"}, "colour: is not a key"),
        ({"data/sample/1.in": "", "data/sample/1.ans": "", "data/sample/test_group.yaml": "max_score: 1\n"}, "samples"),
    ],
)
def test_invalid_groups_are_reported(read: Read, contents: dict[str, str], expected: str) -> None:
    _, findings = read({"problem.yaml": NEW, **TESTS, **SOLUTION, **contents})
    assert any(expected in error for error in errors(findings)), errors(findings)


def test_dependencies_must_name_earlier_pass_fail_groups(read: Read) -> None:
    tests = {f"data/secret/{group}/1.{extension}": "1\n" for group in "ab" for extension in ("in", "ans")}
    _, findings = read(
        {
            "problem.yaml": NEW + "type: scoring\n",
            **tests,
            **SOLUTION,
            "data/secret/a/test_group.yaml": "max_score: 50\nscore_aggregation: sum\nrequire_pass: b\n",
            "data/secret/b/test_group.yaml": "max_score: 50\nrequire_pass: a\n",
        }
    )
    assert any("'secret/b' is not an earlier group" in error for error in errors(findings))
    assert any("'secret/a' is not a pass-fail group" in error for error in errors(findings))


def test_legacy_groups_inherit_and_nest(read: Read) -> None:
    tests = {
        f"data/{name}.{extension}": "1\n"
        for name in ("sample/1", "secret/g1/1", "secret/g1/sub/2", "secret/g2/1")
        for extension in ("in", "ans")
    }
    package, findings = read(
        {
            "problem.yaml": "type: scoring\nvalidator_flags: case_sensitive\n",
            **tests,
            **SOLUTION,
            "data/testdata.yaml": "on_reject: continue\ngrader_flags: ignore_sample\n",
            "data/secret/testdata.yaml": "grader_flags: first_error accept_if_any_accepted\n",
            "data/secret/g1/testdata.yaml": (
                "on_reject: break\naccept_score: 50\nreject_score: -1\nrange: 0 50\ngrader_flags: min\n"
                "output_validator_flags: float_tolerance 1e-6\n"
            ),
            "data/secret/g2/testdata.yaml": "range: -inf +inf\n",
        }
    )
    problem = package.problem
    assert not errors(findings)
    assert problem.group("").ignore_sample
    secret, g1, sub, g2 = (problem.group(name) for name in ("secret", "secret/g1", "secret/g1/sub", "secret/g2"))
    assert (secret.verdict, secret.accept_if_any, secret.on_reject) == (GroupVerdict.FIRST, True, OnReject.CONTINUE)
    assert (g1.aggregate, g1.max_points, g1.score_range, g1.on_reject) == (Aggregate.MIN, 50, (0, 50), OnReject.BREAK)
    assert (sub.aggregate, sub.parent) == (Aggregate.MIN, "secret/g1")
    assert (g2.accept_if_any, g2.max_points) == (True, None)
    one = next(case for case in problem.cases if case.name == "secret/g1/sub/2")
    assert (one.points, one.reject_points, one.checker_args) == (50, -1, ("float_tolerance", "1e-6"))
    assert problem.checker.args == ("case_sensitive",)


def test_legacy_validators_and_multipliers(read: Read) -> None:
    yaml = "name: X\nvalidation: custom interactive\nlimits: {time_multiplier: 3, time_safety_margin: 1.5}\n"
    package, findings = read({"problem.yaml": yaml, **TESTS, **SOLUTION, "output_validators/v/run": "#!"})
    problem = package.problem
    assert not errors(findings)
    assert problem.checker.protocol is CheckerProtocol.ICPC
    assert problem.checker.programs[0].has_build_script
    assert (problem.limits.ac_to_time_limit, problem.limits.time_limit_to_tle) == (3, 1.5)
    assert not problem.limits.has_explicit_time_limit


def test_legacy_validators_and_headers(read: Read) -> None:
    base = {"problem.yaml": "validation: custom\n", **TESTS, **SOLUTION}
    package, _ = read({**base, "output_validators/a.py": "", "output_validators/b.py": ""})
    assert len(package.problem.checker.programs) == 2
    package, _ = read({**base, "output_validators/validate.h": ""})
    assert len(package.problem.checker.programs) == 1
    assert len(package.problem.checker.programs[0].files) == 3


def test_legacy_title_from_statement(read: Read) -> None:
    statement = {"problem_statement/problem.sv.tex": "%% plainproblemname: Summa\n\\problemname{$\\Sigma$}\n"}
    package, _ = read({"problem.yaml": "", **TESTS, **SOLUTION, **statement, "problem_statement/pic.png": "x"})
    assert package.problem.titles == {"sv": "Summa"}
    assert package.problem.statements[0].assets[0].name == "pic.png"


def test_domjudge_files(read: Read) -> None:
    package, findings = read(
        {
            "domjudge-problem.ini": "name = 'Sum it'\ntimelimit=\"2.5\"\nshort-name = sum\ncolor=red\n",
            ".timelimit": "2.5\n",
            **TESTS,
            "problem.pdf": b"%PDF",
            "submissions/accepted/a.cpp": "// @EXPECTED_RESULTS@: CORRECT\n",
            "submissions/mixed/b.cpp": "/* @EXPECTED_RESULTS@: WRONG-ANSWER, TIMELIMIT */\n// @EXPECTED_SCORE@: 12\n",
            "submissions.json": '{"submissions/mixed/b.cpp": {"langid": "cpp", "entry_point": "b"}}',
        }
    )
    problem = package.problem
    assert not errors(findings)
    assert (problem.short_name, problem.title, problem.limits.run.cpu_ms) == ("sum", "Sum it", 2500)
    assert problem.statements[0].path == "problem.pdf"
    mixed = problem.submissions[1]
    assert (mixed.program.language, mixed.program.entry_point) == ("cpp", "b")
    assert mixed.expectations[0].result == {Verdict.WA, Verdict.OLE, Verdict.TLE}
    assert mixed.expectations[0].score == (12, 12)


@pytest.mark.parametrize("text", ["1s", "-1", "fast"])
def test_time_limit_file_must_be_a_number(read: Read, text: str) -> None:
    _, findings = read({"problem.yaml": "", ".timelimit": text, **TESTS, **SOLUTION})
    assert any(error.startswith(".timelimit:1: error") for error in errors(findings))


def test_time_limits_must_agree(read: Read) -> None:
    yaml = NEW + "limits: {time_limit: 1}\n"
    _, findings = read({"problem.yaml": yaml, ".timelimit": "2", **TESTS, **SOLUTION})
    assert any("says 2000 ms, but the package says 1000 ms" in error for error in errors(findings))


def test_submissions_and_expectations(read: Read) -> None:
    rules = (
        "time_limit_exceeded: {permitted: [AC, WA, TLE]}\n"
        "'{accepted,other}/*.py': {authors: Eve}\n"
        "other/slow.py:\n  permitted: [AC, TLE]\n  required: [TLE]\n  score: [1, 2]\n  message: late\n"
        "  use_for_time_limit: false\n  language: python3\n  model_solution: true\n"
        "  secret/*: {permitted: [AC]}\n"
    )
    package, findings = read(
        {
            "problem.yaml": NEW,
            **TESTS,
            **SOLUTION,
            "submissions/submissions.yaml": rules,
            "submissions/time_limit_exceeded/t.py": "",
            "submissions/other/slow.py": "",
            "submissions/run_time_error/multi/main.py": "",
            "submissions/run_time_error/multi/lib.py": "",
        }
    )
    assert not errors(findings)
    found = {submission.path: submission for submission in package.problem.submissions}
    assert found["accepted/a.py"].expectations[0].permitted == {Verdict.AC, Verdict.PA}
    assert found["accepted/a.py"].authors == ("Eve",)
    late = found["time_limit_exceeded/t.py"].expectations[0]
    assert late.permitted == {Verdict.AC, Verdict.PA, Verdict.WA, Verdict.OLE, Verdict.TLE}
    assert late.required == {Verdict.TLE}
    slow = found["other/slow.py"]
    assert slow.is_model
    assert slow.program.language == "python3"
    assert slow.expectations[0] == Expectation(
        permitted=frozenset({Verdict.AC, Verdict.PA, Verdict.TLE}),
        required=frozenset({Verdict.TLE}),
        score=(1, 2),
        message="late",
        time_bound=TimeBound.NEITHER,
    )
    assert slow.expectations[1].cases == "secret/*"
    assert [ref.name for ref in found["run_time_error/multi"].program.files] == ["lib.py", "main.py"]


def test_constants_are_substituted(read: Read) -> None:
    package, _ = read(
        {
            "problem.yaml": NEW + "constants: {n: 10, big: {value: 5, tex: '$5$'}}\n",
            "data/secret/01.in": "{{n}}\n",
            "data/secret/01.ans": "1\n",
            "submissions/accepted/a.py": "print({{n}}, '{{big.tex}}', '{{other}}')\n",
            "statement/problem.en.md": "at most {{big}}\n",
            "data/secret/test_group.yaml": "input_validator_args: ['{{n}}']\n",
        }
    )
    files = package.files
    assert files.locate("submissions/accepted/a.py").read_text() == "print(10, '$5$', '{{other}}')\n"
    assert files.locate("statement/problem.en.md").read_text() == "at most 5\n"
    assert files.locate("data/secret/01.in").read_text() == "{{n}}\n"
    assert package.problem.cases[0].input_validator_args == ("10",)


def test_draft_package_uses_legacy_groups(read: Read) -> None:
    base = {"problem.yaml": "problem_format_version: 2023-07-draft\nname: X\n", **TESTS, **SOLUTION}
    package, findings = read({**base, "data/secret/01.args": "-a 'b c'\n"})
    assert not errors(findings)
    assert package.problem.cases[0].args == ("-a", "b c")
    assert package.problem.package_format.version == "2023-07"


def test_stubs_validators_and_self_tests(read: Read) -> None:
    package, findings = read(
        {
            "problem.yaml": NEW,
            **TESTS,
            **SOLUTION,
            "include/cpp/grader.cpp": "",
            "include/default/data.txt": "",
            "input_validators/v.ctd": "",
            "input_validators/v.py": "",
            "data/invalid_input/1.in": "",
            "data/invalid_output/1.in": "",
            "data/invalid_output/1.ans": "",
            "data/invalid_output/1.out": "",
        }
    )
    problem = package.problem
    assert [stub.language for stub in problem.stubs] == ["cpp", "default"]
    assert len(problem.input_validators) == 1
    assert any("Checktestdata" in item.message for item in findings.items)
    assert [test.name for test in problem.self_tests] == ["invalid_input/1", "invalid_output/1"]
    assert problem.checker.native is NativeChecker.ICPC_2025_09
