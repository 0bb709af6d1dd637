"""Random chains: every rule, conditions, maps, retries, timers, questions, sub-chains and limits, in small DAGs."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from adjudge.domain.chain import DependencyRule

RULES: Final = [*[DependencyRule.ALL_SUCCESS] * 5, *DependencyRule]
_LIMITS: Final[list[dict[str, Any]]] = [
    *[{}] * 5,
    {"max_parallel": 1},
    {"max_parallel": 2},
    {"max_parallel_by_type": {"scripted": 1}},
    {"over_runs": {"max_parallel": 2}},
    {"over_runs": {"max_runs": 1}},
    {"over_runs": {"max_runs": 1, "max_parallel_by_type": {"scripted": 1}}},
]


def document(random: Random, size: int, below: str | None = None) -> dict[str, Any]:
    """A DAG, one in three a plain one; ``below`` is a chain that it may run as a part of itself."""
    kind = random.random()
    if kind < 1 / 3:
        return plain(random, size)
    if kind < 1 / 2:
        return mapped(random)
    nodes: list[dict[str, Any]] = []
    for index in range(size):
        deps = [f"n{dep}" for dep in sorted(random.sample(range(index), min(index, random.choice([0, 1, 1, 2, 3]))))]
        nodes.append(_node(random, f"n{index}", deps, {item["id"]: item for item in nodes}, below))
    return {"nodes": nodes} | random.choice(_LIMITS)


def plain(random: Random, size: int) -> dict[str, Any]:
    """A DAG of nodes that ask for nothing but success."""
    nodes = []
    for index in range(size):
        deps = [f"n{dep}" for dep in sorted(random.sample(range(index), min(index, random.choice([1, 1, 2]))))]
        kind = random.choice(["scripted", "light"])
        nodes.append({"id": f"n{index}", "deps": deps, "type": kind, "retry": _retry(random)})
    return {"nodes": nodes}


def mapped(random: Random) -> dict[str, Any]:
    """A list, a node that is mapped over it, and one that follows."""
    nodes: list[dict[str, Any]] = [
        {"id": "n0", "type": "light", "retry": _retry(random)},
        {"id": "n1", "type": "scripted", "deps": ["n0"], "cfg": {"item": "{{ item }}"}, "retry": _retry(random)},
        {"id": "n2", "type": "light", "deps": ["n1"], "retry": _retry(random)},
    ]
    nodes[1]["map"] = {"over": "{{ artifacts.n0.items }}"}
    return {"nodes": nodes} | random.choice(_LIMITS)


def _retry(random: Random) -> dict[str, int]:
    return {"max_attempts": random.choice([1, 2, 3, 4]), "backoff_ms": random.choice([0, 500, 2_000])}


def _node(
    random: Random, node_id: str, deps: list[str], before: dict[str, dict[str, Any]], below: str | None
) -> dict[str, Any]:
    node: dict[str, Any] = {"id": node_id, "deps": deps, "priority": random.randrange(4), "cfg": {}}
    node["when"] = str(random.choice(RULES) if deps else DependencyRule.ALL_SUCCESS)
    node["retry"] = _retry(random)
    node["type"] = random.choice(
        ["scripted", "scripted", "scripted", "light", "light", "sleep", "ask", "chain", "chain"]
    )
    if node["type"] == "sleep":
        node["cfg"] = {"seconds": random.randrange(6)}
    elif node["type"] == "ask":
        node |= {"type": "wait_approval", "cfg": {"question": "May I?"}}
    elif node["type"] == "chain" and below is not None:
        node["cfg"] = {"chain": below, "parameters": {"salt": "{{ parameters.salt }}"}}
    else:
        _script(random, node, [dep for dep in deps if _is_scripted(before[dep])])
    looks_at = [dep for dep in deps if _is_scripted(before[dep])]
    if looks_at and "map" not in node and random.random() < 0.25:
        node["if"] = f"artifacts.{random.choice(looks_at)}.value {random.choice(['==', '!='])} {random.randrange(4)}"
    return node


def _script(random: Random, node: dict[str, Any], scripted: list[str]) -> None:
    if node["type"] not in ("scripted", "light"):
        node["type"] = "scripted"
    if node["type"] == "scripted" and random.random() < 0.15:
        node["timeout_ms"] = 8_000
    if scripted and node["when"] == DependencyRule.ALL_SUCCESS and random.random() < 0.3:
        node["map"] = {"over": f"{{{{ artifacts.{random.choice(scripted)}.items }}}}"}
        node["cfg"] = {"item": "{{ item }}"}
        if random.random() < 0.3:
            node["map"]["max_parallel"] = 1


def _is_scripted(node: dict[str, Any]) -> bool:
    return node["type"] in ("scripted", "light") and "map" not in node
