"""``adjudge.yaml`` and ``statement/``: additions to packages of formats without limits, title or statement."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.limits import MIB
from adjudge.domain.problem import Problem, ProblemLimits
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.cases import read_section
from adjudge.packages.icpc.limits import MAX_MIB
from adjudge.packages.icpc.statements import read_statements, titles_from
from adjudge.packages.safe_yaml import YamlSection

FILE = "adjudge.yaml"
HOW = f"To set others, write them into {FILE}: 'limits: {{time_limit: 2, memory: 256}}' (seconds and MiB)."
_FORMATS = ("dmoj", "plain")


def supplemented(problem: Problem, files: PackageFiles, findings: Findings) -> Problem:
    """The problem with the additions of its package; other formats state these themselves."""
    if problem.package_format.format not in _FORMATS:
        if FILE in files:
            findings.warning(FILE, "is not used: this format states its own limits.", "Remove it.")
        return problem
    section = read_section(files, FILE, findings)
    statements = read_statements(files)
    title = section.take_text("title")
    made = replace(
        problem,
        titles={"en": title} if title else titles_from(files, statements, findings),
        limits=_limits(section, problem.limits),
        statements=statements,
    )
    section.report_unknown_keys(is_error=True)
    return made


def _limits(section: YamlSection, limits: ProblemLimits) -> ProblemLimits:
    stated = section.take_section("limits")
    run = limits.run
    time_ms = round(stated.take_number("time_limit", 0.0, above=True) * 1000)
    memory_mib = stated.take_integer("memory", run.memory_bytes // MIB, least=1)
    if memory_mib > MAX_MIB:
        stated.error("memory", f"{memory_mib} MiB is more than any machine has.", "The unit is MiB.")
        memory_mib = run.memory_bytes // MIB
    stated.report_unknown_keys(is_error=True)
    run = replace(run, memory_bytes=memory_mib * MIB)
    if not time_ms:
        return replace(limits, run=run)
    wall_ms = round(run.wall_ms * time_ms / run.cpu_ms)
    return replace(limits, run=replace(run, cpu_ms=time_ms, wall_ms=wall_ms), has_explicit_time_limit=True)
