"""Records and results of evaluations, and the native record shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.verdict import Verdict
from adjudge.judge.sources import ProgramSource, SourceFile

DEFAULT_LANGUAGE: Final = "python3"
DEFAULT_LIMITS: Final = Limits(cpu_ms=10_000, wall_ms=30_000, memory_bytes=1_024 * MIB)
ID_CHARS: Final = 200
TESTS_MAX: Final = 10_000
SOURCE_BYTES_MAX: Final = 1 * MIB
CPU_MS_MAX: Final = 600_000
MEMORY_MIB_MAX: Final = 65_536
REVISION_MAX: Final = 2**31 - 1
_FIELDS: Final = frozenset({"id", "language", "source", "tests", "problem", "revision", "limits", "comparator", "stop"})
_TESTS_ONLY: Final = ("limits", "comparator", "stop")
_LIMITS: Final = frozenset({"cpu_ms", "wall_ms", "memory_mib"})
_TEST_FIELDS: Final = frozenset({"input", "output"})


@dataclass(frozen=True, slots=True)
class EvaluationTest:
    """One run of the program."""

    stdin: bytes = b""
    expected: bytes | None = None
    """The expected output; None: the program must end with exit code 0."""
    end_mark: bytes = b""
    """The last line that the program must write: without it the tests in the program did not all run."""


@dataclass(frozen=True, slots=True)
class ComparatorChoice:
    """A built-in comparator with its arguments."""

    kind: str = "token"
    args: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


DEFAULT_COMPARATOR: Final = ComparatorChoice()


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """A program with its tests, or with a problem."""

    id: str
    language: str
    source: ProgramSource
    tests: tuple[EvaluationTest, ...] = ()
    problem: str = ""
    """A problem instead of tests: the folder or archive of a package, or on a server a slug."""
    revision: int | None = None
    """The number of a revision of the problem, on a server; None for the published one."""
    limits: Limits = DEFAULT_LIMITS
    comparator: ComparatorChoice = DEFAULT_COMPARATOR
    stops: bool = True
    """Whether the tests after the first failure are skipped."""
    checks_scripts: bool = False
    """Whether the syntax of a script is checked before it runs, as for submissions."""


@dataclass(frozen=True, slots=True)
class EvaluationTestResult:
    """The result of one test."""

    verdict: Verdict
    time_ms: int
    mem_kb: int
    message: str = ""
    wall_ms: int = 0


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The result of a record; ``error`` if it could not be evaluated."""

    id: str
    verdict: Verdict | None
    passed: int = 0
    total: int = 0
    tests: tuple[EvaluationTestResult, ...] = ()
    compile_message: str = ""
    error: str = ""
    time_ms: int = 0
    mem_kb: int = 0
    score: float | None = None
    """The score of a record with a problem."""

    def document(self) -> dict[str, Any]:
        """The result as a line of JSON Lines."""
        if self.error:
            return {"id": self.id, "verdict": None, "error": self.error}
        found: dict[str, Any] = {
            "id": self.id,
            "verdict": self.verdict.value if self.verdict else None,
            "passed": self.passed,
            "total": self.total,
            "time_ms": self.time_ms,
            "mem_kb": self.mem_kb,
            "tests": [_test_document(test) for test in self.tests],
        }
        if self.score is not None:
            found["score"] = self.score
        return {**found, "compile_message": self.compile_message} if self.compile_message else found


def _test_document(test: EvaluationTestResult) -> dict[str, Any]:
    found: dict[str, Any] = {"verdict": test.verdict.value, "time_ms": test.time_ms, "mem_kb": test.mem_kb}
    return {**found, "message": test.message} if test.message else found


def failed_result(record_id: str, error: AdjudgeError) -> EvaluationResult:
    """The result of a record that is invalid or could not be run."""
    return EvaluationResult(record_id, None, error=error.message)


def read_record(document: Mapping[str, Any]) -> EvaluationRecord:
    """A record in the native shape; errors name the field."""
    unknown = sorted(set(document) - _FIELDS)
    if unknown:
        raise invalid(unknown[0], f"unknown field; known are {', '.join(sorted(_FIELDS))}")
    if ("tests" in document) == ("problem" in document):
        raise invalid("tests", "give either `tests` or `problem`")
    if "problem" in document:
        _check_problem_fields(document)
    elif "revision" in document:
        raise invalid("revision", "only with `problem`")
    return EvaluationRecord(
        id=read_id(document.get("id")),
        language=read_text(document, "language", DEFAULT_LANGUAGE),
        source=single_file(read_text(document, "source")),
        tests=_read_tests(document["tests"]) if "tests" in document else (),
        problem=read_text(document, "problem", ""),
        revision=document.get("revision"),
        limits=_read_limits(document.get("limits", {})),
        comparator=_read_comparator(document.get("comparator", DEFAULT_COMPARATOR.kind)),
        stops=_read_stop(document.get("stop", "first_failure")),
    )


