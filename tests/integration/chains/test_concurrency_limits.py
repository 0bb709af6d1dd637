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
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.models import Fence, JobResult
from tests.integration.chains.harness import ChainHarness, RecordingTx, dag, line, node
from tests.support.store_harness import StoreHarness, fence_of


async def unanswered(_tx: Tx, _key: str) -> WaitResult | None:
    """Nobody has ended the thing that a node waits for."""
    return None


@pytest.fixture
def harness(store: StoreHarness) -> ChainHarness:
    """An engine whose ids follow each other, even within a millisecond."""
    numbers = count(1)
    probes = {"approval": unanswered, "submission": unanswered}
    return ChainHarness(
        store, ChainEngine(probes=probes, new_id=lambda: f"00000000-0000-7000-8000-{next(numbers):012x}")
    )


async def start(harness: ChainHarness, chain_id: str, **fields: Any) -> str:
    """Start a run of a chain; return the run's id."""
    wanted = NewChainRun(chain_id, actor="ann", **fields)
    return (await harness.store.transact(lambda tx: harness.engine.start(tx, wanted))).run_id


async def starts(harness: ChainHarness, document: dict[str, Any], times: int) -> list[str]:
    """Create a chain and start it some times; return the runs' ids."""
    chain = await harness.define(document)
    return [await start(harness, chain.id) for _ in range(times)]


async def waiting(harness: ChainHarness) -> list[tuple[str, str]]:
    """The jobs that a worker could claim: run and node."""
    return sorted((row["chain_run_id"], row["node_id"]) for row in await harness.waiting_jobs())


async def statuses(harness: ChainHarness, run_ids: list[str]) -> list[str]:
    return [str((await harness.run(run_id)).status) for run_id in run_ids]


def run_housekeeping(harness: ChainHarness) -> ChainHousekeeping:
    return ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    )


async def test_nodes_of_all_runs_share_places_and_a_free_one_goes_to_the_next(harness: ChainHarness) -> None:
    first, second = await starts(harness, dag(node("a"), node("b"), over_runs={"max_parallel": 3}), 2)
    assert await waiting(harness) == sorted([(first, "a"), (first, "b"), (second, "a")])
    assert (await harness.nodes(second))["b"].slot == "wanted"
    jobs = await harness.claim_all()
    mine = next(job for job in jobs.values() if (job.chain_run_id, job.node_id) == (first, "a"))
    await harness.finish(mine)
    assert await waiting(harness) == [(second, "b")], "the place of one run went to the other"
    await harness.finish(*(job for job in jobs.values() if job is not mine))
    await harness.drain(second)
    assert await statuses(harness, [first, second]) == ["success", "success"]


async def test_types_are_limited_over_runs_and_urgent_nodes_come_first(harness: ChainHarness) -> None:
    limits = {"max_parallel": 4, "max_parallel_by_type": {"http": 1}}
    nodes = [node("slow", type="http"), node("late", priority=3), node("soon", priority=1)]
    runs = await starts(harness, dag(*nodes, over_runs=limits), 3)
    seen = await waiting(harness)
    assert [(runs[0], "slow")] == [item for item in seen if item[1] == "slow"]
    assert [item for item in seen if item[1] == "soon"] == [(run_id, "soon") for run_id in runs[:2]]
    while jobs := await harness.claim_all():
        assert len(jobs) <= 4
        assert sum(job.node_id == "slow" for job in jobs.values()) <= 1
        await harness.finish(*jobs.values())
    assert await statuses(harness, runs) == ["success"] * 3


async def test_limits_of_runs_and_maps_hold_besides(harness: ChainHarness) -> None:
    mapped = node("m", map={"over": [0], "max_parallel": 2})
    document = dag(mapped, node("a"), node("b"), max_parallel=3, over_runs={"max_parallel": 5})
    runs = await starts(harness, document, 3)
    done, peak = Counter[str](), 0
    while jobs := await harness.claim_all():
        held = await harness.store.rows("SELECT run_id, parent_id FROM chain_nodes WHERE slot = 'held'")
        peak = max(peak, len(held))
        assert len(held) <= 5
        assert max(Counter(row["run_id"] for row in held).values()) <= 3
        assert max(Counter(row["run_id"] for row in held if row["parent_id"]).values(), default=0) <= 2
        for job in jobs.values():
            done[job.chain_run_id or ""] += 1
            await harness.finish(job, outcome=NodeExpanded(tuple(range(4))) if job.node_id == "m" else None)
    assert peak == 5
    assert done == dict.fromkeys(runs, 7)
    assert await statuses(harness, runs) == ["success"] * 3


