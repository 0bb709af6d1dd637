"""Parsing of DAGs: all problems are reported, each with its path."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.domain.chain import ChainLimits, DependencyRule, MaxRunsPolicy, NodeRetry
from adjudge.domain.chain_parser import find_cycle, parse_dag, parse_validated_dag
from adjudge.domain.errors import InvalidInput


def problems(document: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        parse_dag(document)
    found = refused.value.fields["problems"]
    assert isinstance(found, list)
    assert all(problem in refused.value.message for problem in found)
    return found


def one(**fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"], **fields}]}


def test_complete_node_is_parsed() -> None:
    dag = parse_dag(
        {
            "nodes": [
                {"id": "list", "type": "noop"},
                {
                    "id": "each",
                    "type": "http",
                    "deps": ["list"],
                    "cfg": {"url": "{{ x }}"},
                    "retry": {"max_attempts": 2, "backoff_ms": 10},
                    "timeout_ms": 500,
                    "when": "none_failed",
                    "if": "artifacts.list.n > 0",
                    "map": {"over": "{{ artifacts.list.items }}", "as": "x", "max_parallel": 3},
                    "priority": 0,
                },
            ],
            "max_parallel": 8,
            "max_parallel_by_type": {"http": 2},
        }
    )
    node = dag.by_id["each"]
    assert (node.deps, node.retry, node.timeout_ms, node.when) == (
        ("list",),
        NodeRetry(2, 10),
        500,
        DependencyRule.NONE_FAILED,
    )
    assert node.map_spec is not None
    assert (node.map_spec.over, node.map_spec.item, node.map_spec.max_parallel) == (
        "{{ artifacts.list.items }}",
        "x",
        3,
    )
    assert (dag.max_parallel, dag.max_parallel_by_type, dag.has_concurrency_limits, node.priority) == (
        8,
        {"http": 2},
        True,
        0,
    )
    assert dag.dependents == {"list": ("each",), "each": ()}
    plain = dag.by_id["list"]
    assert (plain.retry, plain.timeout_ms, plain.when, plain.needs_only_success) == (
        NodeRetry(4, 2_000),
        None,
        DependencyRule.ALL_SUCCESS,
        True,
    )


def test_chain_limits_are_parsed() -> None:
    limits = {"max_runs": 3, "when_full": "refuse", "max_parallel": 20, "max_parallel_by_type": {"http": 4}}
    dag = parse_dag({"nodes": [{"id": "a", "type": "noop"}], "over_runs": limits})
    assert dag.chain_limits == ChainLimits(3, MaxRunsPolicy.REFUSE, 20, {"http": 4})
    assert (dag.has_concurrency_limits, dag.has_cross_run_limits, dag.chain_limits.limits_nodes) == (True, True, True)
    turns = parse_dag({"nodes": [{"id": "a", "type": "noop"}], "over_runs": {"max_runs": 1}})
    assert (turns.has_concurrency_limits, turns.has_cross_run_limits, turns.chain_limits.when_full) == (
        False,
        True,
        MaxRunsPolicy.WAIT,
    )
    assert not parse_dag({"nodes": [{"id": "a", "type": "noop"}]}).has_cross_run_limits


@pytest.mark.parametrize(
    ("over_runs", "said"),
    [
        ([], "over_runs: must be an object"),
        ({"runs": 1}, "over_runs: 'runs' is unknown"),
        ({"max_runs": 0}, "over_runs.max_runs: must be an integer from 1"),
        ({"max_runs": 1, "when_full": []}, "over_runs.when_full: [] is unknown; use one of wait, refuse"),
        ({"when_full": "wait"}, "over_runs.when_full: when_full requires max_runs"),
        ({"max_parallel": "2"}, "over_runs.max_parallel: must be an integer"),
        ({"max_parallel_by_type": {"http": 0}}, "over_runs.max_parallel_by_type.http: must be an integer"),
    ],
)
def test_invalid_chain_limits_are_reported(over_runs: Any, said: str) -> None:
    assert said in "\n".join(problems({"nodes": [{"id": "a", "type": "noop"}], "over_runs": over_runs}))


def test_non_string_rule_is_rejected() -> None:
    assert "when [] is unknown" in "\n".join(problems({"nodes": [{"id": "a", "type": "noop", "when": []}]}))


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        {
            "nodes": [
                {"id": "a b", "type": "noop"},
                {"id": "x", "type": "noop", "deps": ["y", "ghost"]},
                {"id": "y", "type": "noop", "deps": ["x"], "when": "sometimes", "tiemout_ms": 1},
                {"id": "x", "type": "Noop"},
                "node",
            ],
            "max_parallel": 0,
        }
    )
    text = "\n".join(found)
    for said in (
        "nodes[0].id: invalid id 'a b'",
        "node 'x': unknown dependency 'ghost'",
        "node 'y': when 'sometimes' is unknown; use one of all_success",
        "node 'y': 'tiemout_ms' is unknown",
        "node 'x': duplicate id: 2 nodes have it",
        "type must be a name like 'noop', not 'Noop'",
        "nodes[4]: must be an object",
        "max_parallel: must be an integer from 1",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("deps", "spelled"),
    [
        ({"a": ["a"]}, "a → a"),
        ({"a": ["b"], "b": ["a"]}, "a → b → a"),
        ({"a": [], "b": ["a", "d"], "c": ["b"], "d": ["c"]}, "b → c → d → b"),
    ],
)
def test_cycle_is_listed(deps: dict[str, list[str]], spelled: str) -> None:
    nodes = [{"id": key, "type": "noop", "deps": value} for key, value in deps.items()]
    (found,) = problems({"nodes": nodes})
    assert found == f"nodes: dependency cycle: {spelled}"


def test_long_chain_is_parsed_without_recursion() -> None:
    nodes = [{"id": f"n{i}", "type": "noop", "deps": [f"n{i - 1}"] if i else []} for i in range(10_000)]
    assert find_cycle({item["id"]: item["deps"] for item in reversed(nodes)}) is None  # type: ignore[misc]
    assert len(parse_validated_dag({"nodes": nodes}).nodes) == 10_000


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts: must be an integer from 1"),
        ({"retry": {"tries": 3}}, "retry: 'tries' is unknown"),
        ({"timeout_ms": True}, "timeout_ms: must be an integer"),
        ({"priority": 9}, "priority: must be an integer from 0 to 3"),
        ({"cfg": []}, None),
        ({"cfg": ["x"]}, "cfg: must be an object"),
        ({"deps": "a"}, "deps must be a list"),
        ({"deps": ["a", "a"]}, "depends on 'a' 2 times"),
        ({"deps": [], "when": "one_success"}, "requires deps"),
        ({"if": "artifacts.c.x"}, "artifacts of its deps are available (a)"),
        ({"if": "secrets.x"}, "unknown name 'secrets'"),
        ({"if": "artifacts.a.x =="}, "expected a name or a value at the end"),
        ({"if": 3}, "if must be an expression"),
        ({"map": {"over": "items"}}, "map.over: must be a list, or a template"),
        ({"map": {"over": [], "as": "artifacts"}}, "map.as: 'artifacts' is not a valid item name"),
    ],
)
def test_invalid_field_is_reported(fields: dict[str, Any], said: str | None) -> None:
    if said is None:
        parse_dag(one(**fields))
    else:
        assert any(said in problem for problem in problems(one(**fields)))
