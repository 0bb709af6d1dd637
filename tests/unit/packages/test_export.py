"""Export and import are each other's inverse, and what the ICPC format cannot express is said."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.problem import Aggregate, Group, Problem
from adjudge.packages.archive import open_package
from adjudge.packages.findings import Findings, PackageRefused
from adjudge.packages.icpc.export import export_icpc, write_folder, write_zip
from adjudge.packages.load import Package, read_package
from adjudge.packages.manifest import manifest, revision_digest
from adjudge.packages.problem_json import problem_from_json, problem_to_json
from fuzz.package_seeds import SEEDS
from tests.unit.packages.conftest import Read
from tests.unit.packages.problem_strategies import files_for, problems

PROPERTY = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
"""No shrinking: an example is a whole package, and making it smaller takes minutes."""


@pytest.mark.slow
@PROPERTY
@given(problem=problems())
def test_export_then_import_is_identity(problem: Problem) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = files_for(problem, folder)
        exported = export_icpc(problem, Findings())
        archive = folder / "problem.zip"
        write_zip(exported.contents, files, archive)
        findings = Findings()
        with open_package(archive) as inner:
            package = read_package(inner, "problem", findings)
            assert not findings.has_errors, findings.items
            assert package.problem == problem
            for case in problem.cases:
                assert inner.sha256(case.input) == files.sha256(case.input)
            again = export_icpc(package.problem, Findings())
            assert again.problem == problem
            write_folder(again.contents, inner, folder / "again")
        with open_package(folder / "again") as inner:
            assert read_package(inner, "problem", Findings()).problem == problem


@PROPERTY
@given(problem=problems())
def test_problem_json_round_trip(problem: Problem) -> None:
    assert problem_from_json(json.loads(json.dumps(problem_to_json(problem)))) == problem


def test_corrupt_document_is_rejected(read: Read) -> None:
    with pytest.raises(InvalidInput, match="schema_version"):
        problem_from_json({"problem": {}})
    with pytest.raises(InvalidInput, match="corrupt"):
        problem_from_json({"schema_version": 1, "problem": {"short_name": "x", "origin": 5}})


def test_infinite_ranges_round_trip(read: Read) -> None:
    tests = {"data/secret/1.in": "", "data/secret/1.ans": ""}
    package, _ = read({"problem.yaml": "type: scoring\n", "data/testdata.yaml": "range: -inf +inf\n", **tests})
    document = json.loads(json.dumps(problem_to_json(package.problem), allow_nan=False))
    assert problem_from_json(document) == package.problem


DMOJ = {
    "init.yml": (
        "checker: floats\ntest_cases:\n- {in: a, out: b, points: 10}\n- {in: a, out: b, points: 30}\n"
        "- {points: 60, batched: [{in: a, out: b}, {in: a, out: b}]}\n"
        "- {points: 20, dependencies: [1], batched: [{in: a, out: b}]}\n"
    ),
    "a": "1\n",
    "b": "1\n",
}


def _export(package: Package, folder: Path) -> tuple[Problem, Findings]:
    findings = Findings()
    normal = export_icpc(package.problem, findings)
    write_folder(normal.contents, package.files, folder)
    problems_found = Findings()
    with open_package(folder) as inner:
        again = read_package(inner, package.problem.short_name, problems_found).problem
    assert not problems_found.has_errors, problems_found.items
    assert again == normal.problem
    return again, findings


def test_conversion_to_icpc_reports_changes(read: Read, tmp_path: Path) -> None:
    package, _ = read(DMOJ)
    problem, findings = _export(package, tmp_path / "out")
    groups = [(group.aggregate, group.max_points) for group in problem.groups if group.path.startswith("secret/")]
    assert groups == [(Aggregate.SUM, 10), (Aggregate.SUM, 30), (Aggregate.ALL, 60), (Aggregate.MIN, 20)]
    assert problem.group("secret").max_points == 120
    assert problem.group("secret/4").depends_on == ("secret/3",)
    assert problem.cases[0].checker_args == ("float_tolerance", "1e-6", "case_sensitive")
    said = " ".join(item.message for item in findings.items)
    assert "dmoj-floats becomes float_tolerance 1e-6" in said
    assert "becomes all or nothing" in said


def test_legacy_folders_become_groups(read: Read, tmp_path: Path) -> None:
    tests = {
        f"data/secret/{name}.{extension}": "1\n"
        for name in ("z", "a/1", "a/b/2", "a-c/1")
        for extension in ("in", "ans")
    }
    package, _ = read({"problem.yaml": "name: X\nvalidator_flags: case_sensitive\n", **tests})
    problem, _ = _export(package, tmp_path / "out")
    assert len(problem.cases) == 4
    assert problem.cases[0].checker_args == ("case_sensitive",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"input_file": "in.txt"}, "named files (in.txt)"),
        ({"is_minimised": True}, "minimised"),
        ({"groups": (Group(""), Group("secret", Aggregate.MUL, max_points=10.0))}, "scoring 'mul'"),
    ],
)
def test_inexpressible_features_are_rejected(read: Read, change: dict[str, object], expected: str) -> None:
    package, _ = read({"init.yml": "test_cases:\n- {in: a, out: a}\n", "a": "1\n"})
    problem = replace(package.problem, **change)  # type: ignore[arg-type]  # parametrised by name
    with pytest.raises(PackageRefused) as caught:
        export_icpc(problem, Findings())
    assert expected in " ".join(item.message for item in caught.value.findings)


def test_export_does_not_overwrite(read: Read, tmp_path: Path) -> None:
    package, _ = read({"1.in": "", "1.out": ""})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(Conflict):
        write_folder(export_icpc(package.problem, Findings()).contents, package.files, tmp_path / "out")


def test_export_is_deterministic(read: Read, tmp_path: Path) -> None:
    package, _ = read({"1.in": "1\n", "1.out": "2\n"})
    contents = export_icpc(package.problem, Findings()).contents
    for name in ("one.zip", "two.zip"):
        write_zip(contents, package.files, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_revision_digest_covers_only_judging_data(read: Read) -> None:
    base = {
        "problem.yaml": "problem_format_version: 2025-09\nname: X\nuuid: 1\n",
        "data/secret/1.in": "1\n",
        "data/secret/1.ans": "1\n",
        "output_validator/v.py": "1\n",
        "statement/problem.en.md": "one",
    }

    def current(change: dict[str, str]) -> str:
        package, _ = read({**base, **change})
        return revision_digest(package.problem, package.files)

    first = current({})
    assert current({"statement/problem.en.md": "two"}) == first
    changed = [
        current({name: base[name] + "2\n"})
        for name in ("data/secret/1.in", "data/secret/1.ans", "output_validator/v.py")
    ]
    changed.append(current({"problem.yaml": base["problem.yaml"] + "limits: {time_limit: 3}\n"}))
    assert len({first, *changed}) == 5


def test_manifest_lists_each_file_once(read: Read) -> None:
    package, _ = read(DMOJ)
    entries = manifest(package.problem, package.files)
    assert [(entry.path, entry.size_bytes) for entry in entries] == [("a", 2), ("b", 2)]


@pytest.mark.parametrize(
    ("contents", "reason"),
    list(zip(SEEDS, ["", "", "", "named files", "interactor", "communication", ""], strict=True)),
)
def test_seeds_round_trip_or_report_reason(read: Read, tmp_path: Path, contents: dict[str, bytes], reason: str) -> None:
    package, _ = read(contents)
    for recipe in package.generated_files:
        for path in (recipe.target, recipe.error_target):
            if path:
                package.files.put_derived(path, b"1\n")
    if not reason:
        _export(package, tmp_path / "out")
        return
    with pytest.raises(PackageRefused, match=reason):
        _export(package, tmp_path / "out")
