"""What became of one test: values that the runners make and scoring and the result document read."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from fractions import Fraction

from adjudge.domain.programs import ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.sandbox import LimitKind, SandboxRunReport, SandboxVerdict

MESSAGE_CHARS = 4_000
EXCERPT_BYTES = 2_048
"""How much of an output is kept to be shown beside what was expected."""
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
    """A number that a checker gave, and what it is a number of."""

    value: Fraction
    unit: ScoreUnit


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a checker said of an output."""

    verdict: Verdict
    message: str = ""
    author_message: str = ""
    score: CheckerScore | None = None


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What one run of the program used and how it ended."""

    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    exit_code: int
    exit_signal: int
    limit: LimitKind | None

    @property
    def reason(self) -> str:
        """How it ended, in words; empty where it ended well."""
        if self.limit is not None:
            return f"over the {self.limit.value.replace('_', ' ')} limit"
        if self.exit_signal:
            return f"killed by {signal_name(self.exit_signal)}"
        return f"exit code {self.exit_code}" if self.exit_code > 0 else ""


def signal_name(number: int) -> str:
    """``SIGSEGV`` rather than 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def usage_from_report(
    report: SandboxRunReport, cpu_limit_ms: int, out_of_memory: tuple[bytes, ...] = ()
) -> ResourceUsage:
    """Read a run against the limit that was promised, which may be below the one that it was stopped at.

    A runtime that gives up for want of memory crashes before the limit does its work; that is told apart here.
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
    """The beginnings of what a public test expects and of what the program wrote."""

    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One test's row. ``verdict`` None: it was skipped, and ``message`` says why."""

    name: str
    group: str
    verdict: Verdict | None
    is_sample: bool = False
    run: ResourceUsage | None = None
    """The run that counts."""
    first_run: ResourceUsage | None = None
    """The run before it, where one near the time limit was repeated."""
    passes: int = 1
    score: CheckerScore | None = None
    message: str = ""
    """For the jury: may name expected values."""
    author_message: str = ""
    """From the checker to the author."""
    output_excerpt: OutputExcerpt | None = None
    """Of a public test that was answered wrongly."""

    @property
    def is_skipped(self) -> bool:
        """Whether it never ran."""
        return self.verdict is None

    @property
    def is_rejected(self) -> bool:
        """Whether it ran and earned neither full nor part of the points."""
        return self.verdict not in (None, Verdict.AC, Verdict.PA)


def text_excerpt(data: bytes) -> str:
    """The beginning of a file, as text short enough to keep."""
    text = data[:EXCERPT_BYTES].decode("utf-8", "replace").replace("\x00", "␀")
    return text if len(data) <= EXCERPT_BYTES else text + "…"


def truncate_message(text: str) -> str:
    """A message short enough to keep."""
    text = text.strip().replace("\x00", "␀")
    return text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "…"
