"""Reads a Polygon package: ``problem.xml`` and its files."""

from __future__ import annotations

import json
import posixpath

from adjudge.domain.limits import MIB
from adjudge.domain.problem import Grading, PackageFormat, Problem, ProblemLimits, ProblemMode, ProblemStatement
from adjudge.domain.programs import FileRef
from adjudge.packages.files import TEXT_BYTES, PackageFiles
from adjudge.packages.findings import Findings, PackageRefused, package_error
from adjudge.packages.generated_files import GeneratedFile
from adjudge.packages.icpc.limits import run_limits
from adjudge.packages.polygon.cases import JuryGenerators, read_cases, read_self_tests
from adjudge.packages.polygon.programs import (
    FILE,
    grader_languages,
    program_from,
    read_checker,
    read_interactor,
    read_solutions,
    read_stubs,
    read_validators,
)
from adjudge.packages.safe_xml import XmlElement, parse_xml
from adjudge.packages.safe_yaml import parse_number

_LANGUAGES = {"english": "en", "russian": "ru", "ukrainian": "uk", "german": "de", "spanish": "es", "french": "fr"}
_FORMATS = {"application/x-tex": "tex", "text/html": "html", "application/pdf": "pdf"}
_DEFAULT_OUTPUT_BYTES = 64 * MIB


def read_polygon(files: PackageFiles, name: str, findings: Findings) -> tuple[Problem, tuple[GeneratedFile, ...]]:
    """Read the package; files missing from a standard package are returned as generated files."""
    root = _root(files, findings)
    judging = root.first("judging") or XmlElement("judging", {}, 0)
    testset = _testset(judging, findings)
    interactor = read_interactor(files, root, findings)
    _refuse_unsupported(root, judging, findings)
    solutions = read_solutions(files, root, findings)
    validators = read_validators(files, root, findings)
    input_file, output_file = _stream(judging, "input-file"), _stream(judging, "output-file")
    model = next((solution.program for solution in solutions if solution.is_model), None)
    makers = JuryGenerators(model, validators, input_file, output_file, interactor is not None)
    tests = read_cases(files, root, testset, makers, findings)
    stubs = read_stubs(files, root)
    generators = [program_from(files, item, findings) for item in root.all("files/executables/executable")]
    problem = Problem(
        short_name=root.get("short-name") or name,
        package_format=PackageFormat("polygon", root.get("revision")),
        titles={_language(item.get("language")): item.get("value") for item in root.all("names/name")},
        version=root.get("revision"),
        grading=Grading.SCORING if tests.is_scored else Grading.PASS_FAIL,
        mode=ProblemMode.INTERACTIVE if interactor else ProblemMode.BATCH,
        limits=_limits(testset, findings),
        input_file=input_file,
        output_file=output_file,
        cases=tuple(tests.cases),
        groups=tuple(tests.groups),
        checker=read_checker(files, root, findings),
        interactor=interactor,
        stubs=stubs,
        languages=grader_languages(stubs, findings),
        input_validators=validators,
        generators=tuple(program for program in generators if program),
        submissions=solutions,
        self_tests=read_self_tests(files, root, findings, has_windows_lines=tests.has_windows_lines),
        statements=_statements(files, root, "statements/statement"),
        editorials=_statements(files, root, "tutorials/tutorial"),
        attachments=tuple(
            FileRef(posixpath.basename(item.get("path")), item.get("path"))
            for item in root.all("files/attachments/file")
            if item.get("path") in files
        ),
        keywords=tuple(item.get("value") for item in root.all("tags/tag") if item.get("value")),
        credits=_credits(files, findings),
    )
    return problem, tuple(tests.recipes)


def _root(files: PackageFiles, findings: Findings) -> XmlElement:
    if files.size_bytes(FILE) > TEXT_BYTES:
        raise package_error(FILE, f"is longer than {TEXT_BYTES} bytes.", "Download the package from Polygon again.")
    root = parse_xml(files.locate(FILE).read_bytes(), FILE, findings)
    if root is None or root.tag != "problem":
        findings.error(FILE, "has no problem element.", "Download the package from Polygon again.")
        raise PackageRefused(findings)
    return root


def _testset(judging: XmlElement, findings: Findings) -> XmlElement:
    testsets = judging.all("testset")
    result = next((item for item in testsets if item.get("name") == "tests"), testsets[0] if testsets else None)
    if result is None or not result.all("tests/test"):
        findings.error(FILE, "has no tests.", "Add tests in Polygon.", judging.line)
        return result or XmlElement("testset", {}, judging.line)
    return result


def _refuse_unsupported(root: XmlElement, judging: XmlElement, findings: Findings) -> None:
    if judging.get("run-count", "1") not in ("", "1"):
        findings.error(FILE, "run-twice problems are not supported.", line=judging.line)
    if (scorer := root.first("assets/scorer")) is not None:
        findings.error(FILE, "problems with a scorer are not supported.", line=scorer.line)


def _stream(judging: XmlElement, name: str) -> str:
    value = judging.get(name)
    return "" if value in ("stdin", "stdout") else posixpath.basename(value)


def _limits(testset: XmlElement, findings: Findings) -> ProblemLimits:
    time_ms = parse_number(testset.text_at("time-limit"))
    memory = parse_number(testset.text_at("memory-limit"))
    if not time_ms or time_ms < 1 or not memory or memory < 1:
        findings.error(FILE, "has no usable time or memory limit.", "Set both in Polygon.", testset.line)
        return ProblemLimits(has_explicit_time_limit=False)
    return ProblemLimits(run=run_limits(int(time_ms), int(memory), _DEFAULT_OUTPUT_BYTES))


def _language(name: str) -> str:
    return _LANGUAGES.get(name, name[:2].lower() or "en")


def _statements(files: PackageFiles, root: XmlElement, path: str) -> tuple[ProblemStatement, ...]:
    result = []
    for element in root.all(path):
        place, kind = element.get("path"), _FORMATS.get(element.get("type"), "")
        if kind and place in files:
            folder = posixpath.dirname(place)
            pictures = [other for other in files.names(folder) if other.endswith((".png", ".jpg", ".jpeg", ".gif"))]
            assets = tuple(FileRef(other[len(folder) + 1 :], other) for other in pictures if kind != "pdf")
            result.append(ProblemStatement(_language(element.get("language")), kind, place, assets))
    return tuple(result)


def _credits(files: PackageFiles, findings: Findings) -> dict[str, tuple[str, ...]]:
    """Read the author from a statement's properties, the only file that names one."""
    for path in files.names("statements"):
        if not path.endswith("/problem-properties.json") or (text := files.text(path, findings)) is None:
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            findings.warning(path, "is not JSON.")
            continue
        if isinstance(data, dict) and isinstance(author := data.get("authorName"), str) and author:
            return {"authors": (author,)}
    return {}
