"""Runs jury programs in the sandbox: input validators, generators, checkers on given outputs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.problem import Case, Problem, SelfTest, SelfTestKind
from adjudge.domain.programs import CheckerProtocol, FileRef, InputValidator, ValidatorProtocol
from adjudge.domain.verdict import Verdict
from adjudge.judge import comparators
from adjudge.judge.checkers import CheckRequest
from adjudge.judge.compile import Executable, LanguageMissing, raise_on_sandbox_fault
from adjudge.judge.jury_programs import JuryFault, JuryProgramBuilder, JuryPrograms
from adjudge.judge.pipeline import Judge
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import package_error
from adjudge.packages.generated_files import DEFAULT_MEMORY_BYTES, GeneratedFile
from adjudge.packages.load import Package
from adjudge.sandbox import InputFile, SandboxRunReport, SandboxRunSpec

_VALID = {ValidatorProtocol.ICPC: 42, ValidatorProtocol.TESTLIB: 0}
_MADE_BYTES = 256 * MIB
"""Maximum size of a file made by a generator or the main solution."""
_SAID = 200
UNUSABLE = (LanguageMissing, InvalidInput, JuryFault)
"""Raised if one program cannot be used here; others of the package still can."""


@dataclass(frozen=True, slots=True)
class VerifyIssue:
    """Something that a jury program reports against the package."""

    where: str
    message: str


class JuryRunner:
    """The programs of one package, compiled on first use."""

    def __init__(self, judge: Judge, problem: Problem, files: PackageFiles) -> None:
        self._judge, self._problem, self._files = judge, problem, files
        self._preparer = JuryProgramBuilder(judge.compiler, judge.sandbox, files)
        self._prepared: JuryPrograms | None = None
        self._usable = problem.input_validators

    async def check_validators(self) -> list[VerifyIssue]:
        """Compile the input validators; those that cannot be used are reported and skipped afterwards."""
        issues, usable = [], []
        for validator in self._problem.input_validators:
            try:
                await self._preparer.program(validator.program, self._problem)
                usable.append(validator)
            except UNUSABLE as error:
                issues.append(
                    VerifyIssue(validator.program.name, f"this input validator cannot be run: {error.message}")
                )
        self._usable = tuple(usable)
        return issues

    async def validate_case(self, case: Case) -> list[VerifyIssue]:
        """Run every input validator on a test."""
        refs = case.files
        args = (*case.input_validator_args, *case.args)
        return [
            VerifyIssue(case.name, f"{validator.program.name} rejects the input: {said}")
            for validator in self._usable
            if (said := await self.find_rejection(validator, case.input, args, refs)) is not None
        ]

    async def self_test(self, test: SelfTest) -> list[VerifyIssue]:
        if test.kind in (SelfTestKind.VALID_OUTPUT, SelfTestKind.INVALID_OUTPUT):
            return await self._check_output(test)
        said = [
            await self.find_rejection(validator, test.input, test.input_validator_args) for validator in self._usable
        ]
        rejected = [reason for reason in said if reason is not None]
        is_complete = len(self._usable) == len(self._problem.input_validators)
        if test.kind is SelfTestKind.INVALID_INPUT and not rejected and is_complete:
            return [VerifyIssue(test.name, "no input validator rejects it, and one must")]
        if test.kind is SelfTestKind.VALID_INPUT and rejected:
            return [VerifyIssue(test.name, f"an input validator rejects it: {rejected[0]}")]
        return []

    async def find_rejection(
        self, validator: InputValidator, path: str, args: Sequence[str], refs: Sequence[FileRef] = ()
    ) -> str | None:
        """The rejection of an input by a validator; None if it accepts."""
        program = await self._preparer.program(validator.program, self._problem)
        limits = Limits(
            cpu_ms=self._problem.limits.validation_ms,
            wall_ms=2 * self._problem.limits.validation_ms,
            memory_bytes=self._problem.limits.validation_memory_bytes,
        )
        report = await self._run(program, (*validator.args, *args), limits, stdin=self._files.locate(path), refs=refs)
        if report.exit_code == _VALID[validator.protocol] and not report.exit_signal:
            return None
        said = (report.stderr + b"\n" + report.stdout).decode(errors="replace").strip()[:_SAID]
        return said or f"it ended with exit code {report.exit_code} ({report.verdict})"

    async def _run(
        self,
        program: Executable,
        args: Sequence[str],
        limits: Limits,
        *,
        stdin: Path | None = None,
        stdout: Path | None = None,
        refs: Sequence[FileRef] = (),
    ) -> SandboxRunReport:
        spec = SandboxRunSpec(
            argv=program.argv(limits.memory_bytes, tuple(args)),
            limits=limits,
            env=program.env,
            stdin=stdin,
            stdout=stdout,
            files=tuple(InputFile(ref.name, self._files.locate(ref.path)) for ref in refs),
            mounts=program.mounts,
        )
        report = await self._judge.sandbox.run(spec)
        raise_on_sandbox_fault(report, "a program of the package")
        return report

    async def _check_output(self, test: SelfTest) -> list[VerifyIssue]:
        if test.output is None or test.answer is None or self._problem.interactor is not None:
            return []
        try:
            accepted, said = await self._accepts(test)
        except UNUSABLE as error:
            return [VerifyIssue("checker", f"it cannot be run: {error.message}")]
        if accepted is (test.kind is SelfTestKind.VALID_OUTPUT):
            return []
        return [VerifyIssue(test.name, f"the checker {'accepts' if accepted else 'rejects'} it, and must not: {said}")]

    async def _accepts(self, test: SelfTest) -> tuple[bool, str]:
        given = {
            name: self._files.locate(path)
            for name, path in (("input", test.input), ("answer", test.answer), ("output", test.output))
            if path is not None
        }
        checker = self._problem.checker
        if checker.protocol is CheckerProtocol.NATIVE:
            args = (*checker.args, *test.checker_args)
            comparator = comparators.build_comparator(checker.native, args, checker.options)
            said = comparator.compare_files(given["answer"], given["output"])
            return said.accepted, said.message
        if self._prepared is None:
            self._prepared = await self._preparer.prepare(self._problem)
        with tempfile.TemporaryDirectory(prefix="adjudge-check-") as feedback:
            question = CheckRequest(**given, args=test.checker_args, feedback=Path(feedback))
            checked = await self._prepared.checkers[id(checker)].check(question)
        return checked.verdict in (Verdict.AC, Verdict.PA), checked.message

    async def generate(self, recipe: GeneratedFile) -> None:
        """Generate a file that the package only describes; raises PackageRefused on failure."""
        program = await self._preparer.program(recipe.program, self._problem)
        made = {name: self._files.new_derived_path() for name in (recipe.target, recipe.error_target) if name}
        for path in made.values():
            path.touch(mode=0o644)
        report = await self._made(recipe, program, made)
        if not report.ok:
            message = (
                f"could not be made: {recipe.program.name} ended with {report.verdict}. {_said(recipe, report, made)}"
            )
            raise package_error(recipe.target, message, "Fix the program, or add the file.")
        for name, path in made.items():
            self._files.put(name, path)
        for validator in recipe.validators:
            if (reason := await self.find_rejection(validator, recipe.target, ())) is not None:
                raise package_error(recipe.target, f"was generated, but {validator.program.name} rejects it: {reason}")

    async def _made(self, recipe: GeneratedFile, program: Executable, made: dict[str, Path]) -> SandboxRunReport:
        stdin = self._files.locate(recipe.stdin) if recipe.stdin else None
        default_bytes = max(DEFAULT_MEMORY_BYTES, self._problem.limits.run.memory_bytes)
        limits = Limits(
            cpu_ms=recipe.time_ms,
            wall_ms=2 * recipe.time_ms,
            memory_bytes=default_bytes if recipe.memory_bytes is None else recipe.memory_bytes,
            output_bytes=_MADE_BYTES,
            file_bytes=_MADE_BYTES,
            work_bytes=2 * _MADE_BYTES,
        )
        with tempfile.TemporaryDirectory(prefix="adjudge-make-") as folder:
            spec = SandboxRunSpec(
                argv=program.argv(limits.memory_bytes, recipe.args),
                limits=limits,
                env=program.env,
                stdin=None if recipe.input_file else stdin,
                stdout=None if recipe.output_file else made[recipe.target],
                stderr=made[recipe.error_target] if recipe.error_target else None,
                files=(InputFile(recipe.input_file, stdin),) if recipe.input_file and stdin else (),
                mounts=program.mounts,
                collect=(recipe.output_file,) if recipe.output_file else (),
                collect_to=Path(folder) if recipe.output_file else None,
            )
            report = await self._judge.sandbox.run(spec)
            raise_on_sandbox_fault(report, "a program of the package")
            if recipe.output_file:
                _keep(Path(folder) / recipe.output_file, made[recipe.target])
        return report


def _said(recipe: GeneratedFile, report: SandboxRunReport, made: dict[str, Path]) -> str:
    """The stderr of a failed program, wherever it was directed."""
    data = report.stderr
    if recipe.error_target:
        with made[recipe.error_target].open("rb") as stream:
            data = stream.read(_SAID)
    return data.decode(errors="replace").strip()[:_SAID]


def _keep(written: Path, target: Path) -> None:
    """Keep the named file that a program wrote; a missing file is empty, and links are not followed."""
    if written.is_file() and not written.is_symlink():
        shutil.copyfile(written, target)


async def generate_missing_files(package: Package, judge: Judge) -> Package:
    """Generate everything that the package only describes."""
    if not package.generated_files:
        return package
    jury = JuryRunner(judge, package.problem, package.files)
    for recipe in package.generated_files:
        await jury.generate(recipe)
    return replace(package, generated_files=())
