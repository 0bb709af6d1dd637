"""``chain``: starts another chain and waits for its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol

from adjudge.chains.executor import NodeContext, NodeResult, NodeWaiting
from adjudge.chains.map_node import SUBCHAIN_TYPE
from adjudge.domain.errors import NodeRefused, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ChainRunStatus
from adjudge.store import Database, Tx
from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import NewChainRun, StartedChainRun

WAIT_CHAIN_RUN: Final = "run"
"""The kind of wait of ``chain`` nodes."""
MAX_DEPTH: Final = 10
_UNSUCCESSFUL: Final = (ChainRunStatus.FAILED, ChainRunStatus.STOPPED)


class StartChainRun(Protocol):
    """Starts a run in the caller's transaction."""

    async def __call__(self, tx: Tx, new: NewChainRun) -> StartedChainRun:
        """Start a run, or return the one that was started with the same idempotency key."""
        ...


class SubchainExecutor:
    """Starts another chain and waits until its run has ended; it holds no worker meanwhile.

    The artifact has `run_id` and what the run's end brings. The node fails where the run failed or was stopped; with
    `wait` false it succeeds as soon as the run is started. Chains nest up to ten deep.
    """

    type: ClassVar[str] = SUBCHAIN_TYPE
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.RUN_CONTROL,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "chain": {"type": "string", "minLength": 1, "description": "Name or id of the chain."},
            "parameters": {"type": "object", "description": "Parameters of its run."},
            "wait": {"type": "boolean", "description": "Whether to wait for its end; true where it is left out."},
        },
        "required": ["chain"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, start_chain: StartChainRun) -> None:
        self._database, self._start_chain = database, start_chain

    async def execute(self, context: NodeContext) -> NodeResult | NodeWaiting:
        """Start one run, even over several attempts: the key is saved in the checkpoint before it is used."""
        key = context.checkpoint.get("key") if isinstance(context.checkpoint, dict) else None
        run_id = await self._database.transact(lambda tx: self._started(tx, context, key)) if key else None
        if run_id is None:
            key = f"{context.run_id}/{context.node_id}/{context.attempt}"
            await context.save_checkpoint({"key": key})
            run_id = await self._database.transact(lambda tx: self._started(tx, context, key))
        await context.log(f"started run {run_id}")
        if run_id is None or not context.cfg.get("wait", True):
            return NodeResult({"run_id": run_id})
        return NodeWaiting(WAIT_CHAIN_RUN, run_id, artifact={"run_id": run_id})

    async def _started(self, tx: Tx, context: NodeContext, key: str | None) -> str | None:
        """Start or find the run of a key; None if that run failed or was stopped, so that a new one is started."""
        await _check_depth(tx, context.run_id)
        new = NewChainRun(
            chain_id=await _chain_id(tx, context.cfg["chain"]),
            parameters=context.cfg.get("parameters", {}),
            idempotency_key=key,
            actor=context.actor,
            trigger_kind="chain",
            reason=f"node {context.node_id} of run {context.run_id}",
            trace_id=context.trace_id,
            parent_run_id=context.run_id,
            parent_node_id=context.node_id,
            authority=context.authority,
        )
        started = await self._start_chain(tx, new)
        if not started.is_new and (await chain_queries.find_run(tx, started.run_id)).status in _UNSUCCESSFUL:
            return None
        return started.run_id


async def _chain_id(tx: Tx, name: str) -> str:
    try:
        return (await definitions.find_by_name(tx, name)).id
    except NotFound:
        return (await definitions.find(tx, name)).id


async def _check_depth(tx: Tx, run_id: str) -> None:
    """Limit the nesting of chains: a chain that starts itself would never finish."""
    depth, above = 0, (await chain_queries.find_run(tx, run_id)).parent_run_id
    while above is not None:
        depth += 1
        if depth >= MAX_DEPTH:
            raise NodeRefused(
                f"Sub-chains nested deeper than {MAX_DEPTH} levels; check for a chain that starts itself."
            )
        above = (await chain_queries.find_run(tx, above)).parent_run_id
