"""Reads a DMOJ problem: ``init.yml`` and its files. Limits and statement are in DMOJ's database, not in the package."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.problem import Grading, PackageFormat, Problem, ProblemLimits, ProblemMode
from adjudge.domain.programs import Interactor, InteractorProtocol, Stub
from adjudge.packages import supplement
from adjudge.packages.archive import mount_archive
from adjudge.packages.dmoj.cases import read_cases
from adjudge.packages.dmoj.checkers import jury_limits, read_checker, read_interactor
from adjudge.packages.dmoj.keys import report_unknown
from adjudge.packages.dmoj.linking import SIGNATURE_LANGUAGES, read_signature, with_unbuffered
from adjudge.packages.dmoj.scope import FILE, Scope, refuse_code
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings, PackageRefused
from adjudge.packages.generated_files import GeneratedFile
from adjudge.packages.safe_yaml import YamlMap, YamlScalar, parse_yaml

_DEFAULT_TIME_MS = 2_000
_DEFAULT_OUTPUT_BYTES = 24 * MIB


def read_dmoj(files: PackageFiles, name: str, findings: Findings) -> tuple[Problem, tuple[GeneratedFile, ...]]:
    """Read the package; generated tests are returned separately."""
    text = files.text(FILE, findings)
    node = parse_yaml(text, FILE, findings) if text else None
    if not isinstance(node, YamlMap):
        findings.error(FILE, "must be a map of keys to values.")
        raise PackageRefused(findings)
    refuse_code(node, findings)
    report_unknown(node, findings)
    top = Scope((node,), findings)
    if (judge := top.node("custom_judge")) is not None:
        fix = "Rewrite it as a bridged checker or interactor."
        findings.error(FILE, "custom_judge: is Python that runs inside the judge.", fix, judge.line)
    tests = read_cases(files, top, _archive(files, top))
    if not tests.cases:
        findings.error(FILE, "has no test cases.", "Add test_cases.")
    stubs = read_signature(files, top)
    interactor = read_interactor(files, top)
    if stubs and interactor:
        findings.warning(FILE, "interactive: is not used, because there is a signature_grader.", "Remove one of them.")
        interactor = None
    input_file, output_file = _linked_files(top)
    if supplement.FILE not in files:
        findings.info(FILE, "this format has no limits and no statement: 2 s and 256 MiB apply.", supplement.HOW)
    problem = Problem(
        short_name=name,
        package_format=PackageFormat("dmoj"),
        grading=Grading.SCORING,
        mode=ProblemMode.INTERACTIVE if interactor else ProblemMode.BATCH,
        limits=_limits(top, interactor),
        input_file=input_file,
        output_file=output_file,
        keeps_stdio=bool(input_file or output_file),
        languages=SIGNATURE_LANGUAGES if stubs else (),
        cases=tuple(tests.cases),
        groups=tuple(tests.groups),
        checker=read_checker(files, top, top.node("checker")),
        interactor=interactor,
        stubs=_unbuffered(files, top, stubs),
    )
    return problem, tuple(tests.recipes)


def _unbuffered(files: PackageFiles, top: Scope, stubs: tuple[Stub, ...]) -> tuple[Stub, ...]:
    if not top.flag("unbuffered", default=False):
        return stubs
    message = "unbuffered: holds for C, C++ and Python; programs in other languages write as their runtime does."
    top.findings.info(FILE, message)
    return with_unbuffered(files, stubs)


def _archive(files: PackageFiles, top: Scope) -> str:
    archive = top.text("archive")
    if not archive:
        return ""
    if archive not in files:
        top.findings.error(FILE, f"archive: {archive[:80]!r} is not in the package.", "Add it.")
        return ""
    try:
        mount_archive(files, archive)
    except PackageRefused as error:
        for item in error.findings:
            top.findings.error(f"{archive}/{item.path}" if item.path else archive, item.message, item.fix)
        return ""
    return archive


def _limits(top: Scope, interactor: Interactor | None) -> ProblemLimits:
    factor = top.number("wall_time_factor", 3.0, least=1.0)
    output = max(1, round(top.number("output_limit_length", _DEFAULT_OUTPUT_BYTES, least=1.0)))
    run = replace(Limits(), cpu_ms=_DEFAULT_TIME_MS, wall_ms=round(_DEFAULT_TIME_MS * factor), output_bytes=output)
    if interactor and interactor.protocol is not InteractorProtocol.ICPC:
        run = replace(run, wall_ms=run.wall_ms + interactor.extra_cpu_ms)
    return jury_limits(top, ProblemLimits(run=run, has_explicit_time_limit=False))


def _linked_files(top: Scope) -> tuple[str, str]:
    """Read file input and output from ``symlinks``, by which DMOJ emulates them; stdin and stdout stay usable."""
    node = top.node("symlinks")
    result = {"/dev/stdin": "", "/dev/stdout": ""}
    for link, target in node.items.items() if isinstance(node, YamlMap) else ():
        if isinstance(target, YamlScalar) and target.text in result and "/" not in link:
            result[target.text] = link
        else:
            top.findings.error(FILE, f"symlinks: {link[:60]!r} does not lead to stdin or stdout.", "Remove it.")
    return result["/dev/stdin"], result["/dev/stdout"]
