"""What happens in a chain scenario without a user: timers, sub-chains, triggers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import pairwise

from adjudge.domain.states import ChainRunStatus, NodeStatus
from tests.simulation.chains.final_state import FinalState, Key, run_status_of, status_of


def check_by_itself(left: FinalState) -> Iterator[str]:
    """Every violation found, in words."""
    for key, row in left.nodes.items():
        is_done = status_of(row) is NodeStatus.SUCCESS and key not in left.completed
        if row["type"] == "sleep" and is_done:
            yield from _timer(left, key, row)
        if row["type"] == "chain":
            yield from _part(left, key, is_done=is_done)
    for trigger in left.world.query("SELECT id, kind, spec FROM chain_triggers"):
        yield from _trigger(left, trigger)
    yield from _ticks(left)


def _timer(left: FinalState, key: Key, row: sqlite3.Row) -> Iterator[str]:
    """No timer ends before its time."""
    until_ms = left.artifacts[key]["until_ms"]
    if row["ended_at"] < until_ms * 1_000:
        yield f"{key} slept until {row['ended_at']} µs, before {until_ms} ms"


def _part(left: FinalState, key: Key, *, is_done: bool) -> Iterator[str]:
    """A node that runs another chain has one run of it, another if that came to nothing, and ends as the last did."""
    if key[0] in left.touched:
        return
    children = left.children[key]
    for before, after in pairwise(children):
        if run_status_of(before) is ChainRunStatus.SUCCESS or before["finished_at"] > after["created_at"]:
            yield f"{key} started {after['id']} beside {before['id']}, which is {before['status']}"
    if is_done and run_status_of(children[-1]) is not ChainRunStatus.SUCCESS:
        yield f"{key} succeeded, but its run {children[-1]['id']} is {children[-1]['status']}"


def _trigger(left: FinalState, trigger: sqlite3.Row) -> Iterator[str]:
    """A trigger fires at its planned time, or with every end of a run that it watches, once."""
    wanted = 1
    if trigger["kind"] == "chain":
        watched = json.loads(trigger["spec"])["filter"]
        ends = [row for row in left.log if row["node_id"] is None and row["to_status"] in watched["status"]]
        wanted = sum(left.runs[row["run_id"]]["chain_id"] == watched["chain_id"] for row in ends)
    ticks = left.world.query("SELECT tick FROM chain_trigger_ticks WHERE trigger_id = ?", trigger["id"])
    if len(ticks) != wanted:
        yield f"the {trigger['kind']} trigger ticked {len(ticks)} times, not {wanted}"


def _ticks(left: FinalState) -> Iterator[str]:
    """Every tick starts a run, and one."""
    kinds = ("delay", "chain")
    started = [row["id"] for row in left.runs.values() if row["trigger_kind"] in kinds and not row["parent_run_id"]]
    ticks = [tuple(row) for row in left.world.query("SELECT run_id, state, error FROM chain_trigger_ticks")]
    if sorted(started) != sorted(run_id or "" for run_id, *_ in ticks):
        yield f"the ticks {ticks} started {started}"
