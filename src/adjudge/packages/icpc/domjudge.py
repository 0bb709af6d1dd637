"""DOMjudge's additions to the format: ``domjudge-problem.ini`` and ``.timelimit``."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.problem import Problem
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.limits import with_time
from adjudge.packages.safe_yaml import parse_number

INI = "domjudge-problem.ini"
TIME_LIMIT = ".timelimit"
_KNOWN = frozenset({"name", "timelimit", "externalid", "allow_submit", "allow_judge", "points", "color", "short-name"})
_EXECUTABLES = frozenset({"special_run", "special_compare"})


def apply_domjudge(files: PackageFiles, problem: Problem, findings: Findings) -> Problem:
    """Add DOMjudge's settings where ``problem.yaml`` has none, and the short name, if they have one."""
    ini = _ini(files, findings)
    stated_ms = _time_ms(ini.get("timelimit", ""), INI, findings)
    file_ms = None
    if TIME_LIMIT in files:
        file_ms = _time_ms((files.text(TIME_LIMIT, findings) or "").strip(), TIME_LIMIT, findings)
    limits = problem.limits
    if not limits.has_explicit_time_limit and (time_ms := stated_ms or file_ms):
        limits = with_time(limits, time_ms)
    if file_ms and limits.has_explicit_time_limit and limits.run.cpu_ms != file_ms:
        findings.error(
            TIME_LIMIT, f"says {file_ms} ms, but the package says {limits.run.cpu_ms} ms.", "Remove one of the two.", 1
        )
    titles = problem.titles or ({"en": ini["name"]} if ini.get("name") else {})
    name = ini.get("short-name") or ini.get("externalid", "")
    return replace(problem, short_name=name, limits=limits, titles=titles)


def _time_ms(text: str, path: str, findings: Findings) -> int | None:
    if not text:
        return None
    seconds = parse_number(text)
    if seconds is None or seconds <= 0:
        findings.error(path, f"{text[:40]!r} is not a time limit.", "Write a number of seconds, without a unit.", 1)
        return None
    return max(1, round(seconds * 1000))


def _ini(files: PackageFiles, findings: Findings) -> dict[str, str]:
    text = (files.text(INI, findings) or "") if INI in files else ""
    result: dict[str, str] = {}
    for line, content in enumerate(text.split("\n"), 1):
        stripped = content.strip()
        if not stripped or stripped[0] in ";#[":
            continue
        key, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals:
            findings.warning(INI, f"{stripped[:40]!r} is not 'key = value'.", line=line)
        elif key in _EXECUTABLES:
            fix = "Add the program to the package."
            findings.error(INI, f"{key} names a program of some DOMjudge installation.", fix, line)
        elif key not in _KNOWN:
            findings.warning(INI, f"{key[:40]}: is not a key of this format.", "Remove it.", line)
        result[key] = value.strip("'\"")
    return result
