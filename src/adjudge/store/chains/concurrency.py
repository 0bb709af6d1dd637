"""Slots: the limits on nodes of one run, and the limits on nodes and runs over all runs of a chain.

The row of a chain with limits over its runs is the lock of everything that they count: every transaction that changes
or starts one of its runs locks it first (jobs, then chains, then runs, then nodes). So slots are counted over rows that
no other transaction changes, and a node of another run may get a slot without the lock of that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.domain.errors import NotFound
from adjudge.store.chains.models import LockedChainRun, NodeKey
from adjudge.store.chains.statements import IS_GIVEN_NODE, KEY, NODE_STATUS
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


class _LockedChain(NamedTuple):
    id: str
    version: int


@dataclass(frozen=True, slots=True)
class HeldSlots:
    """The slots held by nodes of one type in a run, or by instances of one mapped node."""

    run_id: str
    type: str
    parent_id: str
    """The mapped node of instances; empty for nodes of the DAG."""
    number: int
    busy: int
    """Without the nodes that wait for a person or a run: these hold no slot over all runs."""


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A node that waits for a slot."""

    run_id: str
    node_id: str
    type: str
    priority: int
    ordinal: int
    parent_id: str
    """The mapped node of an instance; empty for a node of the DAG."""
    attempt: int

    @property
    def attempts_before(self) -> int:
        """The number of attempts by earlier jobs of the node."""
        return max(0, self.attempt - 1)


@dataclass(frozen=True, slots=True)
class PoolSlotRequest:
    """A node that waits for a slot over all runs of a chain, with its run."""

    node: SlotRequest
    run: LockedChainRun


LOCK_CHAINS = Statement(
    "chain_concurrency.lock_chains",
    "Lock chains that have cross-run limits and read the version whose limits apply.",
    "SELECT {columns} FROM {given} JOIN chains ON id = given_id ORDER BY id FOR NO KEY UPDATE OF chains",
    input_columns={"given_id": "text"},
    row=_LockedChain,
)

LOCK_CHAIN_OF_RUN = Statement(
    "chain_concurrency.lock_chain_of_run",
    "Lock the chain of one run if it has cross-run limits.",
    """
    SELECT {columns} FROM chains
    WHERE id = (SELECT concurrency_pool FROM chain_nodes WHERE run_id = :run_id LIMIT 1)
    FOR NO KEY UPDATE
    """,
    row=_LockedChain,
)

_HELD = """
    SELECT {columns} FROM chain_nodes WHERE slot = 'held' AND
    """
_HELD_COLUMNS = {
    "parent_id": "COALESCE(parent_id, '')",
    "number": "count(*)",
    "busy": "CAST(sum(CASE WHEN COALESCE(wait_on, '') IN ('approval', 'run') THEN 0 ELSE 1 END) AS bigint)",
}
HELD_IN_RUN = Statement(
    "chain_concurrency.held_in_run",
    "Count slots held in one run.",
    _HELD + "run_id = :run_id GROUP BY run_id, type, COALESCE(parent_id, '')",
    row=HeldSlots,
    columns=_HELD_COLUMNS,
)
HELD_IN_POOL = Statement(
    "chain_concurrency.held_in_pool",
    "Count slots held over all runs of a chain; nodes waiting for a person or a run do not count.",
    _HELD + "concurrency_pool = :pool GROUP BY run_id, type, COALESCE(parent_id, '')",
    row=HeldSlots,
    columns=_HELD_COLUMNS,
)

REQUEST_SLOTS = Statement(
    "chain_concurrency.request_slots",
    "Let runnable nodes wait for a slot.",
    f"""
    UPDATE chain_nodes SET job_id = NULL, slot = 'wanted', updated_at = {{now}}
    FROM {{given}}
    WHERE {IS_GIVEN_NODE} AND {NODE_STATUS} IN ('pending', 'retrying')
    """,
    input_columns=KEY,
)

REQUESTS_IN_RUN = Statement(
    "chain_concurrency.requests_in_run",
    "List nodes of one run that wait for a slot, by priority.",
    """
    SELECT {columns} FROM chain_nodes WHERE run_id = :run_id AND slot = 'wanted' ORDER BY priority, ordinal LIMIT :limit
    """,
    row=SlotRequest,
    columns={"parent_id": "COALESCE(parent_id, '')"},
)

REQUESTS_IN_POOL = Statement(
    "chain_concurrency.requests_in_pool",
    "List nodes of all runs of a chain that wait for a slot, by priority then age.",
    """
    SELECT {columns:r}
    FROM chain_nodes n JOIN chain_runs r ON r.id = n.run_id
    WHERE n.concurrency_pool = :pool AND n.slot = 'wanted'
      AND (n.priority, n.run_id, n.ordinal, n.node_id) > (:priority, :run_id, :ordinal, :node_id)
    ORDER BY n.priority, n.run_id, n.ordinal, n.node_id LIMIT :limit
    """,
    row=PoolSlotRequest,
    columns={
        **{name: f"n.{name}" for name in ("run_id", "node_id", "type", "priority", "ordinal", "attempt")},
        "parent_id": "COALESCE(n.parent_id, '')",
    },
)

