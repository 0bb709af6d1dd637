"""Reads runs and nodes, their logs and artifacts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from adjudge.domain.errors import NotFound
from adjudge.domain.states import ChainRunStatus
from adjudge.store.accounts.users import actor_name
from adjudge.store.chains.models import (
    Artifact,
    ChainNodeRow,
    ChainRunRow,
    ChainStatusChange,
    JsonValue,
    NodeLogRow,
    NodeTask,
)
from adjudge.store.engine import notify
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement

CHANGED = notify.CHANNEL_CHAIN_RUNS
"""Notified when a node or a run changed, or a node wrote a log line."""
STOPPING = "adjudge_chain_stop"
"""Notified when a run is asked to stop."""


class _KeyedTask(NamedTuple):
    run_id: str
    node_id: str
    task: NodeTask


class _StoredArtifact(NamedTuple):
    node_id: str
    """The node; of an instance, its mapped node."""
    run_id: str
    document: object
    digest: str | None
    size_bytes: int

    @property
    def artifact(self) -> Artifact:
        """The artifact. SQLite returns a document that is a number as a number."""
        found = self.document
        return Artifact(
            found if found is None or isinstance(found, str) else json.dumps(found), self.digest, self.size_bytes
        )


class _Approval(NamedTuple):
    run_id: str
    artifact: JsonValue


_RUN = {
    "id": "chain_runs.id",
    "chain_name": "chains.name",
    "origin_run_number": "(SELECT number FROM chain_runs origin WHERE origin.id = chain_runs.origin_run_id)",
    "started_by_name": actor_name("started_by"),
    "actor": actor_name("actor"),
    "created_at": "chain_runs.created_at",
    "updated_at": "chain_runs.updated_at",
}
_PAGE_OF = """
    (CAST(:chain_id AS text) = '' OR chain_id = :chain_id) AND (CAST(:status AS text) = '' OR status = :status)
      AND chain_runs.id < :before
    ORDER BY chain_runs.id DESC LIMIT :limit
    """
_NODE = {"actor": actor_name("actor")}
_ARTIFACT = {"document": "artifact", "digest": "artifact_digest", "size_bytes": "artifact_bytes"}

FIND = Statement(
    "chain_runs.find",
    "Read a run.",
    "SELECT {columns} FROM chain_runs JOIN chains ON chains.id = chain_id WHERE chain_runs.id = :run_id",
    row=ChainRunRow,
    columns=_RUN,
)

FIND_ID = Statement(
    "chain_runs.find_id",
    "Read the id of the run of a chain with a number.",
    "SELECT id FROM chain_runs WHERE chain_id = :chain_id AND number = :number",
)

SELECT_DAG = Statement(
    "chain_runs.select_dag", "Read the DAG of a run.", "SELECT dag FROM chain_runs WHERE id = :run_id"
)

PAGE = Statement(
    "chain_runs.page",
    "List runs, newest first, optionally by chain and status.",
    f"SELECT {{columns}} FROM chain_runs JOIN chains ON chains.id = chain_id WHERE {_PAGE_OF}",
    row=ChainRunRow,
    columns=_RUN,
)

NODES = Statement(
    "chain_nodes.of_run",
    "Read the nodes of a run.",
    "SELECT {columns} FROM chain_nodes WHERE run_id = :run_id",
    row=ChainNodeRow,
    columns=_NODE,
)

FIND_NODE = Statement(
    "chain_nodes.find",
    "Read one node of a run.",
    "SELECT {columns} FROM chain_nodes WHERE run_id = :run_id AND node_id = :node_id",
    row=ChainNodeRow,
    columns=_NODE,
)

STATUS_LOG = Statement(
    "chain_status_log.of_run",
    "List status transitions of a run and its nodes, keyset-paginated.",
    "SELECT {columns} FROM chain_status_log WHERE run_id = :run_id AND id > :after ORDER BY id LIMIT :limit",
    row=ChainStatusChange,
    columns={"actor": actor_name("actor")},
)

READ_LOG = Statement(
    "chain_node_logs.read",
    "List log lines of a node after a given id.",
    """
    SELECT {columns} FROM chain_node_logs
    WHERE run_id = :run_id AND node_id = :node_id AND id > :after ORDER BY id LIMIT :limit
    """,
    row=NodeLogRow,
)

READ_LOG_TAIL = Statement(
    "chain_node_logs.read_tail",
    "Read the last log lines of a node, latest first.",
    """
    SELECT {columns} FROM chain_node_logs
    WHERE run_id = :run_id AND node_id = :node_id ORDER BY id DESC LIMIT :limit
    """,
    row=NodeLogRow,
)

TASKS = Statement(
    "chain_nodes.tasks",
    "Read what a worker needs to execute nodes.",
    """
    SELECT {columns:n}
    FROM {given} JOIN chain_nodes n ON n.run_id = given_run_id AND n.node_id = given_node_id
    JOIN chain_runs r ON r.id = n.run_id JOIN chains ON chains.id = r.chain_id
    LEFT JOIN chain_checkpoints k ON k.run_id = n.run_id AND k.node_id = n.node_id
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
    row=_KeyedTask,
    columns={
        "is_instance": "n.parent_id IS NOT NULL",
        "run_status": "r.status",
        "parameters": "r.parameters",
        "chain_id": "r.chain_id",
        "chain_version": "r.chain_version",
        "chain_name": "chains.name",
        "started_by": "COALESCE(r.started_by, 'system')",
        "authority": "r.authority",
        "trace_id": "r.trace_id",
        "checkpoint": "k.checkpoint",
    },
)

