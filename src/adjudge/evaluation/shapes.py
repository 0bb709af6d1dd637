"""Reads records in the shapes of public code benchmarks, with the program to evaluate in ``completion`` or ``source``.

Function tests (HumanEval, MBPP, APPS with ``fn_name``) become one Python program that calls the function and ends by
writing a mark, so that a program that exits early does not pass. Tests of input and output (APPS, CodeContests) become
ordinary tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from adjudge.domain.limits import MIB, Limits
from adjudge.evaluation.records import (
    CPU_MS_MAX,
    DEFAULT_LANGUAGE,
    DEFAULT_LIMITS,
    MEMORY_MIB_MAX,
    EvaluationRecord,
    EvaluationTest,
    invalid,
    read_id,
    read_record,
    read_text,
    single_file,
    text_tests,
)

_CODE_CONTESTS_LANGUAGES: Final = {2: "cpp", 3: "python3", 4: "java"}
_CALLS: Final = """
def _equal(found, expected):
    if isinstance(found, tuple):
        found = list(found)
    return found == expected or [found] == expected

import json as _json
for _given, _expected in _json.loads({tests!r}):
    _function = Solution().{name} if "Solution" in globals() else {name}
    assert _equal(_function(*_given), _expected), "wrong result"
"""


_END: Final = "[_file.flush() for _file in (__import__('sys').stdout, __import__('sys').__stdout__)]"
"""What the program printed is written before the mark."""


class RecordShape(StrEnum):
    """The shapes of records."""

    NATIVE = "native"
    HUMANEVAL = "humaneval"
    MBPP = "mbpp"
    APPS = "apps"
    CODE_CONTESTS = "codecontests"


def detect_shape(document: Mapping[str, Any]) -> RecordShape:
    """The shape of a record by the fields that only it has."""
    if "entry_point" in document and "test" in document:
        return RecordShape.HUMANEVAL
    if "test_list" in document:
        return RecordShape.MBPP
    if "input_output" in document:
        return RecordShape.APPS
    if "public_tests" in document or "private_tests" in document:
        return RecordShape.CODE_CONTESTS
    return RecordShape.NATIVE


def read_any(document: Mapping[str, Any], shape: RecordShape | None = None) -> EvaluationRecord:
    """A record in the given shape, or in the one that its fields tell."""
    return _READERS[shape or detect_shape(document)](document)


def _human_eval(document: Mapping[str, Any]) -> EvaluationRecord:
    """``prompt`` + ``completion`` is the program; ``test`` defines ``check``, which is called with the function."""
    program = read_text(document, "prompt", "") + _program(document, "completion")
    entry_point = read_text(document, "entry_point")
    if not entry_point.isidentifier():
        raise invalid("entry_point", "expected the name of a function")
    return _function_record(document, program, f"{read_text(document, 'test')}\n\ncheck({entry_point})")


def _mbpp(document: Mapping[str, Any]) -> EvaluationRecord:
    """``test_list`` has assertions; ``test_setup_code`` or ``test_imports`` come before them."""
    asserts, imports = _texts(document, "test_list"), _texts(document, "test_imports")
    setup = read_text(document, "test_setup_code", "")
    return _function_record(document, _program(document, "completion", "code"), "\n".join([*imports, setup, *asserts]))


def _apps(document: Mapping[str, Any]) -> EvaluationRecord:
    """``input_output`` is JSON text with ``inputs`` and ``outputs``, and ``fn_name`` for function tests."""
    given = document["input_output"]
    try:
        cases = json.loads(given) if isinstance(given, str) else given
        inputs, outputs = cases["inputs"], cases["outputs"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise invalid("input_output", "expected JSON with `inputs` and `outputs`") from None
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise invalid("input_output", "expected as many `inputs` as `outputs`")
    program = _program(document, "completion", "solution")
    if name := cases.get("fn_name"):
        if not isinstance(name, str) or not name.isidentifier():
            raise invalid("input_output.fn_name", "expected the name of a function")
        calls = _CALLS.format(tests=json.dumps(list(zip(inputs, outputs, strict=True))), name=name)
        return _function_record(document, program, calls)
    return _io_record(document, program, text_tests(inputs, outputs), DEFAULT_LIMITS)


def _code_contests(document: Mapping[str, Any]) -> EvaluationRecord:
    """``public_tests``, ``private_tests`` and ``generated_tests`` have lists ``input`` and ``output``."""
    inputs, outputs = list[object](), list[object]()
    for name in ("public_tests", "private_tests", "generated_tests"):
        tests = document.get(name) or {}
        lists = [tests.get(key, []) for key in ("input", "output")] if isinstance(tests, Mapping) else [None]
        if not all(isinstance(item, list) for item in lists):
            raise invalid(name, "expected an object with lists `input` and `output`")
        inputs += lists[0] or []
        outputs += lists[1] or []
    program = _program(document, "completion", "solution")
    return _io_record(document, program, text_tests(inputs, outputs), _code_contests_limits(document))


def _code_contests_limits(document: Mapping[str, Any]) -> Limits:
    limit, memory_bytes = document.get("time_limit"), document.get("memory_limit_bytes") or 0
    cpu_ms: float = DEFAULT_LIMITS.cpu_ms
    if isinstance(limit, Mapping):
        parts = (limit.get("seconds") or 0, limit.get("nanos") or 0)
        is_number = all(isinstance(part, int | float) for part in parts)
        cpu_ms = parts[0] * 1_000 + parts[1] / 1_000_000 if is_number else -1
    elif limit is not None:
        cpu_ms = limit * 1_000 if isinstance(limit, int | float) else -1
    is_memory = isinstance(memory_bytes, int) and 0 <= memory_bytes <= MEMORY_MIB_MAX * MIB
    if not 1 <= cpu_ms <= CPU_MS_MAX or not is_memory:
        raise invalid("time_limit", f"expected a time up to {CPU_MS_MAX} ms and a memory limit in bytes")
    cpu_ms = round(cpu_ms)
    return Limits(cpu_ms=cpu_ms, wall_ms=3 * cpu_ms, memory_bytes=memory_bytes or DEFAULT_LIMITS.memory_bytes)


def _function_record(document: Mapping[str, Any], program: str, tests: str) -> EvaluationRecord:
    checked = f"{program}\n\n{tests}\n"
    mark = sha256(checked.encode()).hexdigest()  # the same source for the same record: it is compiled once
    source = f"{checked}\n{_END}\n__import__('os').write(1, b'\\n{mark}\\n')\n"
    test = EvaluationTest(end_mark=mark.encode())
    return EvaluationRecord(record_id(document), DEFAULT_LANGUAGE, single_file(source), (test,), limits=DEFAULT_LIMITS)


def _io_record(
    document: Mapping[str, Any], program: str, tests: tuple[EvaluationTest, ...], limits: Limits
) -> EvaluationRecord:
    language = document.get("language", DEFAULT_LANGUAGE)
    if isinstance(language, int):
        language = _CODE_CONTESTS_LANGUAGES.get(language)
    if not isinstance(language, str):
        raise invalid("language", "expected the name of a language")
    return EvaluationRecord(record_id(document), language, single_file(program), tests, limits=limits)


def record_id(document: Mapping[str, Any]) -> str:
    """``id`` if there is one, else the name of the task; several programs for one task need ids of their own."""
    for name in ("id", "task_id", "problem_id", "name"):
        if name in document:
            return read_id(document[name])
    raise invalid("id", "missing; give each record an id")


def _program(document: Mapping[str, Any], *names: str) -> str:
    for name in ("source", *names):
        if isinstance(document.get(name), str):
            return read_text({"source": document[name]}, "source")
    raise invalid("completion", "missing: the program to evaluate")


def _texts(document: Mapping[str, Any], name: str) -> Sequence[str]:
    value = document.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid(name, "expected a list of texts")
    return value


_READERS: Final[dict[RecordShape, Callable[[Mapping[str, Any]], EvaluationRecord]]] = {
    RecordShape.NATIVE: read_record,
    RecordShape.HUMANEVAL: _human_eval,
    RecordShape.MBPP: _mbpp,
    RecordShape.APPS: _apps,
    RecordShape.CODE_CONTESTS: _code_contests,
}
