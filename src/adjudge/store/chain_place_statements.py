"""The SQL of limits over all runs of a chain: who holds a place, who wants one, whose turn it is.

The row of a chain that limits something over its runs is the lock of all that it limits: whoever changes a run of it,
or starts one, takes the chain's row first (jobs, then chains, then runs, then nodes). So places are counted over rows
that nobody else is changing, and a place may be given to a node of another run without that run's own lock.
"""

from __future__ import annotations

from adjudge.store.chain_statements import STANDING
from adjudge.store.statement import Statement

_LOCK_CHAINS = "SELECT id, version FROM {given} JOIN chains ON id = given_id"
LOCK_CHAINS = Statement(
    "chain_places.lock_chains",
    "Let nobody else give or take places of chains until this transaction ends; read which version's limits hold.",
    _LOCK_CHAINS + " ORDER BY id FOR NO KEY UPDATE OF chains",
    given={"given_id": "text"},
    sqlite=_LOCK_CHAINS,
)

_LOCK_CHAIN_OF = """
    SELECT id, version FROM chains
    WHERE id = (SELECT pool FROM chain_nodes WHERE run_id = :run_id LIMIT 1)
    """
LOCK_CHAIN_OF = Statement(
    "chain_places.lock_chain_of",
    "The same for the chain of one run, if its runs share anything.",
    _LOCK_CHAIN_OF + " FOR NO KEY UPDATE",
    sqlite=_LOCK_CHAIN_OF,
)

HELD = Statement(
    "chain_places.held",
    "Count what runs now over all runs of a chain, and what of it is busy: who waits for a person or a run is not.",
    """
    SELECT run_id, type, COALESCE(parent_id, '') AS parent_id, count(*) AS n,
           sum(CASE WHEN COALESCE(wait_on, '') IN ('approval', 'run') THEN 0 ELSE 1 END) AS busy
    FROM chain_nodes WHERE pool = :pool AND place = 'held' GROUP BY run_id, type, COALESCE(parent_id, '')
    """,
)

WANTED = Statement(
    "chain_places.wanted",
    "Find what may run, in any run of a chain, as soon as there is a place for it: the most urgent, the oldest first.",
    """
    SELECT run_id, node_id, type, priority, ordinal, COALESCE(parent_id, '') AS parent_id, attempt,
           r.status AS run_status, r.chain_id AS chain_id, r.chain_version AS chain_version,
           r.nodes_open AS nodes_open, r.nodes_failed AS nodes_failed, r.trace_id AS trace_id
    FROM chain_nodes JOIN chain_runs r ON r.id = run_id
    WHERE pool = :pool AND chain_nodes.place = 'wanted'
      AND (priority, run_id, ordinal, node_id) > (:priority, :run_id, :ordinal, :node_id)
    ORDER BY priority, run_id, ordinal, node_id LIMIT :at_most
    """,
)

RUNS_HELD = Statement(
    "chain_places.runs_held",
    "Count the runs of a chain that are under way.",
    "SELECT count(*) AS n FROM chain_runs WHERE chain_id = :chain_id AND place = 'held'",
)

ADMIT_RUNS = Statement(
    "chain_places.admit_runs",
    "Let the runs of a chain begin that have waited longest.",
    f"""
    UPDATE chain_runs SET place = 'held', updated_at = {{now}}
    WHERE id IN (SELECT id FROM chain_runs WHERE chain_id = :chain_id AND place = 'wanted' ORDER BY id LIMIT :at_most)
    RETURNING {STANDING}
    """,
)

WAITED_FOR = Statement(
    "chain_places.waited_for",
    "Find chains of which a node or a run waits for a place, in case nobody has seen that there is one.",
    """
    SELECT id FROM chains
    WHERE EXISTS (SELECT 1 FROM chain_nodes WHERE pool = chains.id AND place = 'wanted')
       OR EXISTS (SELECT 1 FROM chain_runs WHERE chain_id = chains.id AND place = 'wanted')
    ORDER BY id
    """,
)
