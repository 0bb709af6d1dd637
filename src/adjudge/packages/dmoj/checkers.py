"""DMOJ's checkers and interactors, built-in or from the package."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.problem import ProblemLimits
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    Interactor,
    InteractorProtocol,
    NativeChecker,
    Program,
    ScoreUnit,
)
from adjudge.packages.dmoj.keys import BRIDGED_ARGS, report_unknown_args
from adjudge.packages.dmoj.linking import unbuffered_file
from adjudge.packages.dmoj.scope import FILE, Scope
from adjudge.packages.files import PackageFiles
from adjudge.packages.safe_yaml import YamlMap, YamlNode, YamlScalar, YamlSection

_NATIVE = {
    "standard": (NativeChecker.DMOJ_STANDARD, {}),
    "easy": (NativeChecker.DMOJ_EASY, {}),
    "floats": (NativeChecker.DMOJ_FLOATS, {}),
    "floatsabs": (NativeChecker.DMOJ_FLOATS, {"error_mode": "absolute"}),
    "floatsrel": (NativeChecker.DMOJ_FLOATS, {"error_mode": "relative"}),
    "identical": (NativeChecker.DMOJ_IDENTICAL, {}),
    "linecount": (NativeChecker.DMOJ_LINECOUNT, {}),
    "rstripped": (NativeChecker.DMOJ_RSTRIPPED, {}),
    "sorted": (NativeChecker.DMOJ_SORTED, {}),
    "unordered": (NativeChecker.DMOJ_SORTED, {"split_on": "whitespace"}),
}
_OPTIONS = frozenset({"precision", "error_mode", "split_on", "filter_new_line", "pe_allowed", "feedback"})
_PROTOCOLS = {
    "default": CheckerProtocol.DMOJ,
    "testlib": CheckerProtocol.TESTLIB,
    "coci": CheckerProtocol.COCI,
    "peg": CheckerProtocol.PEG,
}
_INTERACTORS = {
    "default": InteractorProtocol.DMOJ,
    "testlib": InteractorProtocol.TESTLIB_ALONE,
    "coci": InteractorProtocol.COCI,
}
LANGUAGES = {"C": "c", "C11": "c", "CPP": "cpp", "PY": "python3", "JAVA": "java", "PYPY": "python3", "PAS": "pascal"}
"""DMOJ's language keys by prefix → ICPC codes."""


def language_code(key: str) -> str:
    """Translate a DMOJ language key (``CPP17``, ``PY3``, ``JAVA8``); unknown ones are inferred from the file name."""
    upper = key.upper()
    best = max((prefix for prefix in LANGUAGES if upper.startswith(prefix)), key=len, default="")
    return LANGUAGES.get(best, "")


def read_checker(files: PackageFiles, scope: Scope, node: YamlNode | None) -> Checker:
    """Read a ``checker`` value; one that cannot be run here is an error."""
    if node is None:
        return Checker(native=NativeChecker.DMOJ_STANDARD)
    section = YamlSection(node if isinstance(node, YamlMap) else None, FILE, scope.findings, "checker.")
    name = node.text if isinstance(node, YamlScalar) else section.take_text("name", "standard")
    args = section.take_section("args")
    given = section.node("args")
    known = BRIDGED_ARGS if name == "bridged" else _OPTIONS
    report_unknown_args(given if isinstance(given, YamlMap) else None, known, scope.findings)
    if name == "bridged":
        return _bridged(files, scope, args, node.line)
    if name.endswith(".py"):
        fix = "Rewrite it as a bridged checker."
        scope.findings.error(FILE, f"checker: {name[:60]!r} is Python that runs inside the judge.", fix, node.line)
    elif name not in _NATIVE:
        scope.findings.error(FILE, f"checker: {name[:60]!r} is not supported.", "Use a bridged checker.", node.line)
    native, preset = _NATIVE.get(name, _NATIVE["standard"])
    options = {key: args.take_text(key) for key in args.keys() if key in _OPTIONS}  # noqa: SIM118  # not a dict
    is_count = native is NativeChecker.DMOJ_LINECOUNT
    unit = ScoreUnit.FRACTION if is_count else ScoreUnit.ABSOLUTE
    return Checker(native=native, options={**preset, **options}, score_unit=unit, runs_on_rejected=is_count)


