"""What must hold of chains after every simulation: what nodes left behind, how runs ended, what started by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from adjudge.store.engine.rows import decode_json
from tests.simulation.chains.attempts import check_attempts
from tests.simulation.chains.final_state import FinalState, Key, run_status_of, status_of
from tests.simulation.chains.history import LogReplay, graces, shared_places
from tests.simulation.chains.timers_and_triggers import check_by_itself
from tests.simulation.checker import check_jobs
from tests.support.chain_model import expected_states, final_run_status

if TYPE_CHECKING:
    from tests.simulation.chains.scenario import ChainScenario


WATCH_CHECKPOINTS: Final = """
    CREATE TEMP TABLE overwritten_checkpoints (run_id, node_id, old, new);
    CREATE TEMP TRIGGER watch_checkpoints AFTER UPDATE ON main.chain_checkpoints WHEN NEW.attempt_id < OLD.attempt_id
    BEGIN INSERT INTO overwritten_checkpoints VALUES (OLD.run_id, OLD.node_id, OLD.attempt_id, NEW.attempt_id); END;
"""
"""Of checkpoints the rows tell the last alone."""


def check(scenario: ChainScenario) -> list[str]:
    """Every violation found, in words."""
    left = scenario.left()
    return [
        *check_jobs(scenario),
        *_all_over(left),
        *LogReplay(left).violations(),
        *shared_places(left),
        *graces(left),
        *check_attempts(left),
        *_artifacts(left),
        *_checkpoints(left, scenario.saved),
        *check_by_itself(left),
        *_models(left),
    ]


def _all_over(left: FinalState) -> Iterator[str]:
    """Everything has ended, and the counts in the rows of runs are what the rows of nodes say."""
    for run_id, run in left.runs.items():
        nodes = [row for key, row in left.nodes.items() if key[0] == run_id]
        if run_status_of(run) not in CHAIN_RUN.terminal:
            yield f"run {run_id} is still {run['status']}: {[(row['node_id'], row['status']) for row in nodes]}"
            continue
        open_nodes = [row["node_id"] for row in nodes if status_of(row) not in NODE.terminal]
        if open_nodes or run["nodes_open"] or run["nodes_total"] != len(nodes):
            counted = f"{run['nodes_open']} of {run['nodes_total']} open"
            yield f"run {run_id} has ended and counts {counted}, {open_nodes} of {len(nodes)} are"
        left_over = [row["node_id"] for row in nodes if row["slot"] or row["wait_on"]]
        if left_over or run["slot"]:
            yield f"run {run_id} has ended and holds slots or waits: {left_over}"


def _artifacts(left: FinalState) -> Iterator[str]:
    """What stands was written by the attempt that holds, which saw all that its dependencies had left."""
    begun = _seen_at_the_start(left)
    for key, row in left.nodes.items():
        if status_of(row) is NodeStatus.SUCCESS and left.is_scripted(key) and key not in left.completed:
            yield from (f"{key}: {what}" for what in _artifact(left, key, row, begun.get(key, set())))


def _artifact(left: FinalState, key: Key, row: sqlite3.Row, begun: set[str]) -> Iterator[str]:
    artifact = left.artifacts[key]
    if artifact["attempt"] != row["attempt"]:
        yield f"attempt {artifact['attempt']} wrote over attempt {row['attempt']}"
    if artifact["item"] != decode_json(row["item"]):
        yield f"its item is {row['item']}, it saw {artifact['item']}"
    for dep in left.node(*key).deps:
        seen, there = artifact["seen"].get(dep), left.artifacts.get((key[0], dep))
        if seen != there and (seen is not None or dep in begun):
            yield f"it saw {seen} of {dep}, which had left {there}"


def _seen_at_the_start(left: FinalState) -> dict[Key, set[str]]:
    """Which dependencies had succeeded when a node began."""
    done, found = set[Key](), dict[Key, set[str]]()
    moves = [(row, (row["run_id"], row["node_id"])) for row in left.log if row["node_id"] is not None]
    for row, key in moves:
        if row["to_status"] == NodeStatus.SUCCESS:
            done.add(key)
        elif (row["from_status"], row["to_status"]) == (NodeStatus.PENDING, NodeStatus.RUNNING):
            found[key] = {dep for dep in left.node(*key).deps if (row["run_id"], dep) in done}
    return found


def _checkpoints(left: FinalState, saved: dict[Key, int]) -> Iterator[str]:
    """What an attempt stored with success was stored, and not overwritten by an earlier one."""
    for row in left.world.query("SELECT * FROM overwritten_checkpoints"):
        node = f"{row['run_id']}/{row['node_id']}"
        yield f"{node}: attempt {row['new']} wrote over the checkpoint of attempt {row['old']}"
    rows = left.world.query("SELECT run_id, node_id, attempt_id FROM chain_checkpoints")
    kept = {(row["run_id"], row["node_id"]): row["attempt_id"] for row in rows}
    for key, attempt in saved.items():
        if kept.get(key, 0) < attempt:
            yield f"{key}: the checkpoint is that of attempt {kept.get(key)}, attempt {attempt} had kept one"


def _models(left: FinalState) -> Iterator[str]:
    """A run that nobody meddled with ended as the rules say, given how its jobs ended."""
    for run_id, run in left.runs.items():
        if run_id in left.touched or run_status_of(run) not in CHAIN_RUN.terminal:
            continue
        wanted = expected_states(
            left.dag(run_id),
            partial(_succeeds, left, run_id),
            partial(left.holds, run_id),
        )
        had = {node.id: status_of(left.nodes[run_id, node.id]) for node in left.dag(run_id).nodes}
        if had != wanted:
            differs = {
                node_id: (str(had[node_id]), str(wanted[node_id])) for node_id in had if had[node_id] != wanted[node_id]
            }
            yield f"run {run_id} (chain {left.names[run['chain_id']]}) ended other than the rules say: {differs}"
        if run["status"] != final_run_status(wanted.values()):
            yield f"run {run_id} ended as {run['status']}, the rules say {final_run_status(wanted.values())}"


def _succeeds(left: FinalState, run_id: str, node_id: str) -> bool:
    """How a node ends that runs: as its jobs did, and what it waits for."""
    key = (run_id, node_id)
    row = left.nodes[key]
    job = left.jobs.get(row["job_id"] or "")
    if job is None or job["status"] != "succeeded":
        return False
    if left.is_mapped(key):
        return all(_succeeds(left, *item) for item in left.instances[key])
    if row["type"] == "wait_approval":
        return left.approves(*key)
    if row["type"] == "chain":
        return run_status_of(left.children[key][-1]) is ChainRunStatus.SUCCESS
    return True