async def test_who_waits_for_a_run_or_a_person_leaves_the_place_to_others(harness: ChainHarness) -> None:
    parent, other, third = await starts(harness, dag(node("a"), over_runs={"max_parallel": 1}), 3)
    (job,) = (await harness.claim_all()).values()
    child = await start(harness, (await harness.run(parent)).chain_id, parent_run_id=parent, parent_node_id="a")
    assert await waiting(harness) == []
    await harness.finish(job, outcome=NodeSuspended("run", child))
    assert await waiting(harness) == [(other, "a")], "else the run would wait for one that waits for its place"
    (job,) = (await harness.claim_all()).values()
    await harness.finish(job, outcome=NodeSuspended("approval", "x"))
    assert await waiting(harness) == [(third, "a")]
    (job,) = (await harness.claim_all()).values()
    await harness.finish(job, outcome=NodeSuspended("submission", "y"))
    assert await waiting(harness) == [], "what is judged for it is its work"
    await harness.store.transact(lambda tx: harness.engine.resume(tx, on="submission", key="y", success=True))
    assert await waiting(harness) == [(child, "a")]
    await harness.drain(child)
    await harness.store.transact(lambda tx: harness.engine.resume(tx, on="approval", key="x", success=True))
    assert await statuses(harness, [parent, other, third, child]) == ["success"] * 4


async def test_a_run_that_is_stopped_gives_its_places_to_the_others(harness: ChainHarness) -> None:
    first, second, third = await starts(harness, dag(node("a"), node("b"), over_runs={"max_parallel": 2}), 3)
    await harness.stop(second)
    assert await statuses(harness, [second]) == ["stopped"]
    assert await waiting(harness) == [(first, "a"), (first, "b")], "one that only waited had none"
    await harness.stop(first)
    assert await waiting(harness) == [(third, "a"), (third, "b")]
    await harness.claim_all()
    await harness.retry(first, "a")
    assert (await harness.nodes(first))["a"].slot == "wanted", "one that is retried waits like any other"
    await harness.stop(third)
    assert await waiting(harness) == []
    await run_housekeeping(harness).run_once()
    assert await waiting(harness) == [(first, "a")]


async def test_a_lost_worker_keeps_the_place_until_its_node_ends(harness: ChainHarness) -> None:
    first, second = await starts(harness, dag(node("a", retry={"max_attempts": 2}), over_runs={"max_parallel": 1}), 2)
    for _ in range(2):
        assert await waiting(harness) == [(first, "a")]
        fences = [Fence(job.id, job.attempt_id, "w1") for job in (await harness.claim_all()).values()]
        await harness.store.transact(partial(harness.jobs.renew, fences=fences, lease_ms=15_000))
        await harness.store.clock.advance(ms=16_000)
        await harness.store.transact(lambda tx: harness.jobs.release_expired(tx, actor="watchdog"))
        await harness.store.clock.advance(ms=10_000)
    assert await statuses(harness, [first]) == ["failed"]
    assert await waiting(harness) == [(second, "a")]


async def test_runs_wait_for_their_turn_and_the_oldest_is_next(harness: ChainHarness) -> None:
    first, second, third = await starts(harness, {**line(2), "over_runs": {"max_runs": 1}}, 3)
    assert await waiting(harness) == [(first, "n0")]
    assert [(await harness.run(run_id)).slot for run_id in (first, second, third)] == ["held", "wanted", "wanted"]
    assert await statuses(harness, [second, third]) == ["pending", "pending"]
    assert await harness.states(second) == {"n0": "pending", "n1": "pending"}
    await harness.step()
    assert await waiting(harness) == [(first, "n1")]
    await harness.step()
    assert await waiting(harness) == [(second, "n0")], "it begins with the end of the one before"
    await harness.stop(third)
    assert ((await harness.run(third)).status, (await harness.run(third)).slot) == ("stopped", None)
    await harness.drain(second)
    assert await statuses(harness, [first, second, third]) == ["success", "success", "stopped"]


