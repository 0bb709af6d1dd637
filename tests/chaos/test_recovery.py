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
async def town(postgres_database: str, redis_server: RedisServer) -> AsyncIterator[Cluster]:
    async with create_cluster(postgres_database, redis_server.url, f"recovery-{next(_ENVIRONMENTS)}") as town:
        yield town


async def test_retryable_errors_backoff_and_cap(town: Cluster) -> None:
    with town.process("scheduler", "scheduler"), town.process("worker", "worker", breaks=True):
        (submission,) = await town.submit(1, RETRY)
        await town.wait_until(town.is_idle, "it is given up")
    (job,) = await town.rows("SELECT id, status, attempt_id, error_code FROM jobs")
    assert (job["status"], job["attempt_id"], job["error_code"]) == ("failed", RETRY.max_attempts, "RuntimeError")
    (row,) = await town.rows("SELECT verdict FROM submissions WHERE id = :id", id=submission)
    assert row["verdict"] == "SE"
    assert await town.count("dead_letters WHERE state = 'open'") == 1
    log = await town.rows("SELECT to_status, reason, at FROM job_status_log ORDER BY id")
    released = [step["at"] for step in log if step["reason"] == "retry"]
    started = [step["at"] for step in log if step["to_status"] == "running"]
    least_us = [RETRY.delay_ms(failures, 0) * 1_000 for failures in range(1, RETRY.max_attempts)]
    assert least_us == [20_000, 40_000, 80_000]
    waits = [back - gone for gone, back in zip(released, started[1:], strict=False)]
    assert len(waits) == len(least_us)
    assert all(wait >= least for wait, least in zip(waits, least_us, strict=True))


async def test_stalled_job_recovered_by_watchdog(town: Cluster) -> None:
    """The worker dies in the middle of its work; nobody else reads messages until the watchdog has freed the job."""
    with town.process("scheduler", "scheduler"):
        with town.process("worker", "dies", slots=1, work_ms=60_000, lease_ms=4_000) as worker:
            (submission,) = await town.submit(1)

            async def running() -> bool:
                return bool(await town.count("jobs WHERE status = 'running'"))

            await town.wait_until(running, "it runs")
            worker.kill()

        async def freed() -> bool:
            return bool(await town.count("job_status_log WHERE reason = 'lease_expired' AND to_status = 'pending'"))

        await town.wait_until(freed, "the watchdog frees it")
        with town.process("worker", "lives"):
            await town.wait_until(town.is_idle, "it is judged")
    await town.check([submission])
    (job,) = await town.rows("SELECT attempt_id FROM jobs")
    assert job["attempt_id"] == 2


async def test_outbox_survives_enqueue_failure(postgres_databases: PostgresDatabases) -> None:
    """Redis is not there when it is handed in, and for a while after."""
    own = RedisServer().start()
    try:
        own.kill()
        url = postgres_databases.url(postgres_databases.create())
        async with create_cluster(url, own.url, "enqueue-failure") as town:
            with town.process("scheduler", "scheduler"), town.process("worker", "worker"):
                submissions = await town.submit(3)

                async def refused() -> bool:
                    return await town.count("outbox WHERE state = 'pending' AND last_error LIKE '%away%'") == 3

                await town.wait_until(refused, "delivery fails, and the rows remember why")
                assert await town.count("jobs WHERE status = 'pending'") == 3
                own.revive()
                await town.wait_until(town.is_idle, "they are judged")
            await town.check(submissions)
    finally:
        own.stop()
