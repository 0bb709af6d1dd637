"""How every single attempt of every node ended, held against the script."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Final

from tests.simulation.chains.final_state import FinalState, Key
from tests.simulation.chains.script import SCRIPTED

MISHAPS: Final = frozenset({"UNAVAILABLE", "OUTCOME_UNKNOWN", "WORKER_LOST"})
"""Errors that the world makes, whatever the script says."""


def check_attempts(left: FinalState) -> Iterator[str]:
    """Every attempt ended as the script says, or in a mishap; nothing was given up before its last attempt."""
    for row in left.world.query("SELECT * FROM job_attempts ORDER BY job_id, attempt_id"):
        job = left.jobs[row["job_id"]]
        key = (job["chain_run_id"], job["node_id"])
        number = int(json.loads(job["payload"])["attempts_before"]) + row["attempt_id"]
        yield from (f"{key}, attempt {number}: {what}" for what in _attempt(left, key, job, row, number))
    yield from _items(left)


def _attempt(left: FinalState, key: Key, job: sqlite3.Row, row: sqlite3.Row, number: int) -> Iterator[str]:
    outcome, code = row["outcome"], row["error_code"]
    if outcome == "succeeded":
        yield from _went_well(left, key, number)
    elif outcome == "canceled" and key[0] not in left.touched:
        yield f"canceled ({row['reason']}), though nobody meddled"
    elif outcome in ("released", "failed") and code is not None:
        yield from _went_badly(left, key, row, number)
    if outcome == "failed" and row["attempt_id"] < job["max_attempts"] and code != "INVALID_INPUT":
        yield f"given up with {code} after {row['attempt_id']} of {job['max_attempts']} attempts"
    if outcome == "released" and code == "INVALID_INPUT":
        yield "tried again, though it had failed for good"


def _went_well(left: FinalState, key: Key, number: int) -> Iterator[str]:
    if not left.is_scripted(key) or _may_be_stopped(left, key):
        return
    act = left.act(*key)
    if number <= act.fails or act.refuses:
        yield f"succeeded, the script says {act}"


def _went_badly(left: FinalState, key: Key, row: sqlite3.Row, number: int) -> Iterator[str]:
    code, error = row["error_code"], row["error"] or ""
    if code in MISHAPS:
        return
    if SCRIPTED in error:
        act = left.act(*key)
        wanted = "NODE_FAILED" if number <= act.fails else "INVALID_INPUT"
        if code != wanted or (number > act.fails and not act.refuses):
            yield f"failed with {code}, the script says {act}"
    elif not _may_fail(left, key, error):
        yield f"failed with {code}: {error}"


def _may_fail(left: FinalState, key: Key, error: str) -> bool:
    """Whether an error is one of those that neither the script nor a mishap brings."""
    is_late = "Timed out" in error and left.node(*key).timeout_ms is not None
    has_no_list = "map.over" in error and key[0] in left.touched  # retried, though what it maps over was stopped
    return is_late or has_no_list


def _may_be_stopped(left: FinalState, key: Key) -> bool:
    """Whether an attempt may have ended well because it broke off in good order."""
    return any(row["run_id"] == key[0] and row["to_status"] == "stopping" for row in left.log)


def _items(left: FinalState) -> Iterator[str]:
    """A mapped node has an instance for every item."""
    for key, row in left.nodes.items():
        node = left.node(*key)
        if node.map_spec is None or not left.is_mapped(key) or row["status"] != "success" or key in left.completed:
            continue
        source = str(node.map_spec.over).split(".")[1]
        wanted = len(left.artifacts[key[0], source]["items"])
        if len(left.instances[key]) != wanted:
            yield f"{key} has {len(left.instances[key])} instances, {wanted} items"
