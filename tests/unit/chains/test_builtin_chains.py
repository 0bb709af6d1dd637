"""Chains as files: those that come with Adjudge hold, and what is wrong with a file is said."""

from __future__ import annotations

from typing import Any, cast

import pytest

from adjudge.chains import builtin, executor_registry
from adjudge.chains.cron import parse_cron
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.definition_file import read_definition
from adjudge.chains.map_node import expand_map_nodes
from adjudge.chains.triggers import SPECS
from adjudge.chains.validation import check_cfg
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.executors.approval import WaitApprovalExecutor
from adjudge.store import Database
from tests.support.node_context import context_for


@pytest.mark.parametrize("name", builtin.list_builtin())
def test_shipped_chains_hold(name: str) -> None:
    definition = builtin.load_builtin(name)
    assert definition.name == name
    assert definition.description
    check_dag(definition.dag, executor_registry.discover_executors())
    for trigger in definition.triggers:
        check_cfg(SPECS[trigger.kind], trigger.spec)
        if trigger.kind == "cron":
            parse_cron(trigger.spec)


def test_the_three_are_there() -> None:
    assert set(builtin.list_builtin()) == {"contest-close", "nightly-verify", "problem-pipeline"}
    with pytest.raises(NotFound):
        builtin.read_builtin("../definition")


def test_yaml_is_json_written_comfortably() -> None:
    text = """
name: x
dag:
  nodes:
    - {id: a, type: noop, cfg: {artifact: {on: yes, at: 2026-05-01, flag: true, n: 08, none: null}}}
"""
    (node,) = read_definition(text).dag["nodes"]
    assert node["cfg"]["artifact"] == {"on": "yes", "at": "2026-05-01", "flag": True, "n": "08", "none": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x", "'dag' is missing"),
        ("name: [", "file:1: invalid YAML"),
        ("name: x\ndag: {}\nnodes: []", "there is no 'nodes'"),
        ("name: ''\ndag: {}", "file.name"),
        ("- 1", "must be an object"),
        ("!!python/object/apply:os.system ['true']", "invalid YAML"),
        ("name: x\ndag: {}\ntriggers: [{name: a, kind: often, spec: {}}]", "choose one of cron"),
        (
            "name: x\ndag: {}\ntriggers: [{name: a, kind: webhook, spec: {}}, {name: a, kind: webhook, spec: {}}]",
            "used twice",
        ),
    ],
)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_definition(text, "file")


def mapped(cfg: Any, **fields: Any) -> Any:
    return expand_map_nodes({"nodes": [{"id": "each", "type": "map", "deps": ["x"], "cfg": cfg, **fields}]})["nodes"][0]


def test_map_as_a_type_becomes_the_attribute() -> None:
    inner = {"type": "noop", "cfg": {"artifact": "{{ it }}"}}
    found = mapped({"over": "{{ artifacts.x }}", "as": "it", "max_parallel": 3, "node": inner}, timeout_ms=5)
    assert found == {
        "id": "each",
        "type": "noop",
        "deps": ["x"],
        "timeout_ms": 5,
        "cfg": {"artifact": "{{ it }}"},
        "map": {"over": "{{ artifacts.x }}", "as": "it", "max_parallel": 3},
    }
    found = mapped({"over": [1, 2], "chain": "one", "parameters": {"n": "{{ item }}"}})
    assert (found["type"], found["cfg"]) == ("chain", {"chain": "one", "parameters": {"n": "{{ item }}"}})
    assert found["map"] == {"over": [1, 2]}
    assert expand_map_nodes({"nodes": [found]}) == {"nodes": [found]}


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        ({"over": []}, "give exactly one of node, chain"),
        ({"node": {"type": "noop"}}, "'over' is missing"),
        ({"over": [], "node": {"type": "noop"}, "chain": "x"}, "give exactly one of node, chain"),
        ({"over": [], "node": {"type": "noop"}, "parameters": {}}, "only valid with `chain`"),
        ({"over": [], "node": {"type": "noop", "deps": []}}, "there is no 'deps'"),
    ],
)
def test_a_wrong_map_is_refused(cfg: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mapped(cfg)


def test_what_is_no_dag_is_left_to_its_reader() -> None:
    strange: list[Any] = [None, [], {"nodes": 3}, {"nodes": [3, {"type": "noop"}]}]
    for document in strange:
        assert expand_map_nodes(document) == document


class NoDatabase:
    """One that nobody may ask."""


async def test_a_question_is_asked_however_much_was_to_be_shown_beside_it() -> None:
    cfg = {"question": "Go?", "approvers": ["eva"], "details": ["x" * 300_000]}
    asked = (
        await WaitApprovalExecutor(cast("Database", NoDatabase())).execute(context_for("wait_approval", cfg))
    ).artifact
    assert (asked["question"], asked["approvers"]) == ("Go?", ["eva"])
    assert "Too large to be shown here (300" in asked["details"]
