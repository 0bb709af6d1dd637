"""Polygon's tests: their files, how missing ones are generated, and the scoring of groups."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from adjudge.domain.problem import Aggregate, Case, Feedback, Group, OnReject, SelfTest, SelfTestKind
from adjudge.domain.programs import InputValidator, Program
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.generated_files import GeneratedFile
from adjudge.packages.line_endings import normalize_line_endings
from adjudge.packages.polygon.programs import FILE, program_from
from adjudge.packages.safe_xml import XmlElement
from adjudge.packages.safe_yaml import parse_number

SECRET = "secret"  # noqa: S105  # the name of a group of tests
_FEEDBACK = {
    "none": Feedback.NONE,
    "points": Feedback.POINTS,
    "icpc": Feedback.FIRST_FAILURE,
    "complete": Feedback.COMPLETE,
}
_VERDICTS = {
    "ok": SelfTestKind.VALID_OUTPUT,
    "wrong-answer": SelfTestKind.INVALID_OUTPUT,
    "presentation-error": SelfTestKind.INVALID_OUTPUT,
    "valid": SelfTestKind.VALID_INPUT,
    "invalid": SelfTestKind.INVALID_INPUT,
}


@dataclass(slots=True)
class PolygonCases:
    """Cases, groups and generated files of a problem."""

    cases: list[Case] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    recipes: list[GeneratedFile] = field(default_factory=list)
    is_scored: bool = False
    has_windows_lines: bool = False
    """Some test had CRLF: the package was made on Windows."""


@dataclass(frozen=True, slots=True)
class JuryGenerators:
    """The programs that can generate missing files."""

    model: Program | None
    validators: tuple[InputValidator, ...]
    input_file: str = ""
    output_file: str = ""
    is_interactive: bool = False


def read_cases(
    files: PackageFiles, root: XmlElement, testset: XmlElement, makers: JuryGenerators, findings: Findings
) -> PolygonCases:
    """Read a test set; missing inputs and answers are generated if the package has the sources."""
    elements = testset.all("tests/test")
    count = _count(testset, elements, findings)
    result = PolygonCases(is_scored=any(element.get("points") for element in elements) or _groups_score(testset))
    _add_groups(result, testset, elements)
    generators = _generators(files, root, findings)
    for index, element in enumerate(elements[:count], 1):
        _add_case(files, result, (index, element, testset), (makers, generators), findings)
    return result


def _count(testset: XmlElement, elements: list[XmlElement], findings: Findings) -> int:
    stated = parse_number(testset.text_at("test-count", str(len(elements))))
    if stated is None or stated != len(elements):
        findings.error(FILE, f"test-count does not equal the {len(elements)} tests listed.", line=testset.line)
    return len(elements)


def _groups_score(testset: XmlElement) -> bool:
    return any(group.get("points") for group in testset.all("groups/group"))


def path_at(pattern: str, index: int) -> str:
    """Fill a pattern such as ``tests/%02d``; other printf formats are not supported."""
    for width in range(10):
        for spelling in (f"%0{width}d", f"%{width}d", f"%.{width}d") if width else ("%d",):
            if pattern.count(spelling) == 1 and pattern.count("%") == 1:
                return pattern.replace(spelling, f"{index:0{width}d}" if width else str(index))
    return ""


def _add_case(
    files: PackageFiles,
    result: PolygonCases,
    place: tuple[int, XmlElement, XmlElement],
    tools: tuple[JuryGenerators, dict[str, Program]],
    findings: Findings,
) -> None:
    index, element, testset = place
    makers, generators = tools
    given = path_at(testset.text_at("input-path-pattern", "tests/%02d"), index)
    answer = path_at(testset.text_at("answer-path-pattern", "tests/%02d.a"), index)
    if not given or not answer:
        findings.error(FILE, "the path pattern of the tests is not supported.", line=testset.line)
        return
    if given in files:
        result.has_windows_lines |= normalize_line_endings(files, given, findings)
    elif (recipe := _input_recipe(given, element, generators, makers, findings)) is not None:
        result.recipes.append(recipe)
    if answer in files:
        result.has_windows_lines |= normalize_line_endings(files, answer, findings)
    elif (recipe := _answer_recipe(answer, given, index, makers, findings)) is not None:
        result.recipes.append(recipe)
    group = f"{SECRET}/{_clean(element.get('group'))}" if element.get("group") else SECRET
    policy = next((item.aggregate for item in result.groups if item.path == group), Aggregate.SUM)
    points = parse_number(element.get("points")) or 0.0
    is_sample = element.get("sample") == "true"
    result.cases.append(
        Case(
            name=f"{group}/{index:03d}",
            group=group,
            input=given,
            answer=answer,
            points=(0.0 if policy is Aggregate.ALL else points) if result.is_scored else 1.0,
            input_validator_args=_validator_args(testset.get("name", "tests"), element.get("group")),
            is_sample=is_sample,
            full_feedback=is_sample,
            description=element.get("description"),
        )
    )


def _validator_args(testset: str, group: str) -> tuple[str, ...]:
    return ("--testset", testset, *(("--group", group) if group else ()))


def _input_recipe(
    target: str, element: XmlElement, generators: dict[str, Program], makers: JuryGenerators, findings: Findings
) -> GeneratedFile | None:
    """Plan the generation of a missing input from its command line."""
    try:
        words = shlex.split(element.get("cmd"))
    except ValueError:
        words = []
    program = generators.get(words[0]) if words else None
    if element.get("method") != "generated" or program is None or element.get("from-file"):
        reason = f"its generator {words[0][:40]!r} is not among the sources" if words else "nothing says how to make it"
        fix = "Download the full package, not the standard one."
        findings.error(target, f"is not in the package, and {reason}.", fix)
        return None
    return GeneratedFile(target, program, tuple(words[1:]), validators=makers.validators)


def _answer_recipe(
    target: str, given: str, index: int, makers: JuryGenerators, findings: Findings
) -> GeneratedFile | None:
    """Plan the generation of a missing answer by the main solution."""
    if makers.model is None or makers.is_interactive:
        why = "the problem is interactive" if makers.is_interactive else "there is no main solution"
        fix = "Download the full package, not the standard one."
        findings.error(target, f"is not in the package (test {index}), and {why}.", fix)
        return None
    return GeneratedFile(
        target,
        makers.model,
        stdin=given,
        input_file=makers.input_file,
        output_file=makers.output_file,
        time_ms=60_000,
    )


def _generators(files: PackageFiles, root: XmlElement, findings: Findings) -> dict[str, Program]:
    """Map the names used in commands to programs: a source's name without its extension."""
    result = {}
    for element in root.all("files/executables/executable"):
        if program := program_from(files, element, findings):
            result[program.name.rpartition(".")[0] or program.name] = program
    return result


