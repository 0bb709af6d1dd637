"""The last counted values of the system metrics, shared by all processes: one row.

Counting a long queue takes time, and any number of processes may be asked for its length. So one of them counts and
stores the result, the others read it. All times are those of the database clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class StoredGauges:
    """Counted values, and how old they are."""

    age_us: int
    took_us: int
    gauges: Mapping[str, Any]


READ = Statement(
    "system_metrics.read",
    "Read the values that a process has counted.",
    "SELECT {columns} FROM system_metrics WHERE taken_at IS NOT NULL",
    row=StoredGauges,
    columns={"age_us": "{now} - taken_at"},
)

CLAIM = Statement(
    "system_metrics.claim",
    "Take over the counting, unless another process does it or has just done it.",
    """
    INSERT INTO system_metrics (only_row, claimed_at) VALUES (1, {now})
    ON CONFLICT (only_row) DO UPDATE SET claimed_at = {now}
    WHERE system_metrics.claimed_at <= {now} - CAST(:older_than_us AS bigint)
    """,
)

STORE = Statement(
    "system_metrics.store",
    "Store the values that a process has counted.",
    "UPDATE system_metrics SET taken_at = {now}, took_us = :took_us, gauges = :gauges WHERE only_row = 1",
)


async def read(tx: Tx) -> StoredGauges | None:
    """The stored values; None if nothing was counted yet."""
    return await fetch_one(tx, READ)


async def claim(tx: Tx, *, older_than_us: int) -> bool:
    """Whether the caller is to count; no other process is for ``older_than_us``."""
    return await tx.execute(CLAIM, older_than_us=older_than_us) == 1


async def store(tx: Tx, gauges: Mapping[str, Mapping[str, float]], *, took_us: int) -> None:
    await tx.execute(STORE, gauges=json.dumps(gauges), took_us=took_us)
