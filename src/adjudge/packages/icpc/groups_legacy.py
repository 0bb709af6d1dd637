"""Test groups by the legacy rules: every folder is a group, settings are inherited, the default grader scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from adjudge.domain.problem import Aggregate, Case, Group, GroupVerdict, OnReject
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.cases import DATA, case_names, folders, group_file, read_raw, read_section
from adjudge.packages.safe_yaml import YamlMap, YamlSection, parse_number

_AGGREGATES = {"sum": Aggregate.SUM, "avg": Aggregate.AVG, "min": Aggregate.MIN, "max": Aggregate.MAX}
_VERDICTS = {
    "worst_error": GroupVerdict.WORST,
    "no_errors": GroupVerdict.WORST,
    "first_error": GroupVerdict.FIRST,
    "always_accept": GroupVerdict.ALWAYS_ACCEPT,
}
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class _LegacyGroupSettings:
    """The settings of one folder, inherited or its own."""

    group: Group = field(default_factory=lambda: Group("", verdict=GroupVerdict.WORST))
    accept_score: float = 1.0
    reject_score: float = 0.0
    checker_args: tuple[str, ...] = ()
    input_validator_args: tuple[str, ...] = ()


@dataclass(slots=True)
class _Walk:
    files: PackageFiles
    findings: Findings
    cases: list[Case] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


def read_legacy_cases(files: PackageFiles, findings: Findings) -> tuple[tuple[Case, ...], tuple[Group, ...]]:
    """Read ``data/sample`` and ``data/secret`` with all folders below them."""
    walk = _Walk(files, findings)
    root = _settings(walk, DATA, _LegacyGroupSettings())
    walk.groups.append(root.group)
    for top in ("sample", "secret"):
        if files.has_folder(f"{DATA}/{top}"):
            _visit(walk, f"{DATA}/{top}", root)
    return tuple(walk.cases), tuple(walk.groups)


def _visit(walk: _Walk, folder: str, inherited: _LegacyGroupSettings) -> None:
    """Visit a folder: its cases and folders together, in byte order of their names."""
    settings = _settings(walk, folder, inherited)
    walk.groups.append(settings.group)
    cases = {base.rpartition("/")[2]: base for base in case_names(walk.files, folder)}
    inner = set(folders(walk.files, folder))
    for name in sorted({*cases, *inner}, key=str.encode):
        if name in cases:
            walk.cases.append(_case(walk, cases[name], settings))
        if name in inner:
            _visit(walk, f"{folder}/{name}", settings)


def _case(walk: _Walk, base: str, settings: _LegacyGroupSettings) -> Case:
    raw = read_raw(walk.files, base, walk.findings, is_legacy=True)
    is_sample = raw.name.startswith("sample/")
    return Case(
        name=raw.name,
        group=settings.group.path,
        input=raw.input,
        answer=raw.answer,
        args=raw.args,
        files=raw.files,
        checker_args=settings.checker_args,
        input_validator_args=settings.input_validator_args,
        points=settings.accept_score,
        reject_points=settings.reject_score,
        is_sample=is_sample,
        full_feedback=is_sample,
        description=raw.description,
        hint=raw.hint,
    )


def _settings(walk: _Walk, folder: str, inherited: _LegacyGroupSettings) -> _LegacyGroupSettings:
    path = group_file(walk.files, folder)
    section = read_section(walk.files, path, walk.findings)
    group = replace(inherited.group, path=folder.removeprefix(DATA).strip("/"), ignore_sample=False)
    if "on_reject" in section:
        value = section.take_choice("on_reject", ("break", "continue"), "break")
        group = replace(group, on_reject=OnReject(value))
    if "grader_flags" in section:
        group = _graded(section, replace(group, aggregate=Aggregate.SUM, verdict=GroupVerdict.WORST))
    if section.take_text("grading", "default") != "default":
        section.error("grading", "custom graders are not supported.", "Use the default grader and its flags.")
    if "range" in section:
        group = _ranged(section, group)
    result = _LegacyGroupSettings(
        group=group,
        accept_score=_score(section, "accept_score", inherited.accept_score),
        reject_score=_score(section, "reject_score", inherited.reject_score),
        checker_args=_flags(section, "output_validator_flags", inherited.checker_args),
        input_validator_args=_flags(section, "input_validator_flags", inherited.input_validator_args),
    )
    section.report_unknown_keys()
    return result


def _graded(section: YamlSection, group: Group) -> Group:
    """Apply the default grader's flags in order: of conflicting ones the last wins."""
    for flag in section.take_texts("grader_flags", split=True):
        if flag in _AGGREGATES:
            group = replace(group, aggregate=_AGGREGATES[flag])
        elif flag in _VERDICTS:
            group = replace(group, verdict=_VERDICTS[flag])
        elif flag == "ignore_sample" and not group.path:
            group = replace(group, ignore_sample=True)
        elif flag == "accept_if_any_accepted":
            group = replace(group, accept_if_any=True)
        else:
            section.warning("grader_flags", f"{flag[:40]!r} is unknown and was ignored.", "Remove it.")
    return group


def _ranged(section: YamlSection, group: Group) -> Group:
    words = section.take_texts("range", split=True)
    bounds = [_bound(word) for word in words]
    if len(bounds) != 2 or bounds[0] is None or bounds[1] is None or bounds[0] > bounds[1]:
        section.error("range", "must be two numbers, the lower one first.", "Write 'range: 0 100'.")
        return group
    low, high = bounds[0], bounds[1]
    return replace(group, score_range=(low, high), max_points=None if high == _INFINITY else high)


def _bound(word: str) -> float | None:
    if word.lower().lstrip("+-") in ("inf", "infinity"):
        return -_INFINITY if word.startswith("-") else _INFINITY
    return parse_number(word)


def _score(section: YamlSection, key: str, inherited: float) -> float:
    if key not in section:
        return inherited
    value = parse_number(section.take_text(key))
    if value is None:
        section.error(key, "must be a number.")
        return inherited
    return value


def _flags(section: YamlSection, key: str, inherited: tuple[str, ...]) -> tuple[str, ...]:
    if key not in section:
        return inherited
    if isinstance(section.node(key), YamlMap):
        return section.take_section(key).take_texts("flags", split=True)
    return section.take_texts(key, split=True)
