"""The result of one test case: produced by the runners, read by scoring and the result document."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from fractions import Fraction

from adjudge.domain.programs import ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.sandbox import LimitKind, SandboxRunReport, SandboxVerdict

MESSAGE_CHARS = 4_000
EXCERPT_BYTES = 2_048
"""Maximum length of the output excerpt that is shown beside the expected output."""
_VERDICTS = {
    SandboxVerdict.OK: Verdict.AC,
    SandboxVerdict.TLE: Verdict.TLE,
    SandboxVerdict.MLE: Verdict.MLE,
    SandboxVerdict.OLE: Verdict.OLE,
    SandboxVerdict.RE: Verdict.RE,
    SandboxVerdict.SE: Verdict.SE,
}


@dataclass(frozen=True, slots=True)
class CheckerScore:
    """A score given by a checker, with its unit."""

    value: Fraction
    unit: ScoreUnit


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a checker for one output."""

    verdict: Verdict
    message: str = ""
    author_message: str = ""
    score: CheckerScore | None = None


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Resource usage and end of one run of the program."""

    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    exit_code: int
    exit_signal: int
    limit: LimitKind | None

    @property
    def reason(self) -> str:
        """The reason of a failure as text; empty on success."""
        if self.limit is not None:
            return f"over the {self.limit.value.replace('_', ' ')} limit"
        if self.exit_signal:
            return f"killed by {signal_name(self.exit_signal)}"
        return f"exit code {self.exit_code}" if self.exit_code > 0 else ""


def signal_name(number: int) -> str:
    """``SIGSEGV`` instead of 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def usage_from_report(
    report: SandboxRunReport, cpu_limit_ms: int, out_of_memory: tuple[bytes, ...] = ()
) -> ResourceUsage:
    """Compare a run with the stated limit, which may be below the enforced one.

    A runtime that runs out of memory may crash before the limit is reached; its messages identify this case.
    """
    verdict, limit = _VERDICTS[report.verdict], report.limit
    if verdict is Verdict.RE and any(sign in report.stderr for sign in out_of_memory):
        verdict, limit = Verdict.MLE, LimitKind.MEMORY
    elif verdict in (Verdict.AC, Verdict.RE) and report.time_ms > cpu_limit_ms:
        verdict, limit = Verdict.TLE, LimitKind.CPU
    return ResourceUsage(
        verdict, report.time_ms, report.wall_ms, report.mem_kb, report.exit_code, report.exit_signal, limit
    )


@dataclass(frozen=True, slots=True)
class OutputExcerpt:
    """The beginnings of the expected output and of the program's output, for a public test case."""

    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test case. ``verdict`` None: it was skipped, and ``message`` has the reason."""

    name: str
    group: str
    verdict: Verdict | None
    is_sample: bool = False
    run: ResourceUsage | None = None
    """The run that counts."""
    first_run: ResourceUsage | None = None
    """The first run, if it was near the time limit and was repeated."""
    passes: int = 1
    score: CheckerScore | None = None
    message: str = ""
    """For the jury; may contain expected values."""
    author_message: str = ""
    """From the checker to the author of the submission."""
    output_excerpt: OutputExcerpt | None = None
    """Only for a public test case with a wrong answer."""

    @property
    def is_skipped(self) -> bool:
        return self.verdict is None

    @property
    def is_rejected(self) -> bool:
        """Whether it ran and earned neither full nor partial points."""
        return self.verdict not in (None, Verdict.AC, Verdict.PA)


def text_excerpt(data: bytes) -> str:
    text = data[:EXCERPT_BYTES].decode("utf-8", "replace").replace("\x00", "␀")
    return text if len(data) <= EXCERPT_BYTES else text + "…"


def truncate_message(text: str) -> str:
    text = text.strip().replace("\x00", "␀")
    return text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "…"
