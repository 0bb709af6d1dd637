"""A wait, job, run or chain that housekeeping cannot process does not block others and is logged with its ids."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest

from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import WaitResult
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Unavailable
from adjudge.observe import logs
from adjudge.store import Tx
from adjudge.store.chains.models import JOB_KIND_NODE, ChainRunFinished, NewChainRun, NodeSuspended
from adjudge.store.jobs.commands import LISTENER_FAILED, JobCommands
from adjudge.store.jobs.isolation import TRIES
from adjudge.store.jobs.models import FinishedJob, Job, JobListener
from tests.integration.chains.harness import ChainHarness, line
from tests.support.store_harness import NOON_US, StoreHarness

NOON_MS = NOON_US // 1_000
GRACE_MS = 5_000


class Poisoned:
    """Owner of node jobs and listener of ended runs: both fail for the runs in ``runs``."""

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.owner: JobListener | None = None

    def check(self, run_ids: Collection[str | None]) -> None:
        if found := self.runs.intersection(run_ids):
            raise KeyError(f"a bug in {sorted(found)}")

    async def run_ended(self, _tx: Tx, end: ChainRunFinished) -> None:
        self.check([end.run_id])

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        assert self.owner is not None
        await self.owner.on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        assert self.owner is not None
        await self.owner.on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        assert self.owner is not None
        self.check([item.job.chain_run_id for item in ended])
        await self.owner.on_finished(tx, ended)


class Bench:
    """A harness whose probe, run listener and job listener fail on demand, with its housekeeping."""

    def __init__(self, store: StoreHarness) -> None:
        self.poisoned = Poisoned()
        self.poisoned_keys: set[str] = set()
        self.over = False
        self.harness = ChainHarness(
            store, ChainEngine(probes={"thing": self._probe}, on_run_ended=[self.poisoned.run_ended])
        )
        self.poisoned.owner = self.harness.engine.job_listener
        self.housekeeping = ChainHousekeeping(
            store.database,
            JobCommands({JOB_KIND_NODE: self.poisoned}, random_unit=lambda: 0.0),
            self.harness.engine,
            name="housekeeping",
            settings=HousekeepingOptions(stop_grace_ms=GRACE_MS, recheck_interval_ms=1_000),
            clock=lambda: 0.0,
        )

    async def _probe(self, _tx: Tx, key: str) -> WaitResult | None:
        if key in self.poisoned_keys:
            raise KeyError(f"a bug in {key}")
        return WaitResult(success=True) if self.over else None

    async def running(self, count: int) -> list[str]:
        """Start runs of one node each and claim their jobs."""
        run_ids = [await self.harness.start(line(1)) for _ in range(count)]
        await self.harness.claim_all()
        return run_ids

    async def suspended(self, *waits: NodeSuspended) -> list[str]:
        """Start one run for each wait; its only node waits."""
        run_ids = []
        for wait in waits:
            run_ids.append(await self.harness.start(line(1)))
            (job,) = (await self.harness.claim_all()).values()
            await self.harness.finish(job, outcome=wait)
        return run_ids

    async def statuses(self, run_ids: Sequence[str]) -> list[str]:
        return [str((await self.harness.run(run_id)).status) for run_id in run_ids]


@pytest.fixture
def bench(store: StoreHarness) -> Bench:
    return Bench(store)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    yield stream
    logs.configure("warning")


def logged(log: io.StringIO, event: str) -> list[dict[str, Any]]:
    log_lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in log_lines if line["event"] == event]


async def test_a_job_whose_owner_fails_is_set_aside_and_the_other_jobs_are_killed(
    store: StoreHarness, bench: Bench, log: io.StringIO
) -> None:
    first, bad, last = run_ids = await bench.running(3)
    for run_id in run_ids:
        await bench.harness.stop(run_id)
    await store.clock.advance(ms=GRACE_MS + 1)
    bench.poisoned.runs = {bad}
    assert await bench.housekeeping.run_once() == 2
    assert await bench.statuses([first, bad, last]) == ["stopped", "stopping", "stopped"]
    job = await store.row("SELECT id, status FROM jobs WHERE chain_run_id = :run_id", run_id=bad)
    assert job["status"] == "running", "it is tried a few times"
    assert [line["job_id"] for line in logged(log, "job_listener_failed")] == [job["id"]]
    for _ in range(TRIES - 1):
        await bench.housekeeping.run_once()
    (letter,) = await store.rows("SELECT job_id, error_code, error, state FROM dead_letters")
    assert (letter["job_id"], letter["error_code"], letter["state"]) == (job["id"], LISTENER_FAILED, "open")
    assert bad in letter["error"]
    assert [line["job_id"] for line in logged(log, "job_quarantined")] == [job["id"]]
    assert await bench.housekeeping.run_once() == 0


async def test_jobs_that_fail_all_together_are_named_in_the_log_and_stop_no_other_part(
    store: StoreHarness, bench: Bench, log: io.StringIO
) -> None:
    run_ids = await bench.running(2)
    for run_id in run_ids:
        await bench.harness.stop(run_id)
    (asleep,) = await bench.suspended(NodeSuspended("timer", "t", until_ms=NOON_MS + 1_000))
    await store.clock.advance(ms=GRACE_MS + 1)
    bench.poisoned.runs = set(run_ids)
    assert await bench.housekeeping.run_once() == 1
    assert await bench.statuses([asleep]) == ["success"]
    (line,) = logged(log, "every_job_failed")
    jobs = await store.rows("SELECT id FROM jobs WHERE status = 'running'")
    assert sorted(line["job_ids"]) == sorted(row["id"] for row in jobs)
    assert await store.rows("SELECT id FROM dead_letters") == []
    bench.poisoned.runs = set()
    assert await bench.housekeeping.run_once() == 2
    assert await bench.statuses(run_ids) == ["stopped", "stopped"]


async def test_jobs_behind_a_whole_batch_of_failing_ones_are_killed(
    store: StoreHarness, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs of one stop share its timestamp, so the place in the order needs their ids too."""
    monkeypatch.setattr("adjudge.chains.housekeeping._BATCH", 2)
    run_ids = await bench.running(5)
    bad = run_ids[:4]
    for index, run_id in enumerate(run_ids):
        await bench.harness.stop(run_id)
        if index == len(bad) - 1:
            await store.clock.advance(ms=1)
    await store.clock.advance(ms=GRACE_MS + 1)
    bench.poisoned.runs = set(bad)
    assert [await bench.housekeeping.cancel_stopping_jobs() for _ in range(3)] == [0, 0, 1]
    assert await bench.statuses(run_ids) == ["stopping"] * 4 + ["stopped"]
    bench.poisoned.runs = set()
    assert [await bench.housekeeping.cancel_stopping_jobs() for _ in range(3)] == [2, 2, 0]
    assert await bench.statuses(bad) == ["stopped"] * 4


