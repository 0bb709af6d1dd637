"""Test cases of ``init.yml``: listed, batched, generated, or found in the archive by their names."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Aggregate, Case, Feedback, Group, GroupVerdict, OnReject
from adjudge.domain.programs import FileRef, Program
from adjudge.packages.dmoj.checkers import language_code, read_checker
from adjudge.packages.dmoj.scope import FILE, Scope
from adjudge.packages.files import PackageFiles
from adjudge.packages.lines import normalise
from adjudge.packages.patterns import safe_pattern
from adjudge.packages.recipes import Recipe
from adjudge.packages.yaml import Listing, Mapping, Scalar, Section, number

PRETEST = "pretest"
SECRET = "secret"  # noqa: S105  # the name of a group of tests
_NUMBERS = re.compile(r"\d+")


@dataclass(slots=True)
class Found:
    """What the tests of a problem come to."""

    cases: list[Case] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reader:
    files: PackageFiles
    archive: str
    found: Found
    depends_on: tuple[str, ...] = ()

    def resolve(self, name: str) -> str | None:
        """Find a file in the folder, else in the archive."""
        for path in (name, f"{self.archive}/{name}") if self.archive else (name,):
            if path in self.files:
                return path
        return None


def read_tests(files: PackageFiles, top: Scope, archive: str) -> Found:
    """Read pretests and tests."""
    found = Found(groups=[Group("", on_reject=OnReject.CONTINUE, verdict=GroupVerdict.WORST)])
    pretests = top.node("pretest_test_cases")
    if pretests is not None:
        found.groups.append(_plain_group(PRETEST))
        _read_list(_Reader(files, archive, found), top, pretests, PRETEST)
    found.groups.append(_plain_group(SECRET, (PRETEST,) if pretests is not None else ()))
    reader = _Reader(files, archive, found, (PRETEST,) if pretests is not None else ())
    node = top.node("test_cases")
    if isinstance(node, Listing):
        _read_list(reader, top, node, SECRET)
    else:
        _read_names(reader, top, node if isinstance(node, Mapping) else None)
    return found


def _plain_group(path: str, depends_on: tuple[str, ...] = ()) -> Group:
    return Group(
        path,
        on_reject=OnReject.CONTINUE,
        verdict=GroupVerdict.WORST,
        depends_on=depends_on,
        feedback=Feedback.COMPLETE,
    )


def _read_list(reader: _Reader, top: Scope, node: object, root: str) -> None:
    items = node.items if isinstance(node, Listing) else []
    if not items:
        top.findings.error(FILE, "test_cases: must be a list of cases.")
    for index, item in enumerate(items, 1):
        if not isinstance(item, Mapping):
            top.findings.error(FILE, f"test_cases[{index}]: must be a map.", line=item.line)
            continue
        scope = top.inner(item)
        batch = scope.own("batched")
        if isinstance(batch, Listing):
            _read_batch(reader, scope, batch, f"{root}/{index:03d}")
        else:
            _read_case(reader, scope, f"{root}/{index:03d}", root, _points(scope, root))


def _points(scope: Scope, root: str) -> float:
    return 0.0 if root == PRETEST else scope.number("points", 1.0)


def _read_batch(reader: _Reader, scope: Scope, batch: Listing, path: str) -> None:
    points = _points(scope, path.partition("/")[0])
    numbers = [number(text) for text in scope.texts("dependencies")]
    known = [int(value) for value in numbers if value and 1 <= value <= len(reader.found.batches)]
    if len(known) != len(numbers):
        fix = "Batches are counted from 1, and only earlier ones can be named."
        scope.findings.error(FILE, "dependencies: names no earlier batch.", fix, scope.levels[0].line)
    depends_on = (*reader.depends_on, *(reader.found.batches[value - 1] for value in known))
    reader.found.batches.append(path)
    reader.found.groups.append(_batch_group(path, points, depends_on))
    for index, item in enumerate(batch.items, 1):
        if isinstance(item, Mapping) and "batched" not in item.items:
            _read_case(reader, scope.inner(item), f"{path}/{index:03d}", path, points)
        else:
            scope.findings.error(FILE, "batched: holds something that is no case.", line=item.line)


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


def _read_case(reader: _Reader, scope: Scope, name: str, group: str, points: float) -> None:
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
                normalise(reader.files, path, scope.findings, final_newline=True)
    if input_path is None:
        return
    own = scope.own("checker")
    if own is None and group != SECRET and len(scope.levels) > 2:
        own = scope.levels[1].items.get("checker")
    checker = read_checker(reader.files, scope, own) if own else None
    reader.found.cases.append(Case(name, group, input_path, answer_path, checker=checker, points=points))


def _generated(reader: _Reader, scope: Scope, name: str, answer: str | None) -> tuple[str | None, str | None]:
    """Plan the run of a generator: the input is what it prints, the answer what it writes to stderr."""
    program = _generator(reader, scope)
    if program is None:
        empty = f"generated/{name}.in"
        reader.files.derive(empty, b"")
        return empty, answer
    target, error_target = f"generated/{name}.in", None if answer else f"generated/{name}.out"
    stdin = scope.text("generator_in")
    reader.found.recipes.append(
        Recipe(
            target,
            program,
            scope.texts("generator_args"),
            stdin=reader.resolve(stdin) if stdin else None,
            error_target=error_target,
        )
    )
    return target, answer or error_target


def _generator(reader: _Reader, scope: Scope) -> Program | None:
    node = scope.node("generator")
    if node is None:
        return None
    section = Section(node if isinstance(node, Mapping) else None, FILE, scope.findings, "generator.")
    if isinstance(node, Mapping):
        sources = section.take_texts("source")
    else:
        items = node.items if isinstance(node, Listing) else [node]
        sources = tuple(item.text for item in items if isinstance(item, Scalar))
    missing = [name for name in sources if name not in reader.files]
    if missing or not sources:
        name = missing[0] if missing else "generator"
        scope.findings.error(FILE, f"generator: {name[:80]!r} is not in the package.", "Add it.", node.line)
        return None
    return Program(
        sources[0],
        tuple(FileRef(posixpath.basename(name), name) for name in sources),
        language=language_code(section.take_text("language")),
        compile_flags=section.take_texts("flags"),
    )


# ---- cases found by the names of files


def _read_names(reader: _Reader, top: Scope, node: Mapping | None) -> None:
    if not reader.archive:
        top.findings.error(FILE, "test_cases: must be a list where there is no archive.", "List the cases.")
        return
    names = [path[len(reader.archive) + 1 :] for path in reader.files.names(reader.archive)]
    section = Section(node, FILE, top.findings, "test_cases.")
    inputs = _by_position(names, section, "input_format", "in")
    outputs = _by_position(names, section, "output_format", "out")
    points = [number(text) for text in section.take_texts("case_points")]
    for position in sorted(set(inputs) ^ set(outputs), key=_order):
        lonely = inputs.get(position) or outputs[position]
        top.findings.error(f"{reader.archive}/{lonely}", "has no counterpart.", "Add it, or remove this file.")
    batches: dict[str, list[tuple[str, str]]] = {}
    for position in sorted(set(inputs) & set(outputs), key=_order):
        batches.setdefault(position[0] or f"case {position[1]}", []).append(position)
    if not batches:
        top.findings.error(reader.archive, "holds no pair of input and output by its names.", "List the cases.")
    for index, positions in enumerate(batches.values(), 1):
        value = points[index - 1] if index <= len(points) else None
        worth = value if value is not None else top.number("points", 1.0)
        group = _batch_group(f"{SECRET}/{index:03d}", worth, reader.depends_on)
        pairs = [(inputs[key], outputs[key]) for key in positions]
        _add_found(reader, top, pairs, group, is_batch=bool(positions[0][0]))


def _add_found(reader: _Reader, top: Scope, pairs: list[tuple[str, str]], group: Group, *, is_batch: bool) -> None:
    if is_batch:
        reader.found.batches.append(group.path)
        reader.found.groups.append(group)
    for index, (given, answer) in enumerate(pairs, 1):
        paths = f"{reader.archive}/{given}", f"{reader.archive}/{answer}"
        if not top.flag("binary_data", default=False):
            for path in paths:
                normalise(reader.files, path, top.findings, final_newline=True)
        name = f"{group.path}/{index:03d}" if is_batch else group.path
        reader.found.cases.append(Case(name, group.path if is_batch else SECRET, *paths, points=group.max_points))


def _by_position(names: list[str], section: Section, key: str, mark: str) -> dict[tuple[str, str], str]:
    """Map (batch, case) to the file of that place."""
    found: dict[tuple[str, str], str] = {}
    text = section.take_text(key)
    pattern = None
    if text:
        try:
            pattern = safe_pattern(text, names)
        except InvalidInput as error:
            section.wrong(key, error.message)
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
            found.setdefault(position, name)
    return found


def _guess(name: str, mark: str) -> tuple[str, str] | None:
    """Read a name as DMOJ's default patterns do: the last number is the case, one before it the batch."""
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
