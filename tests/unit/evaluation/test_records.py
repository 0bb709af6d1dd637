"""Records of evaluations: the native shape, shapes of public benchmarks, errors by field, and files."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.files import RecordFile, ResultFile
from adjudge.evaluation.records import EvaluationResult, read_record
from adjudge.evaluation.shapes import RecordShape, detect_shape, read_any

NATIVE = {"id": 7, "language": "cpp", "source": "int main() {}", "tests": [{"input": "1\n", "output": "2\n"}]}


def test_native_record_is_read_with_its_limits() -> None:
    record = read_record({**NATIVE, "limits": {"cpu_ms": 1_500, "memory_mib": 64}, "stop": "never"})
    assert (record.id, record.language, record.stops) == ("7", "cpp", False)
    assert (record.limits.cpu_ms, record.limits.wall_ms, record.limits.memory_bytes) == (1_500, 4_500, 64 * MIB)
    assert [(test.stdin, test.expected) for test in record.tests] == [(b"1\n", b"2\n")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": True}, "id"),
        ({"source": ""}, "source"),
        ({"source": 3}, "source"),
        ({"source": "\ud800"}, "source"),
        ({"language": "a\0"}, "language"),
        ({"tests": []}, "tests"),
        ({"tests": [{"input": 3}]}, "tests.input"),
        ({"tests": [{"in": "3"}]}, "tests.in"),
        ({"problem": "sum"}, "tests"),
        ({"limits": {"cpu_ms": 0}}, "limits.cpu_ms"),
        ({"limits": {"time": 1}}, "limits"),
        ({"stop": "sometimes"}, "stop"),
        ({"comparator": {"kind": 1}}, "comparator"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_error_names_the_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_record({**NATIVE, **change})
    assert refused.value.fields["field"] == field


HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def double(x):\n",
    "completion": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "double",
}
MBPP = {"task_id": 2, "completion": "def f(x):\n    return x", "test_list": ["assert f(1) == 1"], "test_setup_code": ""}
APPS = {"problem_id": 3, "completion": "print(input())", "input_output": '{"inputs": ["a\\n"], "outputs": ["a\\n"]}'}
CODE_CONTESTS = {
    "name": "1_A. Sum",
    "solution": "print(1)",
    "language": 3,
    "public_tests": {"input": ["1"], "output": ["1"]},
    "generated_tests": {"input": ["2"], "output": ["1"]},
    "time_limit": {"seconds": 1, "nanos": 500_000_000},
    "memory_limit_bytes": 256_000_000,
}


@pytest.mark.parametrize(
    ("document", "shape"),
    [
        (HUMANEVAL, RecordShape.HUMANEVAL),
        (MBPP, RecordShape.MBPP),
        (APPS, RecordShape.APPS),
        (CODE_CONTESTS, RecordShape.CODE_CONTESTS),
        (NATIVE, RecordShape.NATIVE),
    ],
)
def test_shape_is_detected_by_its_fields(document: dict[str, Any], shape: RecordShape) -> None:
    assert detect_shape(document) is shape
    assert read_any(document) == read_any(document, shape)


def test_function_tests_end_with_a_mark() -> None:
    record = read_any(HUMANEVAL)
    assert record.id == "HumanEval/0"
    (file,), (test,) = record.source.files, record.tests
    assert file.data.startswith(b"def double(x):\n    return 2 * x\n")
    assert b"check(double)" in file.data
    assert (test.expected, test.end_mark in file.data) == (None, True)


def test_code_contests_record_has_all_tests_and_its_limits() -> None:
    record = read_any(CODE_CONTESTS)
    assert (record.language, [test.stdin for test in record.tests]) == ("python3", [b"1", b"2"])
    assert (record.limits.cpu_ms, record.limits.memory_bytes) == (1_500, 256_000_000)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({**HUMANEVAL, "entry_point": "a b"}, "entry_point"),
        ({key: value for key, value in HUMANEVAL.items() if key != "completion"}, "completion"),
        ({**MBPP, "test_list": "assert 1"}, "test_list"),
        ({**APPS, "input_output": "{"}, "input_output"),
        ({**APPS, "input_output": '{"inputs": [""], "outputs": []}'}, "input_output"),
        ({**APPS, "input_output": '{"inputs": [[1]], "outputs": [1], "fn_name": "f()"}'}, "input_output.fn_name"),
        ({**CODE_CONTESTS, "language": 1}, "language"),
        ({**CODE_CONTESTS, "time_limit": {"seconds": 0}}, "time_limit"),
    ],
)
def test_error_in_a_benchmark_record_names_the_field(document: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_any(document)
    assert refused.value.fields["field"] == field


def test_file_skips_records_with_a_result_and_refuses_a_repeated_id() -> None:
    lines = "".join(json.dumps({**NATIVE, "id": number}) + "\n" for number in (1, 2, 3))
    source = RecordFile(BytesIO(lines.encode()), {"2"})
    assert [record["id"] for record in source] == [1, 3]
    assert source.skipped == 1
    with pytest.raises(InvalidInput, match=r"Line 4: id '1' occurs twice"):
        list(RecordFile(BytesIO((lines + lines).encode())))
    with pytest.raises(InvalidInput, match=r"Line 2: Not valid JSON"):
        list(RecordFile(BytesIO(lines.splitlines()[0].encode() + b"\n{\n")))


def test_result_file_is_continued_after_an_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = ResultFile(path)
    first.load()
    with path.open("ab") as file:
        first.write(file, EvaluationResult("1", Verdict.AC, 1, 1).document())
        first.write(file, EvaluationResult("2", None, error="source: missing.").document())
        file.write(b'{"id": "3", "verd')
    again = ResultFile(path)
    again.load()
    assert (again.done, dict(again.verdicts)) == ({"1"}, {"AC": 1})
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["1"], "errors are evaluated again"
    assert list(tmp_path.iterdir()) == [path]
    path.write_text('{"a": 1}\n')
    with pytest.raises(InvalidInput, match="not a result"):
        ResultFile(path).load()


@pytest.mark.parametrize(
    "document",
    [
        {**APPS, "input_output": {"inputs": None, "outputs": []}},
        {**APPS, "input_output": {"inputs": [[1]], "outputs": [], "fn_name": "f"}},
        {**CODE_CONTESTS, "public_tests": {"input": ["1"], "output": None}},
        {**CODE_CONTESTS, "time_limit": {"seconds": "x"}},
        {**CODE_CONTESTS, "time_limit": 10**400},
        {**NATIVE, "limits": {"cpu_ms": 10**400}},
        {**NATIVE, "limits": {"cpu_ms": float("nan")}},
    ],
)
def test_malformed_record_is_invalid_input(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read_any(document)