async def test_a_due_wait_whose_run_cannot_end_stops_no_other_wait(
    store: StoreHarness, bench: Bench, log: io.StringIO
) -> None:
    waits = [NodeSuspended("timer", name, until_ms=NOON_MS + index) for index, name in enumerate("abc")]
    bad, *others = await bench.suspended(*waits)
    await store.clock.advance(ms=1_000)
    bench.poisoned.runs = {bad}
    await bench.housekeeping.finish_due_waits()
    assert await bench.statuses([bad, *others]) == ["running", "success", "success"]
    assert [(line["run_id"], line["node_id"]) for line in logged(log, "chain_wait_check_failed")] == [(bad, "n0")]
    bench.poisoned.runs = set()
    await bench.housekeeping.finish_due_waits()
    assert await bench.statuses([bad]) == ["success"]


async def test_due_waits_behind_a_whole_batch_of_failing_ones_are_ended(
    store: StoreHarness, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.chains.housekeeping._BATCH", 2)
    waits = [NodeSuspended("timer", name, until_ms=NOON_MS + index // 2) for index, name in enumerate("abcde")]
    *bad, good = await bench.suspended(*waits)
    await store.clock.advance(ms=1_000)
    bench.poisoned.runs = set(bad)
    assert [await bench.housekeeping.finish_due_waits() for _ in range(3)] == [0, 0, 1]
    assert await bench.statuses([*bad, good]) == ["running"] * 4 + ["success"]
    bench.poisoned.runs = set()
    assert [await bench.housekeeping.finish_due_waits() for _ in range(3)] == [2, 2, 0]


async def test_a_probe_that_fails_for_one_thing_stops_no_other_look(
    store: StoreHarness, bench: Bench, log: io.StringIO
) -> None:
    bad, *others = await bench.suspended(*(NodeSuspended("thing", name) for name in "abc"))
    await store.clock.advance(ms=2_000)
    bench.over, bench.poisoned_keys = True, {"a"}
    assert await bench.housekeeping.run_once() == 2
    assert await bench.statuses([bad, *others]) == ["running", "success", "success"]
    (line,) = logged(log, "chain_wait_check_failed")
    assert (line["run_id"], line["node_id"]) == (bad, "n0")


async def test_a_sub_chain_that_cannot_be_stopped_stops_no_other(
    store: StoreHarness, bench: Bench, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.chains.housekeeping._BATCH", 1)
    harness = bench.harness
    chain, (parent,) = await harness.define(line(1)), await bench.suspended(NodeSuspended("thing", "t"))
    children = []
    for _ in range(3):
        wanted = NewChainRun(chain.id, parent_run_id=parent, parent_node_id="n0")
        children.append((await store.transact(lambda tx, wanted=wanted: harness.engine.start(tx, wanted))).run_id)  # type: ignore[misc]
    await harness.stop(parent)
    bench.poisoned.runs = {children[0]}
    for _ in range(3):
        await bench.housekeeping.stop_orphaned_runs()
    assert (await bench.statuses(children))[1:] == ["stopped", "stopped"]
    assert [line["run_id"] for line in logged(log, "orphan_not_stopped")] == [children[0]]


async def test_a_chain_whose_places_cannot_be_shared_out_stops_no_other(
    store: StoreHarness, bench: Bench, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {**line(1), "over_runs": {"max_runs": 1, "when_full": "queue"}}
    chains = [await bench.harness.define(document) for _ in range(2)]
    for chain in chains * 2:
        wanted = NewChainRun(chain.id, actor="ann")
        await store.transact(lambda tx, wanted=wanted: bench.harness.engine.start(tx, wanted))  # type: ignore[misc]
    tried, share_out = [], bench.harness.engine.lifecycle.start_waiting

    async def poisoned(tx: Tx, chain_id: str) -> int:
        tried.append(chain_id)
        if len(tried) == 1:
            raise KeyError(f"a bug in {chain_id}")
        return await share_out(tx, chain_id)

    monkeypatch.setattr(bench.harness.engine.lifecycle, "start_waiting", poisoned)
    await bench.housekeeping.run_once()
    assert sorted(tried) == sorted(chain.id for chain in chains)
    assert [line["chain_id"] for line in logged(log, "chain_slot_allocation_failed")] == tried[:1]


async def test_an_outage_ends_the_round_and_counts_against_nothing(store: StoreHarness, bench: Bench) -> None:
    run_ids = await bench.suspended(*(NodeSuspended("thing", name) for name in "ab"))
    await store.clock.advance(ms=2_000)
    bench.over = True

    async def away(_tx: Tx, _key: str) -> WaitResult | None:
        raise Unavailable("the thing's service is away")

    bench.harness.engine.lifecycle._probes["thing"] = away
    with pytest.raises(Unavailable):
        await bench.housekeeping.run_once()
    assert await bench.statuses(run_ids) == ["running", "running"]