def _clean(name: str) -> str:
    """Make the name of a group usable as a path component."""
    return "".join(character if character.isalnum() or character in "_-" else "-" for character in name)[:80] or "-"


def _add_groups(result: PolygonCases, testset: XmlElement, elements: list[XmlElement]) -> None:
    """Build the tree: all-or-nothing for complete groups, a sum for the others."""
    on_reject = OnReject.CONTINUE if result.is_scored else OnReject.BREAK
    result.groups.append(Group("", on_reject=on_reject))
    result.groups.append(Group(SECRET, on_reject=on_reject))
    stated = {group.get("name"): group for group in testset.all("groups/group")}
    names = list(dict.fromkeys(element.get("group") for element in elements if element.get("group")))
    for name in names:
        element = stated.get(name) or XmlElement("group", {}, 0)
        points = [parse_number(test.get("points")) or 0.0 for test in elements if test.get("group") == name]
        own = parse_number(element.get("points"))
        is_complete = element.get("points-policy", "each-test") == "complete-group"
        depends_on = [item.get("group") for item in element.all("dependencies/dependency")]
        result.groups.append(
            Group(
                f"{SECRET}/{_clean(name)}",
                Aggregate.ALL if is_complete and result.is_scored else Aggregate.SUM,
                max_points=(sum(points) if own is None else own) if result.is_scored else None,
                on_reject=OnReject.BREAK if is_complete or not result.is_scored else OnReject.CONTINUE,
                depends_on=tuple(f"{SECRET}/{_clean(other)}" for other in depends_on if other in names),
                feedback=_FEEDBACK.get(element.get("feedback-policy"), Feedback.FIRST_FAILURE),
            )
        )


def read_self_tests(
    files: PackageFiles, root: XmlElement, findings: Findings, *, has_windows_lines: bool
) -> tuple[SelfTest, ...]:
    """Read the tests of the package's checker and validator."""
    result = []
    validators = [(element, False) for element in root.all("assets/validators/validator")]
    for holder, is_checker in ((root.first("assets/checker"), True), *validators):
        testset = holder.first("testset") if holder is not None else None
        if testset is None:
            continue
        for index, element in enumerate(testset.all("tests/test"), 1):
            parts = ("input", "output", "answer") if is_checker else ("input",)
            paths = {part: path_at(testset.text_at(f"{part}-path-pattern"), index) for part in parts}
            kind = _VERDICTS.get(element.get("verdict").lower())
            if kind is None or any(path not in files for path in paths.values()):
                continue
            result.append(
                SelfTest(
                    kind=kind,
                    name=f"{kind}/{index:02d}",
                    input=paths["input"],
                    output=paths.get("output"),
                    answer=paths.get("answer"),
                    input_validator_args=_validator_args(element.get("testset", "tests"), element.get("group")),
                )
            )
    _normalise_self_tests(files, result, findings, has_windows_lines=has_windows_lines)
    return tuple(result)


def _normalise_self_tests(
    files: PackageFiles, tests: list[SelfTest], findings: Findings, *, has_windows_lines: bool
) -> None:
    """Normalize line endings: a strict validator would reject every valid input with CRLF.

    An invalid input keeps its CRLF unless other tests have it, too: it may be what makes the input invalid.
    """
    invalid = [test.input for test in tests if test.kind is SelfTestKind.INVALID_INPUT]
    others = [(test.input, test.output, test.answer) for test in tests if test.kind is not SelfTestKind.INVALID_INPUT]
    for path in (path for paths in others for path in paths if path):
        has_windows_lines |= normalize_line_endings(files, path, findings)
    for path in invalid if has_windows_lines else ():
        normalize_line_endings(files, path, findings)
