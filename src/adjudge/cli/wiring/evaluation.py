"""Evaluation as a library: records in, results out, without a server (``adjudge.evaluate``)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from adjudge.cli.wiring.judge import open_judge
from adjudge.evaluation.records import EvaluationResult
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.shapes import RecordShape
from adjudge.evaluation.stream import evaluate_stream


@asynccontextmanager
async def open_runner(slots: int) -> AsyncIterator[EvaluationRunner]:
    """A runner with a sandbox of its own."""
    async with open_judge(slots) as judge:
        with EvaluationRunner(judge) as runner:
            yield runner


def evaluate(
    records: Iterable[Mapping[str, Any]], *, slots: int | None = None, shape: RecordShape | str | None = None
) -> Iterator[EvaluationResult]:
    """Evaluate programs in the sandbox, ``slots`` at a time (default: one per core); yield results as they end.

    A record is a mapping in the native shape or in that of a public benchmark; an invalid one gives a result with an
    error. Records are read as needed, so neither they nor the results have to fit into memory. Not for use inside of an
    event loop: it runs one of its own.
    """
    count = slots or os.cpu_count() or 1
    known = RecordShape(shape) if shape is not None else None
    with asyncio.Runner() as loop:
        results = _results(records, count, known)
        try:
            while (result := loop.run(_next(results))) is not None:
                yield result
        finally:
            loop.run(results.aclose())


async def _results(
    records: Iterable[Mapping[str, Any]], slots: int, shape: RecordShape | None
) -> AsyncGenerator[EvaluationResult]:
    async with open_runner(slots) as runner, aclosing(evaluate_stream(runner, records, slots, shape)) as results:
        async for result in results:
            yield result


async def _next(results: AsyncIterator[EvaluationResult]) -> EvaluationResult | None:
    return await anext(results, None)