ARTIFACTS = Statement(
    "chain_nodes.artifacts",
    "Read the artifacts of nodes that succeeded.",
    """
    SELECT {columns} FROM {given} JOIN chain_nodes ON run_id = given_run_id AND node_id = given_node_id
    WHERE COALESCE(status, '') = 'success'
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
    row=_StoredArtifact,
    columns=_ARTIFACT,
)

INSTANCE_ARTIFACTS = Statement(
    "chain_nodes.instance_artifacts",
    "Read the artifacts of the instances of mapped nodes, in item order.",
    """
    SELECT {columns} FROM {given} JOIN chain_nodes ON run_id = given_run_id AND parent_id = given_node_id
    ORDER BY ordinal
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
    row=_StoredArtifact,
    columns={**_ARTIFACT, "node_id": "parent_id"},
)

STOPPING_RUNS = Statement(
    "chain_runs.stopping",
    "Find which of the given runs are stopping or stopped.",
    """
    SELECT id FROM {given} JOIN chain_runs ON id = given_id
    WHERE COALESCE(chain_runs.status, '') IN ('stopping', 'stopped')
    """,
    input_columns={"given_id": "text"},
)

LAST = "g"
"""Sorts after every id."""


PAGE_STARTED_BY = Statement(
    "chain_runs.page_started_by",
    "List runs started by a user, newest first, optionally by chain and status.",
    f"""
    SELECT {{columns}} FROM chain_runs JOIN chains ON chains.id = chain_id
    WHERE started_by = :started_by AND {_PAGE_OF}
    """,
    row=ChainRunRow,
    columns=_RUN,
)

PAGE_BY_IDS = Statement(
    "chain_runs.page_by_ids",
    "List the given runs, newest first, optionally by chain and status.",
    f"""
    SELECT {{columns}} FROM {{given}} JOIN chain_runs ON chain_runs.id = given_id JOIN chains ON chains.id = chain_id
    WHERE {_PAGE_OF}
    """,
    input_columns={"given_id": "text"},
    row=ChainRunRow,
    columns=_RUN,
)

APPROVALS_FOR = Statement(
    "chain_nodes.approvals_for",
    "Read the newest open approvals, with their questions.",
    """
    SELECT {columns} FROM chain_nodes
    WHERE wait_on IS NOT NULL AND wait_on = 'approval' ORDER BY run_id DESC LIMIT :limit
    """,
    row=_Approval,
)

APPROVALS_OF_RUN = Statement(
    "chain_nodes.approvals_of_run",
    "Read the approvals of a run with their answers.",
    "SELECT {columns} FROM chain_nodes WHERE run_id = :run_id AND type = 'wait_approval'",
    row=_Approval,
)

_QUESTIONS = 1_000
"""How many open approvals are searched for those of a user."""


async def find_run(tx: Tx, run_id: str) -> ChainRunRow:
    return or_not_found(await fetch_one(tx, FIND, run_id=run_id), "run", run_id)


async def find_run_id(tx: Tx, chain_id: str, number: int) -> str | None:
    """The id of the run of a chain with a number; None if there is none."""
    row = await fetch_one(tx, FIND_ID, chain_id=chain_id, number=number)
    return None if row is None else str(row["id"])


async def snapshot(tx: Tx, run_id: str) -> Mapping[str, Any]:
    """The definition of a run (its snapshot)."""
    row = or_not_found(await fetch_one(tx, SELECT_DAG, run_id=run_id), "run", run_id)
    return dict(json.loads(row["dag"]))


async def page_runs(
    tx: Tx, *, chain_id: str = "", status: ChainRunStatus | None = None, before: str = "", limit: int = 50
) -> list[ChainRunRow]:
    """List runs, newest first; ``before`` is the last id of the previous page."""
    return await tx.fetch(PAGE, chain_id=chain_id, status=str(status or ""), before=before or LAST, limit=limit)


async def list_nodes(tx: Tx, run_id: str) -> list[ChainNodeRow]:
    """Read the nodes of a run in the order of its DAG, instances after their mapped node."""
    await find_run(tx, run_id)
    found = await tx.fetch(NODES, run_id=run_id)
    position = {node.node_id: node.ordinal for node in found if node.parent_id is None}
    return sorted(
        found, key=lambda node: (position[node.parent_id or node.node_id], bool(node.parent_id), node.ordinal)
    )


