"""Running a program on inputs of the caller's: compiled once, run on each, judged by nobody.

The verdict says how the program ended, not whether its answers are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.verdict import Fold, Verdict, fold
from adjudge.judge.cases import Figures, figures
from adjudge.judge.compile import Executable, ended
from adjudge.judge.languages import Language
from adjudge.judge.pipeline import Judge
from adjudge.judge.sources import Source
from adjudge.sandbox import RunReport, RunSpec


@dataclass(frozen=True, slots=True)
class Executed:
    """What one input came to."""

    figures: Figures
    stdout: bytes
    stderr: bytes
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class Execution:
    """What a program came to."""

    verdict: Verdict
    compile_message: str
    runs: tuple[Executed, ...] = ()


async def execute(
    judge: Judge,
    language: Language,
    source: Source,
    stdins: Sequence[bytes],
    limits: Limits,
    *,
    job_id: str = "",
    attempt_id: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Execution:
    """Compile, and run on each input in turn; a program that does not compile runs on none."""
    quiet = judge.quiet
    # A compiler lets the source observe its surroundings, and the author reads its log: it takes turns like a run.
    compiled = await judge.compiler.compile(language, source, turn=quiet.executing if quiet.executions_apart else None)
    program = compiled.executable
    if program is None:
        failure = compiled.failure
        return Execution(Verdict.CE, f"{failure.message}\n{failure.log}".strip() if failure else "")
    granted = language.limits(limits)
    runs = []
    for stdin in stdins:
        spec = _spec(program, granted, language, stdin, (job_id, attempt_id))
        async with quiet.executing():
            report = ended(await judge.box.run(spec), program, "the program")
        runs.append(_executed(report, granted, program))
        progress(len(runs))
    return Execution(fold([run.figures.verdict for run in runs], Fold.WORST), compiled.log, tuple(runs))


def _spec(program: Executable, limits: Limits, language: Language, stdin: bytes, job: tuple[str, int]) -> RunSpec:
    memory_bytes = max(MIB, limits.memory_bytes - language.extra_memory_mib * MIB)
    return RunSpec(
        argv=program.argv(memory_bytes),
        limits=limits,
        env=program.env,
        stdin=stdin,
        files=program.files,
        mounts=program.mounts,
        job_id=job[0],
        attempt_id=job[1],
    )


def _executed(report: RunReport, limits: Limits, program: Executable) -> Executed:
    found = figures(report, limits.cpu_ms, program.out_of_memory)
    return Executed(found, report.stdout, report.stderr, report.stdout_truncated or report.stderr_truncated)
