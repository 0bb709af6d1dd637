"""Figures over time, kept and forgotten."""

from __future__ import annotations

from adjudge.registry.database import DatabaseRegistry
from adjudge.relay.housekeeping import MetricsRecorder
from adjudge.services.system_metrics import SystemMetrics
from adjudge.store.ops import metric_samples
from adjudge.stream import MemoryStream
from tests.support.store_harness import StoreHarness

_HOUR_MS = 3_600_000


async def test_figures_are_read_back_and_forgotten_in_time(store: StoreHarness) -> None:
    for source in ("api", "worker"):
        await store.transact(
            lambda tx, source=source: metric_samples.insert(tx, source, {"n": source})  # type: ignore[misc]  # a default binds it
        )
    found = await store.database.read(lambda tx: metric_samples.list_recent(tx, window_ms=1_000))
    assert [(item.source, item.sample) for item in found] == [("api", {"n": "api"}), ("worker", {"n": "worker"})]
    await store.clock.advance(2 * _HOUR_MS)
    await store.transact(lambda tx: metric_samples.insert(tx, "api", {"n": 2}))
    assert await store.transact(lambda tx: metric_samples.delete_old(tx, older_than_ms=_HOUR_MS, limit=1)) == 1
    assert await store.transact(lambda tx: metric_samples.delete_old(tx, older_than_ms=_HOUR_MS)) == 1
    found = await store.database.read(lambda tx: metric_samples.list_recent(tx, window_ms=10 * _HOUR_MS))
    assert [item.sample for item in found] == [{"n": 2}]


async def test_a_process_writes_what_it_counted(store: StoreHarness) -> None:
    system = SystemMetrics(store.database, MemoryStream(), DatabaseRegistry(store.database))
    recorder = MetricsRecorder(store.database, system, source="up")
    await store.enqueue_many(3, priority=1)
    await recorder.run_once()
    (row,) = await store.database.read(lambda tx: metric_samples.list_recent(tx, window_ms=1_000))
    assert row.sample["counters"]["jobs_enqueued"] == {"kind=node": 3}
    assert row.sample["gauges"]["queue_depth"] == {"band=0": 0, "band=1": 3, "band=2": 0, "band=3": 0}
