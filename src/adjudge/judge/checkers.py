"""Checker programs: run in the sandbox by their protocol; their results are validated.

An error of a checker (crash, exceeded limit, unknown exit code) becomes SE with a message for the jury, never a verdict
about the submission.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

from adjudge.domain.limits import MIB, Limits
from adjudge.domain.problem import ProblemLimits
from adjudge.domain.programs import Checker, CheckerProtocol, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CheckerScore, CheckResult, signal_name, truncate_message
from adjudge.judge.compile import Executable, ended
from adjudge.sandbox import InputFile, Mount, Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict
from adjudge.sandbox.spec import FILES_MAX

INPUT: Final = "/judge/input"
OUTPUT: Final = "/judge/output"
ANSWER: Final = "/judge/answer"
FEEDBACK: Final = "feedback"
ACCEPT: Final = 42
REJECT: Final = 43
_POINTS = re.compile(rb"^points(?:_info=\S*)? ([+-]?[0-9]+(?:\.[0-9]+)?)(?:\s|$)")
_PARTLY = re.compile(rb"^partially correct \(([0-9]+)\)")
_COCI = re.compile(rb"^partial ([0-9]+)/([1-9][0-9]*)\s*$", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_SCORE_FILES: Final = ("score.txt", "score_multiplier.txt")
_STOCK_MESSAGES: Final = {
    "success": "Output is correct",
    "wrong": "Output isn't correct",
    "partial": "Output is partially correct",
}


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """One output to check, as files."""

    input: Path
    answer: Path
    """An empty file if the case has no answer."""
    output: Path
    args: Sequence[str] = ()
    feedback: Path | None = None
    """Directory of an ICPC validator's feedback, kept from pass to pass."""


@dataclass(frozen=True, slots=True)
class ProgramChecker:
    """A checker with its compiled programs."""

    checker: Checker
    programs: tuple[Executable, ...]
    limits: Limits
    sandbox: Sandbox = field(repr=False)

    async def check(self, question: CheckRequest) -> CheckResult:
        """Run all programs; all must accept, and the score of the last one counts."""
        check = CheckResult(Verdict.SE, "the problem has no checker program")
        for program in self.programs:
            check = await self._ask(program, question)
            if check.verdict not in (Verdict.AC, Verdict.PA):
                break
        return check

    async def _ask(self, program: Executable, question: CheckRequest) -> CheckResult:
        if self.checker.protocol is CheckerProtocol.ICPC:
            return await self._ask_icpc(program, question)
        order, read = _PROTOCOLS[self.checker.protocol]
        spec = SandboxRunSpec(
            argv=program.argv(self.limits.memory_bytes, [*order, *self.checker.args, *question.args]),
            limits=self.limits,
            env=program.env,
            mounts=(*program.mounts, *checker_mounts(question)),
        )
        report = ended(await self.sandbox.run(spec), program, "the checker")
        return checker_failure(report, "checker") or read(report, self.checker.score_unit)

    async def _ask_icpc(self, program: Executable, question: CheckRequest) -> CheckResult:
        feedback = question.feedback
        if feedback is None:
            return CheckResult(Verdict.SE, "no feedback directory for the output validator")
        if failure := feedback_failure(feedback):
            return failure
        spec = SandboxRunSpec(
            argv=program.argv(
                self.limits.memory_bytes, [INPUT, ANSWER, f"/work/{FEEDBACK}/", *self.checker.args, *question.args]
            ),
            limits=self.limits,
            env=program.env,
            stdin=question.output,
            files=feedback_files(feedback),
            mounts=(*program.mounts, *checker_mounts(question)[:2]),
            collect=(FEEDBACK,),
            collect_to=clear_feedback(feedback),
        )
        report = ended(await self.sandbox.run(spec), program, "the output validator")
        return read_icpc(report, feedback)


def validation_limits(limits: ProblemLimits) -> Limits:
    return Limits(
        cpu_ms=limits.validation_ms,
        wall_ms=limits.validation_ms * 2,
        memory_bytes=limits.validation_memory_bytes,
        processes=256,
        file_bytes=max(limits.validation_output_bytes, 64 * MIB),
        output_bytes=limits.validation_output_bytes,
        work_bytes=max(limits.validation_output_bytes, 64 * MIB),
    )


def checker_mounts(question: CheckRequest) -> tuple[Mount, ...]:
    """The files that a checker may read."""
    return (
        Mount(question.input.absolute(), INPUT),
        Mount(question.answer.absolute(), ANSWER),
        Mount(question.output.absolute(), OUTPUT),
    )


