"""What a chain limits over all of its runs: nodes at once, by type, and runs at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import pytest

from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import WaitResult
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.errors import Conflict
from adjudge.store import Tx
from adjudge.store.chains.models import NewChainRun, NodeExpanded, NodeSuspended
from adjudge.store.engine.statement import Row, Rows, Statement
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import Fence, JobResult
from tests.integration.chains.harness import ChainHarness, dag, line, node
from tests.support.store_harness import StoreHarness, fence_of


async def unanswered(_tx: Tx, _key: str) -> WaitResult | None:
    """Nobody has ended the thing that a node waits for."""
    return None


@pytest.fixture
def rig(store: StoreHarness) -> ChainHarness:
    """An engine whose ids follow each other, even within a millisecond."""
    numbers = count(1)
    probes = {"approval": unanswered, "submission": unanswered}
    return ChainHarness(
        store, ChainEngine(probes=probes, new_id=lambda: f"00000000-0000-7000-8000-{next(numbers):012x}")
    )


async def start(rig: ChainHarness, chain_id: str, **fields: Any) -> str:
    """Start a run of a chain; return the run's id."""
    wanted = NewChainRun(chain_id, actor="ann", **fields)
    return (await rig.store.transact(lambda tx: rig.engine.start(tx, wanted))).run_id


async def starts(rig: ChainHarness, document: dict[str, Any], times: int) -> list[str]:
    """Create a chain and start it some times; return the runs' ids."""
    chain = await rig.define(document)
    return [await start(rig, chain.id) for _ in range(times)]


async def waiting(rig: ChainHarness) -> list[tuple[str, str]]:
    """The jobs that a worker could claim: run and node."""
    return sorted((row["chain_run_id"], row["node_id"]) for row in await rig.waiting_jobs())


async def statuses(rig: ChainHarness, run_ids: list[str]) -> list[str]:
    return [str((await rig.run(run_id)).status) for run_id in run_ids]


def run_housekeeping(rig: ChainHarness) -> ChainHousekeeping:
    return ChainHousekeeping(rig.store.database, rig.jobs, rig.engine, name="p", settings=HousekeepingOptions(0))


async def test_nodes_of_all_runs_share_places_and_a_free_one_goes_to_the_next(rig: ChainHarness) -> None:
    first, second = await starts(rig, dag(node("a"), node("b"), over_runs={"max_parallel": 3}), 2)
    assert await waiting(rig) == sorted([(first, "a"), (first, "b"), (second, "a")])
    assert (await rig.nodes(second))["b"].slot == "wanted"
    jobs = await rig.claim_all()
    mine = next(job for job in jobs.values() if (job.chain_run_id, job.node_id) == (first, "a"))
    await rig.finish(mine)
    assert await waiting(rig) == [(second, "b")], "the place of one run went to the other"
    await rig.finish(*(job for job in jobs.values() if job is not mine))
    await rig.drain(second)
    assert await statuses(rig, [first, second]) == ["success", "success"]


async def test_types_are_limited_over_runs_and_urgent_nodes_come_first(rig: ChainHarness) -> None:
    limits = {"max_parallel": 4, "max_parallel_by_type": {"http": 1}}
    nodes = [node("slow", type="http"), node("late", priority=3), node("soon", priority=1)]
    runs = await starts(rig, dag(*nodes, over_runs=limits), 3)
    seen = await waiting(rig)
    assert [(runs[0], "slow")] == [item for item in seen if item[1] == "slow"]
    assert [item for item in seen if item[1] == "soon"] == [(run_id, "soon") for run_id in runs[:2]]
    while jobs := await rig.claim_all():
        assert len(jobs) <= 4
        assert sum(job.node_id == "slow" for job in jobs.values()) <= 1
        await rig.finish(*jobs.values())
    assert await statuses(rig, runs) == ["success"] * 3


async def test_limits_of_runs_and_maps_hold_besides(rig: ChainHarness) -> None:
    mapped = node("m", map={"over": [0], "max_parallel": 2})
    document = dag(mapped, node("a"), node("b"), max_parallel=3, over_runs={"max_parallel": 5})
    runs = await starts(rig, document, 3)
    done, peak = Counter[str](), 0
    while jobs := await rig.claim_all():
        held = await rig.store.rows("SELECT run_id, parent_id FROM chain_nodes WHERE slot = 'held'")
        peak = max(peak, len(held))
        assert len(held) <= 5
        assert max(Counter(row["run_id"] for row in held).values()) <= 3
        assert max(Counter(row["run_id"] for row in held if row["parent_id"]).values(), default=0) <= 2
        for job in jobs.values():
            done[job.chain_run_id or ""] += 1
            await rig.finish(job, outcome=NodeExpanded(tuple(range(4))) if job.node_id == "m" else None)
    assert peak == 5
    assert done == dict.fromkeys(runs, 7)
    assert await statuses(rig, runs) == ["success"] * 3


