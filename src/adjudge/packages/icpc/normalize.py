"""Converts any problem to the model of 2025-09; what it cannot express is an error, what changes a warning."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adjudge.domain.limits import MIB
from adjudge.domain.problem import (
    Aggregate,
    Case,
    Feedback,
    Group,
    JurySubmission,
    OnReject,
    PackageFormat,
    Problem,
    ProblemLimits,
    ProblemMode,
)
from adjudge.domain.programs import CheckerProtocol, NativeChecker, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.expectations import DEFAULTS, to_icpc_expectation
from adjudge.packages.icpc.groups import DEFAULT_SECRET_POINTS
from adjudge.packages.icpc.layout import PackageContents, PackageLayout
from adjudge.packages.icpc.limits import DEFAULT_TIME_MS, run_limits

_NATIVE_ARGS: dict[NativeChecker, tuple[tuple[str, ...], str]] = {
    NativeChecker.ICPC_2025_09: ((), ""),
    NativeChecker.ICPC: ((), ""),
    NativeChecker.TOKEN: (("case_sensitive",), ""),
    NativeChecker.WCMP: (("case_sensitive",), ""),
    NativeChecker.NCMP: (("case_sensitive",), "numbers in an unusual spelling are wrong rather than badly formatted"),
    NativeChecker.YESNO: ((), "other words than YES and NO are wrong rather than badly formatted"),
    NativeChecker.NYESNO: ((), "other words than YES and NO are wrong rather than badly formatted"),
    NativeChecker.LINE: (("case_sensitive",), "line breaks are no longer compared"),
    NativeChecker.LCMP: (("case_sensitive",), "line breaks are no longer compared"),
    NativeChecker.WHITE_DIFF: (("case_sensitive",), "line breaks are no longer compared"),
    NativeChecker.DMOJ_STANDARD: (("case_sensitive",), "line breaks are no longer compared"),
    NativeChecker.EXACT: (("case_sensitive", "space_change_sensitive"), ""),
    NativeChecker.DMOJ_IDENTICAL: (("case_sensitive", "space_change_sensitive"), ""),
    NativeChecker.FCMP: (("case_sensitive", "space_change_sensitive"), "a missing last newline is no longer forgiven"),
    NativeChecker.DMOJ_RSTRIPPED: (
        ("case_sensitive", "space_change_sensitive"),
        "blanks at the ends of lines are no longer forgiven",
    ),
}
"""The closest arguments of the default validator, and the difference."""


@dataclass(frozen=True, slots=True)
class NormalizedProblem:
    """A problem in the format's model, and the sources of its files."""

    problem: Problem
    contents: PackageContents


def normalize_for_icpc(problem: Problem, findings: Findings) -> NormalizedProblem:
    """The problem as a package of 2025-09 expresses it."""
    _refuse_inexpressible(problem, findings)
    placer = PackageLayout(findings)
    args = _checker_args(problem, findings)
    groups, cases = _tests(problem, placer, findings)
    submits = problem.mode is ProblemMode.SUBMIT_ANSWER
    cases = [
        replace(
            case,
            checker=None,
            checker_args=_one_tolerance(problem, (*args, *case.checker_args)),
            output_name=f"{case.name}.out" if submits else "",
        )
        for case in cases
    ]
    checker, interactor = placer.checker(problem)
    if checker.score_unit is ScoreUnit.UNBOUNDED:
        checker = replace(checker, score_unit=ScoreUnit.ABSOLUTE)
    if checker.protocol is CheckerProtocol.NATIVE:
        checker = replace(checker, native=NativeChecker.ICPC_2025_09, options={})
    return NormalizedProblem(
        replace(
            problem,
            package_format=PackageFormat("icpc", "2025-09"),
            uuid=problem.uuid or str(uuid.uuid5(uuid.NAMESPACE_OID, f"adjudge problem {problem.short_name}")),
            titles=dict(problem.titles) or {"en": problem.short_name},
            is_minimised=False,
            limits=_limits(problem.limits, findings),
            cases=tuple(cases),
            groups=tuple(groups),
            checker=checker,
            interactor=interactor,
            stubs=placer.stubs(problem.stubs),
            static_validator=placer.program(problem.static_validator, "static_validator")
            if problem.static_validator
            else None,
            input_validators=placer.validators(problem.input_validators),
            generators=tuple(placer.program(program, "generators") for program in problem.generators),
            submissions=_submissions(problem.submissions, placer),
            self_tests=placer.self_tests(problem.self_tests),
            statements=placer.texts(problem.statements, "statement", "problem"),
            editorials=placer.texts(problem.editorials, "solution", "solution"),
            attachments=placer.attachments(problem.attachments),
        ),
        placer.contents,
    )


