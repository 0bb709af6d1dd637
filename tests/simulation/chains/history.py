"""Invariants at every point of a chain scenario, checked by replaying its status log.

Rules are held against the state of dependencies at that time, limits against what was running.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from adjudge.domain.chain import DependencyRule, NodeDecision, decide, dependency_counts, is_instance
from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from tests.simulation.chains.final_state import FinalState, Key
from tests.support.chain_model import final_run_status

GRACE_MS: Final = 4_000
_GRACE_US: Final = GRACE_MS * 1_000
_STOPPED_WITHIN_US: Final = _GRACE_US + 15_000_000
"""The grace period and several housekeeping rounds, some of which fail."""
_UNDER_WAY: Final = (ChainRunStatus.RUNNING, ChainRunStatus.STOPPING)


@dataclass
class _Run:
    """A run, as the log has brought it so far."""

    status: ChainRunStatus = CHAIN_RUN.initial
    nodes: dict[str, NodeStatus] = field(default_factory=dict)
    successes: Counter[str] = field(default_factory=Counter)
    stop_at: int = 0
    is_reopened: bool = False
    """It goes on because somebody opened it again: it is running at once, and begins nothing before its turn."""


class LogReplay:
    """Goes through the log."""

    def __init__(self, left: FinalState) -> None:
        self._left = left
        self._runs: dict[str, _Run] = {}
        for run_id in left.runs:
            nodes = {node.id: NODE.initial for node in left.dag(run_id).nodes}
            self._runs[run_id] = _Run(nodes=nodes)

    def violations(self) -> Iterator[str]:
        """Every violation found, in words."""
        for row in self._left.log:
            where = f"{row['run_id']}/{row['node_id'] or ''} at {row['at']}"
            found = self._run_moves(row) if row["node_id"] is None else self._node_moves(row)
            yield from (f"{where}: {what}" for what in found)
        for run_id, run in self._runs.items():
            yield from self._ends_there(run_id, run)

    def _ends_there(self, run_id: str, run: _Run) -> Iterator[str]:
        if run.status != self._left.runs[run_id]["status"]:
            yield f"run {run_id} is {self._left.runs[run_id]['status']}, but its log ends at {run.status}"
        for node_id, status in run.nodes.items():
            if status != self._left.nodes[run_id, node_id]["status"]:
                yield f"{run_id}/{node_id} is {self._left.nodes[run_id, node_id]['status']}, its log ends at {status}"
        yield from (f"{run_id}/{node_id} succeeded {n} times" for node_id, n in run.successes.items() if n > 1)

    # Runs.

    def _run_moves(self, row: sqlite3.Row) -> Iterator[str]:
        run, target = self._runs[row["run_id"]], ChainRunStatus(row["to_status"])
        if row["from_status"] != run.status or not CHAIN_RUN.allows(run.status, target):
            yield f"the run jumped from {run.status} to {target}"
        if target is ChainRunStatus.STOPPING:
            run.stop_at = row["at"]
        if run.status in CHAIN_RUN.terminal:
            run.is_reopened = True
        if target in CHAIN_RUN.terminal:
            yield from self._run_ends(run, row, target)
        run.status = target
        if target is ChainRunStatus.RUNNING:
            yield from self._turns(self._left.runs[row["run_id"]]["chain_id"])

    def _run_ends(self, run: _Run, row: sqlite3.Row, target: ChainRunStatus) -> Iterator[str]:
        expected = final_run_status(status for node_id, status in run.nodes.items() if not is_instance(node_id))
        if expected is None or any(status not in NODE.terminal for status in run.nodes.values()):
            yield f"the run ended while nodes stood at {run.nodes}"
        elif run.status is ChainRunStatus.STOPPING and target is not ChainRunStatus.STOPPED:
            yield f"the run was to stop and ended as {target}"
        elif run.status is not ChainRunStatus.STOPPING and target != expected:
            yield f"the run ended as {target}, its nodes say {expected}"
        if target is ChainRunStatus.STOPPED and row["at"] - run.stop_at > _STOPPED_WITHIN_US:
            yield f"the run took {(row['at'] - run.stop_at) // 1_000} ms to stop"

    def _turns(self, chain_id: str) -> Iterator[str]:
        most = self._left.dags[chain_id].chain_limits.max_runs
        under_way = sum(run.status in _UNDER_WAY for run in self._with_turns(chain_id) if not run.is_reopened)
        if most is not None and under_way > most:
            yield f"{under_way} runs of chain {chain_id} are under way, {most} may be"

    def _begun(self, chain_id: str) -> Iterator[str]:
        """However a run came to go on, its nodes run only while it has its turn."""
        dag = self._left.dags[chain_id]
        most, at_work = dag.chain_limits.max_runs, 0
        for run in self._with_turns(chain_id):
            running = [node_id for node_id, status in run.nodes.items() if status is NodeStatus.RUNNING]
            # A mapped node that was opened again does nothing itself: its instances wait for the turn.
            at_work += any(is_instance(node_id) or dag.by_id[node_id].map_spec is None for node_id in running)
        if most is not None and at_work > most:
            yield f"{at_work} runs of chain {chain_id} have a node at work, {most} may have"

    def _with_turns(self, chain_id: str) -> list[_Run]:
        """Runs of a chain that wait for a turn: sub-chains never do."""
        found = [(self._left.runs[run_id], run) for run_id, run in self._runs.items()]
        return [run for row, run in found if row["chain_id"] == chain_id and row["parent_run_id"] is None]

    # Nodes.

    def _node_moves(self, row: sqlite3.Row) -> Iterator[str]:
        run, node_id = self._runs[row["run_id"]], row["node_id"]
        source, target = run.nodes.setdefault(node_id, NODE.initial), NodeStatus(row["to_status"])
        if row["from_status"] != source or not NODE.allows(source, target):
            yield f"the node jumped from {source} to {target}"
        if source is NodeStatus.PENDING and not is_instance(node_id):
            yield from self._decided(run, row, target)
        if source is NodeStatus.PENDING and target is NodeStatus.RUNNING and run.status is not ChainRunStatus.RUNNING:
            yield f"the node began while its run was {run.status}"
        run.nodes[node_id] = target
        run.successes[node_id] += target is NodeStatus.SUCCESS
        if target is NodeStatus.RUNNING:
            yield from self._places(row["run_id"], run)
            yield from self._begun(self._left.runs[row["run_id"]]["chain_id"])

    def _decided(self, run: _Run, row: sqlite3.Row, target: NodeStatus) -> Iterator[str]:
        """A node begins, or is skipped, when all of its dependencies have ended, and as its rule says."""
        dag, node_id = self._left.dag(row["run_id"]), row["node_id"]
        node, counts = dag.by_id[node_id], dependency_counts(dag, node_id, run.nodes)
        decision = decide(node.when, counts)
        if (
            decision is NodeDecision.RUN
            and node.when is not DependencyRule.ALWAYS
            and not self._left.holds(row["run_id"], node, run.nodes)
        ):
            decision = NodeDecision.SKIP
        wanted = {NodeStatus.RUNNING: NodeDecision.RUN, NodeStatus.SKIPPED: NodeDecision.SKIP}.get(target)
        if wanted is not None and decision is not wanted:
            yield f"it was to {wanted}, when {node.when} with {counts} says {decision}"

    def _places(self, run_id: str, run: _Run) -> Iterator[str]:
        """No more nodes of a run are running than may be; one that waits for something keeps its place."""
        dag, running = self._left.dag(run_id), list[Key]()
        for node_id, status in run.nodes.items():
            if status is NodeStatus.RUNNING and (dag.node_for(node_id).map_spec is None or is_instance(node_id)):
                running.append((node_id, dag.node_for(node_id).type))
        types = Counter(type_name for _, type_name in running)
        if dag.max_parallel is not None and len(running) > dag.max_parallel:
            yield f"{len(running)} nodes run, {dag.max_parallel} may: {running}"
        for type_name, most in dag.max_parallel_by_type.items():
            if types[type_name] > most:
                yield f"{types[type_name]} nodes of type {type_name} run, {most} may: {running}"
        siblings = Counter(node_id.partition("[")[0] for node_id, _ in running if is_instance(node_id))
        for base, number in siblings.items():
            fan = dag.by_id[base].map_spec
            if fan is not None and fan.max_parallel is not None and number > fan.max_parallel:
                yield f"{number} instances of {base} run, {fan.max_parallel} may"


def shared_places(left: FinalState) -> Iterator[str]:
    """No more jobs run over all runs of a chain than may: what waits for a run or a person has no job."""
    running: dict[str, dict[str, str]] = defaultdict(dict)
    for row in left.world.query("SELECT job_id, to_status, at FROM job_status_log ORDER BY id"):
        job = left.jobs[row["job_id"]]
        chain_id = left.runs[job["chain_run_id"]]["chain_id"]
        if row["to_status"] != "running":
            running[chain_id].pop(row["job_id"], None)
            continue
        running[chain_id][row["job_id"]] = left.nodes[job["chain_run_id"], job["node_id"]]["type"]
        limits, types = left.dags[chain_id].chain_limits, Counter(running[chain_id].values())
        if limits.max_parallel is not None and types.total() > limits.max_parallel:
            yield f"{types.total()} jobs of chain {chain_id} ran at {row['at']}, {limits.max_parallel} may"
        for type_name, most in limits.max_parallel_by_type.items():
            if types[type_name] > most:
                yield f"{types[type_name]} {type_name} jobs of chain {chain_id} ran at {row['at']}, {most} may"


def graces(left: FinalState) -> Iterator[str]:
    """What runs when its run is to stop is left alone for the grace; what began later has nothing to lose."""
    stops: dict[str, list[int]] = defaultdict(list)
    for row in left.log:
        if row["node_id"] is None and row["to_status"] == ChainRunStatus.STOPPING:
            stops[row["run_id"]].append(row["at"])
    for row in left.world.query("SELECT * FROM job_attempts WHERE outcome = 'canceled' AND reason = 'run_stopped'"):
        run_id = left.jobs[row["job_id"]]["chain_run_id"]
        asked = max(at for at in stops[run_id] if at <= row["ended_at"])
        if row["started_at"] < asked and row["ended_at"] - asked < _GRACE_US:
            yield f"job {row['job_id']} was killed {(row['ended_at'] - asked) // 1_000} ms after its run was to stop"