COUNT_ADMITTED_RUNS = Statement(
    "chain_concurrency.count_admitted_runs",
    "Count the admitted runs of a chain.",
    "SELECT count(*) AS n FROM chain_runs WHERE chain_id = :chain_id AND slot = 'held'",
)

ADMIT_RUNS = Statement(
    "chain_concurrency.admit_runs",
    "Admit the longest-waiting runs of a chain.",
    """
    UPDATE chain_runs SET slot = 'held', updated_at = {now}
    WHERE id IN (SELECT id FROM chain_runs WHERE chain_id = :chain_id AND slot = 'wanted' ORDER BY id LIMIT :limit)
    RETURNING {columns}
    """,
    row=LockedChainRun,
)

CHAINS_WITH_WAITERS = Statement(
    "chain_concurrency.chains_with_waiters",
    "List chains with a node or run that waits for a slot, for the periodic re-check.",
    """
    SELECT id FROM chains
    WHERE EXISTS (SELECT 1 FROM chain_nodes WHERE concurrency_pool = chains.id AND slot = 'wanted')
       OR EXISTS (SELECT 1 FROM chain_runs WHERE chain_id = chains.id AND slot = 'wanted')
    ORDER BY id
    """,
)


async def lock_chains(tx: Tx, chain_ids: Iterable[str | None]) -> None:
    """Lock chains until the transaction ends; must be called before any of their runs is locked."""
    rows = sorted({(chain_id,) for chain_id in chain_ids if chain_id is not None})
    if rows:
        await tx.fetch(LOCK_CHAINS, rows)


async def lock_chain(tx: Tx, chain_id: str) -> int:
    """Lock a chain until the transaction ends; return its version."""
    for chain in await tx.fetch(LOCK_CHAINS, [(chain_id,)]):
        return chain.version
    raise NotFound("chain", chain_id)


async def lock_chain_of_run(tx: Tx, run_id: str) -> None:
    """Lock the chain of a run until the transaction ends, if it has limits over its runs."""
    await tx.fetch(LOCK_CHAIN_OF_RUN, run_id=run_id)


async def find_slots_held_in_run(tx: Tx, run_id: str) -> list[HeldSlots]:
    """The slots held by nodes of a run."""
    return await tx.fetch(HELD_IN_RUN, run_id=run_id)


async def find_slots_held_in_pool(tx: Tx, pool: str) -> list[HeldSlots]:
    """The slots held by nodes of all runs of a chain."""
    return await tx.fetch(HELD_IN_POOL, pool=pool)


async def request_slots(tx: Tx, nodes: Iterable[NodeKey]) -> None:
    """Let runnable nodes wait for a slot."""
    if rows := sorted(nodes):
        await tx.execute(REQUEST_SLOTS, rows)


async def find_requests_in_run(tx: Tx, run_id: str, *, limit: int) -> list[SlotRequest]:
    """The nodes of a run that wait for a slot, highest priority first."""
    return await tx.fetch(REQUESTS_IN_RUN, run_id=run_id, limit=limit)


async def page_requests_in_pool(
    tx: Tx, pool: str, *, limit: int, after: SlotRequest | None = None
) -> Sequence[PoolSlotRequest]:
    """The nodes of all runs of a chain that wait for a slot, highest priority first, after a known one."""
    last = after or SlotRequest("", "", "", priority=-1, ordinal=-1, parent_id="", attempt=0)
    return await tx.fetch(
        REQUESTS_IN_POOL,
        pool=pool,
        limit=limit,
        priority=last.priority,
        run_id=last.run_id,
        ordinal=last.ordinal,
        node_id=last.node_id,
    )


async def admit_runs(tx: Tx, chain_id: str, *, max_runs: int | None, limit: int) -> list[LockedChainRun]:
    """Give free slots of a chain to its longest-waiting runs; return these, oldest first."""
    if max_runs is not None:
        (row,) = await tx.fetch(COUNT_ADMITTED_RUNS, chain_id=chain_id)
        limit = min(limit, max_runs - int(row["n"]))
    admitted = await tx.fetch(ADMIT_RUNS, chain_id=chain_id, limit=limit) if limit > 0 else []
    return sorted(admitted, key=lambda run: run.id)


async def find_chains_with_waiters(tx: Tx) -> list[str]:
    """Chains in which a node or a run waits for a slot over all runs."""
    return [row["id"] for row in await tx.fetch(CHAINS_WITH_WAITERS)]