async def test_runs_that_end_as_they_begin_make_way_at_once(harness: ChainHarness) -> None:
    idle = node("a", **{"if": "parameters.go"})
    chain = await harness.define(dag(idle, over_runs={"max_runs": 1}))
    busy = await start(harness, chain.id, parameters={"go": True})
    runs = [await start(harness, chain.id) for _ in range(30)]
    assert await statuses(harness, runs) == ["pending"] * 30
    await harness.drain(busy)
    assert await statuses(harness, [busy, *runs]) == ["success"] * 31


async def test_a_chain_may_refuse_what_would_have_to_wait(harness: ChainHarness) -> None:
    chain = await harness.define({**line(1), "over_runs": {"max_runs": 1, "when_full": "refuse"}})
    first = await start(harness, chain.id, idempotency_key="k")
    with pytest.raises(Conflict, match=r"already has max_runs=1 active runs"):
        await start(harness, chain.id)
    assert await start(harness, chain.id, idempotency_key="k") == first, "a key that is known starts nothing"
    assert len(await harness.store.rows("SELECT id FROM chain_runs")) == 1
    await harness.drain(first)
    await harness.drain(await start(harness, chain.id))
    with pytest.raises(Conflict):
        await asyncio.gather(start(harness, chain.id), start(harness, chain.id))
    assert len(await harness.store.rows("SELECT id FROM chain_runs")) == 3


async def test_sub_chains_count_but_never_wait(harness: ChainHarness) -> None:
    chain = await harness.define({**line(1), "over_runs": {"max_runs": 1}})
    parent = await start(harness, chain.id)
    (job,) = (await harness.claim_all()).values()
    child = await start(harness, chain.id, parent_run_id=parent, parent_node_id="n0")
    later = await start(harness, chain.id)
    await harness.finish(job, outcome=NodeSuspended("run", child))
    assert await waiting(harness) == [(child, "n0")]
    (job,) = (await harness.claim_all()).values()
    await harness.finish(job)
    assert await statuses(harness, [parent, child, later]) == ["success", "success", "pending"]
    assert await waiting(harness) == [(later, "n0")]


async def test_a_run_that_is_to_go_on_after_a_retry_waits_for_its_turn(harness: ChainHarness) -> None:
    first, second, third = await starts(harness, {**line(3), "over_runs": {"max_runs": 1}}, 3)
    await harness.step()
    await harness.fail(*(await harness.claim_all()).values())
    assert await waiting(harness) == [(second, "n0")]
    again = await harness.retry(first, "n1")
    assert ((await harness.run(first)).slot, again.status, again.job_id) == ("wanted", "retrying", None)
    assert await harness.states(first) == {"n0": "success", "n1": "retrying", "n2": "pending"}
    assert await waiting(harness) == [(second, "n0")], "as many are under way as may"
    assert await run_housekeeping(harness).run_once() == 0
    for _ in range(3):
        await harness.step()
    assert await waiting(harness) == [(first, "n1")], "the oldest is next"
    await harness.step()
    assert (await harness.nodes(first))["n1"].attempt == 2
    await harness.step()
    assert await waiting(harness) == [(third, "n0")]
    assert await statuses(harness, [first, second, third]) == ["success", "success", "pending"]


async def test_what_is_done_to_a_run_that_waits_for_its_turn_again_counts_when_it_comes(harness: ChainHarness) -> None:
    nodes = [node("a"), node("m", map={"over": [1, 2]}), node("b", "a"), node("no", "a", when="one_failed")]
    first, second = await starts(harness, dag(*nodes, over_runs={"max_runs": 1}), 2)
    jobs = await harness.claim("a", "m")
    await harness.fail(jobs["a"])
    await harness.finish(jobs["m"], outcome=NodeExpanded((1, 2)))
    await harness.finish(*(await harness.claim("no")).values())
    await harness.fail(*(await harness.claim("m[0]", "m[1]")).values())
    assert (await statuses(harness, [first]), await waiting(harness)) == (["failed"], [(second, "a"), (second, "m")])
    await harness.complete(first, "a")
    await harness.retry(first, "m[0]")
    await harness.complete(first, "m[1]")
    assert await harness.states(first) == {
        "a": "success",
        "m": "running",
        "b": "pending",
        "no": "success",
        "m[0]": "retrying",
        "m[1]": "success",
    }
    assert await waiting(harness) == [(second, "a"), (second, "m")]
    await harness.stop(second)
    assert await waiting(harness) == [(first, "b"), (first, "m[0]")]
    await harness.drain(first)
    assert await statuses(harness, [first]) == ["success"]


