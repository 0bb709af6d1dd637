"""The layout of an ICPC package: assigns a path to every file of the model."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace

from adjudge.domain.problem import Case, JurySubmission, Problem, ProblemStatement, SelfTest, SelfTestKind
from adjudge.domain.programs import (
    Checker,
    CheckerProtocol,
    FileRef,
    InputValidator,
    Interactor,
    InteractorProtocol,
    Program,
    Stub,
    ValidatorProtocol,
)
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.testlib_wrappers import VALIDATOR, checker_wrapper, is_wrappable, wrap_program

PackageContents = dict[str, str | bytes]
"""Name in the new package → path in the old one, or the content itself."""
_PREFERRED = ("md", "tex", "pdf", "html", "txt")


@dataclass(slots=True)
class PackageLayout:
    """Collects the contents while it rewrites the paths of a model."""

    findings: Findings
    contents: PackageContents = field(default_factory=dict)

    def put(self, target: str, source: str | bytes) -> str:
        """Assign a path to a file."""
        if self.contents.get(target, source) != source:
            self.findings.error(target, "two different files would have this name.", "Rename one of them.")
        self.contents[target] = source
        return target

    def program(self, program: Program, folder: str, *, at_root: bool = False) -> Program:
        """Add a program: one file as a file, several as a folder of its name."""
        if program.is_binary:
            fix = "Add its source to the package."
            self.findings.error(program.files[0].path, "is an executable without its source.", fix)
        if program.compile_flags:
            self.findings.warning(program.files[0].path, "its compiler flags cannot be exported.", "Remove them.")
        refs = (*program.files, *program.support)
        if len(refs) == 1 and "/" not in refs[0].name and not program.has_build_script:
            name = refs[0].name
            placed: tuple[FileRef, ...] = (FileRef(name, self.put(f"{folder}/{name}", refs[0].path)),)
        else:
            base = posixpath.basename(program.name)
            name = base if at_root else base.rpartition(".")[0] or base
            inside = folder if at_root else f"{folder}/{name}"
            placed = tuple(FileRef(ref.name, self.put(f"{inside}/{ref.name}", ref.path)) for ref in refs)
            placed = tuple(sorted(placed, key=lambda ref: ref.path.encode()))
        return Program(name, placed, has_build_script=program.has_build_script)

    def checker(self, problem: Problem) -> tuple[Checker, Interactor | None]:
        """Add the output validator, with a wrapper around a testlib checker."""
        checker, interactor = problem.checker, problem.interactor
        if interactor is not None and interactor.protocol is not InteractorProtocol.ICPC:
            self.findings.error(
                interactor.program.files[0].path,
                f"an interactor of the {interactor.protocol} protocol has no counterpart in the ICPC format.",
                "Rewrite it as an interactive output validator.",
            )
        if checker.protocol is CheckerProtocol.NATIVE:
            return replace(checker, args=()), None
        if len(checker.programs) != 1 or checker.protocol not in (CheckerProtocol.ICPC, CheckerProtocol.TESTLIB):
            what = f"a checker of the {checker.protocol} protocol, or several of them,"
            fix = "Rewrite it as one output validator."
            self.findings.error("", f"{what} has no counterpart in the ICPC format.", fix)
            return Checker(), None
        program = checker.programs[0]
        if checker.protocol is CheckerProtocol.TESTLIB:
            if not is_wrappable(program):
                self.findings.error(program.files[0].path, "only checkers in one C++ file can be wrapped.")
                return Checker(), None
            wrapper = checker_wrapper(checker.score_unit if problem.is_scored else None)
            placed, contents = wrap_program(program, "output_validator", wrapper)
            self.contents |= contents
        else:
            placed = self.program(program, "output_validator", at_root=program.name == "output_validator")
        made = Checker(CheckerProtocol.ICPC, programs=(placed,))
        return made, Interactor(InteractorProtocol.ICPC, placed) if interactor else None

    def validators(self, validators: tuple[InputValidator, ...]) -> tuple[InputValidator, ...]:
        """Add the input validators, with a wrapper around those that use testlib."""
        result = []
        for validator in validators:
            if validator.protocol is ValidatorProtocol.ICPC:
                result.append(InputValidator(self.program(validator.program, "input_validators")))
            elif is_wrappable(validator.program):
                placed, contents = wrap_program(validator.program, "input_validators", VALIDATOR)
                self.contents |= contents
                result.append(InputValidator(placed))
            else:
                path = validator.program.files[0].path
                self.findings.warning(path, "only validators in one C++ file can be wrapped; it is left out.")
        return tuple(sorted(result, key=lambda item: item.program.name.encode()))

    def stubs(self, stubs: tuple[Stub, ...]) -> tuple[Stub, ...]:
        """Add the files merged into submissions."""
        result = []
        for stub in sorted(stubs, key=lambda item: item.language.encode()):
            if stub.prelude or stub.entry_point or stub.compile_flags:
                fix = "Rewrite it as a driver with the language's own main file."
                self.findings.error(stub.files[0].path, "its way of being linked cannot be expressed.", fix)
            if stub.run_env:
                message = f"environment variables of {stub.language} programs ({', '.join(stub.run_env)}) are left out."
                self.findings.warning("", message, "Let programs flush what they write.")
            if not stub.files:
                continue
            folder = f"include/{stub.language}"
            refs = [FileRef(ref.name, self.put(f"{folder}/{ref.name}", ref.path)) for ref in stub.files]
            result.append(Stub(stub.language, tuple(sorted(refs, key=lambda ref: ref.path.encode()))))
        return tuple(result)

    def case(self, case: Case, name: str, group: str) -> Case:
        """Add a test under a new name."""
        base = f"data/{name}"
        answer = self.put(f"{base}.ans", case.answer if case.answer else b"")
        refs = tuple(FileRef(ref.name, self.put(f"{base}.files/{ref.name}", ref.path)) for ref in case.files)
        given = self.put(f"{base}.in", case.input)
        return replace(case, name=name, group=group, input=given, answer=answer, files=refs)

    def submission(self, submission: JurySubmission) -> JurySubmission:
        """Add a jury submission below its folder."""
        folder, _, name = submission.path.partition("/")
        refs = submission.program.files
        place = f"submissions/{folder}/{name}"
        if len(refs) == 1 and refs[0].name == name:
            placed: tuple[FileRef, ...] = (FileRef(name, self.put(place, refs[0].path)),)
        else:
            placed = tuple(FileRef(ref.name, self.put(f"{place}/{ref.name}", ref.path)) for ref in refs)
        program = replace(submission.program, name=name, files=placed, support=(), compile_flags=())
        return replace(submission, program=program)

    def self_tests(self, tests: tuple[SelfTest, ...]) -> tuple[SelfTest, ...]:
        """Add the tests of jury programs; the format cannot express inputs that are only valid."""
        result = []
        for test in sorted(tests, key=lambda item: (list(SelfTestKind).index(item.kind), item.name.encode())):
            if test.kind is SelfTestKind.VALID_INPUT:
                continue
            base = f"data/{test.name}"
            placed = {
                part: self.put(f"{base}.{extension}", path)
                for part, extension, path in (
                    ("input", "in", test.input),
                    ("output", "out", test.output),
                    ("answer", "ans", test.answer),
                )
                if path is not None
            }
            result.append(replace(test, **placed))  # type: ignore[arg-type]  # the parts are the fields' own names
        order = (SelfTestKind.INVALID_INPUT, SelfTestKind.INVALID_OUTPUT, SelfTestKind.VALID_OUTPUT)
        return tuple(sorted(result, key=lambda test: order.index(test.kind)))

    def texts(self, statements: tuple[ProblemStatement, ...], folder: str, stem: str) -> tuple[ProblemStatement, ...]:
        """Add statements: one per language, in the best available format."""
        best: dict[str, ProblemStatement] = {}
        for item in sorted(statements, key=lambda item: _PREFERRED.index(item.format)):
            best.setdefault(item.language, item)
        texts = {self.put(f"{folder}/{stem}.{item.language}.{item.format}", item.path): item for item in best.values()}
        assets = {self.put(f"{folder}/{ref.name}", ref.path): ref.name for item in best.values() for ref in item.assets}
        refs = tuple(FileRef(assets[path], path) for path in sorted(assets, key=str.encode))
        return tuple(
            ProblemStatement(
                texts[path].language, texts[path].format, path, refs if texts[path].format != "pdf" else ()
            )
            for path in sorted(texts, key=str.encode)
        )

    def attachments(self, refs: tuple[FileRef, ...]) -> tuple[FileRef, ...]:
        """Add the public files."""
        placed = [FileRef(ref.name, self.put(f"attachments/{ref.name}", ref.path)) for ref in refs]
        return tuple(sorted(placed, key=lambda ref: ref.path.encode()))