def _bridged(files: PackageFiles, scope: Scope, args: YamlSection, line: int) -> Checker:
    kind = args.take_choice("type", tuple(_PROTOCOLS), "default")
    if "args_format_string" in args:
        args.error("args_format_string", "is not supported.", "Use one of the types.")
    if (program := read_program(files, scope, args, line)) is None:
        return Checker()
    unit = ScoreUnit.FRACTION if kind in ("coci", "peg") else ScoreUnit.ABSOLUTE
    return Checker(_PROTOCOLS[kind], programs=(program,), score_unit=unit)


def read_program(files: PackageFiles, scope: Scope, args: YamlSection, line: int) -> Program | None:
    """Read ``files``, ``lang`` and ``flags`` of a bridged checker or interactor."""
    names = args.take_texts("files")
    missing = [name for name in names if name not in files]
    for name in missing:
        scope.findings.error(name, "is named by init.yml and not in the package.", "Add it.")
    if missing or not names:
        if not names:
            scope.findings.error(FILE, "files: names no program.", "Name its source.", line)
        return None
    sources = [name for name in names if not _is_header(name)]
    if not sources:
        scope.findings.error(FILE, "files: names headers only.", "Name its source.", line)
        return None
    named = [name for name in names if _is_header(name)]
    headers = [*named, *(name for name in files.names() if "/" not in name and _is_header(name) and name not in named)]
    return Program(
        sources[0],
        tuple(FileRef(name, name) for name in sources),
        language=language_code(args.take_text("lang")),
        support=tuple(FileRef(name, name) for name in headers),
        compile_flags=args.take_texts("flags"),
    )


def jury_limits(scope: Scope, limits: ProblemLimits) -> ProblemLimits:
    """Apply the limits that the checker and interactor state: seconds, and KiB of memory."""
    checker, interactive = scope.node("checker"), scope.node("interactive")
    holders = [("interactive.", interactive)] if isinstance(interactive, YamlMap) else []
    if isinstance(checker, YamlMap) and isinstance(args := checker.items.get("args"), YamlMap):
        holders.append(("checker.args.", args))
    for prefix, holder in holders:
        section = YamlSection(holder, FILE, scope.findings, prefix)
        time_ms = round(section.take_number("time_limit", limits.validation_ms / 1000, above=True) * 1000)
        memory_kib = section.take_number("memory_limit", limits.validation_memory_bytes / 1024, above=True)
        compile_s = section.take_number("compiler_time_limit", limits.compile_ms / 1000, above=True)
        limits = replace(
            limits,
            validation_ms=max(1, time_ms),
            validation_memory_bytes=max(1, round(memory_kib * 1024)),
            compile_ms=max(1, round(compile_s * 1000)),
        )
    return limits


def _is_header(name: str) -> bool:
    return name.endswith((".h", ".hpp", ".hh"))


def read_interactor(files: PackageFiles, scope: Scope) -> Interactor | None:
    """Read ``interactive``; None if the problem is not interactive."""
    node = scope.node("interactive")
    if node is None:
        return None
    if not isinstance(node, YamlMap):
        scope.findings.error(FILE, "interactive: must be a map.", line=node.line)
        return None
    section = YamlSection(node, FILE, scope.findings, "interactive.")
    kind = section.take_choice("type", tuple(_INTERACTORS), "default")
    if "args_format_string" in section:
        section.error("args_format_string", "is not supported.", "Use one of the types.")
    program = read_program(files, scope, section, node.line)
    extra_ms = round(section.take_number("preprocessing_time", 2.0) * 1000)
    if program is None:
        return None
    if section.take_flag("unbuffered", default=True):
        program = _unbuffered(files, program)
    return Interactor(_INTERACTORS[kind], program, extra_cpu_ms=extra_ms)


def _unbuffered(files: PackageFiles, program: Program) -> Program:
    """Make an interactor in C or C++ write unbuffered, which is DMOJ's default."""
    extension = program.files[0].name.rpartition(".")[2]
    code = program.language or {"c": "c", "cpp": "cpp", "cc": "cpp", "cxx": "cpp"}.get(extension, "")
    if code not in ("c", "cpp"):
        return program
    return replace(program, files=(*program.files, unbuffered_file(files, code)))
