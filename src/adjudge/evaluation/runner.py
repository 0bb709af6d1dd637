"""Evaluates one record: compiles its program once and runs it on each test in the sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.limits import MIB
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.judged_result import COMPILE_CHARS, MESSAGE_CHARS, package_result
from adjudge.evaluation.records import (
    ComparatorChoice,
    EvaluationRecord,
    EvaluationResult,
    EvaluationTest,
    EvaluationTestResult,
    failed_result,
)
from adjudge.judge.case_results import usage_from_report
from adjudge.judge.comparators import Comparator, build_comparator
from adjudge.judge.compile import CompileResult, Executable, ended
from adjudge.judge.languages import Language
from adjudge.judge.pipeline import Judge, SubmittedProgram
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, load_package
from adjudge.sandbox import SandboxRunSpec

_THREAD_BYTES: Final = 64 * 1024
"""Larger outputs are compared in a thread, so that the event loop goes on."""
_ASSERTION: Final = "AssertionError"


@dataclass(frozen=True, slots=True)
class _PreparedProgram:
    """A compiled program with what each of its runs needs."""

    program: Executable
    spec: SandboxRunSpec
    comparator: Comparator


class EvaluationRunner:
    """Evaluates records; several at the same time share its sandbox, compile cache and problem packages.

    Runs and compilations take the turn of executions, because the author of a record reads its result. ``total_ms``
    limits the wall time of all runs of a record.
    """

    def __init__(self, judge: Judge, *, total_ms: int | None = None) -> None:
        self._judge = judge
        self._total_ms = total_ms
        self._opened = ExitStack()
        self._packages: dict[str, asyncio.Task[Package]] = {}
        self._outputs = count()

    def __enter__(self) -> Self:
        self._folder = Path(self._opened.enter_context(TemporaryDirectory(prefix="adjudge-evaluation-")))
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the packages and delete the outputs."""
        self._opened.close()

    async def run(self, record: EvaluationRecord) -> EvaluationResult:
        """Evaluate a record; an invalid record or package is a result with an error, a broken sandbox raises."""
        try:
            if record.problem:
                return await self._judge_problem(record)
            return await self._run_tests(record)
        except InvalidInput as error:
            return failed_result(record.id, error)

    async def _run_tests(self, record: EvaluationRecord) -> EvaluationResult:
        language, comparator = self._judge.languages.get(record.language), _comparator(record.comparator)
        compiler, total, gate = self._judge.compiler, len(record.tests), self._judge.exclusive_gate
        program = None if record.checks_scripts else await compiler.script(language, record.source)
        if program is None:
            turn = gate.executing if gate.executions_apart else None
            compiled = await compiler.compile(language, record.source, turn=turn)
            if (program := compiled.executable) is None:
                message = _failure_message(compiled)
                return EvaluationResult(record.id, Verdict.CE, 0, total, compile_message=message)
        prepared = _PreparedProgram(program, _spec(program, language, record), comparator)
        results: list[EvaluationTestResult] = []
        for test in record.tests:
            results.append(await self._run_test(prepared, test))
            if record.stops and results[-1].verdict is not Verdict.AC:
                break
            self._check_total(results)
        passed = sum(result.verdict is Verdict.AC for result in results)
        verdict = next((result.verdict for result in results if result.verdict is not Verdict.AC), Verdict.AC)
        return EvaluationResult(
            record.id,
            verdict,
            passed,
            total,
            tuple(results),
            time_ms=max((result.time_ms for result in results), default=0),
            mem_kb=max((result.mem_kb for result in results), default=0),
        )

    def _check_total(self, results: Sequence[EvaluationTestResult]) -> None:
        if self._total_ms is not None and sum(result.wall_ms for result in results) > self._total_ms:
            raise InvalidInput(
                f"tests: the runs took more than {self._total_ms // 1_000} s together (executions.total_sec).",
                field="tests",
            )

    async def _run_test(self, prepared: _PreparedProgram, test: EvaluationTest) -> EvaluationTestResult:
        output = self._folder / str(next(self._outputs))
        program, spec = prepared.program, replace(prepared.spec, stdin=test.stdin, stdout=output)
        try:
            async with self._judge.exclusive_gate.executing():
                report = ended(await self._judge.sandbox.run(spec), program, "the program")
            usage = usage_from_report(report, spec.limits.cpu_ms, program.out_of_memory_messages)
            verdict, message = usage.verdict, usage.reason
            if verdict is Verdict.AC:
                verdict, message = await _compare(output, test, prepared.comparator)
        finally:
            output.unlink(missing_ok=True)
        if verdict is Verdict.RE:
            verdict, message = _explain(message, report.stderr)
        return EvaluationTestResult(verdict, usage.time_ms, usage.mem_kb, message[:MESSAGE_CHARS], usage.wall_ms)

    async def _judge_problem(self, record: EvaluationRecord) -> EvaluationResult:
        """Judge a solution of a problem package as a submission would be."""
        if record.revision is not None:
            raise InvalidInput("revision: a package has none; only problems of a server do.", field="revision")
        if record.problem not in self._packages:
            self._packages[record.problem] = asyncio.create_task(self._open(record.problem))
        package = await asyncio.shield(self._packages[record.problem])
        program = SubmittedProgram(record.source, record.language)
        return package_result(record.id, await self._judge.judge(package.problem, package.files, program))

    async def _open(self, path: str) -> Package:
        """Open a package until the runner is closed; concurrent records of a problem wait for the same opening."""
        try:
            package = self._opened.enter_context(load_package(Path(path)))
        except AdjudgeError as error:
            if error.http_status >= 500:
                raise
            raise InvalidInput(f"problem: {error.message}", field="problem") from error
        return await generate_missing_files(package, self._judge)


