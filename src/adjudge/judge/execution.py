"""Runs a program on the caller's inputs: compiled once, run on each, without judging.

The verdict tells how the program ended, not whether its output is correct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.verdict import Verdict, VerdictAggregation, aggregate_verdicts
from adjudge.judge.case_results import ResourceUsage, usage_from_report
from adjudge.judge.compile import Executable, ended
from adjudge.judge.languages import Language
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import ProgramSource
from adjudge.sandbox import SandboxRunReport, SandboxRunSpec


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
    job_id: str = "",
    attempt_id: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> ExecutionResult:
    """Compile, and run on each input in turn; nothing is run if compilation fails."""
    quiet = judge.exclusive_gate
    # A source can observe the host through its compiler, and the author reads its log: the compiler needs a turn, too.
    compiled = await judge.compiler.compile(language, source, turn=quiet.executing if quiet.executions_apart else None)
    program = compiled.executable
    if program is None:
        failure = compiled.failure
        return ExecutionResult(Verdict.CE, f"{failure.message}\n{failure.log}".strip() if failure else "")
    granted = language.limits(limits)
    runs = []
    for stdin in stdins:
        spec = _spec(program, granted, language, stdin, (job_id, attempt_id))
        async with quiet.executing():
            report = ended(await judge.sandbox.run(spec), program, "the program")
        runs.append(_executed(report, granted, program))
        progress(len(runs))
    return ExecutionResult(
        aggregate_verdicts([run.usage.verdict for run in runs], VerdictAggregation.WORST), compiled.log, tuple(runs)
    )


def _spec(
    program: Executable, limits: Limits, language: Language, stdin: bytes, job: tuple[str, int]
) -> SandboxRunSpec:
    memory_bytes = max(MIB, limits.memory_bytes - language.extra_memory_mib * MIB)
    return SandboxRunSpec(
        argv=program.argv(memory_bytes),
        limits=limits,
        env=program.env,
        stdin=stdin,
        files=program.files,
        mounts=program.mounts,
        job_id=job[0],
        attempt_id=job[1],
    )


def _executed(report: SandboxRunReport, limits: Limits, program: Executable) -> ExecutionRunResult:
    found = usage_from_report(report, limits.cpu_ms, program.out_of_memory_messages)
    return ExecutionRunResult(found, report.stdout, report.stderr, report.stdout_truncated or report.stderr_truncated)