async def test_who_waits_for_a_run_or_a_person_leaves_the_place_to_others(rig: ChainHarness) -> None:
    parent, other, third = await starts(rig, dag(node("a"), over_runs={"max_parallel": 1}), 3)
    (job,) = (await rig.claim_all()).values()
    child = await start(rig, (await rig.run(parent)).chain_id, parent_run_id=parent, parent_node_id="a")
    assert await waiting(rig) == []
    await rig.finish(job, outcome=NodeSuspended("run", child))
    assert await waiting(rig) == [(other, "a")], "else the run would wait for one that waits for its place"
    (job,) = (await rig.claim_all()).values()
    await rig.finish(job, outcome=NodeSuspended("approval", "x"))
    assert await waiting(rig) == [(third, "a")]
    (job,) = (await rig.claim_all()).values()
    await rig.finish(job, outcome=NodeSuspended("submission", "y"))
    assert await waiting(rig) == [], "what is judged for it is its work"
    await rig.store.transact(lambda tx: rig.engine.resume(tx, on="submission", key="y", success=True))
    assert await waiting(rig) == [(child, "a")]
    await rig.drain(child)
    await rig.store.transact(lambda tx: rig.engine.resume(tx, on="approval", key="x", success=True))
    assert await statuses(rig, [parent, other, third, child]) == ["success"] * 4


async def test_a_run_that_is_stopped_gives_its_places_to_the_others(rig: ChainHarness) -> None:
    first, second, third = await starts(rig, dag(node("a"), node("b"), over_runs={"max_parallel": 2}), 3)
    await rig.stop(second)
    assert await statuses(rig, [second]) == ["stopped"]
    assert await waiting(rig) == [(first, "a"), (first, "b")], "one that only waited had none"
    await rig.stop(first)
    assert await waiting(rig) == [(third, "a"), (third, "b")]
    await rig.claim_all()
    await rig.retry(first, "a")
    assert (await rig.nodes(first))["a"].slot == "wanted", "one that is retried waits like any other"
    await rig.stop(third)
    assert await waiting(rig) == []
    await run_housekeeping(rig).run_once()
    assert await waiting(rig) == [(first, "a")]


async def test_a_lost_worker_keeps_the_place_until_its_node_ends(rig: ChainHarness) -> None:
    first, second = await starts(rig, dag(node("a", retry={"max_attempts": 2}), over_runs={"max_parallel": 1}), 2)
    for _ in range(2):
        assert await waiting(rig) == [(first, "a")]
        fences = [Fence(job.id, job.attempt_id, "w1") for job in (await rig.claim_all()).values()]
        await rig.store.transact(partial(rig.jobs.renew, fences=fences, lease_ms=15_000))
        await rig.store.clock.advance(ms=16_000)
        await rig.store.transact(lambda tx: rig.jobs.release_expired(tx, actor="watchdog"))
        await rig.store.clock.advance(ms=10_000)
    assert await statuses(rig, [first]) == ["failed"]
    assert await waiting(rig) == [(second, "a")]


async def test_runs_wait_for_their_turn_and_the_oldest_is_next(rig: ChainHarness) -> None:
    first, second, third = await starts(rig, {**line(2), "over_runs": {"max_runs": 1}}, 3)
    assert await waiting(rig) == [(first, "n0")]
    assert [(await rig.run(run_id)).slot for run_id in (first, second, third)] == ["held", "wanted", "wanted"]
    assert await statuses(rig, [second, third]) == ["pending", "pending"]
    assert await rig.states(second) == {"n0": "pending", "n1": "pending"}
    await rig.step()
    assert await waiting(rig) == [(first, "n1")]
    await rig.step()
    assert await waiting(rig) == [(second, "n0")], "it begins with the end of the one before"
    await rig.stop(third)
    assert ((await rig.run(third)).status, (await rig.run(third)).slot) == ("stopped", None)
    await rig.drain(second)
    assert await statuses(rig, [first, second, third]) == ["success", "success", "stopped"]


