"""A chain's DAG and the rules by which it advances: pure values and functions.

What belongs here: what a node is, when it may run, what an ended node means for the others. What does not: reading a
DAG from JSON (``chain_document``), keeping it (``store``), running it (``chains``, ``worker``).

Every rule is decided once *all* of a node's dependencies have ended, never earlier. So no node runs before its
dependencies, and how a run ends follows from how its nodes ended, not from the order in which they happened to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from adjudge.domain.chain_condition import Condition
from adjudge.domain.priority import DEFAULT_BAND
from adjudge.domain.states import NODE, NodeStatus

_INSTANCE = re.compile(r"(?P<base>.+)\[(?P<index>\d+)\]")


class DependencyRule(StrEnum):
    """What a node asks of its dependencies, all of which have ended."""

    ALL_SUCCESS = "all_success"
    """Every one succeeded."""
    ALL_DONE = "all_done"
    """However they ended."""
    ONE_SUCCESS = "one_success"
    """At least one succeeded."""
    ONE_FAILED = "one_failed"
    """At least one failed or was stopped."""
    NONE_FAILED = "none_failed"
    """None failed or was stopped; some may have been skipped."""
    ALWAYS = "always"
    """However they ended, and whatever ``if`` says: for cleaning up."""


class MaxRunsPolicy(StrEnum):
    """What becomes of a start while as many runs as may be at once are under way."""

    WAIT = "wait"
    """The run is made, and waits for its turn; the oldest goes first."""
    REFUSE = "refuse"
    """There is no run."""


class NodeDecision(StrEnum):
    """What becomes of a node that has not begun."""

    WAIT = "wait"
    RUN = "run"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class NodeRetry:
    """How often a node is tried, and how long the first pause is; pauses double."""

    max_attempts: int = 4
    backoff_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A node that runs once for every item of a list."""

    over: Any
    """The list itself, or a template that becomes one."""
    item: str = "item"
    """What templates call the item."""
    max_parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a chain."""

    id: str
    type: str
    deps: tuple[str, ...] = ()
    cfg: Mapping[str, Any] = field(default_factory=dict)
    retry: NodeRetry = NodeRetry()
    timeout_ms: int | None = None
    when: DependencyRule = DependencyRule.ALL_SUCCESS
    condition: Condition | None = None
    map_spec: MapSpec | None = None
    priority: int = DEFAULT_BAND

    @property
    def needs_only_success(self) -> bool:
        """Whether success of all its dependencies is all it takes to become one job."""
        return self.when is DependencyRule.ALL_SUCCESS and self.condition is None and self.map_spec is None


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """What all runs of a chain share: how many of them, and of their nodes, may be under way at once."""

    max_runs: int | None = None
    when_full: MaxRunsPolicy = MaxRunsPolicy.WAIT
    max_parallel: int | None = None
    max_parallel_by_type: Mapping[str, int] = field(default_factory=dict)

    @property
    def limits_nodes(self) -> bool:
        """Whether a node may have to wait for one of another run."""
        return self.max_parallel is not None or bool(self.max_parallel_by_type)


@dataclass(frozen=True)
class Dag:
    """The nodes of a chain, and how many of them may run at once: in one run, and over all runs."""

    nodes: tuple[Node, ...]
    max_parallel: int | None = None
    max_parallel_by_type: Mapping[str, int] = field(default_factory=dict)
    chain_limits: ChainLimits = ChainLimits()

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        """Who waits for whom, in the order of the document."""
        found: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for dep in node.deps:
                found[dep].append(node.id)
        return {node_id: tuple(ids) for node_id, ids in found.items()}

    @cached_property
    def has_concurrency_limits(self) -> bool:
        """Whether a node that may run can still have to wait for a place."""
        return self.max_parallel is not None or self.has_per_node_limits or self.chain_limits.limits_nodes

    @cached_property
    def has_per_node_limits(self) -> bool:
        """Whether a free place of a run may be one that the next node cannot take, and a later one can."""
        fans = any(node.map_spec is not None and node.map_spec.max_parallel is not None for node in self.nodes)
        return bool(self.max_parallel_by_type) or fans

    @cached_property
    def has_cross_run_limits(self) -> bool:
        """Whether runs of the chain have to wait for each other in any way."""
        return self.chain_limits.max_runs is not None or self.chain_limits.limits_nodes

    def node_for(self, node_id: str) -> Node:
        """The node that a row speaks of; an instance of a mapped node is the node it was made from."""
        return self.by_id[dag_node_id(node_id)]

    def downstream(self, node_id: str) -> set[str]:
        """The node and everything that waits for it, directly or not."""
        found, front = {node_id}, [node_id]
        while front:
            for dependent in self.dependents[front.pop()]:
                if dependent not in found:
                    found.add(dependent)
                    front.append(dependent)
        return found


@dataclass(frozen=True, slots=True)
class DependencyCounts:
    """How a node's dependencies stand."""

    waiting: int = 0
    success: int = 0
    failed: int = 0
    skipped: int = 0


def decide(when: DependencyRule, counts: DependencyCounts) -> NodeDecision:
    """What the rule says."""
    if counts.waiting:
        return NodeDecision.WAIT
    met = {
        DependencyRule.ALL_SUCCESS: not counts.failed and not counts.skipped,
        DependencyRule.ALL_DONE: True,
        DependencyRule.ONE_SUCCESS: counts.success > 0,
        DependencyRule.ONE_FAILED: counts.failed > 0,
        DependencyRule.NONE_FAILED: not counts.failed,
        DependencyRule.ALWAYS: True,
    }[when]
    return NodeDecision.RUN if met else NodeDecision.SKIP


