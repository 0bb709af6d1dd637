"""Processes of all roles serve the same metrics of the system, to whom the settings say, and register themselves."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.observe.metrics import ALL_METRICS
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import NewJob
from tests.integration.queue.installation import LOSABLE, Installation
from tests.support.servers import RedisServer

TOKEN = "token-of-the-scraper"
ROLES = ("scheduler", "w1", "0")
"""The last arguments of the commands, by which the ports are found."""
SYSTEM = {metric.name for metric in ALL_METRICS if metric.is_of_system and not metric.name.endswith("oldest_seconds")}


@pytest.fixture
def installation(postgres_url: str, redis_server: RedisServer, tmp_path: Path) -> Installation:
    found = Installation(postgres_url, redis_server, tmp_path)
    found.environment |= {"ADJUDGE_METRICS_TOKEN": TOKEN, "ADJUDGE_METRICS_NETWORKS": "none", **LOSABLE}
    return found


async def _system_metrics(client: httpx.AsyncClient, port: int) -> dict[str, float]:
    """The metrics of the system that a process serves."""
    answer = await client.get(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if name.partition("{")[0] in SYSTEM}


async def _until_all(client: httpx.AsyncClient, ports: list[int], expected: dict[str, float]) -> None:
    """Wait until every process serves the expected values, and the same values as every other."""
    async with asyncio.timeout(240):
        while True:
            found = [await _system_metrics(client, port) for port in ports]
            if all(found[0] == other for other in found) and expected.items() <= found[0].items():
                return
            await asyncio.sleep(0.2)


@pytest.mark.slow
async def test_every_role_serves_the_same_values(installation: Installation) -> None:
    async with installation.opened() as database, httpx.AsyncClient(timeout=60) as client:
        with (
            installation.running("scheduler") as scheduler,
            installation.running("worker", "--slots", "3", "--name", "w1"),
            installation.running("api", "--port", "0"),
        ):
            ports = [installation.health_ports[name] for name in ROLES]
            jobs = [NewJob(new_id(), "no-such-kind") for _ in range(2)]
            await database.transact(lambda tx: JobCommands({}).enqueue(tx, jobs))
            roles = {f'adjudge_processes_alive{{role="{role}"}}': 1.0 for role in ("api", "scheduler", "worker")}
            expected = {"adjudge_dead_letters": 2.0, "adjudge_worker_slots": 3.0, "adjudge_api_outbox_pending": 0.0}
            await _until_all(client, ports, expected | roles)
            for port in ports:
                assert (await client.get(f"http://127.0.0.1:{port}/metrics")).status_code == 403
                for path in ("live", "ready"):
                    answer = await client.get(f"http://127.0.0.1:{port}/health/{path}")
                    assert (answer.status_code, answer.text) == (200, "ok\n")
            listed = json.loads(await asyncio.to_thread(installation.ask, "workers", "--json"))
            assert sorted(item["role"] for item in listed) == ["api", "scheduler", "worker"]
            scheduler.send_signal(signal.SIGKILL)
            await _until_all(client, ports[1:], {'adjudge_processes_alive{role="scheduler"}': 0.0})
