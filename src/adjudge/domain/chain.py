"""The DAG of a chain and the rules by which a run advances: pure values and functions.

Parsing a DAG is in ``chain_parser``, storing it in ``store``, running it in ``chains`` and ``worker``.

A rule is evaluated when *all* dependencies of a node have finished, never earlier. So no node runs before its
dependencies, and the status of a run depends on the statuses of its nodes, not on their order.
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
from adjudge.domain.states import NodeStatus

_INSTANCE = re.compile(r"(?P<base>.+)\[(?P<index>\d+)\]")


class DependencyRule(StrEnum):
    """What a node requires of its finished dependencies."""

    ALL_SUCCESS = "all_success"
    """Every dependency succeeded."""
    ALL_DONE = "all_done"
    """Every dependency finished, with any status."""
    ONE_SUCCESS = "one_success"
    """At least one dependency succeeded."""
    ONE_FAILED = "one_failed"
    """At least one dependency failed or was stopped."""
    NONE_FAILED = "none_failed"
    """No dependency failed or was stopped; some may have been skipped."""
    ALWAYS = "always"
    """As ``all_done``, and ``if`` is ignored: for clean-up nodes."""


class MaxRunsPolicy(StrEnum):
    """What happens to a new run while ``max_runs`` runs of the chain are active."""

    WAIT = "wait"
    """The run is created and waits; the oldest starts first."""
    REFUSE = "refuse"
    """The run is not created."""


class NodeDecision(StrEnum):
    """The decision on a node that has not started."""

    WAIT = "wait"
    RUN = "run"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class NodeRetry:
    """Number of attempts of a node and the first delay; delays double."""

    max_attempts: int = 4
    backoff_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A node that runs once for every item of a list."""

    over: Any
    """A list, or a template that evaluates to one."""
    item: str = "item"
    """The name of the item in templates."""
    max_parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a DAG."""

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
        """Whether the node becomes one job as soon as all its dependencies succeeded."""
        return self.when is DependencyRule.ALL_SUCCESS and self.condition is None and self.map_spec is None


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """Limits over all runs of a chain: concurrent runs and concurrent nodes."""

    max_runs: int | None = None
    when_full: MaxRunsPolicy = MaxRunsPolicy.WAIT
    max_parallel: int | None = None
    max_parallel_by_type: Mapping[str, int] = field(default_factory=dict)

    @property
    def limits_nodes(self) -> bool:
        """Whether a node may have to wait for a node of another run."""
        return self.max_parallel is not None or bool(self.max_parallel_by_type)


@dataclass(frozen=True)
class Dag:
    """The nodes of a chain and its concurrency limits, per run and over all runs."""

    nodes: tuple[Node, ...]
    max_parallel: int | None = None
    max_parallel_by_type: Mapping[str, int] = field(default_factory=dict)
    chain_limits: ChainLimits = ChainLimits()

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        """Node id → ids of the nodes that depend on it, in document order."""
        result: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for dep in node.deps:
                result[dep].append(node.id)
        return {node_id: tuple(ids) for node_id, ids in result.items()}

    @cached_property
    def has_concurrency_limits(self) -> bool:
        """Whether a runnable node may have to wait for a concurrency slot."""
        return self.max_parallel is not None or self.has_per_node_limits or self.chain_limits.limits_nodes

    @cached_property
    def has_per_node_limits(self) -> bool:
        """Whether limits apply to some nodes only, so that a later node may use a slot that the next one cannot."""
        fans = any(node.map_spec is not None and node.map_spec.max_parallel is not None for node in self.nodes)
        return bool(self.max_parallel_by_type) or fans

    @cached_property
    def has_cross_run_limits(self) -> bool:
        return self.chain_limits.max_runs is not None or self.chain_limits.limits_nodes

    def node_for(self, node_id: str) -> Node:
        """The node of a row; for an instance of a mapped node, the mapped node."""
        return self.by_id[dag_node_id(node_id)]

    def downstream(self, node_id: str) -> set[str]:
        """The node and all nodes that depend on it, directly or indirectly."""
        result, front = {node_id}, [node_id]
        while front:
            for dependent in self.dependents[front.pop()]:
                if dependent not in result:
                    result.add(dependent)
                    front.append(dependent)
        return result


@dataclass(frozen=True, slots=True)
class DependencyCounts:
    """Number of dependencies of a node, by status."""

    waiting: int = 0
    success: int = 0
    failed: int = 0
    skipped: int = 0


def decide(when: DependencyRule, counts: DependencyCounts) -> NodeDecision:
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
    """Whether dependents count the node as failed; a stopped node counts as failed."""
    return status in (NodeStatus.FAILED, NodeStatus.STOPPED)


def count_statuses(statuses: Iterable[NodeStatus]) -> DependencyCounts:
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
    return count_statuses(states[dep] for dep in dag.by_id[node_id].deps)


@dataclass(frozen=True, slots=True)
class SkipCascade:
    """The effect of skipping some nodes on their dependents."""

    skipped: Mapping[str, DependencyCounts]
    """Skipped as well, with the counts of their dependencies."""
    runnable: Mapping[str, DependencyCounts]
    """All dependencies have finished and the rule allows them to run."""
    still_waiting: Mapping[str, DependencyCounts]
    """Still waiting, for fewer dependencies."""


def cascade_skips(dag: Dag, waiting: Mapping[str, DependencyCounts], skips: Iterable[str]) -> SkipCascade:
    """Propagate skips through pending nodes; ``waiting`` has the counts of each without these skips."""
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
    """The nodes that become pending again when ``node_id`` is retried or completed.

    Nodes that were skipped because of it, or stopped before they started, and nodes skipped because of those. Nodes
    that ran keep their status.
    """
    result: dict[str, None] = {}
    front = [node_id]
    while front:
        for dependent in dag.dependents[front.pop()]:
            status = states[dependent]
            again = status is NodeStatus.SKIPPED or (status is NodeStatus.STOPPED and not began(dependent))
            if again and dependent not in result:
                result[dependent] = None
                front.append(dependent)
    return list(result)


def instance_id(node_id: str, index: int) -> str:
    return f"{node_id}[{index}]"


def dag_node_id(node_id: str) -> str:
    """The id of the node in the DAG; for an instance, of the mapped node."""
    return node_id.partition("[")[0]


def is_instance(node_id: str) -> bool:
    """Whether it is the id of an instance of a mapped node."""
    return _INSTANCE.fullmatch(node_id) is not None