async def test_a_run_that_waits_for_its_turn_again_can_be_stopped_and_completed(harness: ChainHarness) -> None:
    first, second = await starts(harness, {**line(1), "over_runs": {"max_runs": 1}}, 2)
    await harness.fail(*(await harness.claim_all()).values())
    await harness.retry(first, "n0")
    assert await harness.stop(first) == "stopped"
    assert ((await harness.run(first)).slot, await harness.states(first)) == (None, {"n0": "stopped"})
    await harness.complete(first, "n0")
    assert await statuses(harness, [first, second]) == ["success", "pending"], "what is over needs no turn"
    assert (await harness.run(first)).slot is None


async def test_a_chain_that_refuses_what_would_have_to_wait_refuses_a_retry(harness: ChainHarness) -> None:
    chain = await harness.define({**line(2), "over_runs": {"max_runs": 1, "when_full": "refuse"}})
    first = await start(harness, chain.id)
    await harness.fail(*(await harness.claim_all()).values())
    second = await start(harness, chain.id)
    for act in (harness.retry, harness.complete):
        with pytest.raises(Conflict, match=r"already has max_runs=1 active runs"):
            await act(first, "n0")
    assert (await statuses(harness, [first]), (await harness.run(first)).slot) == (["failed"], None)
    assert await harness.states(first) == {"n0": "failed", "n1": "skipped"}
    await harness.drain(second)
    await harness.retry(first, "n0")
    assert await harness.drain(first) == ["n0", "n1"]


async def test_a_sub_chain_that_goes_on_never_waits(harness: ChainHarness) -> None:
    chain = await harness.define({**line(1), "over_runs": {"max_runs": 1}})
    parent = await start(harness, chain.id)
    child = await start(harness, chain.id, parent_run_id=parent, parent_node_id="n0")
    jobs = {job.chain_run_id: job for job in (await harness.claim_all()).values()}
    await harness.fail(jobs[child])
    await harness.retry(child, "n0")
    assert await waiting(harness) == [(child, "n0")]


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
async def test_replayed_letters_keep_to_the_limits(harness: ChainHarness, limits: dict[str, Any]) -> None:
    nodes, times = ([node("a")], 2) if "over_runs" in limits else ([node("a", priority=1), node("b")], 1)
    runs = await starts(harness, dag(*nodes, **limits), times)
    await harness.fail(*(await harness.claim_all()).values())
    (other,) = (await harness.claim_all()).values()
    (letter,) = await harness.store.database.read(dead_letters.page)
    made = await harness.store.transact(
        lambda tx: dead_letters.replay(tx, harness.jobs, [letter.id], actor="ann", reason="again")
    )
    assert (made, await waiting(harness)) == ({letter.id: None}, [])
    assert (await harness.nodes(runs[0]))["a"].status == "retrying"
    await harness.finish(other)
    assert await waiting(harness) == [(runs[0], "a")]
    await harness.drain(runs[0])
    assert set(await statuses(harness, runs)) == {"success"}
    assert (await harness.nodes(runs[0]))["a"].attempt == 2


async def test_reruns_take_turns_too(harness: ChainHarness) -> None:
    (first,) = await starts(harness, {**line(2), "over_runs": {"max_runs": 1}}, 1)
    await harness.drain(first)
    rerun = partial(harness.engine.rerun, run_id=first, actor="ann")
    again = (await harness.store.transact(lambda tx: rerun(tx, from_node="n1"))).run_id
    whole = (await harness.store.transact(rerun)).run_id
    assert await waiting(harness) == [(again, "n1")]
    await harness.drain(again)
    assert await statuses(harness, [again, whole]) == ["success", "success"]


