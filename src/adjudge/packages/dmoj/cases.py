"""Test cases of ``init.yml``: listed, batched, generated, or matched by name in the archive."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Aggregate, Case, Feedback, Group, GroupVerdict, OnReject
from adjudge.domain.programs import FileRef, Program
from adjudge.packages.dmoj.checkers import language_code, read_checker
from adjudge.packages.dmoj.scope import FILE, Scope
from adjudge.packages.files import PackageFiles
from adjudge.packages.generated_files import GeneratedFile
from adjudge.packages.line_endings import normalize_line_endings
from adjudge.packages.safe_regex import compile_safe_regex
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlScalar, YamlSection, parse_number

PRETEST = "pretest"
SECRET = "secret"  # noqa: S105  # the name of a group of tests
_NUMBERS = re.compile(r"\d+")
_GENERATOR_TIME_S = 20.0
_GENERATOR_MEMORY_KIB = 512 * 1024.0


@dataclass(slots=True)
class DmojCases:
    """Cases, groups and generated files of a problem."""

    cases: list[Case] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    recipes: list[GeneratedFile] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    gates: list[str] = field(default_factory=list)
    """Groups worth 0 points: if one fails, DMOJ skips everything after it."""
    run: str = ""
    """The group of the current single cases; empty: none since the last batch or gate."""


@dataclass(frozen=True, slots=True)
class _CaseReader:
    files: PackageFiles
    archive: str
    result: DmojCases
    root: str = SECRET

    def resolve(self, name: str) -> str | None:
        """Find a file in the folder, else in the archive."""
        for path in (name, f"{self.archive}/{name}") if self.archive else (name,):
            if path in self.files:
                return path
        return None

    def add_batch(self, path: str, points: float, depends_on: tuple[str, ...] = ()) -> None:
        """Start a group for a batch; one worth 0 points is a gate."""
        result = self.result
        gates = tuple(gate for gate in result.gates if gate not in depends_on)
        result.groups.append(_batch_group(path, points, (*gates, *depends_on)))
        result.batches.append(path)
        result.run = ""
        if points == 0 and self.root != PRETEST:
            result.gates.append(path)

    def place(self, index: int, points: float) -> tuple[str, str]:
        """The name and the group of a case outside batches.

        Single cases share the root's group until one is worth 0 points. Those become groups of their own, on which
        everything after them depends; pretests at the root always do.
        """
        result = self.result
        own = f"{self.root}/{index:03d}"
        is_gate = points == 0 and self.root != PRETEST
        if not is_gate and not result.gates:
            return own, self.root
        if not result.run or is_gate is not (result.run in result.gates):
            group = _plain_group(own, tuple(result.gates))
            result.groups.append(replace(group, on_reject=OnReject.BREAK) if is_gate else group)
            result.run = own
            if is_gate:
                result.gates.append(own)
        return f"{result.run}/{index:03d}", result.run


def read_cases(files: PackageFiles, top: Scope, archive: str) -> DmojCases:
    """Read pretests and tests."""
    result = DmojCases(groups=[Group("", on_reject=OnReject.CONTINUE, verdict=GroupVerdict.WORST)])
    pretests = top.node("pretest_test_cases")
    if pretests is not None:
        result.groups.append(replace(_plain_group(PRETEST), on_reject=OnReject.BREAK))
        _read_list(_CaseReader(files, archive, result, PRETEST), top, pretests)
    result.groups.append(_plain_group(SECRET, (PRETEST,) if pretests is not None else ()))
    reader = _CaseReader(files, archive, result)
    node = top.node("test_cases")
    if isinstance(node, YamlList):
        _read_list(reader, top, node)
    else:
        _read_names(reader, top, node if isinstance(node, YamlMap) else None)
    return result


def _plain_group(path: str, depends_on: tuple[str, ...] = ()) -> Group:
    return Group(
        path,
        on_reject=OnReject.CONTINUE,
        verdict=GroupVerdict.WORST,
        depends_on=depends_on,
        feedback=Feedback.COMPLETE,
    )


def _read_list(reader: _CaseReader, top: Scope, node: object) -> None:
    items = node.items if isinstance(node, YamlList) else []
    if not items:
        top.findings.error(FILE, "test_cases: must be a list of cases.")
    for index, item in enumerate(items, 1):
        if not isinstance(item, YamlMap):
            top.findings.error(FILE, f"test_cases[{index}]: must be a map.", line=item.line)
            continue
        scope = top.inner(item)
        points = 0.0 if reader.root == PRETEST else scope.number("points", 1.0)
        batch = scope.own("batched")
        if isinstance(batch, YamlList):
            _read_batch(reader, scope, batch, f"{reader.root}/{index:03d}", points)
        else:
            _read_case(reader, scope, *reader.place(index, points), points)


def _read_batch(reader: _CaseReader, scope: Scope, batch: YamlList, path: str, points: float) -> None:
    numbers = [parse_number(text) for text in scope.texts("dependencies")]
    known = [int(value) for value in numbers if value and 1 <= value <= len(reader.result.batches)]
    if len(known) != len(numbers):
        fix = "Batches are counted from 1, and only earlier ones can be named."
        scope.findings.error(FILE, "dependencies: must name earlier batches.", fix, scope.levels[0].line)
    reader.add_batch(path, points, tuple(reader.result.batches[value - 1] for value in known))
    for index, item in enumerate(batch.items, 1):
        if isinstance(item, YamlMap) and "batched" not in item.items:
            _read_case(reader, scope.inner(item), f"{path}/{index:03d}", path, points)
        else:
            scope.findings.error(FILE, "batched: contains something that is not a case.", line=item.line)


def _batch_group(path: str, points: float, depends_on: tuple[str, ...] = ()) -> Group:
    return Group(
        path,
        Aggregate.MIN,
        max_points=points,
        on_reject=OnReject.BREAK,
        verdict=GroupVerdict.WORST,
        depends_on=depends_on,
        feedback=Feedback.COMPLETE,
    )


def _read_case(reader: _CaseReader, scope: Scope, name: str, group: str, points: float) -> None:
    line = scope.levels[0].line
    given, answer = scope.text("in"), scope.text("out")
    input_path = reader.resolve(given) if given else None
    answer_path = reader.resolve(answer) if answer else None
    for wanted, path in ((given, input_path), (answer, answer_path)):
        if wanted and path is None:
            scope.findings.error(FILE, f"{wanted[:80]!r} is not in the package.", "Add it.", line)
    if not given:
        input_path, answer_path = _generated(reader, scope, name, answer_path)
    elif scope.own("generator_args") or scope.own("generator_in"):
        scope.findings.error(FILE, "a case has an input and arguments for a generator.", "Remove one.", line)
    if not scope.flag("binary_data", default=False):
        for path in (input_path, answer_path):
            if path and path in reader.files:
                normalize_line_endings(reader.files, path, scope.findings, final_newline=True)
    if input_path is None:
        return
    own = scope.own("checker")
    if own is None and group != SECRET and len(scope.levels) > 2:
        own = scope.levels[1].items.get("checker")
    checker = read_checker(reader.files, scope, own) if own else None
    reader.result.cases.append(Case(name, group, input_path, answer_path, checker=checker, points=points))


def _generated(reader: _CaseReader, scope: Scope, name: str, answer: str | None) -> tuple[str | None, str | None]:
    """Plan the run of a generator: its stdout is the input, its stderr the answer."""
    made = _generator(reader, scope)
    if made is None:
        empty = f"generated/{name}.in"
        reader.files.put_derived(empty, b"")
        return empty, answer
    target, error_target = f"generated/{name}.in", None if answer else f"generated/{name}.out"
    stdin = scope.text("generator_in")
    reader.result.recipes.append(
        GeneratedFile(
            target,
            made.program,
            scope.texts("generator_args") or made.args,
            stdin=reader.resolve(stdin) if stdin else None,
            error_target=error_target,
            time_ms=made.time_ms,
            memory_bytes=made.memory_bytes,
        )
    )
    return target, answer or error_target


@dataclass(frozen=True, slots=True)
class _Generator:
    """A generator and its limits."""

    program: Program
    args: tuple[str, ...]
    time_ms: int
    memory_bytes: int


def _generator(reader: _CaseReader, scope: Scope) -> _Generator | None:
    node = scope.node("generator")
    if node is None:
        return None
    section = YamlSection(node if isinstance(node, YamlMap) else None, FILE, scope.findings, "generator.")
    if isinstance(node, YamlMap):
        sources = section.take_texts("source")
    else:
        items = node.items if isinstance(node, YamlList) else [node]
        sources = tuple(item.text for item in items if isinstance(item, YamlScalar))
    missing = [name for name in sources if name not in reader.files]
    if missing or not sources:
        name = missing[0] if missing else "generator"
        scope.findings.error(FILE, f"generator: {name[:80]!r} is not in the package.", "Add it.", node.line)
        return None
    if "compiler_time_limit" in section:
        fix = "Jury programs are compiled with the limit of the problem."
        section.warning("compiler_time_limit", "is not used.", fix)
    program = Program(
        sources[0],
        tuple(FileRef(posixpath.basename(name), name) for name in sources),
        language=language_code(section.take_text("language")),
        compile_flags=section.take_texts("flags"),
    )
    time_s = section.take_number("time_limit", _GENERATOR_TIME_S, above=True)
    memory_kib = section.take_number("memory_limit", _GENERATOR_MEMORY_KIB, above=True)
    return _Generator(
        program, section.take_texts("args"), max(1, round(time_s * 1000)), max(1, round(memory_kib * 1024))
    )


# ---- cases found by the names of files


def _read_names(reader: _CaseReader, top: Scope, node: YamlMap | None) -> None:
    if not reader.archive:
        top.findings.error(FILE, "test_cases: must be a list where there is no archive.", "List the cases.")
        return
    names = [path[len(reader.archive) + 1 :] for path in reader.files.names(reader.archive)]
    section = YamlSection(node, FILE, top.findings, "test_cases.")
    inputs = _by_position(names, section, "input_format", "in")
    outputs = _by_position(names, section, "output_format", "out")
    points = [parse_number(text) for text in section.take_texts("case_points")]
    for position in sorted(set(inputs) ^ set(outputs), key=_order):
        lonely = inputs.get(position) or outputs[position]
        top.findings.error(
            f"{reader.archive}/{lonely}", "has no matching input or output file.", "Add it, or remove this file."
        )
    batches: dict[str, list[tuple[str, str]]] = {}
    for position in sorted(set(inputs) & set(outputs), key=_order):
        batches.setdefault(position[0] or f"case {position[1]}", []).append(position)
    if not batches:
        top.findings.error(reader.archive, "has no pair of input and output files by name.", "List the cases.")
    for index, positions in enumerate(batches.values(), 1):
        value = points[index - 1] if index <= len(points) else None
        worth = value if value is not None else top.number("points", 1.0)
        path = f"{SECRET}/{index:03d}"
        if positions[0][0]:
            reader.add_batch(path, worth)
            places = [(f"{path}/{inner:03d}", path) for inner in range(1, len(positions) + 1)]
        else:
            places = [reader.place(index, worth)]
        for key, (name, group) in zip(positions, places, strict=True):
            _add_found(reader, top, (inputs[key], outputs[key]), (name, group, worth))


def _add_found(reader: _CaseReader, top: Scope, pair: tuple[str, str], place: tuple[str, str, float]) -> None:
    paths = f"{reader.archive}/{pair[0]}", f"{reader.archive}/{pair[1]}"
    if not top.flag("binary_data", default=False):
        for path in paths:
            normalize_line_endings(reader.files, path, top.findings, final_newline=True)
    name, group, points = place
    reader.result.cases.append(Case(name, group, *paths, points=points))


def _by_position(names: list[str], section: YamlSection, key: str, mark: str) -> dict[tuple[str, str], str]:
    """Map (batch, case) to the file at that position."""
    result: dict[tuple[str, str], str] = {}
    text = section.take_text(key)
    pattern = None
    if text:
        try:
            pattern = compile_safe_regex(text, names)
        except InvalidInput as error:
            section.error(key, error.message)
            return {}
    for name in names:
        if pattern is None:
            position = _guess(name, mark)
        elif match := pattern.match(name):
            groups = match.groupdict()
            position = (groups.get("batch") or "", groups.get("case") or "")
        else:
            continue
        if position is not None:
            result.setdefault(position, name)
    return result


def _guess(name: str, mark: str) -> tuple[str, str] | None:
    """Parse a name as DMOJ's default patterns do: the last number is the case, the one before it the batch."""
    base = posixpath.basename(name)
    if mark not in base.lower() or (mark == "in" and "out" in base.lower()):
        return None
    numbers = _NUMBERS.findall(base)
    if not numbers:
        return None
    return (numbers[-2] if len(numbers) > 1 else "", numbers[-1])


def _order(position: tuple[str, str]) -> tuple[tuple[int, int, str], tuple[int, int, str]]:
    """Sort an unbatched case n among batches as batch n; numbers come after other names."""
    batch, case = position
    return _rank(batch or case), _rank(case)


def _rank(text: str) -> tuple[int, int, str]:
    return (1, int(text), "") if text.isdecimal() else (0, 0, text)
