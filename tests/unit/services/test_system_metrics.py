"""Metrics of the system: counted once for all processes, and left out where they are unknown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from adjudge.domain.errors import Unavailable
from adjudge.registry import LiveProcess
from adjudge.registry.database import DatabaseRegistry
from adjudge.services.system_metrics import VALID_SEC, SystemMetrics
from adjudge.store.ops import system_metrics
from adjudge.stream import MemoryStream
from tests.support.store_harness import StoreHarness


class UnavailableStream(MemoryStream):
    async def depths(self) -> dict[int, int]:
        raise Unavailable("the stream is away")


class UnavailableRegistry(DatabaseRegistry):
    async def list(self) -> list[LiveProcess]:
        raise Unavailable("etcd is away")


@dataclass
class Processes:
    """Several processes on one database, with one clock."""

    store: StoreHarness
    stream: MemoryStream = field(default_factory=MemoryStream)
    now: float = 0.0
    opened: list[SystemMetrics] = field(default_factory=list)

    def open(self, *, registry: DatabaseRegistry | None = None) -> SystemMetrics:
        """The metrics as another process reads them."""
        database = self.store.database
        found = SystemMetrics(
            database, self.stream, registry or DatabaseRegistry(database), local_sec=0, clock=lambda: self.now
        )
        self.opened.append(found)
        return found

    async def depth(self, process: SystemMetrics) -> float:
        gauges = await process.read()
        assert gauges is not None
        return gauges["queue_depth"]["band=2"]


@pytest.fixture
async def processes(store: StoreHarness) -> AsyncIterator[Processes]:
    found = Processes(store)
    yield found
    for process in found.opened:
        await process.close()


async def test_one_process_counts_for_all(processes: Processes) -> None:
    first, second = processes.open(), processes.open()
    await processes.store.enqueue_many(3)
    assert await processes.depth(first) == 3
    await processes.store.enqueue_many(2)
    assert (await processes.depth(first), await processes.depth(second)) == (3, 3), "as stored"
    await processes.store.clock.advance(round(VALID_SEC * 1_000))
    assert (await processes.depth(second), await processes.depth(first)) == (5, 5), "counted again"


async def test_depth_is_exact_beyond_the_capacity_of_the_stream(processes: Processes) -> None:
    await processes.store.enqueue_many(4_500)
    gauges = await processes.open().read()
    assert gauges is not None
    assert (gauges["queue_depth"]["band=2"], gauges["api_outbox_pending"][""]) == (4_500, 4_500)


async def test_priorities_out_of_range_belong_to_the_nearest_band(processes: Processes) -> None:
    for priority in (-5, 0, 3, 99):
        await processes.store.enqueue(priority=priority)
    gauges = await processes.open().read()
    assert gauges is not None
    assert gauges["queue_depth"] == {"band=0": 2, "band=1": 0, "band=2": 0, "band=3": 2}


async def test_slow_counting_is_repeated_less_often(processes: Processes) -> None:
    process = processes.open()
    await processes.store.transact(lambda tx: system_metrics.claim(tx, older_than_us=0))
    await processes.store.transact(
        lambda tx: system_metrics.store(tx, {"queue_depth": {"band=2": 7}}, took_us=2_000_000)
    )
    await processes.store.clock.advance(39_000)
    assert await processes.depth(process) == 7
    await processes.store.clock.advance(1_000)
    assert await processes.depth(process) == 0


async def test_stored_values_are_served_while_another_process_counts(processes: Processes) -> None:
    """And no longer when that process is lost."""
    process = processes.open()
    assert await processes.depth(process) == 0
    await processes.store.enqueue_many(1)
    await processes.store.clock.advance(6_000)
    assert await processes.store.transact(lambda tx: system_metrics.claim(tx, older_than_us=5_000_000))
    assert await processes.depth(process) == 0
    await processes.store.clock.advance(5_000)
    assert await processes.depth(process) == 1


async def test_what_is_unavailable_is_left_out(store: StoreHarness) -> None:
    processes = Processes(store, UnavailableStream())
    registry = UnavailableRegistry(store.database)
    gauges = await processes.open(registry=registry).read()
    assert gauges is not None
    assert "queue_depth" in gauges
    assert not {"stream_messages", "stream_pending", "processes_alive", "worker_slots"} & gauges.keys()


async def test_without_a_database_nothing_is_known(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    process = processes.open()
    assert b"adjudge_system_metrics_up 1.0" in await process.render()

    async def away(_: object) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(processes.store.database, "read", away)
        answer = await process.render()
    assert b"adjudge_system_metrics_up 0.0" in answer
    assert b"adjudge_dead_letters" not in answer
    assert b"adjudge_dead_letters 0.0" in await process.render()
