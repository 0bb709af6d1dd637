"""Runs a program on the caller's inputs: compiled once, run on each, without judging.

The verdict tells how the program ended, not whether its output is correct.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.verdict import Verdict, VerdictAggregation, aggregate_verdicts
from adjudge.judge.case_results import ResourceUsage, usage_from_report
from adjudge.judge.compile import Executable, ended
from adjudge.judge.languages import Language
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.sandbox import MERGE, InputFile, SandboxRunReport, SandboxRunSpec


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Options of compiling and running."""

    args: tuple[str, ...] = ()
    """Arguments of the program."""
    compiler_flags: tuple[str, ...] = ()
    merges_stderr: bool = False
    """Whether stderr is written to stdout."""
    files: tuple[SourceFile, ...] = ()
    """Files beside the source, for the compiler and for the program."""

    @classmethod
    def decode(cls, document: Mapping[str, Any]) -> ExecutionOptions:
        """Read the options from JSON; see ``encode``."""
        files = document.get("files", ())
        return cls(
            tuple(document.get("args", ())),
            tuple(document.get("compiler_flags", ())),
            bool(document.get("merges_stderr")),
            tuple(SourceFile(name, base64.b64decode(data), is_support=True) for name, data in files),
        )

    def encode(self) -> dict[str, Any]:
        """The options as JSON; those that are not set are left out."""
        document = {
            "args": list(self.args),
            "compiler_flags": list(self.compiler_flags),
            "merges_stderr": self.merges_stderr,
            "files": [(file.name, base64.b64encode(file.data).decode()) for file in self.files],
        }
        return {name: value for name, value in document.items() if value}


NO_OPTIONS: Final = ExecutionOptions()


@dataclass(frozen=True, slots=True)
class ExecutionRunResult:
    """The result for one input."""

    usage: ResourceUsage
    stdout: bytes
    stderr: bytes
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The result of compiling and all runs."""

    verdict: Verdict
    compile_message: str
    runs: tuple[ExecutionRunResult, ...] = ()


async def execute(
    judge: Judge,
    language: Language,
    source: ProgramSource,
    stdins: Sequence[bytes],
    limits: Limits,
    *,
    options: ExecutionOptions = NO_OPTIONS,
    job_id: str = "",
    attempt_id: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> ExecutionResult:
    """Compile, and run on each input in turn; nothing is run if compilation fails."""
    quiet = judge.exclusive_gate
    # A source can observe the host through its compiler, and the author reads its log: the compiler needs a turn, too.
    turn = quiet.executing if quiet.executions_apart else None
    compiled = await judge.compiler.compile(
        language, source, extra=options.files, flags=options.compiler_flags, turn=turn
    )
    program = compiled.executable
    if program is None:
        failure = compiled.failure
        return ExecutionResult(Verdict.CE, f"{failure.message}\n{failure.log}".strip() if failure else "")
    granted = language.limits(limits)
    runs = []
    for stdin in stdins:
        spec = replace(_spec(program, granted, language, options), stdin=stdin, job_id=job_id, attempt_id=attempt_id)
        async with quiet.executing():
            report = ended(await judge.sandbox.run(spec), program, "the program")
        runs.append(_executed(report, granted, program))
        progress(len(runs))
    return ExecutionResult(
        aggregate_verdicts([run.usage.verdict for run in runs], VerdictAggregation.WORST), compiled.log, tuple(runs)
    )


def _spec(program: Executable, limits: Limits, language: Language, options: ExecutionOptions) -> SandboxRunSpec:
    memory_bytes = max(MIB, limits.memory_bytes - language.extra_memory_mib * MIB)
    return SandboxRunSpec(
        argv=program.argv(memory_bytes, options.args),
        limits=limits,
        env=program.env,
        stderr=MERGE if options.merges_stderr else None,
        files=program.files or tuple(InputFile(file.name, file.data) for file in options.files),
        mounts=program.mounts,
    )


def _executed(report: SandboxRunReport, limits: Limits, program: Executable) -> ExecutionRunResult:
    found = usage_from_report(report, limits.cpu_ms, program.out_of_memory_messages)
    return ExecutionRunResult(found, report.stdout, report.stderr, report.stdout_truncated or report.stderr_truncated)
