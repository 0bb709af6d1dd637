"""Reads a CMS task in the italy_yaml layout, including its older Italian key names."""

from __future__ import annotations

import re

from adjudge.domain.limits import MIB
from adjudge.domain.problem import (
    Case,
    Grading,
    JurySubmission,
    PackageFormat,
    Problem,
    ProblemLimits,
    ProblemMode,
    ProblemStatement,
)
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    Interactor,
    InteractorProtocol,
    NativeChecker,
    Program,
    ScoreUnit,
    Stub,
    UserIO,
)
from adjudge.packages.cms.scoring import SECRET, apply_scoring, read_scoring
from adjudge.packages.files import PackageFiles, program_at
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.cases import read_section
from adjudge.packages.icpc.expectations import DEFAULTS
from adjudge.packages.icpc.limits import run_limits
from adjudge.packages.safe_yaml import YamlSection

FILE = "task.yaml"
_INPUT = re.compile(r"input/input(\d{1,9})\.txt")
_SOURCES = {".c": "c", ".cpp": "cpp", ".cc": "cpp", ".pas": "pascal", ".java": "java", ".py": "python3"}
_MODEL = ("solution", "soluzione", "sol")
_OUTPUT_BYTES = 64 * MIB
_CONTEST_KEYS = (
    "score_mode",
    "feedback_level",
    "score_precision",
    "max_submission_number",
    "max_user_test_number",
    "min_submission_interval",
    "min_user_test_interval",
    "token_mode",
    "token_max_number",
    "token_min_interval",
    "token_gen_initial",
    "token_gen_number",
    "token_gen_interval",
    "token_gen_max",
    "token_initial",
    "token_total",
    "token_gen_time",
)
"""Keys about running a contest, not about judging; the last three are the older spellings."""


def read_cms(files: PackageFiles, name: str, findings: Findings) -> Problem:
    section = read_section(files, FILE, findings)
    short_name = _either(section, "name", "nome_breve") or name
    numbers = sorted(int(match[1]) for path in files.names("input") if (match := _INPUT.fullmatch(path)))
    _check_tests(section, numbers, findings)
    codenames = tuple(f"{number:03d}" for number in numbers)
    mode, interactor = _mode(files, section)
    public = _public(section)
    cases = {
        codename: _case(files, number, codename, public, findings)
        for number, codename in zip(numbers, codenames, strict=True)
    }
    placed, groups = apply_scoring(read_scoring(files, section, codenames, findings), cases)
    title = _either(section, "title", "nome")
    is_batch = mode is ProblemMode.BATCH
    stubs = () if mode is ProblemMode.SUBMIT_ANSWER else _stubs(files, "stub" if interactor else "grader")
    problem = Problem(
        short_name=short_name,
        package_format=PackageFormat("cms", "italy_yaml"),
        titles={section.take_text("primary_language", "it"): title} if title else {},
        version=section.take_text("version"),
        grading=Grading.SCORING,
        mode=mode,
        limits=_limits(section),
        input_file=_file(section, "infile", "input.txt") if is_batch else "",
        output_file=_file(section, "outfile", "output.txt") if is_batch else "",
        languages=tuple(stub.language for stub in stubs),
        cases=placed,
        groups=groups,
        checker=_checker(files),
        interactor=interactor,
        stubs=stubs,
        submissions=_submissions(files),
        statements=_statements(files, section),
        attachments=tuple(FileRef(path[4:], path) for path in files.names("att")),
    )
    _report_unknown(section)
    return problem


def _report_unknown(section: YamlSection) -> None:
    """Report keys that are not read; ``total_value`` is one only if nothing else defines the scoring."""
    for key in (*_CONTEST_KEYS, "total_value", "num_processes", "user_io", "infile", "outfile"):
        section.node(key)
    section.report_unknown_keys()


def _either(section: YamlSection, key: str, older: str) -> str:
    return section.take_text(key) or section.take_text(older)


def _file(section: YamlSection, key: str, default: str) -> str:
    """Read a file name; an empty value means standard input or output."""
    return section.take_text(key) if key in section.keys() else default  # noqa: SIM118  # null is an answer here


def _check_tests(section: YamlSection, numbers: list[int], findings: Findings) -> None:
    stated = section.take_integer("n_input", len(numbers))
    if not numbers:
        findings.error("input", "has no tests.", "Add input/input0.txt and output/output0.txt.")
    elif stated != len(numbers) or numbers != list(range(len(numbers))):
        section.error("n_input", f"says {stated}, but input/ contains {len(numbers)} tests.", "Number them from 0.")


def _limits(section: YamlSection) -> ProblemLimits:
    time_s = section.take_number("time_limit", 0.0, above=True) or section.take_number("timeout", 0.0, above=True)
    memory = section.take_number("memory_limit", 0.0, above=True) or section.take_number("memlimit", 512.0, above=True)
    time_ms = max(1, round(time_s * 1000)) if time_s else 2_000
    run = run_limits(time_ms, max(1, round(memory * MIB)), _OUTPUT_BYTES)
    return ProblemLimits(run=run, has_explicit_time_limit=bool(time_s))