def _refuse_inexpressible(problem: Problem, findings: Findings) -> None:
    if problem.mode is ProblemMode.COMMUNICATION:
        findings.error("", "a communication problem has no counterpart in the ICPC format.")
    if problem.input_file or problem.output_file:
        names = " and ".join(name for name in (problem.input_file, problem.output_file) if name)
        fix = "Let submissions use stdin and stdout."
        findings.error("", f"input and output in named files ({names}) have no counterpart in the ICPC format.", fix)
    if problem.is_minimised:
        findings.error("", "a score to be minimised has no counterpart in 2025-09.")
    if any(case.checker for case in problem.cases):
        findings.error("", "checkers that differ by test have no counterpart in the ICPC format.")
    if problem.limits.per_language or problem.limits.time_factors:
        findings.warning("", "limits by language are left out.", "The ICPC format has one limit for all.")


def _limits(limits: ProblemLimits, findings: Findings) -> ProblemLimits:
    """Round limits up to the format's units; our defaults are written if the ICPC defaults differ."""
    run = limits.run
    is_stated = limits.has_explicit_time_limit or run.cpu_ms != DEFAULT_TIME_MS
    if is_stated and not limits.has_explicit_time_limit:
        message = f"states no time limit; limits.time_limit becomes {run.cpu_ms / 1000:g} s, which held until now."
        findings.warning("", message, "Change it in problem.yaml, or let 'adjudge problem verify' suggest another.")

    def up(value: int, unit: int) -> int:
        return math.ceil(value / unit) * unit

    return replace(
        limits,
        has_explicit_time_limit=is_stated,
        run=run_limits(run.cpu_ms, up(run.memory_bytes, MIB), up(run.output_bytes, MIB)),
        per_language={},
        time_factors={},
        code_bytes=up(limits.code_bytes, 1024),
        compile_ms=up(limits.compile_ms, 1000),
        validation_ms=up(limits.validation_ms, 1000),
        ac_to_time_limit=max(1.0, limits.ac_to_time_limit),
        time_limit_to_tle=max(1.0, limits.time_limit_to_tle),
    )


def _checker_args(problem: Problem, findings: Findings) -> tuple[str, ...]:
    """The arguments for every case that correspond to the checker."""
    checker = problem.checker
    if checker.protocol is not CheckerProtocol.NATIVE:
        return checker.args
    if checker.native in (NativeChecker.RCMP, NativeChecker.DMOJ_FLOATS):
        return _tolerance(checker.native, dict(checker.options), findings)
    if checker.native not in _NATIVE_ARGS:
        findings.error("", f"the checker {checker.native} has no counterpart in the ICPC format.", "Write a validator.")
        return ()
    if checker.native is NativeChecker.ICPC and _uses_tolerance(problem):
        findings.info("", "the default validator of 2025-09 reads decimal numbers only, no hexadecimal ones.")
    args, difference = _NATIVE_ARGS[checker.native]
    if difference:
        findings.warning("", f"the checker {checker.native} becomes the default one: {difference}.")
    return (*checker.args, *args)


