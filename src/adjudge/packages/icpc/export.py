"""Writes an ICPC package of version 2025-09 to a folder or a ZIP; the same problem always gives the same bytes."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from adjudge.domain.errors import Conflict
from adjudge.domain.limits import MIB
from adjudge.domain.problem import (
    ANY_VERDICT,
    Aggregate,
    Case,
    Expectation,
    Group,
    JurySubmission,
    Problem,
    ProblemMode,
    TimeBound,
)
from adjudge.domain.verdict import Verdict
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import ConversionRefused, Findings
from adjudge.packages.icpc.cases import DATA
from adjudge.packages.icpc.expectations import DEFAULTS, ICPC_VERDICTS
from adjudge.packages.icpc.layout import PackageContents
from adjudge.packages.icpc.normalize import NormalizedProblem, normalize_for_icpc

_AGGREGATES = {Aggregate.ALL: "pass-fail", Aggregate.SUM: "sum", Aggregate.MIN: "min"}
_EPOCH = (1980, 1, 1, 0, 0, 0)


def export_icpc(problem: Problem, findings: Findings) -> NormalizedProblem:
    """Plan the package: the problem as it will be read back, and all its files."""
    normal = normalize_for_icpc(problem, findings)
    if findings.has_errors:
        raise ConversionRefused(findings)
    contents: PackageContents = dict(normal.contents)
    contents["problem.yaml"] = _dump(_metadata(normal.problem))
    _add_settings(normal.problem, contents)
    if rules := submissions_yaml(normal.problem):
        contents["submissions/submissions.yaml"] = _dump(rules)
    return NormalizedProblem(normal.problem, contents)


def write_folder(contents: PackageContents, files: PackageFiles, folder: Path) -> None:
    """Write the package into a new or empty folder."""
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not empty; name a new folder.")
    for name in sorted(contents):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = contents[name]
        if isinstance(source, bytes):
            target.write_bytes(source)
        else:
            shutil.copyfile(files.locate(source), target)
            target.chmod(0o755 if os.access(files.locate(source), os.X_OK) else 0o644)


def write_zip(contents: PackageContents, files: PackageFiles, target: Path) -> None:
    """Write the package as an archive with ``problem.yaml`` at its root."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            source = contents[name]
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = isinstance(source, str) and os.access(files.locate(source), os.X_OK)
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            with archive.open(entry, "w", force_zip64=True) as out:
                for chunk in [source] if isinstance(source, bytes) else files.chunks(source):
                    out.write(chunk)


def _dump(value: dict[str, Any]) -> bytes:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text.encode()


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _metadata(problem: Problem) -> dict[str, Any]:
    kinds = [str(problem.grading)]
    if problem.max_passes > 1:
        kinds.append("multi-pass")
    if problem.mode is not ProblemMode.BATCH:
        kinds.append(str(problem.mode))
    names = dict(problem.titles)
    result: dict[str, Any] = {
        "problem_format_version": "2025-09",
        "type": kinds,
        "name": names["en"] if list(names) == ["en"] else names,
        "uuid": problem.uuid,
        "version": problem.version,
        "credits": _credits(problem),
        "source": [{"name": item.name, **({"url": item.url} if item.url else {})} for item in problem.sources],
        "license": problem.license,
        "rights_owner": problem.rights_owner,
        "embargo_until": problem.embargo_until,
        "limits": _limits(problem),
        "keywords": list(problem.keywords),
        "languages": list(problem.languages),
        "allow_file_writing": problem.allow_file_writing,
        "constants": _constants(problem),
    }
    return {key: value for key, value in result.items() if value not in ("", [], {}, False)}


def _credits(problem: Problem) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for role, people in problem.credits.items():
        kind, _, language = role.partition(".")
        if language:
            result.setdefault(kind, {})[language] = list(people)
        else:
            result[kind] = list(people)
    return result


def _constants(problem: Problem) -> dict[str, Any]:
    result: dict[str, Any] = {}
    variants = {name.partition(".")[0] for name in problem.constants if "." in name}
    for name, value in problem.constants.items():
        base, _, variant = name.partition(".")
        if base in variants:
            result.setdefault(base, {})[variant or "value"] = value
        else:
            result[base] = value
    return result


