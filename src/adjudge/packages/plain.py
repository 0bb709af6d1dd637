"""A plain folder of tests: ``1.in`` with ``1.out`` or ``1.ans``."""

from __future__ import annotations

import re

from adjudge.domain.limits import MIB
from adjudge.domain.problem import Case, Group, PackageFormat, Problem, ProblemLimits
from adjudge.packages import supplement
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.line_endings import normalize_line_endings

_NUMBER = re.compile(r"(\d+)")
_ANSWERS = (".ans", ".out")


def has_tests(files: PackageFiles) -> bool:
    """Whether there is a file that this reader takes for a test."""
    return any(name.endswith(".in") for name in files.names())


def read_plain(files: PackageFiles, name: str, findings: Findings) -> Problem:
    """Read every pair of files; numbers in names sort as numbers: ``2`` before ``10``."""
    bases = sorted((path[:-3] for path in files.names() if path.endswith(".in")), key=_natural)
    cases = tuple(case for base in bases if (case := _case(files, base, findings)))
    if not cases:
        findings.error("", "has no test: no .in file has an answer.", "Add 1.in and 1.out.")
    for path in files.names():
        if path.endswith(_ANSWERS) and f"{path.rpartition('.')[0]}.in" not in files:
            findings.warning(path, "is an answer without an input.", "Add the input, or remove it.")
    limits = ProblemLimits(has_explicit_time_limit=False)
    if supplement.FILE not in files:
        held = f"{limits.run.cpu_ms / 1000:g} s and {limits.run.memory_bytes // MIB} MiB apply"
        findings.info("", f"has no limits: {held}.", supplement.HOW)
    groups = (Group(""), Group("secret"))
    return Problem(name, PackageFormat("plain"), cases=cases, groups=groups, limits=limits)


def _case(files: PackageFiles, base: str, findings: Findings) -> Case | None:
    answers = [f"{base}{extension}" for extension in _ANSWERS if f"{base}{extension}" in files]
    if not answers:
        findings.error(f"{base}.in", "has no answer beside it.", f"Add {base}.out or {base}.ans.")
        return None
    if len(answers) > 1:
        findings.warning(answers[1], f"is not used, because {answers[0]} is there.", "Remove one of the two.")
    for path in (f"{base}.in", answers[0]):
        normalize_line_endings(files, path, findings)
    steps = base.split("/")
    is_sample = any(step.lower().startswith("sample") for step in steps)
    return Case(f"secret/{base}", "secret", f"{base}.in", answers[0], is_sample=is_sample, full_feedback=is_sample)


def _natural(base: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(base) if part]
