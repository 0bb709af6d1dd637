"""Reads an ICPC package."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.problem import Case, Problem, ProblemMode
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    InputValidator,
    Interactor,
    InteractorProtocol,
    NativeChecker,
    Program,
    ScoreUnit,
    Stub,
)
from adjudge.packages.files import PackageFiles, program_at, programs_in
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.cases import DATA
from adjudge.packages.icpc.constants import substitute
from adjudge.packages.icpc.domjudge import apply_domjudge
from adjudge.packages.icpc.groups import read_cases, read_self_tests
from adjudge.packages.icpc.groups_legacy import read_legacy_cases
from adjudge.packages.icpc.metadata import FILE, FormatFamily, Metadata, read_metadata
from adjudge.packages.icpc.statements import read_editorials, read_statements, titles_from
from adjudge.packages.icpc.submissions import read_submissions
from adjudge.packages.safe_yaml import parse_number

_HEADERS = (".h", ".hpp", ".hh")
_FOREIGN = (".ctd", ".viva")
_RECIPES = ("generators/generators.yaml", "generators.yaml")
"""BAPCtools' commands for test data, which judges do not run."""
_ICPC_FLAGS = {
    "case_sensitive": 0,
    "space_change_sensitive": 0,
    "float_tolerance": 1,
    "float_absolute_tolerance": 1,
    "float_relative_tolerance": 1,
}


def read_icpc(files: PackageFiles, name: str, findings: Findings) -> Problem:
    metadata = read_metadata(files, findings)
    family, problem = metadata.family, apply_domjudge(files, metadata.problem, findings)
    substitute(files, problem.constants)
    statements = read_statements(files)
    if not statements:
        findings.warning("", "has no statement.", "Add statement/problem.en.tex or .md.")
    uses_old_groups = family.is_legacy or (family is FormatFamily.DRAFT and not _has_new_groups(files))
    if uses_old_groups:
        cases, groups = read_legacy_cases(files, findings)
    else:
        cases, groups = read_cases(files, problem, findings)
    _check_secret_tests(files, cases, findings)
    checker, interactor = _checking(files, metadata, findings)
    if uses_old_groups and checker.protocol is CheckerProtocol.ICPC:
        checker = replace(checker, score_unit=ScoreUnit.UNBOUNDED)
    if checker.protocol is CheckerProtocol.NATIVE:
        _check_flags(checker, cases, findings)
    return replace(
        problem,
        short_name=problem.short_name or name,
        titles=dict(problem.titles) or titles_from(files, statements, findings),
        cases=cases,
        groups=groups,
        checker=checker,
        interactor=interactor,
        stubs=_stubs(files),
        static_validator=_static_validator(files),
        input_validators=_input_validators(files, findings),
        generators=programs_in(files, "generators"),
        submissions=read_submissions(files, findings, is_legacy=family.is_legacy),
        self_tests=() if family.is_legacy else read_self_tests(files, findings),
        statements=statements,
        editorials=read_editorials(files),
        attachments=tuple(FileRef(path[len("attachments/") :], path) for path in files.names("attachments")),
    )


def _check_secret_tests(files: PackageFiles, cases: tuple[Case, ...], findings: Findings) -> None:
    """Reject a package without tests; one with samples only can be judged and may be intended."""
    if any(not case.is_sample for case in cases):
        return
    fix = f"Add {DATA}/secret/01.in and {DATA}/secret/01.ans."
    if recipe := next((path for path in _RECIPES if path in files), ""):
        fix = f"{recipe} is there: generate the tests first."
    if cases:
        findings.warning(f"{DATA}/secret", "has no tests, so submissions are judged by the samples only.", fix)
    else:
        findings.error(f"{DATA}/secret", "has no tests.", fix)


def _has_new_groups(files: PackageFiles) -> bool:
    return any(path.endswith("/test_group.yaml") for path in files.names(DATA))