def _limits(problem: Problem) -> dict[str, Any]:
    limits = problem.limits
    result: dict[str, Any] = {}
    if limits.has_explicit_time_limit:
        result["time_limit"] = _number(limits.run.cpu_ms / 1000)
    result |= {
        "time_multipliers": {
            "ac_to_time_limit": _number(limits.ac_to_time_limit),
            "time_limit_to_tle": _number(limits.time_limit_to_tle),
        },
        "time_resolution": _number(limits.time_resolution_ms / 1000),
        "memory": limits.run.memory_bytes // MIB,
        "output": limits.run.output_bytes // MIB,
        "code": limits.code_bytes // 1024,
        "compilation_time": limits.compile_ms // 1000,
        "compilation_memory": limits.compile_memory_bytes // MIB,
        "validation_time": limits.validation_ms // 1000,
        "validation_memory": limits.validation_memory_bytes // MIB,
        "validation_output": limits.validation_output_bytes // MIB,
    }
    if problem.max_passes > 1:
        result["validation_passes"] = problem.max_passes
    return result


def _add_settings(problem: Problem, contents: PackageContents) -> None:
    """Write ``test_group.yaml`` for the settings of a group, and a file for each test that differs."""
    for group in problem.groups:
        cases = [case for case in problem.cases if case.group == group.path]
        shared = _shared(cases)
        settings = {**(_scoring(group) if problem.is_scored else {}), **shared}
        if settings:
            contents[f"{DATA}/{group.path}/test_group.yaml"] = _dump(settings)
        for case in cases:
            own = {key: value for key, value in _settings(case).items() if shared.get(key, _DEFAULTS.get(key)) != value}
            if own:
                contents[f"{DATA}/{case.name}.yaml"] = _dump(own)
    for test in problem.self_tests:
        own = {
            "output_validator_args": list(test.checker_args),
            "input_validator_args": list(test.input_validator_args),
        }
        if test.checker_args or test.input_validator_args:
            contents[f"{DATA}/{test.name}.yaml"] = _dump({key: value for key, value in own.items() if value})


_DEFAULTS: dict[str, Any] = {"args": [], "input_validator_args": [], "output_validator_args": []}


def _settings(case: Case) -> dict[str, Any]:
    result: dict[str, Any] = {
        "args": list(case.args),
        "input_validator_args": list(case.input_validator_args),
        "output_validator_args": list(case.checker_args),
    }
    if case.full_feedback != case.is_sample:
        result["full_feedback"] = case.full_feedback
    if case.hint:
        result["hint"] = case.hint
    if case.description:
        result["description"] = case.description
    return result


def _shared(cases: Sequence[Case]) -> dict[str, Any]:
    """The arguments that all tests of a group share; empty lists are omitted."""
    every = [_settings(case) for case in cases]
    return {
        key: every[0][key]
        for key in _DEFAULTS
        if every and every[0][key] and all(one[key] == every[0][key] for one in every)
    }


def _scoring(group: Group) -> dict[str, Any]:
    if group.path in ("", "sample"):
        return {}
    result: dict[str, Any] = {
        "max_score": "unbounded" if group.max_points is None else int(group.max_points),
        "score_aggregation": _AGGREGATES[group.aggregate],
    }
    if group.depends_on:
        result["require_pass"] = list(group.depends_on)
    return result


_BOUNDS: dict[TimeBound, Any] = {TimeBound.NEITHER: False, TimeBound.LOWER: "lower", TimeBound.UPPER: "upper"}


def submissions_yaml(problem: Problem) -> dict[str, Any]:
    """The content of ``submissions.yaml``: what the folder of a submission does not express."""
    result: dict[str, Any] = {}
    for submission in problem.submissions:
        result |= _rules(submission)
    return result


def _rules(submission: JurySubmission) -> dict[str, Any]:
    rest = list(submission.expectations)
    folder = submission.path.partition("/")[0]
    if folder in DEFAULTS and rest and rest[0] == DEFAULTS[folder]:
        rest.pop(0)
    about: dict[str, Any] = {}
    if submission.program.language:
        about["language"] = submission.program.language
    if submission.program.entry_point:
        about["entrypoint"] = submission.program.entry_point
    if submission.authors:
        about["authors"] = list(submission.authors)
    if submission.is_model:
        about["model_solution"] = True
    whole = [item for item in rest if not item.cases]
    if whole:
        about |= _keys(whole[0])
    for item in rest:
        if item.cases:
            about[item.cases] = _keys(item)
    result = {submission.path: about} if about else {}
    for number, item in enumerate(whole[1:], 1):
        result["{" * number + submission.path + "}" * number] = _keys(item)
    return result


def _keys(item: Expectation) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if item.permitted != ANY_VERDICT:
        result["permitted"] = _names(item.permitted)
    if item.required != ANY_VERDICT:
        result["required"] = _names(item.required)
    if item.score is not None:
        result["score"] = list(item.score)
    if item.message:
        result["message"] = item.message
    if item.time_bound in _BOUNDS:
        result["use_for_time_limit"] = _BOUNDS[item.time_bound]
    return result


def _names(verdicts: frozenset[Verdict]) -> list[str]:
    return [name for name, members in ICPC_VERDICTS.items() if members & verdicts]
