"""The rows that a scenario left in the database, read once for all checks."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adjudge.domain.chain import Dag, Node
from adjudge.domain.chain_parser import parse_validated_dag
from adjudge.domain.states import ChainRunStatus, NodeStatus
from tests.simulation.chains.operators import REPLAYED
from tests.simulation.chains.script import NodeScript, Script
from tests.simulation.world import World

Key = tuple[str, str]
"""Run and node."""


@dataclass(frozen=True)
class FinalState:
    """The rows of a chain scenario."""

    world: World
    script: Script
    documents: Mapping[str, Mapping[str, Any]]
    names: Mapping[str, str]
    """Of chains, by id."""

    @cached_property
    def dags(self) -> dict[str, Dag]:
        """By chain."""
        return {chain_id: parse_validated_dag(document) for chain_id, document in self.documents.items()}

    @cached_property
    def runs(self) -> dict[str, sqlite3.Row]:
        """By id, the oldest first."""
        return {row["id"]: row for row in self.world.query("SELECT * FROM chain_runs ORDER BY id")}

    @cached_property
    def nodes(self) -> dict[Key, sqlite3.Row]:
        """All nodes of all runs."""
        rows = self.world.query("SELECT * FROM chain_nodes ORDER BY run_id, ordinal, node_id")
        return {(row["run_id"], row["node_id"]): row for row in rows}

    @cached_property
    def jobs(self) -> dict[str, sqlite3.Row]:
        """By id."""
        return {row["id"]: row for row in self.world.query("SELECT * FROM jobs ORDER BY id")}

    @cached_property
    def log(self) -> list[sqlite3.Row]:
        """Every transition of runs and nodes, in order."""
        return self.world.query("SELECT * FROM chain_status_log ORDER BY id")

    @cached_property
    def artifacts(self) -> dict[Key, Any]:
        """What nodes left behind; a mapped one what its instances did, unless somebody gave it something else."""
        found = {key: json.loads(row["artifact"]) for key, row in self.nodes.items() if row["artifact"] is not None}
        for key in self.nodes:
            if self.is_mapped(key) and key not in found:
                found[key] = [found.get(item) for item in self.instances[key]]
        return found

    @cached_property
    def instances(self) -> dict[Key, list[Key]]:
        """Of mapped nodes."""
        found: dict[Key, list[Key]] = defaultdict(list)
        for key, row in self.nodes.items():
            if row["parent_id"] is not None:
                found[key[0], row["parent_id"]].append(key)
        return found

    @cached_property
    def completed(self) -> set[Key]:
        """Nodes that somebody declared done."""
        rows = self.world.query("SELECT object_id, details FROM audit_log WHERE action = 'complete'")
        return {(row["object_id"], json.loads(row["details"])["node_id"]) for row in rows}

    @cached_property
    def touched(self) -> set[str]:
        """Runs that somebody meddled with, and those above and below them."""
        rows = self.world.query("SELECT object_id FROM audit_log WHERE action IN ('stop', 'retry', 'complete')")
        replayed = self.world.query("SELECT run_id FROM chain_status_log WHERE reason = ?", REPLAYED)
        found = {row["object_id"] for row in rows} | {row["run_id"] for row in replayed}
        while True:
            parents = {(run_id, row["parent_run_id"]) for run_id, row in self.runs.items() if row["parent_run_id"]}
            more = {other for pair in parents if found & set(pair) for other in pair} - found
            if not more:
                return found
            found |= more

    def dag(self, run_id: str) -> Dag:
        """The DAG of a run."""
        return self.dags[self.runs[run_id]["chain_id"]]

    def node(self, run_id: str, node_id: str) -> Node:
        """What the DAG says of a node."""
        return self.dag(run_id).node_for(node_id)

    def act(self, run_id: str, node_id: str) -> NodeScript:
        """What the script says of a node."""
        run = self.runs[run_id]
        return self.script.act(json.loads(run["parameters"])["salt"], self.names[run["chain_id"]], node_id)

    def approves(self, run_id: str, node_id: str) -> bool:
        """What was to be answered to a node."""
        run = self.runs[run_id]
        return self.script.approves(json.loads(run["parameters"])["salt"], self.names[run["chain_id"]], node_id)

    @cached_property
    def children(self) -> dict[Key, list[sqlite3.Row]]:
        """The runs that nodes started, the oldest first."""
        found: dict[Key, list[sqlite3.Row]] = defaultdict(list)
        for row in self.runs.values():
            if row["parent_run_id"] is not None:
                found[row["parent_run_id"], row["parent_node_id"]].append(row)
        return found

    def is_mapped(self, key: Key) -> bool:
        """Whether a node stands for its instances."""
        return self.node(*key).map_spec is not None and self.nodes[key]["parent_id"] is None

    def is_scripted(self, key: Key) -> bool:
        """Whether a node does as the script says."""
        return self.nodes[key]["type"] in ("scripted", "light") and not self.is_mapped(key)

    def holds(self, run_id: str, node: Node, states: Mapping[str, NodeStatus]) -> bool:
        """Whether a node's ``if`` is true while its dependencies stand so."""
        seen = {dep: self.artifacts.get((run_id, dep)) for dep in node.deps if states[dep] is NodeStatus.SUCCESS}
        return node.condition is None or node.condition.evaluate({"artifacts": seen, "parameters": {}})


def status_of(row: sqlite3.Row) -> NodeStatus:
    """Where a node stands."""
    return NodeStatus(row["status"])


def run_status_of(row: sqlite3.Row) -> ChainRunStatus:
    """Where a run stands."""
    return ChainRunStatus(row["status"])