def _checking(files: PackageFiles, metadata: Metadata, findings: Findings) -> tuple[Checker, Interactor | None]:
    programs = _output_validators(files, metadata, findings)
    is_interactive = metadata.problem.mode is ProblemMode.INTERACTIVE
    needs_one = metadata.has_custom_validator or is_interactive or metadata.problem.max_passes > 1
    if not programs:
        if needs_one:
            where = "output_validators" if metadata.family.is_legacy else "output_validator"
            findings.error(where, "has no program, and the problem needs one.", f"Add it to {where}/.")
        native = NativeChecker.ICPC_2025_09 if metadata.family is FormatFamily.NEW else NativeChecker.ICPC
        return Checker(native=native, args=metadata.validator_flags), None
    checker = Checker(CheckerProtocol.ICPC, programs=programs, args=metadata.validator_flags)
    if not is_interactive:
        return checker, None
    if len(programs) > 1:
        findings.error("output_validators", "an interactive problem has one validator.", "Remove the others.")
    return checker, Interactor(InteractorProtocol.ICPC, programs[0], metadata.validator_flags)


def _output_validators(files: PackageFiles, metadata: Metadata, findings: Findings) -> tuple[Program, ...]:
    folder = next((name for name in ("output_validator", "output_validators") if files.has_folder(name)), "")
    if not folder:
        return ()
    if metadata.family.is_legacy and not metadata.has_custom_validator:
        fix = "Say 'validation: custom', or remove the folder."
        findings.warning(FILE, f"does not declare custom validation, so {folder}/ is not used.", fix)
        return ()
    children = [child for child in files.children(folder) if not child.startswith(".")]
    loose = [child for child in children if f"{folder}/{child}" in files]
    is_one = "build" in loose or "run" in loose or any(child.endswith(_HEADERS) for child in loose)
    if is_one or (len(children) > 1 and not metadata.family.is_legacy):
        return (program_at(files, folder),)
    return programs_in(files, folder)


def _input_validators(files: PackageFiles, findings: Findings) -> tuple[InputValidator, ...]:
    folders = ("input_validators", "input_format_validators")
    folder = next((name for name in folders if files.has_folder(name)), "")
    if not folder:
        findings.warning("", "has no input validator, so nothing checks the test data.", "Add input_validators/.")
        return ()
    result = []
    for child in files.children(folder):
        if child.endswith(_FOREIGN):
            fix = "Add a validator that is a program."
            findings.warning(f"{folder}/{child}", "is a Checktestdata or VIVA file, which is not run.", fix)
        elif not child.startswith(".") and not child.endswith(_HEADERS):
            result.append(InputValidator(program_at(files, f"{folder}/{child}")))
    return tuple(result)


def _static_validator(files: PackageFiles) -> Program | None:
    result = programs_in(files, "static_validator")
    return result[0] if len(result) == 1 else program_at(files, "static_validator") if result else None


def _stubs(files: PackageFiles) -> tuple[Stub, ...]:
    result = []
    for language in files.children("include"):
        folder = f"include/{language}"
        if inside := files.names(folder):
            result.append(Stub(language, tuple(FileRef(path[len(folder) + 1 :], path) for path in inside)))
    return tuple(result)


def _check_flags(checker: Checker, cases: tuple[Case, ...], findings: Findings) -> None:
    """Report arguments that the default validator does not have: it would fail on every test."""
    seen: set[tuple[str, ...]] = set()
    for case in cases:
        args = (*checker.args, *case.checker_args)
        if args in seen:
            continue
        seen.add(args)
        tolerances: list[str] = []
        rest = list(args)
        while rest:
            flag = rest.pop(0)
            if flag not in _ICPC_FLAGS:
                fix = f"Use some of {', '.join(_ICPC_FLAGS)}."
                findings.error(case.input, f"the default validator has no argument {flag[:40]!r}.", fix)
            elif _ICPC_FLAGS[flag]:
                tolerances.append(flag)
                value = parse_number(rest.pop(0)) if rest else None
                if value is None or value < 0:
                    message = f"the validator's argument {flag} needs a number of at least 0."
                    findings.error(case.input, message, "Add the tolerance.")
        if checker.native is NativeChecker.ICPC_2025_09 and _conflict(tolerances):
            message = "the default validator takes float_tolerance alone, and each tolerance once."
            findings.error(case.input, message, f"Keep one of {', '.join(tolerances)}.")


def _conflict(tolerances: list[str]) -> bool:
    return len(set(tolerances)) != len(tolerances) or ("float_tolerance" in tolerances and len(tolerances) > 1)
