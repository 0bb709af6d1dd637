"""Reads records of evaluations from the body of a request, line by line and with limits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB
from adjudge.evaluation.records import EvaluationRecord, invalid, parse_line
from adjudge.evaluation.shapes import RecordShape, detect_shape, read_any
from adjudge.judge.languages import Languages
from adjudge.services.evaluation_problems import EvaluationProblems, check_program
from adjudge.services.submit import SubmissionRules
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import ExecutionsSettings
from adjudge.store.judging.evaluation_models import NewEvaluationItem

RECORDS_MAX: Final = 1_000
LINE_BYTES_MAX: Final = 4 * MIB
REQUEST_BYTES_MAX: Final = 32 * MIB
TESTS_MAX: Final = 1_000
_BRACKETS_MAX: Final = 100_000
"""A line of brackets alone would take many times its size in memory."""
_COMPILE_MS: Final = 120_000
_WAIT_MS: Final = 300_000
"""How long the compilation, and each run, may wait for judging in the same worker; see ``services.executions``."""


@dataclass(frozen=True, slots=True)
class EvaluationRecordReader:
    """Checks records against the limits of the server."""

    languages: Languages
    settings: ExecutionsSettings
    problems: EvaluationProblems

    async def read(
        self, viewer: Viewer, pieces: AsyncIterable[bytes], shape: RecordShape | None = None
    ) -> dict[str, NewEvaluationItem]:
        """The records of a body by id; an error names the line and the field."""
        items: dict[str, NewEvaluationItem] = {}
        known: dict[tuple[str, int | None], SubmissionRules] = {}
        number = 0
        async for line in _lines(pieces):
            number += 1
            if not line.strip():
                continue
            try:
                record, item = self._read_line(line, shape)
                if record.problem:
                    item = await self._with_problem(viewer, record, item, known)
                if item.record_id in items:
                    raise invalid("id", f"{item.record_id!r} occurs twice; give each record its own")
            except InvalidInput as error:
                raise InvalidInput(f"Line {number}: {error.message}", **{**error.fields, "line": number}) from None
            items[item.record_id] = item
            if len(items) > RECORDS_MAX:
                raise InvalidInput(f"Line {number}: at most {RECORDS_MAX} records per request.", field="records")
        return items

    def _read_line(self, line: bytes, shape: RecordShape | None) -> tuple[EvaluationRecord, NewEvaluationItem]:
        if line.count(b"[") + line.count(b"{") > _BRACKETS_MAX:
            raise InvalidInput(f"More than {_BRACKETS_MAX} brackets.", field="line")
        document = parse_line(line)
        shape = shape or detect_shape(document)
        record = read_any(document, shape)
        self._check(record)
        language = self.languages.get_offered(record.language)
        wall_ms = language.limits(record.limits).wall_ms
        return record, NewEvaluationItem(
            record_id=record.id,
            digest=_digest(document, shape),
            shape=shape.value,
            record=json.dumps(document),
            language=language.id,
            timeout_ms=_WAIT_MS + _COMPILE_MS + len(record.tests) * (_WAIT_MS + 2 * wall_ms),
        )

    async def _with_problem(
        self,
        viewer: Viewer,
        record: EvaluationRecord,
        item: NewEvaluationItem,
        known: dict[tuple[str, int | None], SubmissionRules],
    ) -> NewEvaluationItem:
        """The item with its revision; ``known`` has the rules that this request has read."""
        key, language = (record.problem, record.revision), self.languages.get(record.language)
        rules = known.get(key)
        if rules is None:
            rules = known[key] = await self.problems.find_rules(viewer, *key)
        check_program(record, language, rules)
        return replace(item, revision_id=rules.revision_id, timeout_ms=rules.deadline_ms(language))

    def _check(self, record: EvaluationRecord) -> None:
        if len(record.tests) > TESTS_MAX:
            raise invalid("tests", f"at most {TESTS_MAX} tests")
        limits, allowed = record.limits, self.settings
        if limits.cpu_ms > allowed.cpu_ms:
            raise invalid("limits.cpu_ms", f"at most {allowed.cpu_ms} ms (executions.cpu_ms)")
        if limits.wall_ms > 3 * allowed.cpu_ms:
            raise invalid("limits.wall_ms", f"at most {3 * allowed.cpu_ms} ms")
        if limits.memory_bytes > allowed.memory_mib * MIB:
            raise invalid("limits.memory_mib", f"at most {allowed.memory_mib} MiB (executions.memory_mib)")


def _digest(document: Mapping[str, Any], shape: RecordShape) -> str:
    """Equal for equal records, whatever the order of their fields."""
    return sha256(json.dumps([shape.value, document], sort_keys=True).encode()).hexdigest()


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest, total, number = b"", 0, 1
    async for piece in pieces:
        total += len(piece)
        if total > REQUEST_BYTES_MAX:
            raise InvalidInput(f"body: more than {REQUEST_BYTES_MAX} bytes; send fewer records.", field="body")
        *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
        for line in whole:
            yield _bounded(line, number)
            number += 1
        _bounded(rest, number)
    if rest:
        yield rest


def _bounded(line: bytes, number: int) -> bytes:
    if len(line) > LINE_BYTES_MAX:
        raise InvalidInput(f"Line {number}: more than {LINE_BYTES_MAX} bytes.", field="line", line=number)
    return line
