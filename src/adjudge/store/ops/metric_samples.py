"""Figures over time: a row for each process and moment, kept for a day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

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
    "SELECT source, at, sample FROM metric_samples WHERE at >= {now} - :back_us ORDER BY at",
)

DELETE_OLD = Statement(
    "metric_samples.delete_old",
    "Delete metric samples past their retention.",
    "DELETE FROM metric_samples WHERE at < {now} - :older_than_us",
)


@dataclass(frozen=True, slots=True)
class MetricSampleRow:
    """What one process counted up to one moment."""

    source: str
    at: int
    sample: Mapping[str, Any]


async def insert(tx: Tx, source: str, sample: Mapping[str, Any], *, older_than_ms: int) -> None:
    """Keep a sample, and forget those that are older than ``older_ms``."""
    await tx.execute(INSERT, source=source, sample=json.dumps(sample))
    await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000)


async def list_recent(tx: Tx, *, window_ms: int) -> list[MetricSampleRow]:
    """The figures of the last ``back_ms``."""
    rows = await tx.fetch(SELECT_SINCE, back_us=window_ms * 1_000)
    return [MetricSampleRow(row["source"], row["at"], json.loads(row["sample"])) for row in rows]
