"""Reference model of a chain run: decides every node from all statuses; the engine decides by counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adjudge.domain.chain import Dag, DependencyRule, Node, NodeDecision, States, decide, dependency_counts, is_failed
from adjudge.domain.states import NODE, NodeStatus


def decide_pending(dag: Dag, states: States, holds: Callable[[Node], bool] = lambda _: True) -> dict[str, NodeDecision]:
    """Decide all pending nodes that can be decided: a node runs, or it is skipped, which may decide further nodes.

    ``holds`` evaluates the ``if`` of a node.
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


def final_run_status(states: Iterable[NodeStatus]) -> str | None:
    """The final status of a run (``success`` or ``failed``), or None while a node is unfinished."""
    seen = set(states)
    if not seen <= NODE.terminal:
        return None
    return "failed" if any(is_failed(status) for status in seen) else "success"


def _always(_node: Node, _states: States) -> bool:
    return True


def expected_states(
    dag: Dag, succeeds: Callable[[str], bool], holds: Callable[[Node, States], bool] = _always
) -> dict[str, NodeStatus]:
    """The final status of every node; ``succeeds`` and ``holds`` give the result and the ``if`` of a node that runs."""
    states: dict[str, NodeStatus] = {node.id: NodeStatus.PENDING for node in dag.nodes}

    def holds_now(node: Node) -> bool:
        return holds(node, states)

    while decisions := decide_pending(dag, states, holds_now):
        for node_id, decision in decisions.items():
            if decision is NodeDecision.SKIP:
                states[node_id] = NodeStatus.SKIPPED
            else:
                states[node_id] = NodeStatus.SUCCESS if succeeds(node_id) else NodeStatus.FAILED
    return states
