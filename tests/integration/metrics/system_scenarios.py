"""Metrics of the system: queue, outbox, dead letters, stream, processes."""

from __future__ import annotations

import time

import pytest

from adjudge.registry import ProcessInfo, ProcessRole
from adjudge.relay import retention
from adjudge.relay.dispatcher import Dispatcher
from adjudge.store.jobs.models import PoisonJob
from tests.integration.metrics.bench import MetricsBench, moves


@moves("queue_depth", "queue_oldest_seconds", "jobs_delayed", "api_outbox_pending", "api_outbox_oldest_seconds")
async def waiting_jobs(bench: MetricsBench) -> None:
    await bench.queue.submit(3)
    (first, second, _) = await bench.queue.rows("SELECT id FROM jobs ORDER BY id")
    await bench.change("UPDATE jobs SET available_at = available_at - 100000000 WHERE id = :id", id=first["id"])
    await bench.change("UPDATE jobs SET available_at = available_at + 3600000000 WHERE id = :id", id=second["id"])
    await bench.change("UPDATE outbox SET due_at = due_at - 200000000 WHERE job_id = :id", id=first["id"])
    await bench.expect_all(
        {
            'queue_depth{band="2"}': 2,
            'queue_depth{band="0"}': 0,
            'jobs_delayed{band="2"}': 1,
            'queue_oldest_seconds{band="0"}': 0,
            "api_outbox_pending": 3,
        }
    )
    await bench.expect_between('queue_oldest_seconds{band="2"}', 100, 160)
    await bench.expect_between("api_outbox_oldest_seconds", 200, 260)


@moves("queue_depth", "stream_messages", "stream_pending")
async def published_jobs_still_wait(bench: MetricsBench) -> None:
    queue = bench.queue
    await queue.submit(3)
    await Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher").dispatch_batch()
    await queue.stream.read(consumer="w1", limit=1, wait_ms=1_000)
    await bench.expect_all(
        {
            'stream_messages{band="2"}': 3,
            'stream_pending{band="2"}': 1,
            'queue_depth{band="2"}': 3,
            "api_outbox_pending": 0,
            "api_outbox_oldest_seconds": 0,
        }
    )


@moves("jobs_running", "worker_slots", "worker_slots_used", "processes_alive", "system_metrics_up")
async def running_jobs_and_processes(bench: MetricsBench) -> None:
    await bench.queue.submit()
    job, _ = await bench.claim()
    for name, role, slots in (("w1", "worker", 4), ("w2", "worker", 3), ("a1", "api", 0), ("s1", "scheduler", 0)):
        await bench.registry.register(ProcessInfo(name, "host", 1, "1", slots, role=ProcessRole(role)))
    await bench.expect_all(
        {
            "system_metrics_up": 1,
            'jobs_running{band="2"}': 1,
            'queue_depth{band="2"}': 0,
            "worker_slots": 7,
            "worker_slots_used": 1,
            'processes_alive{role="worker"}': 2,
            'processes_alive{role="api"}': 1,
            'processes_alive{role="scheduler"}': 1,
        }
    )
    await bench.change("UPDATE jobs SET lease_until = 1 WHERE id = :id", id=job.id)
    await bench.registry.deregister("w2")
    await bench.expect_all({'jobs_running{band="2"}': 1, "worker_slots": 4, "worker_slots_used": 0})


@moves("dead_letters", "job_failures_total", "judge_verdict_total")
async def dead_letters(bench: MetricsBench) -> None:
    queue = bench.queue
    await queue.submit(2)
    poison = [PoisonJob(row["id"], "UNKNOWN_KIND", "no handler") for row in await queue.rows("SELECT id FROM jobs")]
    await queue.database.transact(lambda tx: queue.jobs.dead_letter(tx, poison, actor="w1"))
    await bench.expect_all(
        {
            "dead_letters": 2,
            'job_failures_total{class="infrastructure",kind="judge"}': 2,
            'judge_verdict_total{verdict="SE"}': 2,
        }
    )
    (letter, _) = await queue.rows("SELECT id FROM dead_letters")
    await queue.database.transact(lambda tx: queue.jobs.discard(tx, [letter["id"]], actor="ann", note="known"))
    await bench.expect(dead_letters=1)


@moves("stream_full", "api_outbox_dispatch_total")
async def stream_at_capacity(bench: MetricsBench) -> None:
    queue = bench.queue
    await queue.submit(5)
    dispatcher = Dispatcher(queue.database, queue.jobs, queue.stream, name="dispatcher", batch=2, ahead=3)
    while await dispatcher.dispatch_batch():
        pass
    await bench.expect_all(
        {
            'stream_full{band="2"}': 1,
            'api_outbox_dispatch_total{reason="ok",status="delivered"}': 3,
            "api_outbox_pending": 2,
            'queue_depth{band="2"}': 5,
        }
    )


@moves("retention_deleted_total", "retention_behind", "retention_last_run_timestamp_seconds")
async def old_rows(bench: MetricsBench) -> None:
    await bench.change("INSERT INTO metric_samples (source, at, sample) VALUES ('a', 1, '{}')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "_BATCHES", 1)
        await retention.Retention(bench.queue.database, retention.RetentionOptions(deliveries_ms=1)).run_once()
    table = '{table="metric_samples"}'
    await bench.expect_all({f"retention_deleted_total{table}": 1, f"retention_behind{table}": 1})
    await bench.expect_between("retention_last_run_timestamp_seconds", time.time() - 600, time.time())