async def test_a_limit_that_is_changed_holds_for_those_who_wait(harness: ChainHarness) -> None:
    def limited(**over_runs: int) -> dict[str, Any]:
        return dag(node("a"), over_runs=over_runs)

    chain = await harness.define(limited(max_parallel=1), "c")
    runs = [await start(harness, chain.id) for _ in range(5)]
    assert await run_housekeeping(harness).run_once() == 0, "there is no place"
    await harness.update(chain.id, 1, limited(max_parallel=3), "c")
    assert await run_housekeeping(harness).start_waiting_nodes() == 2
    assert await waiting(harness) == [(run_id, "a") for run_id in runs[:3]]
    await harness.update(chain.id, 2, limited(max_parallel=1), "c")
    jobs = list((await harness.claim_all()).values())
    await harness.finish(*jobs[:2])
    assert await waiting(harness) == [], "as many run as may"
    await harness.update(chain.id, 3, dag(node("a")), "c")
    await harness.finish(jobs[2])
    assert await waiting(harness) == [(run_id, "a") for run_id in runs[3:]], "nothing is limited any more"


@pytest.mark.parametrize("over_runs", [None, {"max_parallel": 9, "max_runs": 9}])
async def test_only_chains_that_limit_something_over_runs_pay_for_it(harness: ChainHarness, over_runs: Any) -> None:
    heard: list[str] = []
    chain = await harness.define({**line(2), "over_runs": over_runs})
    await harness.store.transact(lambda tx: harness.engine.start(RecordingTx(tx, heard), NewChainRun(chain.id)))
    for job in (await harness.claim_all()).values():
        await harness.store.transact(
            lambda tx, job=job: harness.jobs.finish_and_claim_next(RecordingTx(tx, heard), [JobResult(fence_of(job))])  # type: ignore[misc]
        )
    asked = [name for name in heard if name.startswith("chain_concurrency.")]
    assert len(heard) > 5
    assert bool(asked) is bool(over_runs)


@dataclass
class ConcurrentLoad:
    """Starters, workers and people on connections of their own, and one who watches that no limit is passed."""

    harness: ChainHarness
    chain_id: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[str] = field(default_factory=list)

    async def watch(self) -> None:
        while not self.over.is_set():
            held = await self.harness.store.rows("SELECT type FROM chain_nodes WHERE slot = 'held'")
            turns = await self.harness.store.rows("SELECT id FROM chain_runs WHERE slot = 'held'")
            assert len(held) <= 3
            assert sum(row["type"] == "http" for row in held) <= 1
            assert len(turns) <= 4
            await asyncio.sleep(0)

    async def start(self) -> None:
        for _ in range(4):
            self.runs.append(await start(self.harness, self.chain_id))

    async def work(self, name: str) -> None:
        while not self.over.is_set():
            rows = await self.harness.waiting_jobs()
            outcome = await self.harness.claim_ids([row["id"] for row in rows[:2]], worker=name)
            for job in outcome.done:
                await (
                    self.harness.fail(job) if job.node_id == "d" and job.id[-1] in "0123" else self.harness.finish(job)
                )
            await asyncio.sleep(0)

    async def intervene(self) -> None:
        for run_id in self.runs[::3]:
            with suppress(Conflict):
                await self.harness.stop(run_id)
            with suppress(Conflict):
                await self.harness.retry(run_id, "a")

    async def settle(self) -> None:
        guard = run_housekeeping(self.harness)
        async with asyncio.timeout(240):
            while await self.harness.store.rows("SELECT id FROM chain_runs WHERE finished_at IS NULL"):
                await guard.cancel_stopping_jobs()
                await asyncio.sleep(0.01)
        self.over.set()


@pytest.mark.slow
async def test_limits_hold_while_many_start_work_stop_and_retry_at_once(harness: ChainHarness) -> None:
    limits = {"max_runs": 4, "max_parallel": 3, "max_parallel_by_type": {"http": 1}}
    nodes = [node("a", type="http"), node("b"), node("c", "a", "b"), node("d", "a", type="http")]
    load = ConcurrentLoad(harness, (await harness.define(dag(*nodes, over_runs=limits))).id)
    async with asyncio.TaskGroup() as everybody:
        everybody.create_task(load.watch())
        for index in range(4):
            everybody.create_task(load.work(f"w{index}"))
        await asyncio.gather(*(load.start() for _ in range(4)), load.intervene())
        await load.intervene()
        await load.settle()
    assert len(load.runs) == 16
    assert not await harness.store.rows("SELECT node_id FROM chain_nodes WHERE slot IS NOT NULL")
    assert not await harness.store.rows("SELECT id FROM chain_runs WHERE slot IS NOT NULL")
    open_nodes = await harness.store.rows("SELECT node_id FROM chain_nodes WHERE ended_at IS NULL")
    assert not open_nodes, "none was forgotten"