def _check_problem_fields(document: Mapping[str, Any]) -> None:
    if given := [name for name in _TESTS_ONLY if name in document]:
        raise invalid(given[0], "only with `tests`; a problem has its own")
    if not document["problem"]:
        raise invalid("problem", "must not be empty")
    revision = document.get("revision", 1)
    if isinstance(revision, bool) or not isinstance(revision, int) or not 1 <= revision <= REVISION_MAX:
        raise invalid("revision", "expected the number of a revision")


def read_id(value: object) -> str:
    """The id of a record: a short text or a number."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not 0 < len(text) <= ID_CHARS or not text.isprintable():
        raise invalid("id", f"expected a number or a printable text of at most {ID_CHARS} characters")
    return text


def read_text(document: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text field."""
    value = document.get(name, default)
    if not isinstance(value, str) or "\0" in value:
        raise invalid(name, "expected a text without NUL characters")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise invalid(name, "has an unpaired surrogate") from None
    if name == "source" and not 0 < size <= SOURCE_BYTES_MAX:
        raise invalid(name, f"must have 1 to {SOURCE_BYTES_MAX} bytes")
    return value


def single_file(text: str) -> ProgramSource:
    """A program of one file, which is named by its language."""
    return ProgramSource((SourceFile("source", text.encode()),))


def _read_comparator(value: object) -> ComparatorChoice:
    """A name, or an object with ``kind``, ``args`` and ``options``."""
    if isinstance(value, str):
        return ComparatorChoice(value)
    if not isinstance(value, Mapping) or set(value) - {"kind", "args", "options"}:
        raise invalid("comparator", "expected a name, or an object with `kind`, `args` and `options`")
    kind, args, options = value.get("kind"), value.get("args", []), value.get("options", {})
    if not isinstance(kind, str) or not isinstance(args, list) or not isinstance(options, Mapping):
        raise invalid("comparator", "expected a text `kind`, a list `args` and an object `options`")
    return ComparatorChoice(kind, tuple(map(str, args)), tuple((str(key), str(options[key])) for key in options))


def text_tests(inputs: Sequence[object], outputs: Sequence[object]) -> tuple[EvaluationTest, ...]:
    """Tests from two lists of the same length; an element may be text or a list of lines."""
    if len(inputs) != len(outputs):
        raise invalid("tests", f"{len(inputs)} inputs and {len(outputs)} outputs")
    if not 0 < len(inputs) <= TESTS_MAX:
        raise invalid("tests", f"expected 1 to {TESTS_MAX} tests")
    return tuple(
        EvaluationTest(_encoded(given, "input"), _encoded(expected, "output"))
        for given, expected in zip(inputs, outputs, strict=True)
    )


def _encoded(value: object, name: str) -> bytes:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    if not isinstance(value, str):
        raise invalid(f"tests.{name}", "expected a text or a list of lines")
    return value.encode("utf-8", "surrogatepass")


def _read_tests(value: object) -> tuple[EvaluationTest, ...]:
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise invalid("tests", "expected a list of objects with `input` and `output`")
    for item in value:
        if unknown := sorted(set(item) - _TEST_FIELDS):
            raise invalid(f"tests.{unknown[0]}", "unknown field; a test has `input` and `output`")
    return text_tests([item.get("input", "") for item in value], [item.get("output", "") for item in value])


def _read_limits(value: object) -> Limits:
    if not isinstance(value, Mapping) or set(value) - _LIMITS:
        raise invalid("limits", f"expected an object with {', '.join(sorted(_LIMITS))}")
    cpu_ms = _read_number(value, "cpu_ms", 10_000, CPU_MS_MAX)
    return Limits(
        cpu_ms=cpu_ms,
        wall_ms=_read_number(value, "wall_ms", 3 * cpu_ms, 3 * CPU_MS_MAX),
        memory_bytes=_read_number(value, "memory_mib", 1_024, MEMORY_MIB_MAX) * MIB,
    )


def _read_number(document: Mapping[str, Any], name: str, default: int, maximum: int) -> int:
    value = document.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(f"limits.{name}", "expected a number")
    if not 1 <= value <= maximum:  # also false for NaN
        raise invalid(f"limits.{name}", f"must be between 1 and {maximum}")
    return int(value)


def _read_stop(value: object) -> bool:
    if value not in ("first_failure", "never"):
        raise invalid("stop", "expected first_failure or never")
    return value == "first_failure"


def parse_line(line: str | bytes) -> Mapping[str, Any]:
    """One line of JSON Lines."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"Not valid JSON: {error}.", field="line") from None
    if not isinstance(document, Mapping):
        raise InvalidInput("Not a JSON object.", field="line")
    return document


def invalid(name: str, message: str) -> InvalidInput:
    """An error of one field of a record."""
    return InvalidInput(f"{name}: {message}.", field=name)
