"""Real workers and schedulers, as processes, judging a real problem; some of them are killed."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.integration.queue.installation import (
    LOSABLE,
    PROBLEM,
    Installation,
    get_health_and_metrics,
    import_problem,
    listed,
    rows,
    submit,
    until_all_decided,
)
from tests.support.servers import RedisServer


@pytest.fixture
def embedded(sqlite_url: str, tmp_path: Path) -> Installation:
    return Installation(sqlite_url, None, tmp_path)


@pytest.fixture
def installation(postgres_url: str, redis_server: RedisServer, tmp_path: Path) -> Installation:
    return Installation(postgres_url, redis_server, tmp_path)


@pytest.mark.slow
async def test_processes_judge_a_real_problem_and_survive_kill_9(installation: Installation) -> None:
    accepted = sorted((PROBLEM / "submissions" / "accepted").glob("*.cpp"))[0]
    wrong = sorted((PROBLEM / "submissions" / "wrong_answer").glob("*.*"))[0]
    async with installation.opened() as database:
        ids = await import_problem(database, installation.blobs)
        with (
            installation.running("scheduler"),
            installation.running("worker", "--slots", "2", "--name", "w1", **LOSABLE) as first,
        ):
            await submit(database, installation.blobs, ids, [accepted, wrong] * 10)
            async with asyncio.timeout(240):
                while not await rows(database, "SELECT 1 AS one FROM jobs WHERE status = 'running' LIMIT 1"):
                    await asyncio.sleep(0.01)
            first.send_signal(signal.SIGKILL)
            # By its own lease it knows how long to leave a silent reader's messages alone.
            with installation.running("worker", "--slots", "2", "--name", "w2", **LOSABLE) as second:
                decided = await until_all_decided(database)
                known = await listed(installation, "w2")
                health_ports = {name: installation.health_ports[name] for name in ("scheduler", "w2")}
                said = {
                    name: await asyncio.to_thread(get_health_and_metrics, port) for name, port in health_ports.items()
                }
                second.send_signal(signal.SIGTERM)
                assert second.wait(120) == 0
        logged = await rows(database, "SELECT job_id FROM job_status_log WHERE to_status = 'succeeded'")
        cases = await rows(database, "SELECT count(*) AS n FROM case_results WHERE verdict = 'AC'")
    assert [row["verdict"] for row in decided] == ["AC", "WA"] * 10
    assert (known["slots"], known["health"]) == (2, "ready")
    assert {"c", "python3"} <= set(known["languages"])
    assert len(logged) == len({row["job_id"] for row in logged}) == 20
    assert cases[0]["n"] > 100
    assert said["scheduler"][0] == said["w2"][0] == "ok\n"
    assert 'adjudge_api_outbox_dispatch_total{reason="ok",status="delivered"}' in said["scheduler"][1]
    assert 'adjudge_worker_finalize_total{status="succeeded"}' in said["w2"][1]


@pytest.mark.slow
async def test_everything_in_one_process_resumes_after_kill_9(embedded: Installation) -> None:
    accepted = sorted((PROBLEM / "submissions" / "accepted").glob("*.cpp"))[0]
    wrong = sorted((PROBLEM / "submissions" / "wrong_answer").glob("*.*"))[0]
    async with embedded.opened() as database:
        ids = await import_problem(database, embedded.blobs)
        await submit(database, embedded.blobs, ids, [accepted, wrong] * 5)
        with embedded.running("up", "--port", "0", **LOSABLE) as first:
            async with asyncio.timeout(240):
                while not await rows(database, "SELECT 1 AS one FROM jobs WHERE status = 'running' LIMIT 1"):
                    await asyncio.sleep(0.01)
            first.send_signal(signal.SIGKILL)
        with embedded.running("up", "--port", "0") as second:
            decided = await until_all_decided(database)
            second.send_signal(signal.SIGTERM)
            assert second.wait(120) == 0
        ends = await rows(database, "SELECT job_id FROM job_status_log WHERE to_status = 'succeeded'")
    assert [row["verdict"] for row in decided] == ["AC", "WA"] * 5
    assert len(ends) == len({row["job_id"] for row in ends}) == 10