def _one_tolerance(problem: Problem, args: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the tolerance that applies if an older package gives several, which 2025-09 forbids."""
    if problem.checker.protocol is not CheckerProtocol.NATIVE:
        return args
    places = [index for index, arg in enumerate(args) if arg.startswith("float_")]
    given = {args[index]: args[index : index + 2] for index in places}
    if len(given) == len(places) and ("float_tolerance" not in given or len(given) == 1):
        return args
    valued = {place for index in places for place in (index, index + 1)}
    flags = [arg for index, arg in enumerate(args) if index not in valued]
    kept = [given["float_tolerance"]] if "float_tolerance" in given else list(given.values())
    return (*flags, *(word for words in kept for word in words))


def _uses_tolerance(problem: Problem) -> bool:
    given = (problem.checker.args, *(case.checker_args for case in problem.cases))
    return any(arg.startswith("float_") for args in given for arg in args)


def _tolerance(native: NativeChecker, options: dict[str, str], findings: Findings) -> tuple[str, ...]:
    kind = {"absolute": "float_absolute_tolerance", "relative": "float_relative_tolerance"}
    name = kind.get(options.get("error_mode", ""), "float_tolerance")
    value = options.get("epsilon") or f"1e-{options.get('precision', '6')}"
    findings.warning("", f"the checker {native} becomes {name} {value}: line breaks are no longer compared.")
    return (name, value, "case_sensitive")


def _submissions(submissions: tuple[JurySubmission, ...], placer: PackageLayout) -> tuple[JurySubmission, ...]:
    """Add submissions; one that its folder would not describe moves to ``mixed``."""
    placed: dict[str, JurySubmission] = {}
    for submission in submissions:
        if any(Verdict.CE in item.result for item in submission.expectations):
            placer.findings.warning(submission.path, "is left out: the format has no compile errors.")
            continue
        expectations = tuple(to_icpc_expectation(item) for item in submission.expectations)
        folder, _, name = path = submission.path.partition("/")
        if folder in DEFAULTS and (not expectations or expectations[0] != DEFAULTS[folder]):
            path = ("mixed", "/", name if f"mixed/{name}" not in placed else f"{folder}-{name}")
        moved = replace(submission, path="".join(path), expectations=expectations)
        placed[moved.path] = placer.submission(moved)
    return tuple(sorted(placed.values(), key=lambda item: [step.encode() for step in item.path.split("/", 1)]))


# ---- tests


def _tests(problem: Problem, placer: PackageLayout, findings: Findings) -> tuple[list[Group], list[Case]]:
    if not problem.is_scored:
        return _unscored(problem, placer)
    if not _is_shaped(problem):
        return _scored(problem, placer, findings)
    groups = [group for group in problem.groups if group.path in ("", "sample", "secret") or _has_cases(problem, group)]
    return groups, [placer.case(case, case.name, case.group) for case in problem.cases]


def _has_cases(problem: Problem, group: Group) -> bool:
    return any(case.group == group.path for case in problem.cases)


def _is_shaped(problem: Problem) -> bool:
    """Whether a scored problem already follows 2025-09."""
    return problem.package_format == PackageFormat("icpc", "2025-09")


def _unscored(problem: Problem, placer: PackageLayout) -> tuple[list[Group], list[Case]]:
    """Lay out tests that must all pass: samples apart, the others in their order, with or without folders."""
    cases: list[Case] = []
    groups = [Group("")]
    names = _plain_names(problem.cases)
    if any(case.is_sample for case in problem.cases):
        groups.append(Group("sample", feedback=Feedback.COMPLETE))
    groups.append(Group("secret"))
    for case, name in zip(problem.cases, names, strict=True):
        group = "sample" if case.is_sample else name.rpartition("/")[0].split("/", 2)[:2]
        path = group if isinstance(group, str) else "/".join(group)
        if path not in [item.path for item in groups]:
            groups.append(Group(path))
        cases.append(replace(placer.case(case, name, path), points=1.0, reject_points=0.0))
    cases.sort(key=lambda item: (not item.is_sample, _order(item.name)))
    inner = sorted((group for group in groups if group.path.startswith("secret/")), key=lambda item: item.path.encode())
    return [*(group for group in groups if not group.path.startswith("secret/")), *inner], cases


def _plain_names(cases: Sequence[Case]) -> list[str]:
    """Names of tests: unchanged if they already sort in running order, else numbers."""
    wanted = [case.name for case in cases]
    secret = [case.name for case in cases if not case.is_sample]
    samples = [case.name for case in cases if case.is_sample]
    depths = {name.count("/") == 1 for name in secret}
    in_order = wanted == [*sorted(samples, key=str.encode), *sorted(secret, key=_order)]
    well_placed = all(name.startswith("sample/") for name in samples) and all(n.startswith("secret/") for n in secret)
    if in_order and well_placed and len(depths) <= 1:
        return wanted
    width = len(str(len(cases)))
    return [f"{'sample' if case.is_sample else 'secret'}/{index:0{width}d}" for index, case in enumerate(cases, 1)]


def _order(name: str) -> tuple[bytes, bytes]:
    """The running order of the format: by group, then by name."""
    return "/".join(name.split("/")[:-1][:2]).encode(), name.encode()


def _scored(problem: Problem, placer: PackageLayout, findings: Findings) -> tuple[list[Group], list[Case]]:
    """Make every group with tests a group below ``secret``; tests with different points become separate groups."""
    groups: list[Group] = []
    cases: list[Case] = []
    renamed: dict[str, str] = {}
    unbounded = problem.checker.score_unit is ScoreUnit.UNBOUNDED
    if unbounded:
        fix = "Let the output validator write score.txt whenever it accepts."
        findings.warning("", "scores have no maximum, and then 2025-09 needs a score for every accepted test.", fix)
    blocks = _blocks(problem)
    width = len(str(len(blocks)))
    for index, (group, members) in enumerate(blocks, 1):
        path = f"secret/{index:0{width}d}"
        renamed.setdefault(group.path, path)
        points = None if unbounded else _block_points(group, members, findings)
        depends_on = tuple(renamed[name] for name in group.depends_on if name in renamed)
        groups.append(_shaped(group, path, points, depends_on, findings))
        inner = len(str(len(members)))
        for number, case in enumerate(members, 1):
            placed = placer.case(replace(case, is_sample=False), f"{path}/{number:0{inner}d}", path)
            cases.append(replace(placed, points=_case_points(groups[-1], len(members)), reject_points=0.0))
    total = sum(group.max_points or 0.0 for group in groups)
    needed = {name for group in groups for name in group.depends_on}
    for group in groups:
        if group.path in needed and group.aggregate is not Aggregate.ALL:
            findings.warning("", f"the group {group.path} becomes all or nothing, because another one needs it.")
    groups = [replace(group, aggregate=Aggregate.ALL) if group.path in needed else group for group in groups]
    shape = {group.path: group for group in groups}
    counts = {path: sum(case.group == path for case in cases) for path in shape}
    cases = [replace(case, points=_case_points(shape[case.group], counts[case.group])) for case in cases]
    root = Group("", on_reject=OnReject.CONTINUE, ignore_sample=True)
    secret = Group(
        "secret",
        max_points=None if unbounded else total or DEFAULT_SECRET_POINTS,
        on_reject=OnReject.CONTINUE,
        feedback=Feedback.POINTS,
    )
    return [root, secret, *groups], cases


def _blocks(problem: Problem) -> list[tuple[Group, list[Case]]]:
    """Split tests into sequences that can each be one group of the format."""
    blocks: list[tuple[Group, list[Case]]] = []
    for case in problem.cases:
        group = problem.group(case.group)
        same = bool(blocks) and blocks[-1][0].path == group.path
        if same and (group.aggregate is not Aggregate.SUM or blocks[-1][1][0].points == case.points):
            blocks[-1][1].append(case)
        else:
            blocks.append((group, [case]))
    return blocks


def _block_points(group: Group, members: list[Case], findings: Findings) -> float:
    if group.aggregate is Aggregate.SUM:
        points = sum(case.points or 0.0 for case in members)
    else:
        points = group.max_points if group.max_points is not None else members[0].points or 0.0
    if points != int(points):
        findings.warning("", f"the {points:g} points of {group.path or 'the tests'} are rounded to a whole number.")
    return float(round(points))


def _shaped(group: Group, path: str, points: float | None, depends_on: tuple[str, ...], findings: Findings) -> Group:
    aggregate = group.aggregate
    if aggregate not in (Aggregate.SUM, Aggregate.MIN, Aggregate.ALL):
        findings.error("", f"the scoring '{aggregate}' of {group.path} has no counterpart in the ICPC format.")
        aggregate = Aggregate.ALL
    return Group(
        path,
        aggregate,
        max_points=points,
        on_reject=OnReject.CONTINUE if aggregate is Aggregate.SUM else OnReject.BREAK,
        depends_on=depends_on,
        feedback=Feedback.POINTS,
    )


def _case_points(group: Group, count: int) -> float | None:
    if group.aggregate is Aggregate.ALL:
        return 0.0
    if group.max_points is None:
        return None
    return group.max_points / (count if group.aggregate is Aggregate.SUM else 1)
