"""The handler of nodes under a real worker: templates, artifacts, maps, timeouts, retries, stops."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import NodeContext, NodeFailed, NodeResult, NodeWaiting
from adjudge.chains.housekeeping import ChainHousekeeping
from adjudge.domain.errors import Conflict
from adjudge.domain.retry import RetryPolicy
from adjudge.relay.dispatcher import Dispatcher
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.jobs.models import Job
from adjudge.stream import MemoryStream
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.integration.chains.harness import ChainHarness, dag, node
from tests.support.log_capture import capture_logs
from tests.support.store_harness import StoreHarness, metric_value

Work = Callable[[NodeContext], Awaitable[NodeResult | NodeWaiting]]


class ScriptedExecutor:
    """An executor that does what the test says for each node; by default it hands its cfg on."""

    type = "noop"
    cfg_schema: Mapping[str, Any] = {"type": "object", "properties": {"n": {"type": "number"}}}

    def __init__(self) -> None:
        self.can_be_killed = False
        self.acts: dict[str, Work] = {}
        self.seen: list[NodeContext] = []

    async def execute(self, context: NodeContext) -> NodeResult | NodeWaiting:
        """Do it."""
        self.seen.append(context)
        act = self.acts.get(context.node_id.partition("[")[0])
        return await act(context) if act is not None else NodeResult(context.cfg.get("out"))


class HandlerHarness:
    """A chain harness with a worker."""

    def __init__(self, harness: ChainHarness) -> None:
        self.harness, self.script = harness, ScriptedExecutor()

    async def ends(self, run_id: str) -> str:
        async with asyncio.timeout(240):
            while (run := await self.harness.run(run_id)).finished_at is None:
                await asyncio.sleep(0.01)
        return str(run.status)

    async def until(self, run_id: str, node_id: str, status: str) -> None:
        async with asyncio.timeout(240):
            while (await self.harness.states(run_id))[node_id] != status:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def open_handler_harness(
    store: StoreHarness, folder: Path, *, inline_bytes: int = 1_000, node_timeout_ms: int = 3_600_000
) -> AsyncIterator[HandlerHarness]:
    harness, stream = ChainHarness(store, ChainEngine(node_timeout_ms=node_timeout_ms)), MemoryStream()
    handler_harness, blobs = HandlerHarness(harness), DirectoryBlobStore(folder)
    handler = NodeHandler(
        store.database,
        blobs,
        {"noop": handler_harness.script},
        harness.engine.dags,
        inline_bytes=inline_bytes,
    )
    settings = WorkerOptions("w1", slots=4, heartbeat_ms=20, read_wait_ms=20, retry=RetryPolicy(jitter=0))
    worker = Worker(store.database, harness.jobs, stream, {JOB_KIND_NODE: handler}, settings)
    tasks = [
        asyncio.create_task(Dispatcher(store.database, harness.jobs, stream, name="dispatcher", poll_ms=20).run()),
        asyncio.create_task(worker.run()),
    ]
    try:
        yield handler_harness
    finally:
        worker.drain()
        worker.drain()
        await tasks[1]
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await blobs.close()


@pytest.fixture
async def handler_harness(store: StoreHarness, tmp_path: Path) -> AsyncIterator[HandlerHarness]:
    """A worker on each database in turn."""
    async with open_handler_harness(store, tmp_path / "blobs") as found:
        yield found


async def test_artifacts_flow_through_templates_maps_and_blobs(handler_harness: HandlerHarness) -> None:
    large = "x" * 5_000
    run_id = await handler_harness.harness.start(
        dag(
            node("list", cfg={"out": {"names": ["p", "q"], "large": large}}),
            node("each", "list", cfg={"out": "{{ name }}!"}, map={"over": "{{ artifacts.list.names }}", "as": "name"}),
            node("end", "each", "list", cfg={"out": ["{{ artifacts.each }}", "{{ parameters.who }}"]}),
        ),
        {"who": "ann"},
    )
    assert await handler_harness.ends(run_id) == "success"
    nodes = await handler_harness.harness.nodes(run_id)
    assert nodes["end"].artifact == [["p!", "q!"], "ann"]
    assert nodes["list"].artifact is None  # too large for its row
    assert nodes["list"].artifact_digest
    assert nodes["list"].artifact_bytes > 5_000
    context = next(item for item in handler_harness.script.seen if item.node_id == "end")
    assert context.artifacts["list"]["large"] == large
    assert (context.run_id, context.attempt, context.actor, context.chain_name) == (run_id, 1, "ann", "chain-1")
    assert metric_value("chain_nodes_inflight") == 0


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """What is logged meanwhile."""
    with capture_logs() as stream:
        yield stream


async def test_every_line_about_a_nodes_job_names_its_run_and_node(
    handler_harness: HandlerHarness, log_lines: io.StringIO
) -> None:
    async def leave(_: NodeContext) -> NodeResult:
        raise Conflict("no")

    handler_harness.script.acts["b"] = leave
    run_id = await handler_harness.harness.start(dag(node("a"), node("b", "a")))
    assert await handler_harness.ends(run_id) == "failed"
    said = [event for event in map(json.loads, log_lines.getvalue().splitlines()) if event.get("kind") == "node"]
    assert {event["event"] for event in said} >= {"job_enqueued", "job_started", "job_attempt_failed", "job_finished"}
    assert {(event["run_id"], event["node_id"]) for event in said} == {(run_id, "a"), (run_id, "b")}


async def test_lines_about_a_node_name_its_attempt_also_after_a_manual_retry(
    handler_harness: HandlerHarness, log_lines: io.StringIO
) -> None:
    """A manual retry is a new job, whose own attempts begin at 1 again."""

    async def refuse(_: NodeContext) -> NodeResult:
        raise Conflict("no")

    handler_harness.script.acts["a"] = refuse
    run_id = await handler_harness.harness.start(dag(node("a")))
    assert await handler_harness.ends(run_id) == "failed"
    await handler_harness.harness.retry(run_id, "a")
    assert await handler_harness.ends(run_id) == "failed"
    failed = [
        event for event in map(json.loads, log_lines.getvalue().splitlines()) if event["event"] == "job_attempt_failed"
    ]
    assert [(event["attempt_id"], event["node_attempt"]) for event in failed] == [(1, 1), (1, 2)]


async def test_who_may_answer_a_question_is_never_lost_with_what_is_shown_beside_it(
    handler_harness: HandlerHarness,
) -> None:
    async def ask(_: NodeContext) -> NodeWaiting:
        return NodeWaiting("timer", "k", {"approvers": ["eva"], "details": "x" * 2_000})

    handler_harness.script.acts["a"] = ask
    run_id = await handler_harness.harness.start(dag(node("a")))
    assert await handler_harness.ends(run_id) == "failed"
    assert "at most 1000 bytes" in ((await handler_harness.harness.nodes(run_id))["a"].last_error or "")


@pytest.mark.parametrize("bad", ["\ud800", "\0", float("inf")])
async def test_an_artifact_that_cannot_be_kept_fails_its_node_alone(
    handler_harness: HandlerHarness, bad: object
) -> None:
    async def leave(_: NodeContext) -> NodeResult:
        return NodeResult({"x": bad})

    handler_harness.script.acts["a"] = leave
    run_id = await handler_harness.harness.start(dag(node("a"), node("b")))
    assert await handler_harness.ends(run_id) == "failed"
    assert await handler_harness.harness.states(run_id) == {"a": "failed", "b": "success"}
    assert "artifact.x: " in ((await handler_harness.harness.nodes(run_id))["a"].last_error or "")


async def test_a_cfg_that_became_wrong_fails_for_good_and_says_where(handler_harness: HandlerHarness) -> None:
    run_id = await handler_harness.harness.start(dag(node("a", cfg={"n": "{{ parameters.n }}"})), {"n": "many"})
    assert await handler_harness.ends(run_id) == "failed"
    shown = (await handler_harness.harness.nodes(run_id))["a"]
    assert shown.attempt == 1
    assert "cfg.n" in (shown.last_error or "")


async def test_failures_are_tried_again_with_the_nodes_own_pauses(handler_harness: HandlerHarness) -> None:
    tries: list[Any] = []

    async def flaky(context: NodeContext) -> NodeResult:
        tries.append(context.checkpoint)
        await context.save_checkpoint(len(tries))
        await context.log(f"try {context.attempt}\nof three")
        if len(tries) < 3:
            raise NodeFailed("not yet")
        return NodeResult("at last")

    handler_harness.script.acts["a"] = flaky
    run_id = await handler_harness.harness.start(dag(node("a", retry={"max_attempts": 3, "backoff_ms": 0})))
    assert await handler_harness.ends(run_id) == "success"
    assert tries == [None, 1, 2]
    log = await handler_harness.harness.store.database.read(lambda tx: chain_queries.read_log(tx, run_id, "a"))
    assert [(line.attempt, line.text) for line in log][:3] == [(1, "try 1"), (1, "of three"), (2, "try 2")]
    changes = await handler_harness.harness.store.database.read(lambda tx: chain_queries.status_log(tx, run_id))
    assert [item.to_status for item in changes if item.node_id == "a"] == [
        *["running", "retrying"] * 2,
        "running",
        "success",
    ]


async def test_an_attempt_that_begins_after_it_was_superseded_is_not_run_as_its_successor(
    store: StoreHarness, tmp_path: Path
) -> None:
    harness, script = ChainHarness(store), ScriptedExecutor()
    handler = NodeHandler(store.database, DirectoryBlobStore(tmp_path), {"noop": script}, harness.engine.dags)
    await harness.start(dag(node("a")))
    late = (await harness.claim("a", worker="frozen"))["a"]
    await store.clock.advance(ms=16_000)
    await store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
    await store.clock.advance(ms=3_000)
    assert (await harness.claim("a"))["a"].attempt_id == 2
    with pytest.raises(Conflict, match="this attempt is stale"):
        await handler.run(late)
    assert script.seen == []


async def test_a_node_that_takes_too_long_fails_as_timed_out(handler_harness: HandlerHarness) -> None:
    async def hang(_: NodeContext) -> NodeResult:
        await asyncio.Event().wait()
        return NodeResult()

    handler_harness.script.acts["a"] = hang
    run_id = await handler_harness.harness.start(dag(node("a", timeout_ms=30, retry={"max_attempts": 1})))
    assert await handler_harness.ends(run_id) == "failed"
    assert "Timed out after 30 ms" in ((await handler_harness.harness.nodes(run_id))["a"].last_error or "")


async def test_a_node_that_heeds_the_stop_ends_in_good_order(handler_harness: HandlerHarness) -> None:
    async def patient(context: NodeContext) -> NodeResult:
        await context.stop_requested.wait()
        raise NodeFailed("interrupted")

    handler_harness.script.acts["a"] = patient
    run_id = await handler_harness.harness.start(dag(node("a"), node("b", "a")))
    await handler_harness.until(run_id, "a", "running")
    assert await handler_harness.harness.stop(run_id) == "stopping"
    assert await handler_harness.ends(run_id) == "stopped"
    assert await handler_harness.harness.states(run_id) == {"a": "stopped", "b": "stopped"}


async def test_a_node_that_loses_nothing_by_it_is_cut_short_at_once(handler_harness: HandlerHarness) -> None:
    ends = list[str]()

    async def deaf(_: NodeContext) -> NodeResult:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("canceled")
        return NodeResult()

    handler_harness.script.acts["a"] = deaf
    handler_harness.script.can_be_killed = True
    run_id = await handler_harness.harness.start(dag(node("a"), node("b", "a")))
    await handler_harness.until(run_id, "a", "running")
    await handler_harness.harness.stop(run_id)
    assert await handler_harness.ends(run_id) == "stopped", "and nobody waited for the grace to be over"
    assert (await handler_harness.harness.states(run_id), ends) == ({"a": "stopped", "b": "stopped"}, ["canceled"])
    handler_harness.script.acts.clear()
    await handler_harness.harness.retry(run_id, "a")
    assert await handler_harness.ends(run_id) == "success"


async def test_a_node_that_does_not_is_killed(handler_harness: HandlerHarness) -> None:
    killed = asyncio.Event()

    async def deaf(_: NodeContext) -> NodeResult:
        try:
            await asyncio.Event().wait()
        finally:
            killed.set()
        return NodeResult()

    handler_harness.script.acts["a"] = deaf
    run_id = await handler_harness.harness.start(dag(node("a")))
    await handler_harness.until(run_id, "a", "running")
    await handler_harness.harness.stop(run_id)
    await handler_harness.harness.store.clock.advance(ms=10_001)
    await ChainHousekeeping(
        handler_harness.harness.store.database, handler_harness.harness.jobs, handler_harness.harness.engine, name="p"
    ).run_once()
    assert (await handler_harness.harness.run(run_id)).status == "stopped"
    async with asyncio.timeout(240):
        await killed.wait()


async def test_a_condition_that_cannot_be_decided_fails_its_node(handler_harness: HandlerHarness) -> None:
    run_id = await handler_harness.harness.start(
        dag(node("a", cfg={"out": "text"}), node("b", "a", **{"if": "artifacts.a > 3"})),
    )
    assert await handler_harness.ends(run_id) == "failed"
    assert "cannot compare" in ((await handler_harness.harness.nodes(run_id))["b"].last_error or "")


async def test_a_condition_on_what_lies_in_a_blob_is_decided_where_the_blob_is_read(
    handler_harness: HandlerHarness,
) -> None:
    large = {"big": "x" * 2_000, "go": True}
    run_id = await handler_harness.harness.start(
        dag(
            node("a", cfg={"out": large}),
            node("yes", "a", **{"if": "artifacts.a.go"}),
            node("no", "a", **{"if": "not artifacts.a.go"}),
            node("other", "a", **{"if": "parameters.nothing"}),
            node("each", map={"over": [1, 2]}, cfg={"out": large}),
            node("some", "each", **{"if": "artifacts.each[1].go"}),
        )
    )
    assert await handler_harness.ends(run_id) == "failed"
    states = await handler_harness.harness.states(run_id)
    assert (states["yes"], states["no"], states["other"], states["some"]) == ("success", "failed", "skipped", "success")
    assert "the artifact of 'a' is too large to be stored inline" in (
        (await handler_harness.harness.nodes(run_id))["no"].last_error or ""
    )


async def test_a_map_over_what_is_no_list_fails(handler_harness: HandlerHarness) -> None:
    run_id = await handler_harness.harness.start(
        dag(node("a", cfg={"out": "text"}), node("b", "a", map={"over": "{{ artifacts.a }}"})),
    )
    assert await handler_harness.ends(run_id) == "failed"
    assert "map.over" in ((await handler_harness.harness.nodes(run_id))["b"].last_error or "")


async def test_a_hanging_node_without_a_timeout_ends_on_a_live_worker(store: StoreHarness, tmp_path: Path) -> None:
    async def hang(_: NodeContext) -> NodeResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with open_handler_harness(store, tmp_path / "blobs", node_timeout_ms=100) as handler_harness:
        handler_harness.script.acts["a"] = hang
        run_id = await handler_harness.harness.start(
            dag(node("a", retry={"max_attempts": 1}), node("b", "a", when="all_done"))
        )
        assert await handler_harness.ends(run_id) == "failed"
        nodes = await handler_harness.harness.nodes(run_id)
    assert (nodes["a"].status, nodes["b"].status) == ("failed", "success")
    assert "deadline of 100 ms" in (nodes["a"].last_error or "")


async def test_every_node_job_has_a_deadline(harness: ChainHarness) -> None:
    """Those that a start makes, those that follow from an ended node either way, and those of a retry."""
    run_id = await harness.start(dag(node("a"), node("b", "a"), node("c", "b", timeout_ms=5_000), node("d", "c")))
    await harness.drain(run_id, act=lambda node_id: False if node_id == "d" else None)
    await harness.retry(run_id, "d")
    rows = await harness.store.rows("SELECT node_id, timeout_ms FROM jobs WHERE kind = 'node' ORDER BY id")
    assert {(row["node_id"], row["timeout_ms"]) for row in rows} == {
        ("a", 3_600_000),
        ("b", 3_600_000),
        ("c", 15_000),
        ("d", 3_600_000),
    }


async def test_a_job_whose_handler_outlives_the_jobs_deadline_is_ended(store: StoreHarness, tmp_path: Path) -> None:
    """The worker's own net: what hangs outside of an executor, where a node's deadline does not reach."""

    class Hanging(NodeHandler):
        async def run(self, _: Job) -> HandlerResult:
            ended = asyncio.Event()
            try:
                await ended.wait()
            finally:
                canceled.append("yes")
            raise AssertionError

    canceled = list[str]()
    harness, stream = ChainHarness(store), MemoryStream()
    handler = Hanging(store.database, DirectoryBlobStore(tmp_path), {}, harness.engine.dags)
    worker = Worker(
        store.database, harness.jobs, stream, {JOB_KIND_NODE: handler}, WorkerOptions("w1", 1, read_wait_ms=20)
    )
    run_id = await harness.start(dag(node("a", timeout_ms=1, retry={"max_attempts": 1})))
    assert (await harness.store.rows("SELECT timeout_ms FROM jobs"))[0]["timeout_ms"] == 10_001
    await store.write("UPDATE jobs SET timeout_ms = 50")
    dispatcher = asyncio.create_task(
        Dispatcher(store.database, harness.jobs, stream, name="dispatcher", poll_ms=20).run()
    )
    working = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(240):
            while (await harness.run(run_id)).finished_at is None:
                await asyncio.sleep(0.01)
    finally:
        for task in (dispatcher, working):
            task.cancel()
        await asyncio.gather(dispatcher, working, return_exceptions=True)
    assert canceled == ["yes"]
    assert "outlived its deadline of 50 ms" in ((await harness.nodes(run_id))["a"].last_error or "")