def clear_feedback(feedback: Path) -> Path:
    """Empty the directory that the feedback of a run is copied to."""
    shutil.rmtree(feedback / FEEDBACK, ignore_errors=True)
    return feedback


def feedback_files(feedback: Path) -> tuple[InputFile, ...]:
    """The feedback files of previous passes, except the next pass's input."""
    kept = (InputFile(f"{FEEDBACK}/{path.name}", path.read_bytes()) for path in _kept_feedback(feedback))
    return (InputFile(f"{FEEDBACK}/.keep", b""), *kept)


def feedback_failure(feedback: Path) -> CheckResult | None:
    """An error if a validator left more feedback than can be passed to the next run."""
    count = len(_kept_feedback(feedback))
    if count < FILES_MAX:
        return None
    message = f"the output validator left {count} feedback files for the run that follows; at most {FILES_MAX - 1} fit"
    return CheckResult(Verdict.SE, message)


def _kept_feedback(feedback: Path) -> list[Path]:
    kept = feedback / FEEDBACK
    return [
        path
        for path in (sorted(kept.iterdir()) if kept.is_dir() else [])
        if path.is_file() and not path.is_symlink() and path.name not in ("nextpass.in", ".keep")
    ]


def checker_failure(report: SandboxRunReport, what: str) -> CheckResult | None:
    """An error if a checker did not exit normally."""
    if report.verdict in (SandboxVerdict.OK, SandboxVerdict.RE) and not report.exit_signal:
        return None
    how = signal_name(report.exit_signal) if report.exit_signal else ""
    if report.limit is not None:
        how = f"{report.limit.value} limit"
    check = truncate_message((report.stderr or report.stdout).decode("utf-8", "replace"))
    return CheckResult(Verdict.SE, f"the {what} failed: {how or report.verdict.value}{': ' + check if check else ''}")


def _text(data: bytes) -> str:
    return truncate_message(data.decode("utf-8", "replace"))


def parse_testlib(report: SandboxRunReport, unit: ScoreUnit) -> CheckResult:
    """Parse an exit code together with the first words on stderr, which alone distinguish partial results."""
    message = _text(report.stderr)
    if match := _PARTLY.match(report.stderr):
        # k is a percentage; the exit code alone would read as WA (1) or OK (0).
        return CheckResult(Verdict.AC, message, score=CheckerScore(Fraction(int(match[1])), ScoreUnit.PERCENT))
    if report.exit_code == 7:
        match = _POINTS.match(report.stderr)
        if match is None:
            return CheckResult(Verdict.SE, f"the checker gave points without saying how many: {message}")
        return CheckResult(Verdict.AC, message, score=CheckerScore(Fraction(match[1].decode()), unit))
    verdict = {0: Verdict.AC, 1: Verdict.WA, 2: Verdict.WA, 4: Verdict.WA, 8: Verdict.WA}.get(report.exit_code)
    if verdict is None:
        return CheckResult(Verdict.SE, f"the checker failed (exit code {report.exit_code}): {message}")
    return CheckResult(verdict, message)


def read_coci(report: SandboxRunReport, unit: ScoreUnit) -> CheckResult:
    """As testlib, with ``partial X/Y``."""
    match = _COCI.search(report.stderr)
    if match is not None and report.exit_code in (0, 1, 7):
        fraction = Fraction(int(match[1]), int(match[2]))
        return CheckResult(Verdict.AC, _text(report.stderr), score=CheckerScore(fraction, ScoreUnit.FRACTION))
    return parse_testlib(report, unit)


def read_dmoj(report: SandboxRunReport, _: ScoreUnit) -> CheckResult:
    """Exit code 0 is accepted, 1 is rejected, others are checker errors."""
    message = _text(report.stdout or report.stderr)
    verdict = {0: Verdict.AC, 1: Verdict.WA}.get(report.exit_code)
    if verdict is None:
        return CheckResult(Verdict.SE, f"the checker failed (exit code {report.exit_code}): {message}")
    return CheckResult(verdict, message)


