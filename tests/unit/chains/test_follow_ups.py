"""The plan of follow-up jobs beside an engine that knows only the definition of a DAG and looks at every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adjudge.chains.follow_ups import FinishPlan, FollowUpPlanner, FollowUps, node_job
from adjudge.domain.chain import Dag
from adjudge.domain.chain_parser import parse_dag
from adjudge.domain.states import JobStatus
from adjudge.store.chains.models import NO_ARTIFACT, NodeDone, NodeExpanded, NodeStopped, NodeSuspended
from adjudge.store.jobs.models import Capacity, Fence, Job, JobResult, NewJob

RULES = ["all_success"] * 4 + ["all_done", "one_success", "none_failed", "always"]
OUTCOMES = ["success"] * 6 + ["failed", "retry", "stopped", "waiting", "expanded"]
FINAL = {"success", "failed", "stopped"}


@dataclass(frozen=True)
class Situation:
    """A run in the middle: some nodes have ended before, some end now, the others wait."""

    document: dict[str, Any]
    before: dict[str, str]
    """How nodes ended in earlier transactions."""
    now: dict[str, str]
    """What becomes of the attempts that end now."""
    capacity: Capacity | None


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    random = Random(draw(st.integers(0, 2**32)))
    document = _document(random, draw(st.integers(1, 10)))
    before, now = dict[str, str](), dict[str, str]()
    for item in document["nodes"]:
        if all(before.get(dep) == "success" for dep in item["deps"]):
            choice = random.random()
            if choice < 0.4:
                before[item["id"]] = random.choice(["success", "success", "success", "failed"])
            elif choice < 0.9:
                now[item["id"]] = random.choice(OUTCOMES)
    assume(now)
    return Situation(document, before, now, _capacity(random))


def _document(random: Random, size: int) -> dict[str, Any]:
    nodes = []
    for index in range(size):
        deps = random.sample(range(index), min(index, random.choice([0, 1, 1, 2, 3])))
        item: dict[str, Any] = {"id": f"n{index}", "type": random.choice(["quick", "slow"])}
        nodes.append(item | {"deps": [f"n{dep}" for dep in deps], "when": random.choice(RULES) if deps else RULES[0]})
    limits: dict[str, Any] = random.choice([{}, {}, {}, {"max_parallel": 2}, {"over_runs": {"max_parallel": 2}}])
    return {"nodes": nodes, **limits}


def _capacity(random: Random) -> Capacity | None:
    if random.random() < 0.1:
        return None
    limits = {"quick": random.randrange(3)} if random.random() < 0.3 else {}
    return Capacity(
        "w1",
        15_000,
        random.randrange(6),
        limits,
        limit_keys=lambda job: [str(job.payload["type"])] if job.payload["type"] in limits else [],
        is_instant=lambda job: job.payload["type"] == "quick",
    )


def _plan(situation: Situation, dag: Dag) -> tuple[FinishPlan, dict[str, Job]]:
    numbers = count()
    jobs, results = dict[str, Job](), list[tuple[JobResult, Job, str | None]]()
    for node_id, outcome in situation.now.items():
        job = _running(node_job(f"job-{node_id}", ("run", node_id), dag.by_id[node_id], ("chain", "1"), None), dag)
        jobs[job.id] = job
        results.append((_result(job, outcome), job, None))
    finished = [job for result, job, _ in results if result.status is JobStatus.SUCCEEDED]
    planner = FollowUpPlanner(lambda: f"new-{next(numbers):03}", 60_000)
    return planner.plan(results, {"run": dag}, FollowUps(situation.capacity, finished)), jobs


def _running(job: NewJob, dag: Dag) -> Job:
    fields: dict[str, Any] = dict.fromkeys(Job._fields)
    payload = {**job.payload, **({"shares": "yes"} if dag.has_cross_run_limits else {})}
    given_fields = {"id": job.id, "kind": job.kind, "attempt_id": 1, "chain_run_id": "run", "node_id": job.node_id}
    return Job(**fields | given_fields | {"payload": payload})


def _result(job: Job, outcome: str) -> JobResult:
    typed: Mapping[str, object] = {
        "success": NodeDone(NO_ARTIFACT),
        "stopped": NodeStopped("the run stops"),
        "waiting": NodeSuspended("approval", "key", NO_ARTIFACT, None, None),
        "expanded": NodeExpanded((1, 2)),
    }
    status = {"failed": JobStatus.FAILED, "retry": JobStatus.PENDING}.get(outcome, JobStatus.SUCCEEDED)
    return JobResult(Fence(job.id, 1, "w1"), status, typed_result=typed.get(outcome), job=job)


class NaiveEngine:
    """Decides from the statuses of all nodes, as the documentation of chains says."""

    def __init__(self, situation: Situation) -> None:
        self._nodes = {item["id"]: item for item in situation.document["nodes"]}
        self._has_limits = len(situation.document) > 1
        self.ended = situation.before | {key: how for key, how in situation.now.items() if how in FINAL}
        self._situation = situation

    def dependents(self, node_id: str) -> list[str]:
        return [key for key, item in self._nodes.items() if node_id in item["deps"]]

    def ready(self) -> set[str]:
        """The nodes that nothing but this transaction has made ready, by the success of all their dependencies."""
        touched = {key for node_id in self._ending() for key in self.dependents(node_id)}
        return {
            key
            for key in touched
            if not self._has_limits
            and self._nodes[key]["when"] == "all_success"
            and key not in self.ended
            and key not in self._situation.now
            and all(self.ended.get(dep) == "success" for dep in self._nodes[key]["deps"])
        }

    def _ending(self) -> list[str]:
        return [key for key in self._situation.now if key in self.ended]

    def is_decided(self) -> bool:
        """Whether nothing is left to decide once the rows are counted, however the counts turn out."""
        return not self._has_limits and all(
            how == "success"
            and self.dependents(key)
            and all(self._nodes[dependent]["when"] == "all_success" for dependent in self.dependents(key))
            for key, how in self._situation.now.items()
        )


def _counted(situation: Situation, plan: FinishPlan, jobs: Mapping[str, Job]) -> dict[str, str]:
    """What the rows make of a plan: the job of each node whose last dependency it counts, all with success."""
    deps = {item["id"]: item["deps"] for item in situation.document["nodes"]}
    ended = situation.before | {key: how for key, how in situation.now.items() if how in FINAL}
    counts = {
        key: Counter(situation.before.get(dep, "waiting") for dep in needed) for key, needed in deps.items() if needed
    }
    given: dict[str, str] = {}
    for _, job_id, node_id, new_id, _ in plan.edges:
        how = ended.get(jobs[str(job_id)].node_id or "")
        if how is None:  # retried: the row of the node does not end, so nothing is counted for it
            continue
        counts[str(node_id)].subtract(["waiting"])
        counts[str(node_id)][how] += 1
        if new_id is not None:
            given[str(node_id)] = str(new_id)
    return {
        key: new_id
        for key, new_id in given.items()
        if counts[key]["waiting"] == 0 and counts[key]["success"] == len(deps[key])
    }


@settings(max_examples=400, deadline=None)
@given(situations())
def test_plan_starts_what_an_engine_that_looks_at_all_nodes_starts(situation: Situation) -> None:
    dag, naive = parse_dag(situation.document), NaiveEngine(situation)
    plan, jobs = _plan(situation, dag)
    started = _counted(situation, plan, jobs)
    assert set(started) == naive.ready()
    assert {key: plan.new_jobs[new_id].node_id for key, new_id in started.items()} == {key: key for key in started}
    assert plan.is_last == naive.is_decided()
    assert len(plan.new_jobs) == len({job.node_id for job in plan.new_jobs.values()}), "one job for a node"
    assert [row[0] for row in plan.results] == sorted(jobs)


@settings(max_examples=400, deadline=None)
@given(situations())
def test_claims_keep_to_the_capacity_and_leave_nothing_unused(situation: Situation) -> None:
    plan, _ = _plan(situation, parse_dag(situation.document))
    capacity = situation.capacity
    if capacity is None:
        assert plan.follows == {}
        return
    source = {str(new_id): str(job_id) for _, job_id, _, new_id, _ in reversed(plan.edges) if new_id is not None}
    slots, limits, followed = capacity.slots, dict(capacity.limits), set[str]()
    for new_id, job in plan.new_jobs.items():
        kind = str(job.payload["type"])
        may_follow = source[new_id] not in followed and slots >= 2
        is_claimed = slots >= 1 and (may_follow or kind == "quick") and limits.get(kind, 1) >= 1
        assert (new_id in plan.follows) == is_claimed, (new_id, kind)
        if is_claimed:
            assert plan.follows[new_id] == source[new_id], "it follows from the job that first made it possible"
            slots -= 1
            followed.add(source[new_id])
            if kind in limits:
                limits[kind] -= 1
    workers = {new_id: worker for _, _, _, new_id, worker in plan.edges if new_id is not None}
    assert {new_id for new_id, worker in workers.items() if worker == "w1"} == set(plan.follows)


def _new(name: str) -> NewJob:
    return NewJob(name, "node", chain_run_id="run", payload={"type": "slow"})


def _finished(run_id: str, name: str) -> Job:
    return Job(**dict.fromkeys(Job._fields) | {"id": name, "chain_run_id": run_id, "payload": {}})  # type: ignore[arg-type]


def test_a_job_that_starts_later_follows_any_finished_job_of_its_run_once() -> None:
    """As after a condition, which the rows do not decide: no single finished job made it ready."""
    follow_ups = FollowUps(
        Capacity("w1", 15_000, 9), [_finished("other", "x"), _finished("run", "a"), _finished("run", "b")]
    )
    assert [follow_ups.reserve(_new(f"new{number}")) for number in range(3)] == ["a", "b", None]


def test_delayed_jobs_and_jobs_without_a_finished_one_are_not_claimed() -> None:
    always: Callable[[NewJob], bool] = lambda _: True  # noqa: E731
    follow_ups = FollowUps(Capacity("w1", 15_000, 9, is_instant=always), [_finished("other", "x")])
    assert follow_ups.reserve(_new("new")) is None
    assert follow_ups.reserve(_new("new")._replace(delay_ms=1), after=_finished("run", "a")) is None
