"""Random DAGs under random outcomes, crashes and manual actions, on both databases: what always holds of a run."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.domain.chain import DependencyRule
from adjudge.domain.chain_parser import parse_dag
from adjudge.domain.errors import Conflict
from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from adjudge.store.chains.models import NewChainRun
from adjudge.store.jobs.models import Capacity, Job
from tests.integration.chains.harness import ChainHarness, done
from tests.support.chain_model import expected_states
from tests.support.store_harness import open_store

RULES = [*[DependencyRule.ALL_SUCCESS] * 3, *DependencyRule]
SQLITE_EXAMPLES, POSTGRES_EXAMPLES = 80, 16
SMALL, LARGE = st.one_of(st.integers(1, 8), st.integers(1, 14)), st.integers(100, 200)
OVER_RUNS: list[dict[str, Any]] = [
    {"max_parallel": 2},
    {"max_runs": 2, "max_parallel": 3},
    {"max_runs": 1, "max_parallel_by_type": {"http": 1}},
]


@st.composite
def documents(draw: st.DrawFn, sizes: st.SearchStrategy[int] = SMALL) -> dict[str, Any]:
    """A DAG."""
    size = draw(sizes)
    random = Random(draw(st.integers(0, 2**32)))
    nodes = []
    for index in range(size):
        deps = random.sample(range(index), min(index, random.choice([0, 1, 1, 2, 3])))
        when = random.choice(RULES) if deps else DependencyRule.ALL_SUCCESS
        item: dict[str, Any] = {"id": f"n{index}", "type": random.choice(["noop", "http"]), "when": str(when)}
        nodes.append(item | {"deps": [f"n{dep}" for dep in deps], "priority": random.randrange(4)})
    limits: dict[str, Any] = {"max_parallel": draw(st.sampled_from([None, None, None, 1, 3]))}
    limits["over_runs"] = draw(st.sampled_from([None, None, None, None, OVER_RUNS[0]]))
    return {"nodes": nodes} | {key: value for key, value in limits.items() if value is not None}


@dataclass
class RandomRun:
    """One run, driven at random by workers that crash, repeat themselves and come late."""

    harness: ChainHarness
    document: dict[str, Any]
    random: Random
    fails: float = 0.25
    held: list[Job] = field(default_factory=list)
    lost: list[Job] = field(default_factory=list)
    won: Counter[str] = field(default_factory=Counter)
    last: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, bool] = field(default_factory=dict)
    run_id: str = ""

    async def begin(self, chain_id: str | None = None) -> None:
        if chain_id is None:
            chain_id = (await self.harness.define(self.document)).id
        wanted = NewChainRun(chain_id, actor="ann")
        self.run_id = (await self.harness.store.transact(lambda tx: self.harness.engine.start(tx, wanted))).run_id

    def succeeds(self, node_id: str) -> bool:
        return self.outcomes.setdefault(node_id, self.random.random() >= self.fails)

    async def step(self) -> bool:
        """Do one thing; whether there was anything to do."""
        waiting = await self.harness.waiting_jobs(self.run_id)
        if not waiting and not self.held:
            return False
        moves: list[Callable[[], Coroutine[Any, Any, None]]] = []
        if waiting:
            moves += [lambda: self._claim([row["id"] for row in waiting])] * 3
        if self.held:
            moves += [self._finish] * 5 + [self._crash]
        if self.lost:
            moves.append(self._come_late)
        await self.random.choice(moves)()
        return True

    async def _claim(self, job_ids: list[str]) -> None:
        some = self.random.sample(job_ids, self.random.randint(1, len(job_ids)))
        before = await self.harness.states(self.run_id)
        outcome = await self.harness.claim_ids(some, worker=f"w{self.random.randrange(3)}")
        dag = parse_dag(self.document)
        for job in outcome.done:
            node_id = job.node_id or ""
            if before[node_id] == NodeStatus.PENDING:
                early = [dep for dep in dag.by_id[node_id].deps if NodeStatus(before[dep]) not in NODE.terminal]
                assert not early, f"{node_id} runs before {early}"
        self.held += outcome.done
        if not outcome.done:
            await self.harness.store.clock.advance(ms=3_000)  # what was released waits for its backoff

    async def _finish(self) -> None:
        some = self.random.sample(self.held, self.random.randint(1, min(4, len(self.held))))
        self.held = [job for job in self.held if job not in some]
        good = [job for job in some if self.succeeds(job.node_id or "")]
        await self._write(good)
        await self._write(good)  # a commit whose answer was lost is sent again
        bad = [job for job in some if job not in good]
        if self.random.random() < 0.3:
            await self.harness.release(*bad)
        else:
            await self.harness.fail(*bad)

    async def _write(self, jobs: list[Job]) -> None:
        marks = {job.node_id or "": json.dumps([job.id, job.attempt_id]) for job in jobs}
        outcome = await self.harness.finish(
            *jobs, capacity=self._capacity(), **{key: done(mark) for key, mark in marks.items()}
        )
        self.held += [job for claimed in outcome.claimed.values() for job in claimed]
        for job in outcome.done:
            self.won[job.node_id or ""] += 1
            self.last[job.node_id or ""] = marks[job.node_id or ""]

    def _capacity(self) -> Capacity | None:
        """What the worker that finishes has reserved for follow-ups: nothing, or some slots, some for any number."""
        slots, is_instant = self.random.randrange(5), self.random.random() < 0.5
        if not slots:
            return None
        return Capacity(f"w{self.random.randrange(3)}", 15_000, slots, is_instant=lambda _: is_instant)

    async def _crash(self) -> None:
        """All workers die: their leases run out, and the watchdog frees what they held."""
        self.lost += self.held
        self.held = []
        await self.harness.store.clock.advance(ms=16_000)
        await self.harness.store.transact(lambda tx: self.harness.jobs.release_expired(tx, actor="watchdog"))

    async def _come_late(self) -> None:
        """A worker that was thought dead says what it has to say; nobody listens."""
        job = self.lost.pop()
        assert (await self.harness.finish(job, outcome=done('"late"'))).done == ()

    async def check_counts(self) -> None:
        """What the run row counts is what the rows say."""
        run, nodes = await self.harness.run(self.run_id), await self.harness.nodes(self.run_id)
        open_nodes = [item for item in nodes.values() if item.status not in NODE.terminal]
        failed = [item for item in nodes.values() if item.status in ("failed", "stopped") and item.parent_id is None]
        assert (run.nodes_total, run.nodes_open) == (len(nodes), len(open_nodes))
        if run.status is not ChainRunStatus.STOPPED:
            assert run.nodes_failed == len(failed)
        dag = parse_dag(self.document)
        for node_id, item in nodes.items():
            if item.status is NodeStatus.PENDING:
                waiting = [dep for dep in dag.by_id[node_id].deps if nodes[dep].status not in NODE.terminal]
                assert item.waiting_on == len(waiting), node_id

    async def check_end(self) -> None:
        """Whatever happened on the way."""
        run, nodes = await self.harness.run(self.run_id), await self.harness.nodes(self.run_id)
        assert run.status in CHAIN_RUN.terminal, f"stuck: {await self.harness.states(self.run_id)}"
        assert all(item.status in NODE.terminal for item in nodes.values())
        for node_id, item in nodes.items():
            if self.won[node_id]:
                assert self.won[node_id] == 1, "an effect was written twice"
                assert item.artifact == json.loads(self.last[node_id])
        rows = await self.harness.store.rows(
            "SELECT node_id FROM chain_status_log WHERE run_id = :run_id AND to_status = 'success' "
            "AND node_id IS NOT NULL",
            run_id=self.run_id,
        )
        assert max(Counter(row["node_id"] for row in rows).values(), default=0) <= 1
        await self.check_counts()
        left = await self.harness.store.rows(
            "SELECT id FROM jobs WHERE chain_run_id = :run_id AND status IN ('pending', 'queued', 'running')",
            run_id=self.run_id,
        )
        assert left == [], "an ended run has open jobs"


@pytest.fixture
def run_examples(store_url: str) -> Iterator[Callable[[Callable[[ChainHarness], Coroutine[Any, Any, None]]], None]]:
    """Runs examples one after the other on one open store of each database."""
    with asyncio.Runner() as runner:
        entered = open_store(store_url)
        store = runner.run(entered.__aenter__())
        harness = ChainHarness(store)
        try:
            yield lambda example: runner.run(example(harness))
        finally:
            runner.run(entered.__aexit__(None, None, None))


@pytest.fixture
def example_count(store_url: str) -> int:
    """How many: PostgreSQL takes longer over each, and the rules are the same."""
    return SQLITE_EXAMPLES if store_url.startswith("sqlite:") else POSTGRES_EXAMPLES


Played = Callable[[Callable[[ChainHarness], Coroutine[Any, Any, None]]], None]
QUIET = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.slow
def test_a_run_ends_as_the_rules_say_whatever_crashes(run_examples: Played, example_count: int) -> None:
    @settings(QUIET, max_examples=example_count)
    @given(documents(), st.integers(0, 2**32))
    def example(document: dict[str, Any], seed: int) -> None:
        async def play(harness: ChainHarness) -> None:
            game = RandomRun(harness, document, Random(seed))
            await game.begin()
            while await game.step():
                pass
            await game.check_end()
            states = await harness.states(game.run_id)
            lost = {
                key
                for key, item in (await harness.nodes(game.run_id)).items()
                if item.last_error and "lost" in item.last_error
            }
            wanted = expected_states(
                parse_dag(document), lambda node_id: game.succeeds(node_id) and node_id not in lost
            )
            assert states == wanted

        run_examples(play)

    example()


@pytest.mark.slow
def test_a_large_dag_ends_as_the_rules_say(run_examples: Played) -> None:
    @settings(QUIET, max_examples=2)
    @given(documents(LARGE), st.integers(0, 2**32))
    def example(document: dict[str, Any], seed: int) -> None:
        async def play(harness: ChainHarness) -> None:
            game = RandomRun(harness, document, Random(seed), fails=0.05)
            await game.begin()
            while waiting := await harness.waiting_jobs(game.run_id):
                jobs = (await harness.claim_ids([row["id"] for row in waiting])).done
                good = [job for job in jobs if game.succeeds(job.node_id or "")]
                await harness.finish(*good)
                await harness.fail(*[job for job in jobs if job not in good])
            assert await harness.states(game.run_id) == expected_states(parse_dag(document), game.succeeds)
            await game.check_end()

        run_examples(play)

    example()


def create_housekeeping(harness: ChainHarness) -> ChainHousekeeping:
    """What kills what does not stop, at once."""
    return ChainHousekeeping(
        harness.store.database, harness.jobs, harness.engine, name="p", settings=HousekeepingOptions(0)
    )


async def play_with_people(harness: ChainHarness, document: dict[str, Any], seed: int, *, moves: int) -> None:
    """One run in which people meddle, for so many moves; from then on everything goes well."""
    random = Random(seed)
    game, housekeeping = RandomRun(harness, document, random, fails=0.4), create_housekeeping(harness)
    await game.begin()
    for _ in range(moves):
        if random.random() < 0.3:
            await intervene(game)
            await game.check_counts()
        elif not await game.step():
            break
    game.outcomes = dict.fromkeys(game.outcomes, True)
    while await game.step() or await housekeeping.run_once():
        pass
    await game.check_end()


@pytest.mark.slow
def test_whatever_people_do_every_run_ends(run_examples: Played, example_count: int) -> None:
    @settings(QUIET, max_examples=example_count)
    @given(documents(), st.integers(0, 2**32))
    def example(document: dict[str, Any], seed: int) -> None:
        run_examples(lambda harness: play_with_people(harness, document, seed, moves=40))

    example()


@pytest.mark.slow
def test_whatever_people_do_every_large_run_ends(run_examples: Played) -> None:
    @settings(QUIET, max_examples=3)
    @given(documents(LARGE), st.integers(0, 2**32))
    def example(document: dict[str, Any], seed: int) -> None:
        run_examples(lambda harness: play_with_people(harness, document, seed, moves=100))

    example()


@pytest.mark.slow
def test_runs_of_one_chain_share_its_places_whatever_happens(run_examples: Played, example_count: int) -> None:
    @settings(QUIET, max_examples=max(2, example_count // 8))
    @given(documents(st.integers(1, 6)), st.sampled_from(OVER_RUNS), st.integers(0, 2**32))
    def example(document: dict[str, Any], over_runs: dict[str, Any], seed: int) -> None:
        run_examples(lambda harness: share(harness, document | {"over_runs": over_runs}, Random(seed)))

    example()


async def share(harness: ChainHarness, document: dict[str, Any], random: Random) -> None:
    """Some runs of one chain at once, with people who meddle: no limit is passed, and every run ends."""
    games, housekeeping = (
        [RandomRun(harness, document, random, fails=0.3) for _ in range(4)],
        create_housekeeping(harness),
    )
    chain_id, again = (await harness.define(document)).id, set[str]()
    for game in games:
        await game.begin(chain_id)
    for _ in range(60):
        game = random.choice(games)
        if random.random() < 0.2:
            await intervene(game)
            again.add(game.run_id)  # one that was retried has its turn without waiting
        else:
            await game.step()
        await check_places(harness, chain_id, document["over_runs"], again)
    for game in games:
        game.outcomes = dict.fromkeys(game.outcomes, True)
    while any([await game.step() for game in games]) or await housekeeping.run_once():
        await check_places(harness, chain_id, document["over_runs"], again)
    for game in games:
        await game.check_end()


async def check_places(harness: ChainHarness, chain_id: str, limits: dict[str, Any], again: set[str]) -> None:
    """What runs is within the limits, and what could run does."""
    rows = await harness.store.rows("SELECT type, slot FROM chain_nodes WHERE concurrency_pool = :pool", pool=chain_id)
    held, wanted = ([row["type"] for row in rows if row["slot"] == slot] for slot in ("held", "wanted"))
    assert len(held) <= limits.get("max_parallel", 1_000)
    assert held.count("http") <= limits.get("max_parallel_by_type", {}).get("http", 1_000)
    if wanted and "max_parallel_by_type" not in limits:
        assert held, "somebody queued (concurrency limit) that nobody holds"
    runs = await harness.store.rows("SELECT id FROM chain_runs WHERE chain_id = :id AND slot = 'held'", id=chain_id)
    assert len({row["id"] for row in runs} - again) <= limits.get("max_runs", 1_000)


async def intervene(game: RandomRun) -> None:
    """Somebody stops the run, or retries or completes a node; what is not allowed is refused as a conflict."""
    harness, random = game.harness, game.random
    states = await harness.states(game.run_id)
    ended = [node_id for node_id, status in states.items() if status in ("failed", "stopped")]
    node_id = random.choice(ended if ended and random.random() < 0.8 else list(states))
    with suppress(Conflict):
        match random.choice(["retry", "retry", "retry", "complete", "stop"]):
            case "retry":
                await harness.retry(game.run_id, node_id)
                game.outcomes.pop(node_id, None)
            case "complete":
                await harness.complete(game.run_id, node_id)
            case "stop":
                await harness.stop(game.run_id)
