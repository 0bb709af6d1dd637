"""Limits over all runs of a chain: the lock of the chain, the current limits, and the remaining slots.

A run takes part if its DAG snapshot limits something over runs. The limits are those of the current definition: a
changed limit also applies to runs that wait already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from adjudge.chains.dag_cache import DagCache
from adjudge.domain.chain import ChainLimits, Dag, Node
from adjudge.domain.errors import NotFound
from adjudge.store.chains import concurrency as places
from adjudge.store.chains import definitions
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row

UNLIMITED: Final = 100_000


async def lock_chains(tx: Tx, chain_ids: Iterable[str | None]) -> None:
    """Lock chains until the transaction ends; must be called before any of their runs is locked."""
    rows = sorted({(chain_id,) for chain_id in chain_ids if chain_id is not None})
    if rows:
        await tx.fetch(places.LOCK_CHAINS, rows)


async def lock_chain_of_run(tx: Tx, run_id: str) -> None:
    """Lock the chain of one run, if it has limits over runs."""
    await tx.fetch(places.LOCK_CHAIN_OF_RUN, run_id=run_id)


async def current_chain_limits(tx: Tx, dags: DagCache, chain_id: str) -> ChainLimits:
    """The current limits of the chain over its runs, unchanged until this transaction ends."""
    for row in await tx.fetch(places.LOCK_CHAINS, [(chain_id,)]):
        dag = dags.get(chain_id, row["version"])
        if dag is None:
            dag = dags.put(chain_id, row["version"], (await definitions.find(tx, chain_id)).dag or {})
        return dag.chain_limits
    raise NotFound("chain", chain_id)


class SlotAllocator:
    """The remaining slots: in each run, and over all of them."""

    def __init__(self, over_runs: ChainLimits | None = None) -> None:
        self._over = over_runs or ChainLimits()
        self._busy = Counter[str]()
        self._in_run = Counter[tuple[str, ...]]()

    def occupy(self, run_id: str, type_name: str, parent_id: str, number: int = 1, busy: int = 1) -> None:
        """Count the slots in use; a waiting node releases its slot over all runs."""
        self._busy[type_name] += busy
        for key in ((run_id,), (run_id, "type", type_name), (run_id, "parent", parent_id)):
            self._in_run[key] += number

    @property
    def free(self) -> int:
        """The number of slots over all runs."""
        return UNLIMITED if self._over.max_parallel is None else max(0, self._over.max_parallel - self._busy.total())

    def free_in_run(self, run_id: str, dag: Dag) -> int:
        """The number of slots in a run."""
        return UNLIMITED if dag.max_parallel is None else max(0, dag.max_parallel - self._in_run[run_id,])

    def allocate(self, run_id: str, dag: Dag, row: Row) -> Node | None:
        """Give a node a slot if every limit allows it; return the node of the DAG."""
        node, type_name, parent_id = dag.node_for(row["node_id"]), row["type"], row["parent_id"]
        siblings = node.map_spec.max_parallel if node.map_spec and parent_id else None
        if (
            not self.free
            or not self.free_in_run(run_id, dag)
            or self._busy[type_name] >= self._over.max_parallel_by_type.get(type_name, UNLIMITED)
            or self._in_run[run_id, "type", type_name] >= dag.max_parallel_by_type.get(type_name, UNLIMITED)
            or self._in_run[run_id, "parent", parent_id] >= (siblings or UNLIMITED)
        ):
            return None
        self.occupy(run_id, type_name, parent_id)
        return node
