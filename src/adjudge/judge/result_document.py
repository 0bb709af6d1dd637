"""The result document: one JSON object with the judgement and everything it depended on.

``docs/reference/result-document.md`` describes every key, and a test compares the two. Only ``author_view`` may be
shown to the author of a submission: it contains nothing of the test data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final

from adjudge import __version__
from adjudge.domain.limits import Limits
from adjudge.domain.problem import Feedback, Problem
from adjudge.domain.programs import Checker, CheckerProtocol, ProblemFiles
from adjudge.domain.retry import RetryClass
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult, ResourceUsage
from adjudge.judge.compile import CompileResult
from adjudge.judge.scoring import SubmissionScore
from adjudge.judge.sources import ProgramSource

SCHEMA_VERSION: Final = 1
Document = dict[str, Any]
_SHOWN_LIMITS: Final = ("cpu_ms", "wall_ms", "memory_bytes", "output_bytes", "processes")
_FIGURES: Final = ("time_ms", "wall_ms", "mem_kb", "exit_code", "exit_signal", "limit")
_NO_RUN: Final = dict.fromkeys(_FIGURES) | {"time_ms": 0, "wall_ms": 0, "mem_kb": 0}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that a verdict depended on (INV-13)."""

    source: ProgramSource = field(repr=False)
    language: str
    language_version: str
    problem: str
    revision: str
    checker: str
    programs: Mapping[str, str]
    limits: Limits
    worker: str = ""
    job_id: str = ""
    attempt_id: int = 0


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The result of judging one submission."""

    verdict: Verdict
    score: Fraction
    max_score: Fraction | None
    message: str
    cases: tuple[CaseResult, ...]
    provenance: Provenance
    problem: Problem = field(repr=False)
    scored: SubmissionScore | None = None
    compiled: CompileResult | None = None
    wall_ms: int = 0
    """From the start to the end of judging."""

    @property
    def retry(self) -> RetryClass:
        """Every verdict is final, including CE and jury errors: judging again would give the same result."""
        return RetryClass.FINAL

    @property
    def time_ms(self) -> int:
        """CPU time of the slowest test case."""
        return max((case.run.time_ms for case in self.cases if case.run), default=0)

    @property
    def mem_kb(self) -> int:
        """Memory of the largest test case."""
        return max((case.run.mem_kb for case in self.cases if case.run), default=0)

    @property
    def first_failure(self) -> CaseResult | None:
        """The first test case that was not accepted."""
        return next((case for case in self.cases if case.verdict not in (None, Verdict.AC)), None)

    def document(self) -> Document:
        """The complete document, for the jury."""
        first = self.first_failure
        cases = {case.name: case for case in self.problem.cases}
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict.value,
            "score": score_to_json(self.score),
            "max_score": None if self.max_score is None else score_to_json(self.max_score),
            "time_ms": self.time_ms,
            "mem_kb": self.mem_kb,
            "wall_ms": self.wall_ms,
            "message": self.message,
            "first_failure": first.name if first else None,
            "compile": _compile(self.compiled),
            "groups": self._groups(),
            "cases": [_case(case, self.problem.feedback_of(cases[case.name])) for case in self.cases],
            "provenance": _provenance(self.provenance),
        }

    def _groups(self) -> list[Document]:
        rows = []
        for row in self.scored.groups if self.scored else ():
            earned = row.earned
            rows.append(
                {
                    "path": row.path,
                    "verdict": earned.verdict.value if earned.verdict else None,
                    "score": score_to_json(earned.points),
                    "max_score": None if earned.max_points is None else score_to_json(earned.max_points),
                    "feedback": self.problem.group(row.path).feedback.value,
                }
            )
        return rows


def score_to_json(value: Fraction) -> int | float:
    """A score as JSON number: an integer if it is one."""
    return value.numerator if value.denominator == 1 else round(float(value), 9)


def _figures(run: ResourceUsage) -> Document:
    return {"verdict": run.verdict.value, **{name: getattr(run, name) for name in _FIGURES}}


def _case(case: CaseResult, feedback: str) -> Document:
    return {
        "name": case.name,
        "group": case.group,
        **(_figures(case.run) if case.run else _NO_RUN),
        "verdict": case.verdict.value if case.verdict else None,
        "score": score_to_json(case.score.value) if case.score else None,
        "score_unit": case.score.unit.value if case.score else None,
        "passes": case.passes,
        "first_run": _figures(case.first_run) if case.first_run else None,
        "message": case.message,
        "author_message": case.author_message,
        "written": {"expected": case.output_excerpt.expected, "got": case.output_excerpt.actual}
        if case.output_excerpt
        else None,
        "is_sample": case.is_sample,
        "feedback": feedback,
    }


def _compile(compiled: CompileResult | None) -> Document | None:
    if compiled is None:
        return None
    failure = compiled.failure
    return {
        "ok": failure is None,
        "message": failure.message if failure else "",
        "log": failure.log if failure else compiled.log,
        "limit": failure.limit.value if failure and failure.limit else None,
        "time_ms": compiled.time_ms,
        "cached": compiled.cached,
    }


def _provenance(origin: Provenance) -> Document:
    return {
        "adjudge": __version__,
        "source_sha256": origin.source.digest,
        "files": [
            {"name": file.name, "size_bytes": len(file.data), "sha256": file.sha256} for file in origin.source.files
        ],
        "entry_point": origin.source.entry_point,
        "language": origin.language,
        "language_version": origin.language_version,
        "problem": origin.problem,
        "revision": origin.revision,
        "checker": origin.checker,
        "programs": dict(origin.programs),
        "limits": {name: getattr(origin.limits, name) for name in _SHOWN_LIMITS},
        "worker": origin.worker,
        "job_id": origin.job_id,
        "attempt_id": origin.attempt_id,
    }


def describe_checker(checker: Checker) -> str:
    """One-line description of the checker."""
    if checker.protocol is not CheckerProtocol.NATIVE:
        return f"{checker.protocol.value}: {', '.join(program.name for program in checker.programs)}"
    words = [*checker.args, *(f"{name}={value}" for name, value in checker.options.items())]
    return " ".join([checker.native.value, *words])


def judging_digest(problem: Problem, files: ProblemFiles) -> str:
    """The digest of everything that decides a verdict: limits, test cases, answers, checkers and their sources."""
    total = sha256()
    total.update(repr((problem.grading, problem.mode, problem.limits, problem.groups, problem.max_passes)).encode())
    for case in problem.cases:
        parts = [case.name, files.sha256(case.input), files.sha256(case.answer) if case.answer else "", repr(case)]
        total.update("\n".join(parts).encode())
    checkers = [problem.checker, *(case.checker for case in problem.cases if case.checker)]
    programs = [program for checker in checkers for program in checker.programs]
    programs += [problem.interactor.program] if problem.interactor else []
    refs = [ref for program in programs for ref in (*program.files, *program.support)]
    refs += [ref for stub in problem.stubs for ref in stub.files]
    for ref in refs:
        total.update(f"{ref.name}\n{files.sha256(ref.path)}".encode())
    total.update(repr((problem.checker, problem.interactor)).encode())
    return total.hexdigest()


_HIDDEN: Final = ("message", "exit_code", "exit_signal", "wall_ms", "first_run", "score", "score_unit")
_AUTHOR_PROVENANCE: Final = (
    "adjudge",
    "source_sha256",
    "files",
    "entry_point",
    "language",
    "language_version",
    "problem",
    "limits",
)
_KIB_PER_MIB: Final = 1024


def coarse_mem_kb(mem_kb: int) -> int:
    """Memory as the author sees it: rounded up to MiB.

    A program chooses how much memory it uses, so the exact value would leak a dozen bits of each secret test case.
    Times are milliseconds, which are much less precise.
    """
    return -(-mem_kb // _KIB_PER_MIB) * _KIB_PER_MIB


def coarse_case(case: Mapping[str, Any]) -> Document:
    """The usage of one test case as the author sees it during judging."""
    return {**case, "mem_kb": coarse_mem_kb(case.get("mem_kb") or 0)}


def author_view(document: Document) -> Document:
    """The part of a result document that its author may see: nothing that test data could be encoded in.

    Samples are shown completely. For other test cases, the program's messages, exit codes and signals, the wall time
    and the checker's messages are removed, and memory is rounded: a program could use each of them to report what it
    read. The feedback setting of each group decides which test cases are listed.
    """
    cases = _visible_rows(document["cases"])
    hidden = {group["path"] for group in document["groups"] if group["feedback"] == Feedback.NONE.value}
    first = next((row for row in cases if row["verdict"] not in (None, Verdict.AC.value)), None)
    kept = ("schema_version", "verdict", "score", "max_score", "time_ms", "compile")
    origin = document["provenance"]
    return {
        **{key: document[key] for key in kept},
        "mem_kb": coarse_mem_kb(document["mem_kb"]),
        "message": _author_message(document, first),
        "first_failure": first["name"] if first else None,
        "groups": [group for group in document["groups"] if group["path"] not in hidden],
        "cases": cases,
        "provenance": {key: origin[key] for key in _AUTHOR_PROVENANCE if key in origin},
    }


def points_view(document: Document) -> Document:
    """The part of a result document that tells the scores of its groups and the compiler output, but no test case."""
    seen = author_view(document)
    is_compile_error = document["verdict"] == Verdict.CE.value
    return {
        **seen,
        "time_ms": None,
        "mem_kb": None,
        "message": seen["message"] if is_compile_error else "",
        "first_failure": None,
        "cases": [],
    }


def _author_message(document: Document, first: Document | None) -> str:
    if document["verdict"] == Verdict.CE.value and document["compile"]:
        return str(document["compile"]["message"])
    if document["verdict"] == Verdict.SE.value:
        return "System error: the judge failed; you need not do anything."
    if first is None:
        return ""
    check = f": {first['author_message']}" if first["author_message"] else ""
    return f"{Verdict(first['verdict']).title} on test {first['name']}{check}"


def _visible_rows(rows: Sequence[Document]) -> list[Document]:
    visible: list[Document] = []
    failed: set[str] = set()
    for row in rows:
        feedback = row["feedback"]
        if feedback in (Feedback.NONE.value, Feedback.POINTS.value) or row["group"] in failed:
            continue
        if feedback == Feedback.FIRST_FAILURE.value and row["verdict"] not in (None, Verdict.AC.value):
            failed.add(row["group"])
        if feedback == "full":
            visible.append(row)
        else:
            shown = {key: value for key, value in row.items() if key not in _HIDDEN}
            visible.append({**shown, "mem_kb": coarse_mem_kb(row["mem_kb"])})
    return visible
