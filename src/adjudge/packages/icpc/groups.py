"""Test groups by the rules of 2025-09: one level below ``data/secret``, scores in ``test_group.yaml``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge.domain.problem import (
    Aggregate,
    Case,
    Feedback,
    Group,
    GroupVerdict,
    OnReject,
    Problem,
    ProblemMode,
    SelfTest,
    SelfTestKind,
)
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.cases import DATA, RawCase, case_names, folders, group_file, read_raw, read_section
from adjudge.packages.safe_yaml import YamlMap, YamlSection

_AGGREGATES = {"pass-fail": Aggregate.ALL, "sum": Aggregate.SUM, "min": Aggregate.MIN}
_LISTS = ("args", "input_validator_args", "static_validator_args", "output_validator_args")
_UNUSED = ("input_visualizer_args", "output_visualizer_args")
_SCORING_ONLY = ("max_score", "score_aggregation", "require_pass", "static_validation_score")
DEFAULT_SECRET_POINTS = 100.0


@dataclass(frozen=True, slots=True)
class _GroupSettings:
    """The settings of one folder, with those of ``secret`` as defaults."""

    group: Group
    args: tuple[str, ...] = ()
    checker_args: tuple[str, ...] = ()
    input_validator_args: tuple[str, ...] = ()
    full_feedback: bool = False


@dataclass(frozen=True, slots=True)
class _Context:
    files: PackageFiles
    problem: Problem
    findings: Findings

    @property
    def is_scored(self) -> bool:
        return self.problem.is_scored


def read_cases(files: PackageFiles, problem: Problem, findings: Findings) -> tuple[tuple[Case, ...], tuple[Group, ...]]:
    """Read ``data/sample`` and ``data/secret``."""
    context = _Context(files, problem, findings)
    scored = context.is_scored
    on_reject = OnReject.CONTINUE if scored else OnReject.BREAK
    groups = [Group("", on_reject=on_reject, ignore_sample=scored)]
    cases: list[Case] = []
    if files.has_folder(f"{DATA}/sample"):
        sample = _sample(context)
        groups.append(sample.group)
        cases += _cases(context, f"{DATA}/sample", sample, deep=True)
    secret = _secret(context)
    groups.append(secret.group)
    inner = folders(files, f"{DATA}/secret")
    direct = _cases(context, f"{DATA}/secret", secret, deep=False)
    if direct and inner:
        findings.error(
            f"{DATA}/secret", f"contains both tests and the group {inner[0]!r}.", "Put every test into some group."
        )
    cases += direct
    for name in inner:
        settings = _group(context, f"{DATA}/secret/{name}", secret)
        groups.append(settings.group)
        cases += _cases(context, f"{DATA}/secret/{name}", settings, deep=True)
    _check_dependencies(context, groups)
    return tuple(cases), tuple(groups)


def read_self_tests(files: PackageFiles, findings: Findings) -> tuple[SelfTest, ...]:
    """Read the tests of the jury programs."""
    result = []
    for kind in (SelfTestKind.INVALID_INPUT, SelfTestKind.INVALID_OUTPUT, SelfTestKind.VALID_OUTPUT):
        folder = f"{DATA}/{kind}"
        outer = read_section(files, group_file(files, folder), findings)
        for base in case_names(files, folder, deep=True):
            has_output = kind is not SelfTestKind.INVALID_INPUT
            for extension in ("ans", "out") if has_output else ():
                if f"{base}.{extension}" not in files:
                    findings.error(f"{base}.in", f"has no .{extension} file beside it.", f"Add {base}.{extension}.")
            settings = read_section(files, f"{base}.yaml", findings)
            result.append(
                SelfTest(
                    kind=kind,
                    name=base.removeprefix(f"{DATA}/"),
                    input=f"{base}.in",
                    output=f"{base}.out" if has_output and f"{base}.out" in files else None,
                    answer=f"{base}.ans" if has_output and f"{base}.ans" in files else None,
                    checker_args=_list(settings, "output_validator_args", outer.take_texts("output_validator_args")),
                    input_validator_args=_list(
                        settings, "input_validator_args", _list(outer, "input_validator_args", ())
                    ),
                )
            )
    return tuple(result)


def _sample(context: _Context) -> _GroupSettings:
    points = 0.0 if context.is_scored else None
    group = Group("sample", max_points=points, feedback=Feedback.COMPLETE)
    section = _section(context, f"{DATA}/sample")
    for key in ("max_score", "score_aggregation", "require_pass"):
        if key in section:
            section.error(key, "is not for samples.", "Remove it.")
    return _settled(section, _GroupSettings(group, full_feedback=True))


def _secret(context: _Context) -> _GroupSettings:
    section = _section(context, f"{DATA}/secret")
    group = Group("secret")
    if context.is_scored:
        group = _scored(section, group, Aggregate.SUM, DEFAULT_SECRET_POINTS)
    return _settled(section, _GroupSettings(group))


def _group(context: _Context, folder: str, secret: _GroupSettings) -> _GroupSettings:
    section = _section(context, folder)
    group = Group(folder.removeprefix(f"{DATA}/"))
    if context.is_scored:
        group = _scored(section, group, Aggregate.ALL, None)
        if group.max_points is None and secret.group.max_points is not None:
            section.error("max_score", "is missing, and secret has one.", "Give every group its max_score.")
    return _settled(section, replace(secret, group=group))


def _section(context: _Context, folder: str) -> YamlSection:
    section = read_section(context.files, group_file(context.files, folder), context.findings)
    if not context.is_scored:
        for key in _SCORING_ONLY:
            if key in section:
                section.error(key, "is only for scoring problems.", "Remove it, or set type: scoring.")
    for key in (*_LISTS, *_UNUSED, *_SCORING_ONLY, "full_feedback"):
        section.node(key)
    section.report_unknown_keys(is_error=True)
    return section


def _scored(section: YamlSection, group: Group, aggregate: Aggregate, default: float | None) -> Group:
    points = default
    if section.take_text("max_score") == "unbounded":
        points = None
    elif "max_score" in section:
        points = float(section.take_integer("max_score", 0))
    if "score_aggregation" in section:
        aggregate = _AGGREGATES[section.take_choice("score_aggregation", tuple(_AGGREGATES), "sum")]
    if aggregate is Aggregate.ALL and points is None:
        section.error("max_score", "a pass-fail group needs one.", "Add it.")
        points = 0.0
    if "static_validation_score" in section:
        section.error("static_validation_score", "static validation is not supported.", "Remove it.")
    required = section.take_texts("require_pass")
    return replace(
        group,
        aggregate=aggregate,
        max_points=points,
        on_reject=OnReject.CONTINUE if aggregate is Aggregate.SUM else OnReject.BREAK,
        verdict=GroupVerdict.FIRST,
        depends_on=tuple(name if name == "sample" or "/" in name else f"secret/{name}" for name in required),
        feedback=Feedback.POINTS,
    )


def _settled(section: YamlSection, over: _GroupSettings) -> _GroupSettings:
    return _GroupSettings(
        group=over.group,
        args=_list(section, "args", over.args),
        checker_args=_list(section, "output_validator_args", over.checker_args),
        input_validator_args=_list(section, "input_validator_args", over.input_validator_args),
        full_feedback=section.take_flag("full_feedback", default=over.full_feedback),
    )


def _list(section: YamlSection, key: str, inherited: tuple[str, ...]) -> tuple[str, ...]:
    """A list of arguments; a map by validator is accepted if it names only one."""
    if key not in section:
        return inherited
    node = section.node(key)
    if isinstance(node, YamlMap):
        inner = section.take_section(key)
        names = inner.keys()
        if len(names) > 1:
            section.error(key, "different arguments for several validators are not supported.", "Give one list.")
        return inner.take_texts(names[0]) if names else ()
    return section.take_texts(key)


def _cases(context: _Context, folder: str, settings: _GroupSettings, *, deep: bool) -> list[Case]:
    names = case_names(context.files, folder, deep=deep)
    raws = [read_raw(context.files, base, context.findings, is_legacy=False) for base in names]
    return [_case(context, raw, settings, len(raws)) for raw in raws]


def _case(context: _Context, raw: RawCase, settings: _GroupSettings, count: int) -> Case:
    is_sample = settings.group.path == "sample"
    return Case(
        name=raw.name,
        group=settings.group.path,
        input=raw.input,
        answer=raw.answer,
        args=raw.args or _list(raw.settings, "args", settings.args),
        files=raw.files,
        checker_args=_list(raw.settings, "output_validator_args", settings.checker_args),
        input_validator_args=_list(raw.settings, "input_validator_args", settings.input_validator_args),
        points=_points(settings.group, count) if context.is_scored else 1.0,
        is_sample=is_sample,
        full_feedback=raw.settings.take_flag("full_feedback", default=settings.full_feedback),
        output_name=f"{raw.name}.out" if context.problem.mode is ProblemMode.SUBMIT_ANSWER else "",
        description=raw.description,
        hint=raw.hint,
    )


def _points(group: Group, count: int) -> float | None:
    """The points of one case of a group; in an all-or-nothing group no case has points of its own."""
    if group.path == "sample" or group.aggregate is Aggregate.ALL:
        return 0.0
    if group.max_points is None or group.aggregate is Aggregate.MIN:
        return group.max_points
    return group.max_points / count


def _check_dependencies(context: _Context, groups: list[Group]) -> None:
    known = {group.path: group for group in groups}
    for number, group in enumerate(groups):
        for name in group.depends_on:
            path = group_file(context.files, f"{DATA}/{group.path}")
            if name not in known or (groups.index(known[name]) >= number):
                context.findings.error(
                    path, f"require_pass: {name!r} is not an earlier group.", "Name an earlier group."
                )
            elif name != "sample" and known[name].aggregate is not Aggregate.ALL:
                fix = f"Set score_aggregation: pass-fail in {name}."
                context.findings.error(path, f"require_pass: {name!r} is not a pass-fail group.", fix)
