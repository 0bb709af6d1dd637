"""Compiles the jury programs of a problem: checkers, interactors, stubs. They are compiled like submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adjudge.domain.errors import InternalFault, InvalidInput
from adjudge.domain.failure_class import JURY_FAULT
from adjudge.domain.problem import Problem, ProblemMode
from adjudge.domain.programs import Checker, CheckerProtocol, FileRef, InteractorProtocol, ProblemFiles, Program, Stub
from adjudge.judge.case_runner import InteractionRunner
from adjudge.judge.checkers import ProgramChecker, validation_limits
from adjudge.judge.communication import CommunicationRunner
from adjudge.judge.compile import CompileLimits, Compiler, CompileResult, Executable
from adjudge.judge.interactive import InteractiveRunner
from adjudge.judge.languages import Language
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.judge.static_validation import StaticValidator
from adjudge.sandbox import Sandbox


class JuryFault(InternalFault):
    """A jury program cannot be used."""

    code = JURY_FAULT


@dataclass(frozen=True, slots=True)
class JuryPrograms:
    """The compiled jury programs of a problem."""

    checkers: dict[int, ProgramChecker] = field(default_factory=dict)
    interaction: InteractionRunner | None = None
    static: StaticValidator | None = None
    versions: dict[str, str] = field(default_factory=dict)
    """Program name → language and version that it was compiled with."""


class JuryProgramBuilder:
    """Compiles the programs of a package."""

    def __init__(self, compiler: Compiler, sandbox: Sandbox, files: ProblemFiles) -> None:
        self._compiler, self._box, self._files = compiler, sandbox, files

    async def prepare(self, problem: Problem) -> JuryPrograms:
        """Compile the checkers, the interactor and the static validator."""
        prepared = JuryPrograms()
        limits = validation_limits(problem.limits)
        for checker in {id(case.checker): case.checker for case in problem.cases if case.checker}.values():
            await self._add_checker(prepared, problem, checker)
        await self._add_checker(prepared, problem, problem.checker)
        if problem.interactor is not None:
            program = await self.program(problem.interactor.program, problem)
            prepared.versions[problem.interactor.program.name] = _made_with(program)
            if problem.mode is ProblemMode.COMMUNICATION or problem.interactor.protocol is InteractorProtocol.CMS:
                talk: InteractionRunner = CommunicationRunner(problem.interactor, program, limits)
            else:
                talk = InteractiveRunner(problem.interactor, program, limits)
            prepared = replace(prepared, interaction=talk)
        if problem.static_validator is not None:
            program = await self.program(problem.static_validator, problem)
            prepared.versions[problem.static_validator.name] = _made_with(program)
            prepared = replace(prepared, static=StaticValidator(program, limits, self._box))
        return prepared

    async def _add_checker(self, prepared: JuryPrograms, problem: Problem, checker: Checker) -> None:
        if checker.protocol is CheckerProtocol.NATIVE:
            return
        programs = [await self.program(program, problem) for program in checker.programs]
        for program, made in zip(checker.programs, programs, strict=True):
            prepared.versions[program.name] = _made_with(made)
        prepared.checkers[id(checker)] = ProgramChecker(
            checker, tuple(programs), validation_limits(problem.limits), self._box
        )

    async def program(self, program: Program, problem: Problem | None = None) -> Executable:
        """Compile one program of the package; an error names it."""
        limits = compile_limits(problem) if problem else CompileLimits()
        sources = program_source(program, self._files).files
        support = [read_file(self._files, ref, is_support=True) for ref in program.support]
        if program.is_binary:
            return self._compiler.binary(program.name, sources[0].data)
        if program.has_build_script:
            compiled = await self._compiler.build(program.name, [*sources, *support], limits)
        else:
            language = self._language(program)
            compiled = await self._compiler.compile(
                language,
                program_source(program, self._files),
                limits=limits,
                extra=support,
                flags=program.compile_flags,
            )
        if compiled.executable is None:
            reason = compiled.failure.message if compiled.failure else ""
            log = compiled.failure.log if compiled.failure else ""
            raise JuryFault(f"{program.name}: compilation failed: {reason}\n{log}", program=program.name)
        return compiled.executable

    def _language(self, program: Program) -> Language:
        if program.language:
            return self._compiler.languages.get(program.language)
        for ref in program.files:
            if language := self._compiler.languages.for_file(ref.name):
                return language
        raise InvalidInput(f"{program.name}: no file has a known language.", field="language")

    def stub(self, problem: Problem, language: Language) -> tuple[list[SourceFile], Stub | None]:
        """The files merged into a submission of that language, and their stub."""
        by_language = {stub.language: stub for stub in problem.stubs}
        stub = by_language.get(language.id) or by_language.get(language.code) or by_language.get("default")
        if stub is None:
            return [], None
        return [read_file(self._files, ref) for ref in stub.files], stub


def program_source(program: Program, files: ProblemFiles) -> ProgramSource:
    """The sources of a jury solution; it is judged like any submission."""
    return ProgramSource(tuple(read_file(files, ref) for ref in program.files), program.entry_point)


def read_file(files: ProblemFiles, ref: FileRef, *, is_support: bool = False) -> SourceFile:
    path = files.locate(ref.path)
    return SourceFile(ref.name, path.read_bytes(), is_support, bool(path.stat().st_mode & 0o111))


def compile_limits(problem: Problem) -> CompileLimits:
    return CompileLimits(problem.limits.compile_ms, problem.limits.compile_memory_bytes)


def with_prelude(source: ProgramSource, prelude: str, language: Language) -> ProgramSource:
    """Insert a stub's prelude before every submitted source."""
    if not prelude:
        return source
    head = prelude.encode()
    files: Sequence[SourceFile] = [
        SourceFile(file.name, head + file.data)
        if len(source.files) == 1 or file.name.rpartition(".")[2] in language.extensions
        else file
        for file in source.files
    ]
    return ProgramSource(tuple(files), source.entry_point)


def with_environment(compiled: CompileResult, stub: Stub | None) -> CompileResult:
    """Add the environment variables of the stub to the program."""
    if stub is None or not stub.run_env or compiled.executable is None:
        return compiled
    made = compiled.executable
    return replace(compiled, executable=replace(made, env={**made.env, **stub.run_env}))


def _made_with(program: Executable) -> str:
    return f"{program.language} {program.version}".strip() or "binary"
