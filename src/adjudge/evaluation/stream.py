"""Evaluates a stream of records with bounded memory: results come as they end, not in the order of the records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from adjudge.domain.errors import InvalidInput
from adjudge.evaluation.records import EvaluationRecord, EvaluationResult, failed_result
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.shapes import RecordShape, read_any, record_id


async def evaluate_stream(
    runner: EvaluationRunner, records: Iterable[Mapping[str, Any]], slots: int, shape: RecordShape | None = None
) -> AsyncGenerator[EvaluationResult]:
    """Evaluate ``slots`` records at a time; the next record is read when one has ended and its result was taken."""
    running: set[asyncio.Task[EvaluationResult]] = set()
    try:
        for document in records:
            record = _read(document, shape)
            if isinstance(record, EvaluationResult):
                yield record
                continue
            running.add(asyncio.create_task(runner.run(record)))
            if len(running) >= slots:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    yield task.result()
        while running:
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _read(document: Mapping[str, Any], shape: RecordShape | None) -> EvaluationRecord | EvaluationResult:
    try:
        return read_any(document, shape)
    except InvalidInput as error:
        return failed_result(_id_or_empty(document), error)


def _id_or_empty(document: Mapping[str, Any]) -> str:
    try:
        return record_id(document)
    except InvalidInput:
        return ""
