"""The rules of DAGs: decisions, cascades, what is opened again."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from adjudge.domain.chain import (
    Counts,
    Dag,
    Decision,
    Node,
    When,
    base_id,
    cascade,
    counts_of,
    decide,
    instance_id,
    is_instance,
    ready,
    reopened,
    run_ends_as,
)
from adjudge.domain.states import NodeStatus as N


def diamond(**rules: When) -> Dag:
    deps = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    return Dag(tuple(Node(key, "noop", value, when=rules.get(key, When.ALL_SUCCESS)) for key, value in deps.items()))


def test_every_rule_waits_for_every_dependency() -> None:
    for when in When:
        assert decide(when, Counts(waiting=1, success=5, failed=5)) is Decision.WAIT


def test_rules_hold_by_how_dependencies_ended() -> None:
    def held(counts: Counts) -> set[When]:
        return {when for when in When if decide(when, counts) is Decision.RUN}

    forever = {When.ALL_DONE, When.ALWAYS}
    assert held(Counts(success=2)) == {*forever, When.ALL_SUCCESS, When.ONE_SUCCESS, When.NONE_FAILED}
    assert held(Counts(success=1, failed=1)) == {*forever, When.ONE_SUCCESS, When.ONE_FAILED}
    assert held(Counts(success=1, skipped=1)) == {*forever, When.ONE_SUCCESS, When.NONE_FAILED}
    assert held(Counts(failed=2)) == {*forever, When.ONE_FAILED}
    assert held(Counts(skipped=2)) == {*forever, When.NONE_FAILED}
    assert held(Counts()) == {*forever, When.ALL_SUCCESS, When.NONE_FAILED}


def test_ready_decides_roots_and_follows_skips() -> None:
    dag = diamond(d=When.ALL_DONE)
    assert ready(dag, dict.fromkeys("abcd", N.PENDING)) == {"a": Decision.RUN}
    failed = {"a": N.FAILED, "b": N.PENDING, "c": N.PENDING, "d": N.PENDING}
    assert ready(dag, failed) == {"b": Decision.SKIP, "c": Decision.SKIP, "d": Decision.RUN}


def test_what_was_skipped_or_never_began_is_opened_again_and_nothing_else() -> None:
    dag = diamond()
    states = {"a": N.FAILED, "b": N.SKIPPED, "c": N.STOPPED, "d": N.SKIPPED}
    assert sorted(reopened(dag, states, lambda _: False, "a")) == ["b", "c", "d"]
    assert sorted(reopened(dag, states, lambda node_id: node_id == "c", "a")) == ["b", "d"]
    assert reopened(dag, states | {"d": N.SUCCESS}, lambda _: True, "b") == []


def test_a_run_ends_when_all_nodes_have() -> None:
    assert run_ends_as([N.SUCCESS, N.RUNNING]) is None
    assert run_ends_as([N.SUCCESS, N.SKIPPED]) == "success"
    assert run_ends_as([N.SUCCESS, N.STOPPED]) == "failed"


def test_instances_are_named_after_their_node() -> None:
    assert instance_id("m", 3) == "m[3]"
    assert (base_id("m[3]"), base_id("m"), is_instance("m[3]"), is_instance("m")) == ("m", "m", True, False)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    size = draw(st.integers(1, 12))
    nodes = []
    for index in range(size):
        deps = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        when = draw(st.sampled_from(list(When)))
        if not deps and when in (When.ONE_SUCCESS, When.ONE_FAILED):
            when = When.ALL_SUCCESS
        nodes.append(Node(f"n{index}", "noop", tuple(f"n{dep}" for dep in sorted(deps)), when=when))
    return Dag(tuple(nodes))


@given(dags(), st.data())
def test_counting_cascades_of_skips_arrives_where_the_whole_does(dag: Dag, data: st.DataObject) -> None:
    """The incremental way, which the database takes, and the way that looks at everything agree."""
    ended = data.draw(st.integers(0, len(dag.nodes) - 1))
    states = {}
    for index, node in enumerate(dag.nodes):
        states[node.id] = data.draw(st.sampled_from([N.SUCCESS, N.FAILED])) if index < ended else N.PENDING
    skip = dag.nodes[ended].id
    waiting = {
        node.id: counts_of(dag, node.id, states)
        for node in dag.nodes
        if states[node.id] is N.PENDING and node.id != skip
    }
    before = ready(dag, states | {skip: N.RUNNING})
    assume(all(decision is Decision.RUN for decision in before.values()))
    found = cascade(dag, waiting, [skip])
    whole = ready(dag, states | {skip: N.SKIPPED})
    assert set(found.skipped) == {key for key, decision in whole.items() if decision is Decision.SKIP}
    runs = {key for key, decision in whole.items() if decision is Decision.RUN}
    assert set(found.decided) == runs - set(before)
    assert all(item.waiting > 0 for item in found.counted.values())