async def test_runs_that_end_as_they_begin_make_way_at_once(rig: ChainHarness) -> None:
    idle = node("a", **{"if": "parameters.go"})
    chain = await rig.define(dag(idle, over_runs={"max_runs": 1}))
    busy = await start(rig, chain.id, parameters={"go": True})
    runs = [await start(rig, chain.id) for _ in range(30)]
    assert await statuses(rig, runs) == ["pending"] * 30
    await rig.drain(busy)
    assert await statuses(rig, [busy, *runs]) == ["success"] * 31


async def test_a_chain_may_refuse_what_would_have_to_wait(rig: ChainHarness) -> None:
    chain = await rig.define({**line(1), "over_runs": {"max_runs": 1, "when_full": "refuse"}})
    first = await start(rig, chain.id, idempotency_key="k")
    with pytest.raises(Conflict, match=r"already has max_runs=1 active runs"):
        await start(rig, chain.id)
    assert await start(rig, chain.id, idempotency_key="k") == first, "a key that is known starts nothing"
    assert len(await rig.store.rows("SELECT id FROM chain_runs")) == 1
    await rig.drain(first)
    await rig.drain(await start(rig, chain.id))
    with pytest.raises(Conflict):
        await asyncio.gather(start(rig, chain.id), start(rig, chain.id))
    assert len(await rig.store.rows("SELECT id FROM chain_runs")) == 3


async def test_sub_chains_count_but_never_wait(rig: ChainHarness) -> None:
    chain = await rig.define({**line(1), "over_runs": {"max_runs": 1}})
    parent = await start(rig, chain.id)
    (job,) = (await rig.claim_all()).values()
    child = await start(rig, chain.id, parent_run_id=parent, parent_node_id="n0")
    later = await start(rig, chain.id)
    await rig.finish(job, outcome=NodeSuspended("run", child))
    assert await waiting(rig) == [(child, "n0")]
    (job,) = (await rig.claim_all()).values()
    await rig.finish(job)
    assert await statuses(rig, [parent, child, later]) == ["success", "success", "pending"]
    assert await waiting(rig) == [(later, "n0")]


async def test_a_run_that_is_to_go_on_after_a_retry_waits_for_its_turn(rig: ChainHarness) -> None:
    first, second, third = await starts(rig, {**line(3), "over_runs": {"max_runs": 1}}, 3)
    await rig.step()
    await rig.fail(*(await rig.claim_all()).values())
    assert await waiting(rig) == [(second, "n0")]
    again = await rig.retry(first, "n1")
    assert ((await rig.run(first)).slot, again.status, again.job_id) == ("wanted", "retrying", None)
    assert await rig.states(first) == {"n0": "success", "n1": "retrying", "n2": "pending"}
    assert await waiting(rig) == [(second, "n0")], "as many are under way as may"
    assert await run_housekeeping(rig).run_once() == 0
    for _ in range(3):
        await rig.step()
    assert await waiting(rig) == [(first, "n1")], "the oldest is next"
    await rig.step()
    assert (await rig.nodes(first))["n1"].attempt == 2
    await rig.step()
    assert await waiting(rig) == [(third, "n0")]
    assert await statuses(rig, [first, second, third]) == ["success", "success", "pending"]


async def test_what_is_done_to_a_run_that_waits_for_its_turn_again_counts_when_it_comes(rig: ChainHarness) -> None:
    nodes = [node("a"), node("m", map={"over": [1, 2]}), node("b", "a"), node("no", "a", when="one_failed")]
    first, second = await starts(rig, dag(*nodes, over_runs={"max_runs": 1}), 2)
    jobs = await rig.claim("a", "m")
    await rig.fail(jobs["a"])
    await rig.finish(jobs["m"], outcome=NodeExpanded((1, 2)))
    await rig.finish(*(await rig.claim("no")).values())
    await rig.fail(*(await rig.claim("m[0]", "m[1]")).values())
    assert (await statuses(rig, [first]), await waiting(rig)) == (["failed"], [(second, "a"), (second, "m")])
    await rig.complete(first, "a")
    await rig.retry(first, "m[0]")
    await rig.complete(first, "m[1]")
    assert await rig.states(first) == {
        "a": "success",
        "m": "running",
        "b": "pending",
        "no": "success",
        "m[0]": "retrying",
        "m[1]": "success",
    }
    assert await waiting(rig) == [(second, "a"), (second, "m")]
    await rig.stop(second)
    assert await waiting(rig) == [(first, "b"), (first, "m[0]")]
    await rig.drain(first)
    assert await statuses(rig, [first]) == ["success"]


