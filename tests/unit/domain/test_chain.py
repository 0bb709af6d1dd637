"""Rules of DAGs: decisions, skip cascades, reopened nodes."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from adjudge.domain.chain import (
    Dag,
    DependencyCounts,
    DependencyRule,
    Node,
    NodeDecision,
    cascade_skips,
    dag_node_id,
    decide,
    dependency_counts,
    instance_id,
    is_instance,
    nodes_to_reopen,
)
from adjudge.domain.states import NodeStatus as N
from tests.support.chain_model import decide_pending, final_run_status


def diamond(**rules: DependencyRule) -> Dag:
    deps = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    return Dag(
        tuple(Node(key, "noop", value, when=rules.get(key, DependencyRule.ALL_SUCCESS)) for key, value in deps.items())
    )


def test_every_rule_waits_for_every_dependency() -> None:
    for when in DependencyRule:
        assert decide(when, DependencyCounts(waiting=1, success=5, failed=5)) is NodeDecision.WAIT


def test_dependency_rules() -> None:
    def held(counts: DependencyCounts) -> set[DependencyRule]:
        return {when for when in DependencyRule if decide(when, counts) is NodeDecision.RUN}

    forever = {DependencyRule.ALL_DONE, DependencyRule.ALWAYS}
    assert held(DependencyCounts(success=2)) == {
        *forever,
        DependencyRule.ALL_SUCCESS,
        DependencyRule.ONE_SUCCESS,
        DependencyRule.NONE_FAILED,
    }
    assert held(DependencyCounts(success=1, failed=1)) == {
        *forever,
        DependencyRule.ONE_SUCCESS,
        DependencyRule.ONE_FAILED,
    }
    assert held(DependencyCounts(success=1, skipped=1)) == {
        *forever,
        DependencyRule.ONE_SUCCESS,
        DependencyRule.NONE_FAILED,
    }
    assert held(DependencyCounts(failed=2)) == {*forever, DependencyRule.ONE_FAILED}
    assert held(DependencyCounts(skipped=2)) == {*forever, DependencyRule.NONE_FAILED}
    assert held(DependencyCounts()) == {*forever, DependencyRule.ALL_SUCCESS, DependencyRule.NONE_FAILED}


def test_decide_pending_starts_roots_and_propagates_skips() -> None:
    dag = diamond(d=DependencyRule.ALL_DONE)
    assert decide_pending(dag, dict.fromkeys("abcd", N.PENDING)) == {"a": NodeDecision.RUN}
    failed = {"a": N.FAILED, "b": N.PENDING, "c": N.PENDING, "d": N.PENDING}
    assert decide_pending(dag, failed) == {"b": NodeDecision.SKIP, "c": NodeDecision.SKIP, "d": NodeDecision.RUN}


def test_nodes_to_reopen_are_skipped_or_unstarted() -> None:
    dag = diamond()
    states = {"a": N.FAILED, "b": N.SKIPPED, "c": N.STOPPED, "d": N.SKIPPED}
    assert sorted(nodes_to_reopen(dag, states, lambda _: False, "a")) == ["b", "c", "d"]
    assert sorted(nodes_to_reopen(dag, states, lambda node_id: node_id == "c", "a")) == ["b", "d"]
    assert nodes_to_reopen(dag, states | {"d": N.SUCCESS}, lambda _: True, "b") == []


def test_run_finishes_with_last_node() -> None:
    assert final_run_status([N.SUCCESS, N.RUNNING]) is None
    assert final_run_status([N.SUCCESS, N.SKIPPED]) == "success"
    assert final_run_status([N.SUCCESS, N.STOPPED]) == "failed"


def test_instance_ids() -> None:
    assert instance_id("m", 3) == "m[3]"
    assert (dag_node_id("m[3]"), dag_node_id("m"), is_instance("m[3]"), is_instance("m")) == ("m", "m", True, False)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    size = draw(st.integers(1, 12))
    nodes = []
    for index in range(size):
        deps = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        when = draw(st.sampled_from(list(DependencyRule)))
        if not deps and when in (DependencyRule.ONE_SUCCESS, DependencyRule.ONE_FAILED):
            when = DependencyRule.ALL_SUCCESS
        nodes.append(Node(f"n{index}", "noop", tuple(f"n{dep}" for dep in sorted(deps)), when=when))
    return Dag(tuple(nodes))


@given(dags(), st.data())
def test_cascade_skips_equals_decide_pending(dag: Dag, data: st.DataObject) -> None:
    """The incremental way, which the database takes, and the way that looks at everything agree."""
    ended = data.draw(st.integers(0, len(dag.nodes) - 1))
    states = {}
    for index, node in enumerate(dag.nodes):
        states[node.id] = data.draw(st.sampled_from([N.SUCCESS, N.FAILED])) if index < ended else N.PENDING
    skip = dag.nodes[ended].id
    waiting = {
        node.id: dependency_counts(dag, node.id, states)
        for node in dag.nodes
        if states[node.id] is N.PENDING and node.id != skip
    }
    before = decide_pending(dag, states | {skip: N.RUNNING})
    assume(all(decision is NodeDecision.RUN for decision in before.values()))
    found = cascade_skips(dag, waiting, [skip])
    whole = decide_pending(dag, states | {skip: N.SKIPPED})
    assert set(found.skipped) == {key for key, decision in whole.items() if decision is NodeDecision.SKIP}
    runs = {key for key, decision in whole.items() if decision is NodeDecision.RUN}
    assert set(found.runnable) == runs - set(before)
    assert all(item.waiting > 0 for item in found.still_waiting.values())
