"""Reads a package of any format: open, detect, read, and check what the judge relies on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adjudge.domain.problem import Problem, ProblemLimits
from adjudge.packages.archive import Links, open_package
from adjudge.packages.archive_limits import ArchiveLimits
from adjudge.packages.cms.reader import read_cms
from adjudge.packages.dmoj.reader import read_dmoj
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Finding, Findings, PackageRefused, package_error
from adjudge.packages.generated_files import GeneratedFile
from adjudge.packages.icpc.reader import read_icpc
from adjudge.packages.languages import check_languages
from adjudge.packages.line_endings import check_line_endings
from adjudge.packages.manifest import all_paths
from adjudge.packages.plain import has_tests, read_plain
from adjudge.packages.polygon.reader import read_polygon
from adjudge.packages.supplement import supplemented

MAX_TIME_MS = 3_600_000
MAX_JURY_MS = 24 * 3_600_000
MAX_MEMORY_BYTES = 1 << 40
_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was read; usable while it is open, unless ``findings`` has errors."""

    problem: Problem
    files: PackageFiles
    findings: tuple[Finding, ...]
    generated_files: tuple[GeneratedFile, ...] = ()
    """Files to generate before the problem can be judged."""


@contextmanager
def load_package(
    source: Path, limits: ArchiveLimits | None = None, scratch: Path | None = None, links: Links = Links.INSIDE
) -> Iterator[Package]:
    """Open and read a package; raises PackageRefused with all findings if it has errors."""
    findings = Findings()
    with open_package(source, limits, scratch, links) as files:
        package = read_package(files, default_name(source), findings)
        if findings.has_errors:
            raise PackageRefused(findings)
        yield package


def default_name(source: Path) -> str:
    """The name of a problem from its folder or archive."""
    base = source.resolve().name
    for suffix in (".zip", ".kpp", "$linux", "$windows"):
        base = base.removesuffix(suffix)
    return _NOT_A_NAME.sub("-", base).strip("-").lower() or "problem"


def read_package(files: PackageFiles, name: str, findings: Findings) -> Package:
    """Detect the format and read the files."""
    kind = detect(files)
    generated: tuple[GeneratedFile, ...] = ()
    if kind == "polygon":
        problem, generated = read_polygon(files, name, findings)
    elif kind == "dmoj":
        problem, generated = read_dmoj(files, name, findings)
    elif kind == "cms":
        problem = read_cms(files, name, findings)
    elif kind == "plain":
        problem = read_plain(files, name, findings)
    else:
        problem = read_icpc(files, name, findings)
    problem = supplemented(problem, files, findings)
    check_languages(problem, generated, findings)
    for item in generated:
        if item.time_ms > MAX_JURY_MS or (item.memory_bytes or 0) > MAX_MEMORY_BYTES:
            fix = f"The maximum is {MAX_JURY_MS} ms and {MAX_MEMORY_BYTES} bytes."
            findings.error(item.program.files[0].path, "has limits above the maximum.", fix)
    _check(problem, files, {path for item in generated for path in generated_paths(item)}, findings)
    return Package(problem, files, findings.in_order(), generated)


def generated_paths(item: GeneratedFile) -> tuple[str, ...]:
    """The files that a program writes."""
    return (item.target, item.error_target) if item.error_target else (item.target,)


def _check(problem: Problem, files: PackageFiles, generated: set[str], findings: Findings) -> None:
    """Check what the judge relies on, independent of the format."""
    _check_limits(problem.limits, findings)
    _check_tree(problem, findings)
    for path in sorted(set(all_paths(problem)) - generated):
        if path not in files:
            findings.error(path, "is required, but not in the package.", "Add it.")


def _check_limits(limits: ProblemLimits, findings: Findings) -> None:
    times = {
        "time limit": (limits.run.cpu_ms, MAX_TIME_MS),
        "wall-clock limit": (limits.run.wall_ms, MAX_JURY_MS),
        "time for validation": (limits.validation_ms, MAX_JURY_MS),
        "time for compilation": (limits.compile_ms, MAX_JURY_MS),
    }
    sizes = {
        "memory limit": limits.run.memory_bytes,
        "output limit": limits.run.output_bytes,
        "memory for validation": limits.validation_memory_bytes,
        "memory for compilation": limits.compile_memory_bytes,
    }
    for what, (time_ms, most_ms) in times.items():
        if time_ms > most_ms:
            findings.error("", f"has a {what} of {time_ms} ms.", f"The maximum is {most_ms} ms.")
    for what, size_bytes in sizes.items():
        if size_bytes > MAX_MEMORY_BYTES:
            findings.error("", f"has a {what} of {size_bytes} bytes.", "Check the unit.")


def _check_tree(problem: Problem, findings: Findings) -> None:
    paths = [group.path for group in problem.groups]
    names = [case.name for case in problem.cases]
    for kind, seen in (("group", paths), ("test", names)):
        for twice in sorted({name for name in seen if seen.count(name) > 1}) if len(set(seen)) != len(seen) else ():
            findings.error("", f"has the {kind} {twice!r} twice.", "Rename one of them.")
    for group in problem.groups:
        if group.parent is not None and group.parent not in paths:
            findings.error("", f"has the group {group.path!r} without its parent.")
    for case in problem.cases:
        if case.group not in paths:
            findings.error(case.input, f"belongs to the group {case.group!r}, which does not exist.")


def check_test_files(package: Package, findings: Findings) -> None:
    """Report unusual line endings and encodings of tests. Reads every byte."""
    for case in package.problem.cases:
        for path in (case.input, case.answer):
            if path and path in package.files:
                check_line_endings(package.files, path, findings)


FORMATS = ("icpc", "polygon", "dmoj", "cms", "plain")


def detect(files: PackageFiles) -> str:
    """Detect the format by the file that is characteristic for each."""
    if "problem.xml" in files:
        return "polygon"
    if "init.yml" in files:
        return "dmoj"
    if "problem.yaml" in files or "domjudge-problem.ini" in files or files.has_folder("data/secret"):
        return "icpc"
    if "task.yaml" in files or (files.has_folder("input") and files.has_folder("output")):
        return "cms"
    if has_tests(files):
        return "plain"
    raise package_error(
        "",
        "Unknown package format.",
        "Expected problem.yaml (ICPC), problem.xml (Polygon), init.yml (DMOJ), task.yaml (CMS) or pairs of .in/.out.",
    )