async def test_a_run_that_waits_for_its_turn_again_can_be_stopped_and_completed(rig: ChainHarness) -> None:
    first, second = await starts(rig, {**line(1), "over_runs": {"max_runs": 1}}, 2)
    await rig.fail(*(await rig.claim_all()).values())
    await rig.retry(first, "n0")
    assert await rig.stop(first) == "stopped"
    assert ((await rig.run(first)).slot, await rig.states(first)) == (None, {"n0": "stopped"})
    await rig.complete(first, "n0")
    assert await statuses(rig, [first, second]) == ["success", "pending"], "what is over needs no turn"
    assert (await rig.run(first)).slot is None


async def test_a_chain_that_refuses_what_would_have_to_wait_refuses_a_retry(rig: ChainHarness) -> None:
    chain = await rig.define({**line(2), "over_runs": {"max_runs": 1, "when_full": "refuse"}})
    first = await start(rig, chain.id)
    await rig.fail(*(await rig.claim_all()).values())
    second = await start(rig, chain.id)
    for act in (rig.retry, rig.complete):
        with pytest.raises(Conflict, match=r"already has max_runs=1 active runs"):
            await act(first, "n0")
    assert (await statuses(rig, [first]), (await rig.run(first)).slot) == (["failed"], None)
    assert await rig.states(first) == {"n0": "failed", "n1": "skipped"}
    await rig.drain(second)
    await rig.retry(first, "n0")
    assert await rig.drain(first) == ["n0", "n1"]


async def test_a_sub_chain_that_goes_on_never_waits(rig: ChainHarness) -> None:
    chain = await rig.define({**line(1), "over_runs": {"max_runs": 1}})
    parent = await start(rig, chain.id)
    child = await start(rig, chain.id, parent_run_id=parent, parent_node_id="n0")
    jobs = {job.chain_run_id: job for job in (await rig.claim_all()).values()}
    await rig.fail(jobs[child])
    await rig.retry(child, "n0")
    assert await waiting(rig) == [(child, "n0")]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_parallel": 1},
        {"max_parallel_by_type": {"noop": 1}},
        {"over_runs": {"max_parallel": 1}},
        {"over_runs": {"max_parallel_by_type": {"noop": 1}}},
        {"over_runs": {"max_runs": 1}},
    ],
)
async def test_replayed_letters_keep_to_the_limits(rig: ChainHarness, limits: dict[str, Any]) -> None:
    nodes, times = ([node("a")], 2) if "over_runs" in limits else ([node("a", priority=1), node("b")], 1)
    runs = await starts(rig, dag(*nodes, **limits), times)
    await rig.fail(*(await rig.claim_all()).values())
    (other,) = (await rig.claim_all()).values()
    (letter,) = await rig.store.database.read(dead_letters.page)
    made = await rig.store.transact(
        lambda tx: dead_letters.replay(tx, rig.jobs, [letter.id], actor="ann", reason="again")
    )
    assert (made, await waiting(rig)) == ({letter.id: None}, [])
    assert (await rig.nodes(runs[0]))["a"].status == "retrying"
    await rig.finish(other)
    assert await waiting(rig) == [(runs[0], "a")]
    await rig.drain(runs[0])
    assert set(await statuses(rig, runs)) == {"success"}
    assert (await rig.nodes(runs[0]))["a"].attempt == 2


async def test_reruns_take_turns_too(rig: ChainHarness) -> None:
    (first,) = await starts(rig, {**line(2), "over_runs": {"max_runs": 1}}, 1)
    await rig.drain(first)
    rerun = partial(rig.engine.rerun, run_id=first, actor="ann")
    again = (await rig.store.transact(lambda tx: rerun(tx, from_node="n1"))).run_id
    whole = (await rig.store.transact(rerun)).run_id
    assert await waiting(rig) == [(again, "n1")]
    await rig.drain(again)
    assert await statuses(rig, [again, whole]) == ["success", "success"]


async def test_a_limit_that_is_changed_holds_for_those_who_wait(rig: ChainHarness) -> None:
    def limited(**over_runs: int) -> dict[str, Any]:
        return dag(node("a"), over_runs=over_runs)

    chain = await rig.define(limited(max_parallel=1), "c")
    runs = [await start(rig, chain.id) for _ in range(5)]
    assert await run_housekeeping(rig).run_once() == 0, "there is no place"
    await rig.update(chain.id, 1, limited(max_parallel=3), "c")
    assert await run_housekeeping(rig).start_waiting_nodes() == 2
    assert await waiting(rig) == [(run_id, "a") for run_id in runs[:3]]
    await rig.update(chain.id, 2, limited(max_parallel=1), "c")
    jobs = list((await rig.claim_all()).values())
    await rig.finish(*jobs[:2])
    assert await waiting(rig) == [], "as many run as may"
    await rig.update(chain.id, 3, dag(node("a")), "c")
    await rig.finish(jobs[2])
    assert await waiting(rig) == [(run_id, "a") for run_id in runs[3:]], "nothing is limited any more"


