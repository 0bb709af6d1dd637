"""Wherever a worker or a scheduler dies, every job ends once, with the right verdict, and no message stays behind."""

from __future__ import annotations

import asyncio
import signal
from itertools import count

import pytest

from tests.chaos.cluster import Cluster, create_cluster
from tests.chaos.crashing_process import CrashOperation, CrashPoint, Phase, Role, make_jobs
from tests.support.databases import PostgresDatabases
from tests.support.servers import RedisServer

JOBS = 2
LOST_AFTER_MS = 500
GHOST = "ghost"
OTHER: dict[Role, Role] = {"worker": "scheduler", "scheduler": "worker"}
LANES: list[tuple[Role, CrashOperation, Phase]] = [
    ("worker", "commit", "before"),
    ("worker", "commit", "after"),
    ("worker", "redis", "before"),
    ("worker", "redis", "after"),
    ("scheduler", "commit", "before"),
    ("scheduler", "commit", "after"),
    ("scheduler", "redis", "before"),
    ("scheduler", "redis", "after"),
]


async def _leave_an_orphan(cluster: Cluster, role: Role) -> list[str]:
    """A job that somebody claimed and let go of without a word: what recovers it has points to die at, too."""
    submissions = await cluster.submit(1)
    if role == "worker":  # the scheduler is there: let the ghost take the message along

        async def read() -> bool:
            return bool(await cluster.stream.read(consumer=GHOST, limit=1, wait_ms=100))

        await cluster.wait_until(read, "the ghost reads")
    (job,) = await cluster.rows("SELECT id FROM jobs WHERE submission_id = :id", id=submissions[0])
    claimed = await cluster.database.transact(
        lambda tx: make_jobs().claim(tx, [job["id"]], worker=GHOST, lease_ms=200),
    )
    assert claimed.done
    return submissions


async def _dies(cluster: Cluster, role: Role, point: CrashPoint) -> bool:
    """Let one process live up to ``point``, then another of its role after it; whether the first got there."""
    submissions = await _leave_an_orphan(cluster, role)
    submissions += await cluster.submit(JOBS)
    with cluster.process(
        role, f"victim-{point.number}", dies_at=point, slots=1, batch=1, lease_ms=LOST_AFTER_MS
    ) as doomed:

        async def over() -> bool:
            return doomed.exitcode is not None or await cluster.is_idle()

        await cluster.wait_until(over, f"{role} dies at {point}, or all is done")
        died = doomed.exitcode == -signal.SIGKILL
    with cluster.process(role, f"heir-{point.number}"):
        await cluster.wait_until(cluster.is_idle, f"all is done after {role} died at {point}")
    await cluster.check(submissions)
    return died


async def _walk(url: str, redis: RedisServer, role: Role, operation: CrashOperation, phase: Phase) -> int:
    """One point after another, until the work is done before the point is reached; how many there were."""
    async with create_cluster(url, redis.url, f"walk-{role}-{operation}-{phase}") as cluster:
        with cluster.process(OTHER[role], "bystander"):
            for number in count(1):
                if not await _dies(cluster, role, CrashPoint(operation, number, phase)):
                    return number - 1
    raise AssertionError("a walk ends")


@pytest.mark.slow
async def test_crash_at_any_commit_or_redis_call_loses_and_duplicates_nothing(
    postgres_databases: PostgresDatabases, redis_server: RedisServer
) -> None:
    urls = [postgres_databases.url(await asyncio.to_thread(postgres_databases.create)) for _ in LANES]
    walks = (_walk(url, redis_server, *lane) for url, lane in zip(urls, LANES, strict=True))
    walked = dict(zip(LANES, await asyncio.gather(*walks), strict=True))
    # One slot and batches of one: two claims and two ends, two rows taken and two deliveries noted, at least.
    least = {"commit": 2 * JOBS, "redis": JOBS}
    assert all(points >= least[operation] for (_, operation, _), points in walked.items()), walked
