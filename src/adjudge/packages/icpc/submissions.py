"""``submissions/``: the jury's solutions, correct and incorrect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Expectation, JurySubmission
from adjudge.packages.files import PackageFiles, program_at
from adjudge.packages.findings import Findings
from adjudge.packages.globs import matches
from adjudge.packages.icpc.cases import read_section
from adjudge.packages.icpc.credits import people
from adjudge.packages.icpc.expectations import (
    DEFAULTS,
    KEYS,
    LEGACY_DEFAULTS,
    from_comments,
    from_section,
    to_icpc_expectation,
)
from adjudge.packages.safe_yaml import YamlMap as YamlMapping

FOLDER = "submissions"
FILE = "submissions/submissions.yaml"
_DOMJUDGE_FILE = "submissions.json"
_OWN_KEYS = (*KEYS, "language", "entrypoint", "authors", "model_solution")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One top-level key of ``submissions.yaml``."""

    glob: str
    expectations: tuple[Expectation, ...]
    language: str = ""
    entry_point: str = ""
    authors: tuple[str, ...] = ()
    is_model: bool = False


@dataclass(frozen=True, slots=True)
class _Rules:
    defaults: Mapping[str, Expectation]
    rules: tuple[_Rule, ...] = ()
    domjudge: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read_submissions(files: PackageFiles, findings: Findings, *, is_legacy: bool) -> tuple[JurySubmission, ...]:
    defaults = dict(LEGACY_DEFAULTS if is_legacy else DEFAULTS)
    rules = _rules(files, findings, defaults)
    paths = [
        f"{folder}/{child}"
        for folder in files.children(FOLDER)
        for child in files.children(f"{FOLDER}/{folder}")
        if not folder.startswith(".") and not child.startswith(".")
    ]
    result = [_submission(files, path, rules, findings) for path in paths]
    if not any(submission.path.startswith("accepted/") for submission in result):
        fix = "Add a correct solution to submissions/accepted/."
        findings.warning(FOLDER, "has no accepted submission, so nothing shows that the problem can be solved.", fix)
    return tuple(result)


def _submission(files: PackageFiles, path: str, rules: _Rules, findings: Findings) -> JurySubmission:
    folder = path.partition("/")[0]
    matching = [rule for rule in rules.rules if rule.glob not in rules.defaults and matches(rule.glob, path)]
    about = rules.domjudge.get(f"{FOLDER}/{path}", {})
    program = program_at(
        files,
        f"{FOLDER}/{path}",
        language=next((rule.language for rule in matching if rule.language), about.get("langid", "")),
        entry_point=next((rule.entry_point for rule in matching if rule.entry_point), about.get("entry_point", "")),
    )
    expectations = [rules.defaults[folder]] if folder in rules.defaults else []
    for rule in rules.rules:
        if rule.glob == folder and folder in rules.defaults:
            expectations += rule.expectations
    for rule in matching:
        expectations += rule.expectations
    commented = from_comments(files, [ref.path for ref in program.files], findings)
    expectations += [item for item in commented if to_icpc_expectation(item) not in expectations]
    if not expectations:
        fix = f"Say what it must do in {FILE}, or move it to accepted, wrong_answer, …"
        findings.warning(f"{FOLDER}/{path}", "it has no expectations.", fix)
    return JurySubmission(
        path=path,
        program=program,
        expectations=tuple(expectations),
        authors=tuple(author for rule in matching for author in rule.authors),
        is_model=any(rule.is_model for rule in matching),
    )


def _rules(files: PackageFiles, findings: Findings, defaults: dict[str, Expectation]) -> _Rules:
    """Read ``submissions.yaml``. A key that is a default folder replaces the expectations of that folder."""
    section = read_section(files, FILE, findings)
    rules = []
    for glob in section.keys():  # noqa: SIM118  # not a dict
        try:
            matches(glob, "")
        except InvalidInput as error:
            section.error(glob, error.message)
            continue
        inner = section.take_section(glob)
        nested = [key for key in inner.keys() if key not in _OWN_KEYS]  # noqa: SIM118  # not a dict
        for key in nested:
            if not isinstance(inner.node(key), YamlMapping):
                inner.error(key, "is neither a key of the format nor a map about some tests.", "Remove it.")
        result = [from_section(inner.take_section(key), key) for key in nested]
        if glob in defaults:
            defaults[glob] = from_section(inner, base=defaults[glob])
        elif any(key in inner for key in KEYS):
            result.insert(0, from_section(inner))
        rules.append(
            _Rule(
                glob=glob,
                expectations=tuple(result),
                language=inner.take_text("language"),
                entry_point=inner.take_text("entrypoint"),
                authors=people(inner, "authors"),
                is_model=inner.take_flag("model_solution", default=False),
            )
        )
    return _Rules(defaults, tuple(rules), _domjudge(files, findings))


def _domjudge(files: PackageFiles, findings: Findings) -> dict[str, dict[str, str]]:
    """Read DOMjudge's ``submissions.json``: language and entry point by path."""
    if _DOMJUDGE_FILE not in files or (text := files.text(_DOMJUDGE_FILE, findings)) is None:
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        findings.error(_DOMJUDGE_FILE, "is not JSON.", line=line)
        return {}
    if not isinstance(data, dict):
        findings.error(_DOMJUDGE_FILE, "must be an object of paths.")
        return {}
    return {
        str(path): {str(key): value for key, value in about.items() if isinstance(value, str)}
        for path, about in data.items()
        if isinstance(about, dict)
    }
