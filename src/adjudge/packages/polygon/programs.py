"""Polygon's sources, checkers, interactors and solutions."""

from __future__ import annotations

import posixpath

from adjudge.domain.problem import Expectation, JurySubmission
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    InputValidator,
    Interactor,
    InteractorProtocol,
    NativeChecker,
    Program,
    ScoreUnit,
    Stub,
    ValidatorProtocol,
)
from adjudge.domain.verdict import Verdict
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.expectations import verdicts
from adjudge.packages.safe_xml import XmlElement

FILE = "problem.xml"
_LANGUAGES = {
    "cpp": "cpp",
    "c": "c",
    "java": "java",
    "kotlin": "kotlin",
    "python": "python3",
    "pas": "pascal",
    "delphi": "pascal",
    "csharp": "csharp",
    "go": "go",
    "rust": "rust",
    "haskell": "haskell",
    "js": "javascript",
    "node": "javascript",
    "php": "php",
    "ruby": "ruby",
    "perl": "perl",
    "d": "d",
}
"""Polygon's source types (``cpp.g++17``, ``java11``) by prefix; a version may follow."""
_STOCK: dict[str, tuple[NativeChecker, dict[str, str]]] = {
    "std::wcmp.cpp": (NativeChecker.WCMP, {}),
    "std::lcmp.cpp": (NativeChecker.LCMP, {}),
    "std::fcmp.cpp": (NativeChecker.FCMP, {}),
    "std::ncmp.cpp": (NativeChecker.NCMP, {}),
    "std::yesno.cpp": (NativeChecker.YESNO, {}),
    "std::nyesno.cpp": (NativeChecker.NYESNO, {}),
    "std::rcmp4.cpp": (NativeChecker.RCMP, {"epsilon": "1e-4"}),
    "std::rcmp6.cpp": (NativeChecker.RCMP, {"epsilon": "1e-6"}),
    "std::rcmp9.cpp": (NativeChecker.RCMP, {"epsilon": "1e-9"}),
}
_TAGS: dict[str, tuple[str, Expectation]] = {
    "main": ("accepted", Expectation(permitted=verdicts(["AC"]))),
    "accepted": ("accepted", Expectation(permitted=verdicts(["AC"]))),
    "wrong-answer": ("wrong_answer", Expectation(result=verdicts(["WA"]))),
    "presentation-error": ("wrong_answer", Expectation(result=verdicts(["WA"]))),
    "time-limit-exceeded": ("time_limit_exceeded", Expectation(result=frozenset({Verdict.TLE}))),
    "time-limit-exceeded-or-accepted": (
        "other",
        Expectation(permitted=frozenset({Verdict.AC, Verdict.PA, Verdict.TLE})),
    ),
    "memory-limit-exceeded": ("other", Expectation(result=frozenset({Verdict.MLE, Verdict.RE}))),
    "time-limit-exceeded-or-memory-limit-exceeded": (
        "other",
        Expectation(result=frozenset({Verdict.TLE, Verdict.MLE, Verdict.RE})),
    ),
    "rejected": ("rejected", Expectation(required=verdicts(["WA", "TLE", "RTE"]))),
    "failed": ("rejected", Expectation(required=verdicts(["WA", "TLE", "RTE"]))),
}


def language_of(kind: str) -> str:
    """Translate a source type; an unknown one is inferred from the file name."""
    family = kind.partition(".")[0]
    matching = (name for name in _LANGUAGES if name == family or (len(name) > 1 and family.startswith(name)))
    return _LANGUAGES.get(max(matching, key=len, default=""), "")


def program_from(files: PackageFiles, holder: XmlElement | None, findings: Findings) -> Program | None:
    """The program of an element's ``source``, with the package's headers."""
    source = holder.first("source") if holder is not None else None
    if source is None:
        return None
    path = source.get("path")
    if path not in files:
        findings.error(FILE, f"source {path[:80]!r} is not in the package.", "Add it.", source.line)
        return None
    name = posixpath.basename(path)
    headers = [other for other in files.names("files") if other.endswith((".h", ".hpp")) and other != path]
    support = tuple(FileRef(posixpath.basename(header), header) for header in headers)
    return Program(name, (FileRef(name, path),), language_of(source.get("type")), support=support)