def is_failed(status: NodeStatus) -> bool:
    """Whether dependents count it as failed. One that was stopped did not do its work either."""
    return status in (NodeStatus.FAILED, NodeStatus.STOPPED)


def count_statuses(statuses: Iterable[NodeStatus]) -> DependencyCounts:
    """Sum up how dependencies stand."""
    waiting = success = failed = skipped = 0
    for status in statuses:
        if status is NodeStatus.SUCCESS:
            success += 1
        elif status is NodeStatus.SKIPPED:
            skipped += 1
        elif is_failed(status):
            failed += 1
        else:
            waiting += 1
    return DependencyCounts(waiting, success, failed, skipped)


States = Mapping[str, NodeStatus]


def dependency_counts(dag: Dag, node_id: str, states: States) -> DependencyCounts:
    """How the dependencies of one node stand."""
    return count_statuses(states[dep] for dep in dag.by_id[node_id].deps)


def decide_pending(dag: Dag, states: States, holds: Callable[[Node], bool] = lambda _: True) -> dict[str, NodeDecision]:
    """Decide on every pending node that can be decided: it runs, or it is skipped and others with it.

    ``holds`` says whether a node's ``if`` is true. This is the whole of the rules at once; a run in the database
    arrives at the same by counting (``decide``) as its nodes end.
    """
    statuses, decisions = dict(states), dict[str, NodeDecision]()
    front = [node.id for node in dag.nodes]
    while front:
        node = dag.by_id[front.pop()]
        if statuses[node.id] is not NodeStatus.PENDING or node.id in decisions:
            continue
        decision = decide(node.when, dependency_counts(dag, node.id, statuses))
        if decision is NodeDecision.RUN and node.condition is not None and node.when is not DependencyRule.ALWAYS:
            decision = NodeDecision.RUN if holds(node) else NodeDecision.SKIP
        if decision is NodeDecision.WAIT:
            continue
        decisions[node.id] = decision
        if decision is NodeDecision.SKIP:
            statuses[node.id] = NodeStatus.SKIPPED
            front.extend(dag.dependents[node.id])
    return decisions


@dataclass(frozen=True, slots=True)
class SkipCascade:
    """What skipping some nodes does to the others."""

    skipped: Mapping[str, DependencyCounts]
    """Skipped in their turn, and how their dependencies stood."""
    runnable: Mapping[str, DependencyCounts]
    """All their dependencies have ended now, and their rule lets them run."""
    still_waiting: Mapping[str, DependencyCounts]
    """They still wait, for less."""


def cascade_skips(dag: Dag, waiting: Mapping[str, DependencyCounts], skips: Iterable[str]) -> SkipCascade:
    """Follow skips through pending nodes, given how the dependencies of each stand without them."""
    counts, touched = dict(waiting), dict[str, None]()
    skipped: dict[str, DependencyCounts] = {}
    front, gone = list(skips), set(skips)
    while front:
        for dependent in dag.dependents[front.pop()]:
            if dependent not in counts or dependent in gone:
                continue
            old = counts[dependent]
            now = counts[dependent] = DependencyCounts(old.waiting - 1, old.success, old.failed, old.skipped + 1)
            touched[dependent] = None
            if decide(dag.by_id[dependent].when, now) is NodeDecision.SKIP:
                skipped[dependent] = now
                gone.add(dependent)
                front.append(dependent)
    left = {node_id: counts[node_id] for node_id in touched if node_id not in gone}
    return SkipCascade(
        skipped,
        {node_id: item for node_id, item in left.items() if not item.waiting},
        {node_id: item for node_id, item in left.items() if item.waiting},
    )


def nodes_to_reopen(dag: Dag, states: States, began: Callable[[str], bool], node_id: str) -> list[str]:
    """The nodes that wait again once ``node_id`` is no longer ended as it was.

    A node that was skipped because of it, and one that was stopped before it began, get another chance, and so does
    what was skipped because of those. What did run stays as it is.
    """
    found: dict[str, None] = {}
    front = [node_id]
    while front:
        for dependent in dag.dependents[front.pop()]:
            status = states[dependent]
            again = status is NodeStatus.SKIPPED or (status is NodeStatus.STOPPED and not began(dependent))
            if again and dependent not in found:
                found[dependent] = None
                front.append(dependent)
    return list(found)


def final_run_status(states: Iterable[NodeStatus]) -> str | None:
    """How a run ends whose nodes stand so: ``success``, ``failed``, or nothing while a node has not ended."""
    seen = set(states)
    if not seen <= NODE.terminal:
        return None
    return "failed" if any(is_failed(status) for status in seen) else "success"


def instance_id(node_id: str, index: int) -> str:
    """The id of one instance of a mapped node."""
    return f"{node_id}[{index}]"


def dag_node_id(node_id: str) -> str:
    """The id in the DAG of the node that ``node_id`` is, or is an instance of."""
    return node_id.partition("[")[0]


def is_instance(node_id: str) -> bool:
    """Whether it is an instance of a mapped node."""
    return _INSTANCE.fullmatch(node_id) is not None
