"""Subtasks of a CMS task, from ``gen/GEN`` or from a score type and its parameters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Aggregate, Case, Feedback, Group, GroupVerdict, OnReject
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.safe_regex import compile_safe_regex
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlScalar, YamlSection, parse_number

GEN = "gen/GEN"
SECRET = "secret"  # noqa: S105  # the name of a group of tests
_AGGREGATES = {"GroupMin": Aggregate.MIN, "GroupMul": Aggregate.MUL, "GroupThreshold": Aggregate.THRESHOLD}
_FULL = 100


@dataclass(frozen=True, slots=True)
class Subtask:
    """A group of test cases, by codename."""

    points: float
    codenames: tuple[str, ...]
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class CmsScoring:
    """The scoring of a task: subtasks of one kind, or points per test case."""

    aggregate: Aggregate = Aggregate.SUM
    subtasks: tuple[Subtask, ...] = ()
    points_per_test: float = 0.0


def read_scoring(
    files: PackageFiles, section: YamlSection, codenames: tuple[str, ...], findings: Findings
) -> CmsScoring:
    kind, parameters = section.take_text("score_type"), section.node("score_type_parameters")
    if kind and parameters is not None:
        if kind == "Sum":
            value = parse_number(parameters.text) if isinstance(parameters, YamlScalar) else None
            return CmsScoring(points_per_test=value or 0.0)
        if kind in _AGGREGATES:
            return CmsScoring(_AGGREGATES[kind], _from_parameters(section, parameters, codenames))
        section.error("score_type", f"{kind[:40]!r} is unknown.", "Use Sum, GroupMin, GroupMul or GroupThreshold.")
    subtasks = _from_gen(files, codenames, findings)
    if subtasks:
        return CmsScoring(Aggregate.MIN, subtasks)
    total = section.take_number("total_value", float(_FULL))
    return CmsScoring(points_per_test=total / max(1, len(codenames)))


def _from_gen(files: PackageFiles, codenames: tuple[str, ...], findings: Findings) -> tuple[Subtask, ...]:
    """Read ``gen/GEN``: each line is a test; ``#ST: n`` starts a subtask, ``#COPY: path`` is a test, too."""
    text = files.text(GEN, findings) if GEN in files else None
    counts: list[tuple[int, int]] = []
    tests = 0
    for line, content in enumerate((text or "").split("\n"), 1):
        code, _, comment = content.partition("#")
        word = comment.strip()
        if word.startswith("ST:"):
            value = parse_number(word[3:])
            if value is None or code.strip():
                findings.error(GEN, "a subtask is '#ST: points' on a line of its own.", line=line)
            counts.append((int(value or 0), 0))
        elif code.strip() or word.startswith("COPY:"):
            tests += 1
            if counts:
                counts[-1] = (counts[-1][0], counts[-1][1] + 1)
    if not counts:
        return ()
    if tests != len(codenames) or sum(count for _, count in counts) != tests:
        findings.error(GEN, f"lists {tests} tests, but there are {len(codenames)}.", "Make the two agree.")
    if sum(points for points, _ in counts) != _FULL:
        findings.error(GEN, f"the subtasks' points do not sum to {_FULL}.", "Correct them.")
    return tuple(Subtask(float(points), names) for points, names in _taken(counts, codenames))


def _taken(counts: list[tuple[int, int]], codenames: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    rest = list(codenames)
    result = []
    for points, count in counts:
        result.append((points, tuple(rest[:count])))
        del rest[:count]
    return result


def _from_parameters(section: YamlSection, node: YamlNode, codenames: tuple[str, ...]) -> tuple[Subtask, ...]:
    """Read parameters: ``[points, tests]`` or ``[points, tests, threshold]``, or objects with those keys."""
    if isinstance(node, YamlScalar):
        node = _parsed(section, node)
    result, rest = [], list(codenames)
    for item in node.items if isinstance(node, YamlList) else []:
        parts = _parts(item)
        points = parse_number(parts[0].text) if parts and isinstance(parts[0], YamlScalar) else None
        if parts is None or points is None:
            section.error("score_type_parameters", "each entry must be [points, tests].")
            continue
        threshold = parse_number(parts[2].text) if len(parts) > 2 and isinstance(parts[2], YamlScalar) else None
        result.append(Subtask(points, _members(section, parts[1], codenames, rest), threshold or 0.0))
    if not result:
        section.error("score_type_parameters", "must be a list of [points, tests].")
    return tuple(result)


def _parsed(section: YamlSection, node: YamlScalar) -> YamlNode:
    """Parse parameters written as JSON in a string."""
    try:
        return _as_node(json.loads(node.text), node.line)
    except (ValueError, RecursionError):
        section.error("score_type_parameters", "must be a list.")
        return node


def _as_node(value: object, line: int) -> YamlNode:
    if isinstance(value, list):
        return YamlList([_as_node(item, line) for item in value], line)
    if isinstance(value, dict):
        return YamlMap({str(key): _as_node(item, line) for key, item in value.items()}, line)
    return YamlScalar(str(value), line, is_quoted=isinstance(value, str))


def _parts(item: YamlNode) -> list[YamlNode] | None:
    if isinstance(item, YamlList) and len(item.items) in (2, 3):
        return item.items
    if isinstance(item, YamlMap) and "max_score" in item.items and "testcases" in item.items:
        return [item.items[key] for key in ("max_score", "testcases", "threshold") if key in item.items]
    return None


def _members(section: YamlSection, node: YamlNode, codenames: tuple[str, ...], rest: list[str]) -> tuple[str, ...]:
    """The tests of a subtask: the next n, those that match a pattern, or those named."""
    if isinstance(node, YamlList):
        named = tuple(item.text for item in node.items if isinstance(item, YamlScalar))
        for name in named:
            if name not in codenames:
                section.error("score_type_parameters", f"unknown test {name[:40]!r}.")
        return tuple(name for name in named if name in codenames)
    text = node.text if isinstance(node, YamlScalar) else ""
    if text.isdecimal() and len(text) < 10 and isinstance(node, YamlScalar) and not node.is_quoted:
        taken = tuple(rest[: int(text)])
        if len(taken) != int(text):
            section.error("score_type_parameters", f"there are no {text} tests left.")
        del rest[: int(text)]
        return taken
    try:
        pattern = re.compile(compile_safe_regex(text, codenames).pattern)
    except InvalidInput as error:
        section.error("score_type_parameters", error.message)
        return ()
    return tuple(name for name in codenames if pattern.match(name))


def apply_scoring(scoring: CmsScoring, cases: dict[str, Case]) -> tuple[tuple[Case, ...], tuple[Group, ...]]:
    """Assign cases to their groups. A test shared by several subtasks becomes a case in each."""
    root = Group("", on_reject=OnReject.CONTINUE, verdict=GroupVerdict.WORST)
    secret = Group(SECRET, on_reject=OnReject.CONTINUE, verdict=GroupVerdict.WORST, feedback=Feedback.COMPLETE)
    if not scoring.subtasks:
        result = tuple(replace(case, points=scoring.points_per_test) for case in cases.values())
        return result, (root, secret)
    groups, placed = [root, secret], []
    for index, subtask in enumerate(scoring.subtasks, 1):
        path = f"{SECRET}/{index:02d}"
        groups.append(
            replace(
                secret,
                path=path,
                aggregate=scoring.aggregate,
                max_points=subtask.points,
                threshold=subtask.threshold,
            )
        )
        placed += [
            replace(cases[name], name=f"{path}/{name}", group=path, points=subtask.points)
            for name in subtask.codenames
            if name in cases
        ]
    return tuple(placed), tuple(groups)