def _failure_message(compiled: CompileResult) -> str:
    failure = compiled.failure
    return f"{failure.message}\n{failure.log}".strip()[:COMPILE_CHARS] if failure else ""


@lru_cache(maxsize=64)
def _comparator(choice: ComparatorChoice) -> Comparator:
    try:
        return build_comparator(choice.kind, choice.args, dict(choice.options))
    except InvalidInput as error:
        raise InvalidInput(f"comparator: {error.message}", field="comparator") from error


def _spec(program: Executable, language: Language, record: EvaluationRecord) -> SandboxRunSpec:
    limits = language.limits(record.limits)
    memory_bytes = max(MIB, limits.memory_bytes - language.extra_memory_mib * MIB)
    return SandboxRunSpec(
        argv=program.argv(memory_bytes), limits=limits, env=program.env, files=program.files, mounts=program.mounts
    )


async def _compare(output: Path, test: EvaluationTest, comparator: Comparator) -> tuple[Verdict, str]:
    size_bytes = _size_bytes(output)
    if max(size_bytes, len(test.expected or b"")) < _THREAD_BYTES:
        return _compare_now(output, size_bytes, test, comparator)
    return await asyncio.to_thread(_compare_now, output, size_bytes, test, comparator)


def _size_bytes(output: Path) -> int:
    return output.stat().st_size


def _compare_now(output: Path, size_bytes: int, test: EvaluationTest, comparator: Comparator) -> tuple[Verdict, str]:
    if test.expected is None and not test.end_mark:
        return Verdict.AC, ""
    with output.open("rb", buffering=0) as found:
        if test.end_mark:
            found.seek(-min(size_bytes, len(test.end_mark) + 1), os.SEEK_END)
            is_complete = found.read().rstrip(b"\n").endswith(test.end_mark)
            return (Verdict.AC, "") if is_complete else (Verdict.WA, "the program exited before its tests ended")
        compared = comparator.compare(BytesIO(test.expected or b""), found)
    return (Verdict.AC, "") if compared.accepted else (Verdict.WA, compared.message)


def _explain(reason: str, stderr: bytes) -> tuple[Verdict, str]:
    """A failed assertion is a wrong answer; another crash is explained by the last line of its error output."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    if lines and lines[-1].startswith(_ASSERTION):
        return Verdict.WA, lines[-1]
    return Verdict.RE, f"{reason}: {lines[-1]}" if lines else reason