class RecordingTx:
    """A transaction that notes what it is asked."""

    def __init__(self, tx: Tx, heard: list[str]) -> None:
        self._tx, self._heard, self.dialect = tx, heard, tx.dialect
        self.on_commit, self.notify, self.fetch_last = tx.on_commit, tx.notify, tx.fetch_last

    async def fetch(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> list[Row]:
        self._heard.append(statement.name)
        return await self._tx.fetch(statement, rows, **parameters)

    async def execute(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> int:
        self._heard.append(statement.name)
        return await self._tx.execute(statement, rows, **parameters)


@pytest.mark.parametrize("over_runs", [None, {"max_parallel": 9, "max_runs": 9}])
async def test_only_chains_that_limit_something_over_runs_pay_for_it(rig: ChainHarness, over_runs: Any) -> None:
    heard: list[str] = []
    chain = await rig.define({**line(2), "over_runs": over_runs})
    await rig.store.transact(lambda tx: rig.engine.start(RecordingTx(tx, heard), NewChainRun(chain.id)))
    for job in (await rig.claim_all()).values():
        await rig.store.transact(
            lambda tx, job=job: rig.jobs.finish_and_claim_next(RecordingTx(tx, heard), [JobResult(fence_of(job))])  # type: ignore[misc]
        )
    asked = [name for name in heard if name.startswith("chain_concurrency.")]
    assert len(heard) > 5
    assert bool(asked) is bool(over_runs)


@dataclass
class ConcurrentLoad:
    """Starters, workers and people on connections of their own, and one who watches that no limit is passed."""

    rig: ChainHarness
    chain_id: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[str] = field(default_factory=list)

    async def watch(self) -> None:
        while not self.over.is_set():
            held = await self.rig.store.rows("SELECT type FROM chain_nodes WHERE slot = 'held'")
            turns = await self.rig.store.rows("SELECT id FROM chain_runs WHERE slot = 'held'")
            assert len(held) <= 3
            assert sum(row["type"] == "http" for row in held) <= 1
            assert len(turns) <= 4
            await asyncio.sleep(0)

    async def start(self) -> None:
        for _ in range(4):
            self.runs.append(await start(self.rig, self.chain_id))

    async def work(self, name: str) -> None:
        while not self.over.is_set():
            rows = await self.rig.waiting_jobs()
            outcome = await self.rig.claim_ids([row["id"] for row in rows[:2]], worker=name)
            for job in outcome.done:
                await (self.rig.fail(job) if job.node_id == "d" and job.id[-1] in "0123" else self.rig.finish(job))
            await asyncio.sleep(0)

    async def meddle(self) -> None:
        for run_id in self.runs[::3]:
            with suppress(Conflict):
                await self.rig.stop(run_id)
            with suppress(Conflict):
                await self.rig.retry(run_id, "a")

    async def settle(self) -> None:
        guard = run_housekeeping(self.rig)
        async with asyncio.timeout(240):
            while await self.rig.store.rows("SELECT id FROM chain_runs WHERE finished_at IS NULL"):
                await guard.cancel_stopping_jobs()
                await asyncio.sleep(0.01)
        self.over.set()


@pytest.mark.slow
async def test_limits_hold_while_many_start_work_stop_and_retry_at_once(rig: ChainHarness) -> None:
    limits = {"max_runs": 4, "max_parallel": 3, "max_parallel_by_type": {"http": 1}}
    nodes = [node("a", type="http"), node("b"), node("c", "a", "b"), node("d", "a", type="http")]
    crowd = ConcurrentLoad(rig, (await rig.define(dag(*nodes, over_runs=limits))).id)
    async with asyncio.TaskGroup() as everybody:
        everybody.create_task(crowd.watch())
        for index in range(4):
            everybody.create_task(crowd.work(f"w{index}"))
        await asyncio.gather(*(crowd.start() for _ in range(4)), crowd.meddle())
        await crowd.meddle()
        await crowd.settle()
    assert len(crowd.runs) == 16
    assert not await rig.store.rows("SELECT node_id FROM chain_nodes WHERE slot IS NOT NULL")
    assert not await rig.store.rows("SELECT id FROM chain_runs WHERE slot IS NOT NULL")
    open_nodes = await rig.store.rows("SELECT node_id FROM chain_nodes WHERE ended_at IS NULL")
    assert not open_nodes, "none was forgotten"