def read_peg(report: SandboxRunReport, unit: ScoreUnit) -> CheckResult:
    """The exit code decides; two lines ``a`` and ``b`` on stdout mean a of b points."""
    check = read_dmoj(report, unit)
    lines = report.stdout.split()
    if (
        check.verdict is Verdict.SE
        or len(lines) < 2
        or not all(line.isdigit() and len(line) < 10 for line in lines[:2])
    ):
        return check
    earned, most = int(lines[0]), int(lines[1])
    if most == 0 or earned > most:
        return CheckResult(Verdict.SE, f"invalid score: {earned} of {most} points")
    return CheckResult(Verdict.AC, check.message, score=CheckerScore(Fraction(earned, most), ScoreUnit.FRACTION))


def read_cms(report: SandboxRunReport, _: ScoreUnit) -> CheckResult:
    """The outcome, from 0 to 1, on stdout and the message on stderr."""
    message = report.stderr.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    if report.exit_code != 0:
        return CheckResult(Verdict.SE, f"the checker failed (exit code {report.exit_code}): {_text(report.stderr)}")
    line = report.stdout.split(b"\n", 1)[0].decode("ascii", "replace").strip()
    if not _NUMBER.fullmatch(line) or not 0 <= (outcome := Fraction(line)) <= 1:
        return CheckResult(Verdict.SE, f"the checker's outcome {line[:40]!r} is not a number from 0 to 1")
    message = _STOCK_MESSAGES.get(message.removeprefix("translate:"), message)
    verdict = Verdict.WA if outcome == 0 else Verdict.AC
    score = None if outcome in (0, 1) else CheckerScore(outcome, ScoreUnit.FRACTION)
    return CheckResult(verdict, _text(report.stderr) or message, truncate_message(message), score)


def read_icpc(report: SandboxRunReport, feedback: Path) -> CheckResult:
    """Exit code 42 or 43 and the feedback files; any other code, including 0, is a validator error."""
    place = feedback / FEEDBACK
    message = "\n".join(filter(None, (read_feedback(place, name) for name in ("judgemessage.txt", "judgeerror.txt"))))
    author = read_feedback(place, "teammessage.txt")
    if failure := checker_failure(report, "output validator"):
        return failure
    if report.exit_code not in (ACCEPT, REJECT):
        check = "\n".join(filter(None, (message, _text(report.stderr), _text(report.stdout))))
        return CheckResult(
            Verdict.SE, truncate_message(f"the output validator failed (exit code {report.exit_code}): {check}")
        )
    if report.exit_code == REJECT:
        forbidden = next((name for name in (*_SCORE_FILES, "nextpass.in") if (place / name).is_file()), "")
        if forbidden:
            return CheckResult(Verdict.SE, f"the output validator wrote {forbidden} and rejected the output")
        return CheckResult(Verdict.WA, truncate_message(message), truncate_message(author))
    score = _icpc_score(place)
    if isinstance(score, str):
        return CheckResult(Verdict.SE, score)
    return CheckResult(Verdict.AC, truncate_message(message), truncate_message(author), score)


def _icpc_score(place: Path) -> CheckerScore | str | None:
    """Read the score, or return an error message."""
    names = [name for name in _SCORE_FILES if (place / name).is_file()]
    if not names:
        return None
    if len(names) > 1:
        return "the output validator wrote both score.txt and score_multiplier.txt"
    text = read_feedback(place, names[0])
    if not _NUMBER.fullmatch(text):
        return f"the output validator's {names[0]} is not a number: {text[:40]!r}"
    value = Fraction(text)
    if names[0] == "score.txt":
        return CheckerScore(value, ScoreUnit.ABSOLUTE)
    if not 0 <= value <= 1:
        return f"the output validator's {names[0]} is {text}, not between 0 and 1"
    return CheckerScore(value, ScoreUnit.FRACTION)


def read_feedback(place: Path, name: str) -> str:
    """Read one feedback file up to a limit; empty if missing. Symbolic links are not followed."""
    path = place / name
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(64 * 1024).decode("utf-8", "replace").strip()


Read = Callable[[SandboxRunReport, ScoreUnit], CheckResult]
_PROTOCOLS: Final[dict[CheckerProtocol, tuple[tuple[str, ...], Read]]] = {
    CheckerProtocol.TESTLIB: ((INPUT, OUTPUT, ANSWER), parse_testlib),
    CheckerProtocol.CMS: ((INPUT, ANSWER, OUTPUT), read_cms),
    CheckerProtocol.DMOJ: ((INPUT, OUTPUT, ANSWER), read_dmoj),
    CheckerProtocol.COCI: ((INPUT, OUTPUT, ANSWER), read_coci),
    CheckerProtocol.PEG: ((ANSWER, OUTPUT, INPUT), read_peg),
}
