"""What must be recovered from, with real processes on PostgreSQL and Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from tests.chaos.cluster import Cluster, create_cluster
from tests.chaos.crashing_process import RETRY
from tests.support.databases import PostgresDatabases
from tests.support.servers import RedisServer

pytestmark = pytest.mark.slow
_ENVIRONMENTS = count(1)


@pytest.fixture
async def cluster(postgres_database: str, redis_server: RedisServer) -> AsyncIterator[Cluster]:
    async with create_cluster(postgres_database, redis_server.url, f"recovery-{next(_ENVIRONMENTS)}") as cluster:
        yield cluster


async def test_retryable_errors_backoff_and_cap(cluster: Cluster) -> None:
    with cluster.process("scheduler", "scheduler"), cluster.process("worker", "worker", breaks=True):
        (submission,) = await cluster.submit(1, RETRY)
        await cluster.wait_until(cluster.is_idle, "it is given up")
    (job,) = await cluster.rows("SELECT id, status, attempt_id, error_code FROM jobs")
    assert (job["status"], job["attempt_id"], job["error_code"]) == ("failed", RETRY.max_attempts, "RuntimeError")
    (row,) = await cluster.rows("SELECT verdict FROM submissions WHERE id = :id", id=submission)
    assert row["verdict"] == "SE"
    assert await cluster.count("dead_letters WHERE state = 'open'") == 1
    log = await cluster.rows("SELECT to_status, reason, at FROM job_status_log ORDER BY id")
    released = [step["at"] for step in log if step["reason"] == "retry"]
    started = [step["at"] for step in log if step["to_status"] == "running"]
    least_us = [RETRY.delay_ms(failures, 0) * 1_000 for failures in range(1, RETRY.max_attempts)]
    assert least_us == [20_000, 40_000, 80_000]
    waits = [back - gone for gone, back in zip(released, started[1:], strict=False)]
    assert len(waits) == len(least_us)
    assert all(wait >= least for wait, least in zip(waits, least_us, strict=True))


async def test_stalled_job_recovered_by_watchdog(cluster: Cluster) -> None:
    """The worker dies in the middle of its work; nobody else reads messages until the watchdog has freed the job."""
    with cluster.process("scheduler", "scheduler"):
        with cluster.process("worker", "dies", slots=1, work_ms=60_000, lease_ms=4_000) as worker:
            (submission,) = await cluster.submit(1)

            async def running() -> bool:
                return bool(await cluster.count("jobs WHERE status = 'running' AND heartbeat_at IS NOT NULL"))

            await cluster.wait_until(running, "it runs")
            worker.kill()

        async def freed() -> bool:
            return bool(await cluster.count("job_status_log WHERE reason = 'lease_expired' AND to_status = 'pending'"))

        await cluster.wait_until(freed, "the watchdog frees it")
        with cluster.process("worker", "lives"):
            await cluster.wait_until(cluster.is_idle, "it is judged")
    await cluster.check([submission])
    (job,) = await cluster.rows("SELECT attempt_id FROM jobs")
    assert job["attempt_id"] == 2


async def test_outbox_survives_enqueue_failure(postgres_databases: PostgresDatabases) -> None:
    """Redis is unavailable when the submission is accepted, and for a while after."""
    own = RedisServer().start()
    try:
        own.kill()
        url = postgres_databases.url(postgres_databases.create())
        async with create_cluster(url, own.url, "enqueue-failure") as cluster:
            with cluster.process("scheduler", "scheduler"), cluster.process("worker", "worker"):
                submissions = await cluster.submit(3)

                async def refused() -> bool:
                    return await cluster.count("outbox WHERE state = 'pending' AND last_error LIKE 'Redis at%'") == 3

                await cluster.wait_until(refused, "delivery fails, and the rows remember why")
                assert await cluster.count("jobs WHERE status = 'pending'") == 3
                own.revive()
                await cluster.wait_until(cluster.is_idle, "they are judged")
            await cluster.check(submissions)
    finally:
        own.stop()
