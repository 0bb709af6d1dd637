"""How a run ends by the rules alone, looking at everything at every step: what counting is held against."""

from __future__ import annotations

from collections.abc import Callable

from adjudge.domain.chain import Dag, Node, NodeDecision, States, decide_pending
from adjudge.domain.states import NodeStatus


def _always(_node: Node, _states: States) -> bool:
    return True


def expected_states(
    dag: Dag, succeeds: Callable[[str], bool], holds: Callable[[Node, States], bool] = _always
) -> dict[str, NodeStatus]:
    """The end of every node of the DAG, given how those end that run.

    ``holds`` says whether a node's ``if`` is true once its dependencies stand as they do.
    """
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
