"""Metrics of submissions, admission, the cache, chains, the sandbox and the disks of workers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from adjudge.cache.policies import CacheEntity
from adjudge.cache.token_buckets import MemoryTokenBuckets
from adjudge.cache.two_tier import open_cache
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.cli.wiring.judge import PrometheusSandboxMetrics
from adjudge.cli.wiring.worker import _export_disk_usage
from adjudge.domain.errors import QueueFull, VersionConflict
from adjudge.domain.permissions import ROLE_PERMISSIONS, Role
from adjudge.relay.dispatcher import Dispatcher
from adjudge.sandbox import Sandbox, SandboxRunSpec
from adjudge.sandbox.report import ProtocolError, ProtocolReason
from adjudge.services.admission import AdmissionController, LoadSampler
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.settings.sections import AdmissionSettings
from adjudge.store.chains import definitions
from adjudge.store.chains.models import JOB_KIND_NODE, NewChainRun
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.metrics.bench import MetricsBench, moves


@moves("submission_conflicts_total")
async def outdated_version(bench: MetricsBench) -> None:
    queue = bench.queue
    (submission,) = await queue.submit()
    commands = SubmissionCommands(queue.jobs)
    with pytest.raises(VersionConflict):
        await queue.database.transact(
            lambda tx: commands.change_status(
                tx, submission, version=7, status="canceled", actor="ann", reason="mistake"
            )
        )
    await bench.expect(submission_conflicts_total=1)


@moves("admission_total")
async def full_queue(bench: MetricsBench) -> None:
    queue, limits = bench.queue, AdmissionSettings(high_watermark=1, low_watermark=0, health_gate=False, user_per_sec=0)
    sampler = LoadSampler(queue.database, bench.registry, count_to=2)
    admission = AdmissionController(limits, queue.database, MemoryTokenBuckets(), sampler)
    who = Viewer(queue.person, "person", Role.CONTESTANT, ROLE_PERMISSIONS[Role.CONTESTANT], AuthMethod.TOKEN)
    await admission.admit(who, address="192.0.2.1", count=3, languages=[])
    await queue.submit(2)
    sampler._taken_at = float("-inf")
    with pytest.raises(QueueFull):
        await admission.admit(who, address="192.0.2.1", count=2, languages=[])
    await bench.expect_all(
        {
            'admission_total{decision="admitted",reason="ok"}': 3,
            'admission_total{decision="refused",reason="queue_full"}': 2,
        }
    )
    await admission.close()


@moves("cache_requests_total")
async def cached_problem(bench: MetricsBench) -> None:
    """Two servers: the second finds the problem in Redis, if there is one."""
    queue, entity = bench.queue, CacheEntity.PROBLEM

    async def load() -> bytes:
        return b"{}"

    for _ in range(2):
        async with open_cache(queue.database, queue.redis_url or "", queue.environment) as cache:
            for _ in range(3):
                await cache.get(entity, "sum", load)
    has_redis = queue.redis_url is not None
    await bench.expect_all(
        {
            'cache_requests_total{entity="problem:item",result="miss",tier="l1"}': 2,
            'cache_requests_total{entity="problem:item",result="hit",tier="l1"}': 4,
            'cache_requests_total{entity="problem:item",result="miss",tier="l2"}': int(has_redis),
            'cache_requests_total{entity="problem:item",result="hit",tier="l2"}': int(has_redis),
        }
    )


class _WaitingExecutor:
    """An executor whose nodes wait for the test."""

    type = "noop"
    cfg_schema: Mapping[str, Any] = {"type": "object"}
    can_be_killed = False

    def __init__(self) -> None:
        self.may_finish = asyncio.Event()

    async def execute(self, context: NodeContext) -> NodeResult:
        await self.may_finish.wait()
        return NodeResult(context.node_id)


@moves("chain_runs_total", "chain_node_duration_seconds", "chain_nodes_inflight", "queue_wait_seconds")
async def chain_of_two_nodes(bench: MetricsBench) -> None:
    """The second node is a follow-up that the worker claims itself: it has waited, too, though not long."""
    queue, engine, executor = bench.queue, ChainEngine(), _WaitingExecutor()
    jobs = JobCommands({JOB_KIND_NODE: engine.job_listener})
    dag = {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"]}]}
    chain = await queue.database.transact(lambda tx: definitions.create(tx, name="two", dag=dag, actor="ann"))
    await queue.database.transact(lambda tx: engine.start(tx, NewChainRun(chain.id, {}, actor="ann")))
    await Dispatcher(queue.database, jobs, queue.stream, name="dispatcher").dispatch_batch()
    handler = NodeHandler(queue.database, blobs=None, executors={"noop": executor}, dags=engine.dags)  # type: ignore[arg-type]  # nothing large
    worker = Worker(
        queue.database, jobs, queue.stream, {JOB_KIND_NODE: handler}, WorkerOptions("w1", slots=2, read_wait_ms=50)
    )
    running = asyncio.create_task(worker.run())
    await bench.expect_all({"chain_nodes_inflight": 1, 'chain_runs_total{status="started"}': 1})
    executor.may_finish.set()
    await bench.expect_all(
        {
            'chain_runs_total{status="success"}': 1,
            'chain_node_duration_seconds_count{status="success",type="noop"}': 2,
            'queue_wait_seconds_count{kind="node"}': 2,
            "chain_nodes_inflight": 0,
        }
    )
    worker.drain()
    await running


@moves(
    "judge_exec_total",
    "judge_exec_duration_seconds",
    "judge_exec_inflight",
    "judge_output_truncated_total",
    "judge_protocol_errors_total",
    "sandbox_degraded_total",
)
async def programs_in_the_sandbox(bench: MetricsBench) -> None:
    def program(text: str) -> SandboxRunSpec:
        return SandboxRunSpec(argv=("/bin/sh", "-c", text), job_id="job", attempt_id=1)

    with tempfile.TemporaryDirectory() as folder:
        async with Sandbox(
            metrics=PrometheusSandboxMetrics(), state_dir=Path(folder), stdout_limit_bytes=100, unsafe=True
        ) as sandbox:
            await sandbox.run(program("head -c 1000 /dev/zero"))
            await sandbox.run(program("exit 3"))
            running = asyncio.create_task(sandbox.run(program("sleep 60")))
            await bench.expect(judge_exec_inflight=1)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await bench.expect(judge_exec_inflight=0)
            _break_agent(sandbox, ProtocolError(ProtocolReason.JOB_MISMATCH, "other job"))
            await sandbox.run(program("true"))
            await sandbox.run(program("true"))  # by the command: the agent is stopped
    await bench.expect_all(
        {
            'judge_output_truncated_total{stream="stdout"}': 1,
            'judge_exec_total{result="reject"}': 1,
            'judge_exec_duration_seconds_count{result="reject"}': 1,
            'judge_protocol_errors_total{reason="job_mismatch"}': 1,
            'sandbox_degraded_total{reason="no_agent"}': 1,
        }
    )


def _break_agent(sandbox: Sandbox, error: Exception) -> None:
    """Let the next run by the agent fail."""
    agent = sandbox._all[0].agent
    assert agent is not None

    async def run(*_: object) -> NoReturn:
        raise error

    agent.run = run  # type: ignore[method-assign,assignment]


@moves("worker_cache_disk_bytes", "worker_cache_disk_free_bytes")
async def disk_of_a_cache(bench: MetricsBench) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _export_disk_usage({"files": Path(folder)})
        total = shutil.disk_usage(folder).total
        await bench.expect_all({'worker_cache_disk_bytes{cache="files"}': total})
        await bench.expect_between('worker_cache_disk_free_bytes{cache="files"}', 1, total)
