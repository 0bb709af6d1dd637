"""Worker processes killed at every crash point while chains of fifty nodes run: they end as if none had been."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import NewChainRun
from tests.chaos.cluster import Cluster, create_cluster
from tests.chaos.crashing_process import ENGINE, CrashPoint
from tests.integration.chains.test_crashes import LANES, diamond
from tests.support.servers import RedisServer

PASSAGES = (1, 2)
"""At each of these passages of each kind, somebody dies before it and somebody after."""
AT_ONCE = 2
SHORT_LEASE_MS = 400


@dataclass
class CrashSweep:
    """Victims one after the other, and enough runs that none of them lacks something to die at."""

    cluster: Cluster
    chain_id: str
    points: Iterator[CrashPoint]
    runs: list[str] = field(default_factory=list)
    deaths: list[CrashPoint] = field(default_factory=list)

    async def start(self) -> str:
        started = await self.cluster.database.transact(lambda tx: ENGINE.start(tx, NewChainRun(self.chain_id)))
        return started.run_id

    async def over(self) -> bool:
        return not await self.cluster.count("chain_runs WHERE finished_at IS NULL")

    async def go(self) -> None:
        for point in self.points:
            orders = {"dies_at": point, "slots": 4, "lease_ms": SHORT_LEASE_MS}
            with self.cluster.process(
                "worker", f"victim-{point.operation}-{point.phase}-{point.number}", **orders
            ) as doomed:

                async def dead(doomed: Any = doomed) -> bool:
                    if await self.over():
                        self.runs.append(await self.start())
                    return doomed.exitcode is not None

                await self.cluster.wait_until(dead, f"somebody dies at {point}")
                assert doomed.exitcode == -signal.SIGKILL
            self.deaths.append(point)


async def result(cluster: Cluster, run_id: str) -> dict[str, tuple[str, Any]]:
    """How the nodes of a run ended, and with what."""
    nodes = await cluster.database.read(lambda tx: chain_queries.list_nodes(tx, run_id))
    return {node.node_id: (str(node.status), node.artifact) for node in nodes}


@pytest.mark.slow
async def test_processes_killed_at_every_crash_point_change_nothing_about_the_end(
    postgres_database: str, redis_server: RedisServer
) -> None:
    points = [CrashPoint(kind, number, phase) for number in PASSAGES for kind, phase in LANES]  # type: ignore[arg-type]
    async with create_cluster(postgres_database, redis_server.url, "chain-crashes") as cluster:
        chain = await cluster.database.transact(lambda tx: definitions.create(tx, name="d", dag=diamond(), actor="ann"))
        walk = CrashSweep(cluster, chain.id, iter(points))
        with cluster.process("scheduler", "scheduler"):
            with cluster.process("worker", "calm", slots=4):
                calm = await walk.start()
                await cluster.wait_until(walk.over, "the calm run ends")
            async with asyncio.TaskGroup() as walkers:
                for _ in range(AT_ONCE):
                    walkers.create_task(walk.go())
            with cluster.process("worker", "heir", slots=4):
                await cluster.wait_until(walk.over, "every run ends")
        assert sorted(map(repr, walk.deaths)) == sorted(map(repr, points))
        expected = await result(cluster, calm)
        assert len(expected) == 50
        for run_id in walk.runs:
            assert await result(cluster, run_id) == expected
        runs = await cluster.rows("SELECT status, nodes_open, nodes_failed FROM chain_runs")
        assert {tuple(row) for row in runs} == {("success", 0, 0)}
        written = await cluster.rows(
            "SELECT run_id, node_id, count(*) AS n FROM chain_status_log WHERE to_status = 'success' "
            "AND node_id IS NOT NULL GROUP BY run_id, node_id"
        )
        assert {row["n"] for row in written} == {1}, "no node's effect is written twice"
        assert len(written) == 50 * len(runs)
