"""Starts runs: of a chain, or again from a run or from one of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from adjudge.chains.approval import APPROVAL_TYPE
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.node_scheduler import ReadyNode
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.domain.authority import Authority
from adjudge.domain.chain import Dag
from adjudge.domain.errors import ChainDisabled, InvalidInput, NotFound, VersionConflict
from adjudge.domain.ids import IdFactory, trace_id_from
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.observe import metrics
from adjudge.store.chains import commands, concurrency, definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import (
    ChainRow,
    LockedChainRun,
    NewChainRun,
    NewNode,
    SlotState,
    StartedChainRun,
)
from adjudge.store.engine.driver import Tx
from adjudge.store.ops import audit_log

_KEY_CHARACTERS = 300


class ChainRunStarter:
    """Creates runs."""

    def __init__(self, dags: DagCache, lifecycle: ChainRunLifecycle, new_id: IdFactory) -> None:
        self._dags = dags
        self._lifecycle = lifecycle
        self._new_id = new_id

    async def start(self, tx: Tx, wanted: NewChainRun) -> StartedChainRun:
        """Start a chain: inserts its run, its nodes and the jobs of root nodes, all or none."""
        _check(wanted)
        chain = await definitions.find_summary(tx, wanted.chain_id)
        if not chain.enabled:
            return await self._known_or_refused(tx, wanted, chain)
        dag = await self._dags.load(tx, chain.id, chain.version)
        started = await self._insert(tx, wanted, chain.version, dag)
        if started.is_new:
            await self._create_nodes(tx, _fresh(started.run_id, wanted, chain.version, dag), wanted, dag)
        return started

    async def rerun(
        self,
        tx: Tx,
        run_id: str,
        *,
        actor: str,
        reason: str = "",
        from_node: str | None = None,
        idempotency_key: str | None = None,
        authority: Authority | None = None,
    ) -> StartedChainRun:
        """Run a run's own snapshot again with its parameters, whole or from one node on.

        From a node on, what had succeeded and does not depend on it is taken over with its artifacts; everything else
        runs. An approval is not taken over if anything after it runs: it was given for the other run. A run is
        history: the new one names it as its origin.
        """
        origin = await chain_queries.find_run(tx, run_id)
        dag = await self._dags.load(tx, origin.chain_id, origin.chain_version)
        kept = await self._kept(tx, dag, run_id, from_node) if from_node is not None else set[str]()
        wanted = NewChainRun(
            origin.chain_id,
            origin.parameters,
            idempotency_key,
            actor,
            "rerun",
            reason or None,
            origin.trace_id,
            authority=authority,
        )
        _check(wanted)
        chain = await definitions.find_summary(tx, wanted.chain_id)
        if not chain.enabled:
            return await self._known_or_refused(tx, wanted, chain)
        started = await self._insert(tx, wanted, origin.chain_version, dag, origin=run_id, kept=len(kept))
        if started.is_new:
            run = _fresh(started.run_id, wanted, origin.chain_version, dag)
            await self._create_nodes(tx, run, wanted, dag, kept=kept, origin_run_id=run_id)
            details: Mapping[str, Mapping[str, Any]] = {run_id: {"new_run_id": started.run_id, "from_node": from_node}}
            await audit_log.record(
                tx, actor=actor, action="rerun", object_kind="chain_run", objects=details, reason=reason
            )
        return started

    async def _known_or_refused(self, tx: Tx, wanted: NewChainRun, chain: ChainRow) -> StartedChainRun:
        """Handle a start of a disabled chain: a known idempotency key returns its run."""
        known = await commands.find_run_by_key(tx, chain.id, wanted.idempotency_key)
        if known is None:
            raise ChainDisabled(f"chain is disabled: {chain.name!r}; enable it first.", id=chain.id)
        return StartedChainRun(known.id, known.number, is_new=False)

    async def _kept(self, tx: Tx, dag: Dag, run_id: str, from_node: str) -> set[str]:
        if from_node not in dag.by_id:
            raise NotFound("node", from_node)
        nodes = [node for node in await chain_queries.list_nodes(tx, run_id) if node.parent_id is None]
        again = {from_node, *(node.node_id for node in nodes if node.status is not NodeStatus.SUCCESS)}
        gone = set[str]().union(*(dag.downstream(node_id) for node_id in again))
        approved = [dag.downstream(node.id) for node in dag.nodes if node.type == APPROVAL_TYPE]
        while asked := [after for after in approved if after & gone and not after <= gone]:
            gone.update(*asked)
        return {node.node_id for node in nodes} - gone

    async def _insert(
        self, tx: Tx, wanted: NewChainRun, version: int, dag: Dag, *, origin: str | None = None, kept: int = 0
    ) -> StartedChainRun:
        if dag.has_cross_run_limits:
            await concurrency.lock_chains(tx, [wanted.chain_id])
        run_id = self._new_id()
        slot: SlotState | None = None
        if dag.chain_limits.max_runs is not None:
            slot = "wanted" if wanted.parent_run_id is None else "held"
        number = await commands.insert_run(
            tx,
            run_id,
            wanted,
            version=version,
            nodes_total=len(dag.nodes),
            nodes_open=len(dag.nodes) - kept,
            origin_run_id=origin,
            slot=slot,
        )
        if number is not None:
            tx.on_commit(metrics.CHAIN_RUNS.labels("started").inc)
            return StartedChainRun(run_id, number, is_new=True)
        known = await commands.find_run_by_key(tx, wanted.chain_id, wanted.idempotency_key)
        if known is None:
            raise VersionConflict(f"Chain {wanted.chain_id!r} changed meanwhile; read it again, then decide.")
        return StartedChainRun(known.id, known.number, is_new=False)

    async def _create_nodes(
        self,
        tx: Tx,
        run: LockedChainRun,
        wanted: NewChainRun,
        dag: Dag,
        *,
        kept: Collection[str] = (),
        origin_run_id: str = "",
    ) -> None:
        """Insert all nodes in one statement; nodes that are ready immediately get their jobs with it.

        If these are the only ones to start, nothing is left to decide, and no other transaction can see the run yet.
        """
        undecided = bool(kept)
        pool = wanted.chain_id if dag.has_cross_run_limits else None
        await commands.copy_nodes(tx, run.id, kept, origin_run_id=origin_run_id, pool=pool)
        needs_slot = dag.chain_limits.max_runs is not None and wanted.parent_run_id is None
        nodes, ready = list[NewNode](), list[ReadyNode]()
        for ordinal, node in enumerate(dag.nodes):
            if node.id in kept:
                continue
            waiting = sum(dep not in kept for dep in node.deps)
            is_ready = not waiting and node.needs_only_success and not dag.has_concurrency_limits and not needs_slot
            undecided |= not waiting and not is_ready
            new = NewNode(
                run.id,
                node.id,
                node.type,
                ordinal,
                node.priority,
                waiting_on=waiting,
                deps_success=len(node.deps) - waiting,
                job_id=self._new_id() if is_ready else None,
                pool=pool,
            )
            nodes.append(new)
            if is_ready:
                ready.append(ReadyNode(run.id, node.id, node, new.job_id))
        await commands.insert_nodes(tx, nodes)
        if not undecided:
            await self._lifecycle.advance_runs(tx, {run.id: run}, [], ready)
        elif needs_slot:
            await self._lifecycle.admit_or_refuse(tx, run.id, wanted.chain_id, dag.chain_limits)
        else:
            await self._lifecycle.start_runnable(tx, run, ready)


def _fresh(run_id: str, wanted: NewChainRun, version: int, dag: Dag) -> LockedChainRun:
    """A run as it was just inserted."""
    trace_id = wanted.trace_id or trace_id_from(run_id)
    return LockedChainRun(run_id, ChainRunStatus.PENDING, wanted.chain_id, version, len(dag.nodes), 0, trace_id)


def _check(wanted: NewChainRun) -> None:
    if not isinstance(wanted.parameters, Mapping):
        raise InvalidInput("parameters: give a JSON object.", field="parameters")
    key = wanted.idempotency_key
    if key is not None and not 0 < len(key) <= _KEY_CHARACTERS:
        raise InvalidInput(f"idempotency_key: use 1 to {_KEY_CHARACTERS} characters.", field="idempotency_key")