def read_checker(files: PackageFiles, root: XmlElement, findings: Findings) -> Checker:
    """Read the checker: a standard one that the judge has built in, else the program of the package."""
    element = root.first("assets/checker")
    if element is None:
        findings.warning(FILE, "names no checker; tokens are compared.", "Set one in Polygon.")
        return Checker(native=NativeChecker.WCMP)
    judging = root.first("judging")
    percent = judging is not None and judging.get("treat-points-from-checker-as-percent") == "true"
    if element.get("name") in _STOCK:
        native, options = _STOCK[element.get("name")]
        return Checker(native=native, options=options)
    program = program_from(files, element, findings)
    if program is None:
        findings.error(FILE, "the checker has no source.", "Make the package again.", element.line)
        return Checker()
    if element.get("type", "testlib") != "testlib":
        findings.error(FILE, f"a checker of type {element.get('type')[:40]!r} is not supported.", line=element.line)
    unit = ScoreUnit.PERCENT if percent else ScoreUnit.ABSOLUTE
    return Checker(CheckerProtocol.TESTLIB, programs=(program,), score_unit=unit)


def read_interactor(files: PackageFiles, root: XmlElement, findings: Findings) -> Interactor | None:
    """Read the interactor; its output goes to the checker."""
    program = program_from(files, root.first("assets/interactor"), findings)
    return Interactor(InteractorProtocol.TESTLIB, program) if program else None


def read_validators(files: PackageFiles, root: XmlElement, findings: Findings) -> tuple[InputValidator, ...]:
    programs = [program_from(files, element, findings) for element in root.all("assets/validators/validator")]
    return tuple(InputValidator(program, ValidatorProtocol.TESTLIB) for program in programs if program)


def read_solutions(files: PackageFiles, root: XmlElement, findings: Findings) -> tuple[JurySubmission, ...]:
    """Read the solutions and the expectations of their tags."""
    result = []
    for element in root.all("assets/solutions/solution"):
        program = program_from(files, element, findings)
        tag = element.get("tag")
        if program is None:
            continue
        if tag not in _TAGS:
            findings.warning(FILE, f"the tag {tag[:40]!r} is unknown; it has no expectations.", line=element.line)
        folder, expectation = _TAGS.get(tag, ("other", None))
        result.append(
            JurySubmission(
                path=f"{folder}/{program.name}",
                program=program,
                expectations=(expectation,) if expectation else (),
                is_model=tag == "main",
            )
        )
    return tuple(result)


def grader_languages(stubs: tuple[Stub, ...], findings: Findings) -> tuple[str, ...]:
    """The languages with a grader; if there are any, other languages cannot be judged."""
    if any(stub.language == "default" for stub in stubs):
        return ()
    with_source = [stub for stub in stubs if not all(ref.name.endswith((".h", ".hpp")) for ref in stub.files)]
    result = tuple(stub.language for stub in with_source)
    if result:
        message = f"has graders for {', '.join(result)}; no other language can be submitted."
        findings.info(FILE, message, "Add a grader for each language that may be submitted.")
    return result


def read_stubs(files: PackageFiles, root: XmlElement) -> tuple[Stub, ...]:
    """Find graders: resources that are compiled together with solutions."""
    by_language: dict[str, list[FileRef]] = {}
    for element in root.all("files/resources/file"):
        path = element.get("path")
        stages = {stage.get("name") for stage in element.all("stages/stage")}
        assets = {asset.get("name") for asset in element.all("assets/asset")}
        if path in files and "compile" in stages and "solution" in assets:
            kinds = (element.get("for-types") or element.get("type")).split(";")
            for language in {language_of(kind.strip().rstrip("*")) or "default" for kind in kinds}:
                by_language.setdefault(language, []).append(FileRef(posixpath.basename(path), path))
    return tuple(Stub(language, tuple(refs)) for language, refs in sorted(by_language.items()))
