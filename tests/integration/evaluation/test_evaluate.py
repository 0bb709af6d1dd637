"""Evaluations in the real sandbox: by the library and by the command."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli import main
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.shapes import read_any
from adjudge.judge.exclusive_gate import ExclusiveGate
from tests.unit.evaluation.test_records import APPS, CODE_CONTESTS, HUMANEVAL, MBPP

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[3] / "examples" / "problems" / "multiples"
FUNCTION_CALLS = {
    "problem_id": "calls",
    "input_output": json.dumps({"inputs": [[1, 2], [3, 4]], "outputs": [3, 7], "fn_name": "add"}),
    "completion": "class Solution:\n    def add(self, a, b):\n        return a + b\n",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile cache of the test; an unprivileged user may have no cgroup."""
    monkeypatch.setenv("ADJUDGE_JUDGE_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.setenv("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")


def program(record_id: str, source: str, language: str = "python3", **fields: Any) -> dict[str, Any]:
    tests = [{"input": "1\n", "output": "2"}, {"input": "5\n", "output": "10"}]
    return {"id": record_id, "language": language, "source": source, "tests": tests, **fields}


def test_library_gives_a_result_for_each_record() -> None:
    records = [
        program("accepted", "print(2 * int(input()))"),
        program("wrong", "print(2)"),
        program("all", "print(10)", stop="never"),
        program("crash", "raise ValueError('no')"),
        program("slow", "while True: pass", limits={"cpu_ms": 200}),
        program("compile", "int main( {", "cpp"),
        program("large", "print('x' * 2_000_000)", tests=[{"input": "", "output": "x" * 2_000_000}]),
        program("language", "1", "klingon"),
        {"id": "no tests", "source": "1"},
        {"id": "package", "source": "print('?')", "problem": str(EXAMPLE)},
        {"id": "no package", "source": "print('?')", "problem": "/nowhere"},
        {"id": "revision", "source": "print('?')", "problem": str(EXAMPLE), "revision": 1},
    ]
    found = {result.id: result for result in adjudge.evaluate(records, slots=2)}
    verdicts = {name: result.verdict.value if result.verdict else result.error for name, result in found.items()}
    assert "klingon" in verdicts.pop("language")
    assert verdicts.pop("revision") == "revision: a package has none; only problems of a server do."
    assert verdicts.pop("no package") == "problem: Not found: package '/nowhere'."
    assert verdicts.pop("no tests") == "tests: give either `tests` or `problem`."
    assert verdicts == {
        "accepted": "AC",
        "wrong": "WA",
        "all": "WA",
        "crash": "RE",
        "slow": "TLE",
        "compile": "CE",
        "large": "AC",
        "package": "WA",
    }
    assert (found["wrong"].passed, found["wrong"].total, len(found["wrong"].tests)) == (1, 2, 2)
    assert (found["all"].passed, len(found["all"].tests)) == (1, 2)
    assert "ValueError: no" in found["crash"].tests[0].message
    assert "error" in found["compile"].compile_message


def test_benchmark_records_pass_and_fail() -> None:
    records = [
        HUMANEVAL,
        {**HUMANEVAL, "id": "wrong", "completion": "    return x\n"},
        {**HUMANEVAL, "id": "prints", "completion": "    return 2 * x\n\nprint(double(1))\n"},
        {**HUMANEVAL, "id": "exits", "completion": "    import os\n    os._exit(0)\n"},
        MBPP,
        APPS,
        FUNCTION_CALLS,
        {**FUNCTION_CALLS, "id": "wrong call", "completion": "def add(a, b):\n    return a - b\n"},
        CODE_CONTESTS,
    ]
    found = {result.id: result.verdict for result in adjudge.evaluate(records, slots=2)}
    assert {name: verdict.value if verdict else None for name, verdict in found.items()} == {
        "HumanEval/0": "AC",
        "wrong": "WA",
        "prints": "AC",
        "exits": "WA",
        "2": "AC",
        "3": "AC",
        "calls": "AC",
        "wrong call": "WA",
        "1_A. Sum": "AC",
    }


def test_library_stops_when_the_caller_stops() -> None:
    read = 0

    def records() -> Any:
        nonlocal read
        for number in range(1_000):
            read += 1
            yield program(str(number), "print(2 * int(input()))")

    results = adjudge.evaluate(records(), slots=2)
    next(results)
    results.close()
    assert read < 10


def test_command_continues_where_it_ended(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    lines = [program(str(number), "print(2 * int(input()))") for number in range(6)]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]) + "{}\n")
    refused = CliRunner().invoke(main, ["eval", str(records), "--slots", "2"])
    assert (refused.exit_code, "Line 4: id: missing" in refused.output) == (3, True)
    records.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"id": "bad", "source": ""}]))
    ended = CliRunner().invoke(main, ["eval", str(records), "--slots", "2"])
    assert ended.exit_code == 1, ended.output
    assert "7 records: AC 6, error 1" in ended.output
    results = [json.loads(line) for line in (tmp_path / "records.results.jsonl").read_text().splitlines()]
    assert sorted(result["id"] for result in results) == ["0", "1", "2", "3", "4", "5", "bad"]
    again = CliRunner().invoke(main, ["eval", str(records)])
    assert "7 records: AC 6, error 1; passed 85.7 %; 6 had a result already" in " ".join(again.output.split())
    results = [json.loads(line) for line in (tmp_path / "records.results.jsonl").read_text().splitlines()]
    assert len(results) == 7, "the error was removed and found again"
    records.write_text(records.read_text().replace('"source": ""', '"source": "print(1)", "tests": [{"output": "1"}]'))
    fixed = CliRunner().invoke(main, ["eval", str(records)])
    assert (fixed.exit_code, "7 records: AC 7" in fixed.output) == (0, True), fixed.output


class CountingGate(ExclusiveGate):
    """Counts the turns of executions."""

    turns = 0

    @asynccontextmanager
    async def executing(self) -> AsyncIterator[None]:
        self.turns += 1
        async with super().executing():
            yield


async def test_compilations_and_runs_take_the_turn_of_executions_and_are_limited_together() -> None:
    gate = CountingGate(executions_apart=True)
    doubled = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n; }\n"
    async with open_judge(1) as opened:
        judge = replace(opened, exclusive_gate=gate)
        with EvaluationRunner(judge) as runner:
            found = await runner.run(read_any(program("compiled", doubled, "cpp")))
            assert (found.verdict, gate.turns) == (Verdict.AC, 3), "one compilation and two runs"
        with EvaluationRunner(judge, total_ms=0) as runner:
            limited = await runner.run(read_any(program("long", "print(2 * int(input()))")))
            assert limited.error.startswith("tests: the runs took more than 0 s together")
