"""The result of a record with a problem: what judging a submission of its program found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.records import EvaluationResult, EvaluationTestResult, failed_result
from adjudge.judge.result_document import JudgeResult, author_view

MESSAGE_CHARS: Final = 500
COMPILE_CHARS: Final = 4_000


def package_result(record_id: str, result: JudgeResult) -> EvaluationResult:
    """The whole result, for a package of the person who evaluates."""
    if result.verdict is Verdict.SE:
        return _broken(record_id, result.message)
    return _read(record_id, result.document(), len(result.cases))


def author_result(record_id: str, result: JudgeResult) -> EvaluationResult:
    """What the author of a submission may see: ``tests`` and ``passed`` have the tests that the problem shows."""
    if result.verdict is Verdict.SE:
        return _broken(record_id, "")
    return _read(record_id, author_view(result.document()), len(result.cases))


def _broken(record_id: str, message: str) -> EvaluationResult:
    found = message or "a program or file of the problem is broken; its setter can see the details."
    return failed_result(record_id, InvalidInput(f"problem: {found}", field="problem"))


def _read(record_id: str, document: Mapping[str, Any], total: int) -> EvaluationResult:
    tests = tuple(_test(row) for row in document["cases"] if row["verdict"] is not None)
    compiled = document["compile"] or {"ok": True}
    failure = "" if compiled["ok"] else f"{compiled['message']}\n{compiled['log']}".strip()
    return EvaluationResult(
        record_id,
        Verdict(document["verdict"]),
        sum(test.verdict is Verdict.AC for test in tests),
        total,
        tests,
        failure[:COMPILE_CHARS],
        time_ms=document["time_ms"],
        mem_kb=document["mem_kb"],
        score=document["score"],
    )


def _test(row: Mapping[str, Any]) -> EvaluationTestResult:
    """A test; ``message`` is missing in what an author sees of a secret one, ``author_message`` is for authors."""
    verdict = Verdict(row["verdict"])
    message = "" if verdict is Verdict.AC else row.get("message") or row["author_message"]
    return EvaluationTestResult(verdict, row["time_ms"], row["mem_kb"], message[:MESSAGE_CHARS])