async def find_node(tx: Tx, run_id: str, node_id: str) -> ChainNodeRow:
    node = await fetch_one(tx, FIND_NODE, run_id=run_id, node_id=node_id)
    if node is None:
        await find_run(tx, run_id)
        raise NotFound("node", node_id)
    return node


async def status_log(tx: Tx, run_id: str, *, after: int = 0, limit: int = 500) -> list[ChainStatusChange]:
    """Read transitions after a known one."""
    return await tx.fetch(STATUS_LOG, run_id=run_id, after=after, limit=limit)


async def read_log(tx: Tx, run_id: str, node_id: str, *, after: int = 0, limit: int = 500) -> list[NodeLogRow]:
    """Read log lines of a node after a known one; the channel ``CHANGED`` notifies of new ones."""
    return await tx.fetch(READ_LOG, run_id=run_id, node_id=node_id, after=after, limit=limit)


async def read_log_tail(tx: Tx, run_id: str, node_id: str, *, limit: int = 500) -> list[NodeLogRow]:
    """Read the last log lines of a node, in the order in which they were written."""
    return (await tx.fetch(READ_LOG_TAIL, run_id=run_id, node_id=node_id, limit=limit))[::-1]


async def find_node_tasks(tx: Tx, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], NodeTask]:
    """Read the inputs for executing nodes, by run and node."""
    return {(run_id, node_id): task for run_id, node_id, task in await tx.fetch(TASKS, sorted(set(keys)))}


async def find_artifacts_by_node(tx: Tx, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Artifact]:
    """Read artifacts of nodes of any runs, by run and node; a node that did not succeed has none."""
    wanted = sorted(set(keys))
    rows = await tx.fetch(ARTIFACTS, wanted) if wanted else []
    return {(row.run_id, row.node_id): row.artifact for row in rows}


async def find_artifacts(
    tx: Tx, run_id: str, plain: Iterable[str], mapped: Iterable[str] = ()
) -> dict[str, Artifact | list[Artifact]]:
    """Read artifacts of nodes; for a mapped node without its own, those of its instances.

    A node that did not succeed has none.
    """
    mapped = set(mapped)
    stored = await find_artifacts_by_node(tx, [(run_id, node_id) for node_id in (*plain, *mapped)])
    found: dict[str, Artifact | list[Artifact]] = {node_id: artifact for (_, node_id), artifact in stored.items()}
    joined = sorted(node_id for node_id in mapped if found.get(node_id) == Artifact())
    gathered: dict[str, list[Artifact]] = {node_id: [] for node_id in joined}
    for row in await tx.fetch(INSTANCE_ARTIFACTS, [(run_id, node_id) for node_id in joined]) if joined else []:
        gathered[row.node_id].append(row.artifact)
    return found | gathered


async def find_stopping_runs(tx: Tx, run_ids: Iterable[str]) -> set[str]:
    """Those of the runs that are stopping or stopped."""
    rows = [(run_id,) for run_id in sorted(set(run_ids))]
    return {row["id"] for row in await tx.fetch(STOPPING_RUNS, rows)} if rows else set()


async def page_runs_of_user(
    tx: Tx,
    user_id: str,
    names: Sequence[str],
    *,
    chain_id: str = "",
    status: ChainRunStatus | None = None,
    before: str = "",
    limit: int = 50,
) -> list[ChainRunRow]:
    """List the runs that a user started or is asked to approve, newest first; approvers are given by name or id."""
    narrow = {"chain_id": chain_id, "status": str(status or ""), "before": before or LAST, "limit": limit}
    runs = await tx.fetch(PAGE_STARTED_BY, started_by=user_id, **narrow)
    asking = {approval.run_id for approval in await tx.fetch(APPROVALS_FOR, limit=_QUESTIONS) if _asks(approval, names)}
    if asking:
        runs += await tx.fetch(PAGE_BY_IDS, sorted((run_id,) for run_id in asking), **narrow)
    found = {run.id: run for run in runs}
    return [found[run_id] for run_id in sorted(found, reverse=True)[:limit]]


async def has_question_for(tx: Tx, run_id: str, names: Sequence[str]) -> bool:
    """Whether a node of a run asks a user, by name or id, or was answered by this user."""
    return any(_asks(approval, names) for approval in await tx.fetch(APPROVALS_OF_RUN, run_id=run_id))


def _asks(approval: _Approval, names: Sequence[str]) -> bool:
    """Whether a node names a user. The artifact of a node that was completed manually may have any shape."""
    asked = approval.artifact
    if not isinstance(asked, Mapping):
        return False
    approvers = asked.get("approvers")
    named = approvers if isinstance(approvers, list) else []
    return any(name in (asked.get("by_id"), *named) for name in names)