def _public(section: YamlSection) -> set[int] | None:
    """Which tests are public; None means all."""
    text = _either(section, "public_testcases", "risultati").strip()
    if text == "all":
        return None
    return {int(word) for word in text.split(",") if len(word) < 10 and word.strip().isdecimal()}


def _case(files: PackageFiles, number: int, codename: str, public: set[int] | None, findings: Findings) -> Case:
    answer = f"output/output{number}.txt"
    if answer not in files:
        findings.error(f"input/input{number}.txt", "has no answer.", f"Add {answer}.")
    return Case(
        name=f"{SECRET}/{codename}",
        group=SECRET,
        input=f"input/input{number}.txt",
        answer=answer if answer in files else None,
        full_feedback=public is None or number in public,
        output_name=f"output_{codename}.txt",
    )


def _mode(files: PackageFiles, section: YamlSection) -> tuple[ProblemMode, Interactor | None]:
    """Infer the task type as CMS does: output only, else communication if there is a manager, else batch."""
    if section.take_flag("output_only", default=False):
        return ProblemMode.SUBMIT_ANSWER, None
    if section.take_texts("output_only_testcases") or section.take_texts("output_optional_testcases"):
        section.error("output_only_testcases", "tasks that mix programs and outputs are not supported.")
    program = _executable(files, ("check/manager", "cor/manager"))
    if program is None:
        return ProblemMode.BATCH, None
    has_stub = any(path.startswith("sol/stub.") for path in files.names("sol"))
    default = UserIO.FIFO if has_stub else UserIO.STD
    return ProblemMode.COMMUNICATION, Interactor(
        InteractorProtocol.CMS,
        program,
        processes=section.take_integer("num_processes", 1, least=1),
        user_io=UserIO(section.take_choice("user_io", tuple(UserIO), default)),
    )


def _executable(files: PackageFiles, stems: tuple[str, ...]) -> Program | None:
    """Find a jury program: its source if present, else the executable."""
    for stem in stems:
        for extension, language in _SOURCES.items():
            if f"{stem}{extension}" in files:
                headers = [path for path in files.names(stem.partition("/")[0]) if path.endswith((".h", ".hpp"))]
                support = tuple(FileRef(path.rpartition("/")[2], path) for path in headers)
                source = FileRef(f"{stem.rpartition('/')[2]}{extension}", f"{stem}{extension}")
                return Program(stem, (source,), language, support=support)
        if stem in files:
            return Program(stem, (FileRef(stem.rpartition("/")[2], stem),), is_binary=True)
    return None


def _checker(files: PackageFiles) -> Checker:
    program = _executable(files, ("check/checker", "cor/correttore"))
    if program is None:
        return Checker(native=NativeChecker.WHITE_DIFF)
    return Checker(CheckerProtocol.CMS, programs=(program,), score_unit=ScoreUnit.FRACTION)


def _stubs(files: PackageFiles, stem: str) -> tuple[Stub, ...]:
    """Find ``grader`` or ``stub`` in every language, with its headers."""
    headers = [path for path in files.names("sol") if path.endswith(".h")]
    result = []
    for extension, language in _SOURCES.items():
        path = f"sol/{stem}{extension}"
        if path not in files:
            continue
        extra = headers if language in ("c", "cpp") else []
        if language == "pascal":
            extra = [other for other in files.names("sol") if other.endswith("lib.pas")]
        refs = tuple(FileRef(other.rpartition("/")[2], other) for other in (path, *extra))
        entry = f"{stem}{extension}" if language in ("python3", "pascal") else stem if language == "java" else ""
        result.append(Stub(language, refs, entry_point=entry))
    return tuple(result)


def _submissions(files: PackageFiles) -> tuple[JurySubmission, ...]:
    """The sources in ``sol/`` are submissions; only those named as the solution are expected to be accepted."""
    result = []
    for path in files.names("sol"):
        base = path[4:]
        stem, dot, extension = base.rpartition(".")
        is_source = f"{dot}{extension}" in _SOURCES and "/" not in base and not stem.endswith("lib")
        if not is_source or stem in ("grader", "stub"):
            continue
        is_model = stem in _MODEL
        result.append(
            JurySubmission(
                path=f"{'accepted' if is_model else 'other'}/{base}",
                program=program_at(files, path),
                expectations=(DEFAULTS["accepted"],) if is_model else (),
                is_model=is_model,
            )
        )
    return tuple(result)


def _statements(files: PackageFiles, section: YamlSection) -> tuple[ProblemStatement, ...]:
    primary = section.take_text("primary_language", "it")
    result = []
    for path in (*files.names("statement"), *files.names("testo")):
        base = path.rpartition("/")[2]
        if base.endswith(".pdf"):
            stem = base.removesuffix(".pdf")
            result.append(ProblemStatement(primary if stem in ("statement", "testo") else stem, "pdf", path))
    return tuple(result)
