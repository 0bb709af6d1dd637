"""The SQL of limits over all runs of a chain: which nodes and runs hold or request a slot, and which is next.

The row of a chain with such limits is the lock of everything they count: every transaction that changes or starts one
of its runs locks it first (jobs, then chains, then runs, then nodes). So slots are counted over rows that no other
transaction changes, and a slot may be given to a node of another run without the lock of that run.
"""

from __future__ import annotations

from adjudge.store.chains.statements import RUN_COLUMNS
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

LOCK_CHAINS = Statement(
    "chain_concurrency.lock_chains",
    "Lock chains that have cross-run limits and read the version whose limits apply.",
    "SELECT id, version FROM {given} JOIN chains ON id = given_id ORDER BY id FOR NO KEY UPDATE OF chains",
    input_columns={"given_id": "text"},
)

LOCK_CHAIN_OF_RUN = Statement(
    "chain_concurrency.lock_chain_of_run",
    "Lock the chain of one run if it has cross-run limits.",
    """
    SELECT id, version FROM chains
    WHERE id = (SELECT concurrency_pool FROM chain_nodes WHERE run_id = :run_id LIMIT 1)
    FOR NO KEY UPDATE
    """,
)

SLOTS_HELD = Statement(
    "chain_concurrency.slots_held",
    "Count slots held over all runs of a chain; nodes waiting for a person or a run do not count.",
    """
    SELECT run_id, type, COALESCE(parent_id, '') AS parent_id, count(*) AS n,
           sum(CASE WHEN COALESCE(wait_on, '') IN ('approval', 'run') THEN 0 ELSE 1 END) AS busy
    FROM chain_nodes WHERE concurrency_pool = :pool AND slot = 'held' GROUP BY run_id, type, COALESCE(parent_id, '')
    """,
)

SLOTS_WANTED = Statement(
    "chain_concurrency.slots_wanted",
    "List nodes of all runs of a chain that wait for a slot, by priority then age.",
    """
    SELECT run_id, node_id, type, priority, ordinal, COALESCE(parent_id, '') AS parent_id, attempt,
           r.status AS run_status, r.chain_id AS chain_id, r.chain_version AS chain_version,
           r.nodes_open AS nodes_open, r.nodes_failed AS nodes_failed, r.trace_id AS trace_id
    FROM chain_nodes JOIN chain_runs r ON r.id = run_id
    WHERE concurrency_pool = :pool AND chain_nodes.slot = 'wanted'
      AND (priority, run_id, ordinal, node_id) > (:priority, :run_id, :ordinal, :node_id)
    ORDER BY priority, run_id, ordinal, node_id LIMIT :limit
    """,
)

COUNT_ADMITTED_RUNS = Statement(
    "chain_concurrency.count_admitted_runs",
    "Count the admitted runs of a chain.",
    "SELECT count(*) AS n FROM chain_runs WHERE chain_id = :chain_id AND slot = 'held'",
)

ADMIT_RUNS = Statement(
    "chain_concurrency.admit_runs",
    "Admit the longest-waiting runs of a chain.",
    f"""
    UPDATE chain_runs SET slot = 'held', updated_at = {{now}}
    WHERE id IN (SELECT id FROM chain_runs WHERE chain_id = :chain_id AND slot = 'wanted' ORDER BY id LIMIT :limit)
    RETURNING {RUN_COLUMNS}
    """,
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


async def find_chains_with_waiters(tx: Tx) -> list[str]:
    """Chains in which a node or a run waits for a slot over all runs."""
    return [row["id"] for row in await tx.fetch(CHAINS_WITH_WAITERS)]
