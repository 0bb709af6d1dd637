"""Metric samples of all processes over time, kept for a day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class MetricSampleRow:
    """The metrics of one process at one time."""

    source: str
    at: int
    sample: Mapping[str, Any]


INSERT = Statement(
    "metric_samples.insert",
    "Insert a process's metric sample.",
    """
    INSERT INTO metric_samples (source, at, sample) VALUES (:source, {now}, :sample)
    ON CONFLICT (source, at) DO NOTHING
    """,
)

SELECT_SINCE = Statement(
    "metric_samples.select_since",
    "List recent metric samples of all processes, oldest first.",
    "SELECT {columns} FROM metric_samples WHERE at >= {now} - :window_us ORDER BY at",
    row=MetricSampleRow,
)

DELETE_OLD = Statement(
    "metric_samples.delete_old",
    "Delete metric samples past their retention.",
    """
    DELETE FROM metric_samples WHERE (source, at) IN (
        SELECT source, at FROM metric_samples WHERE at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)


async def insert(tx: Tx, source: str, sample: Mapping[str, Any]) -> None:
    await tx.execute(INSERT, source=source, sample=json.dumps(sample))


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete old samples; return their number."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)


async def list_recent(tx: Tx, *, window_ms: int) -> list[MetricSampleRow]:
    """The samples of the last ``window_ms``, oldest first."""
    return await tx.fetch(SELECT_SINCE, window_us=window_ms * 1_000)
