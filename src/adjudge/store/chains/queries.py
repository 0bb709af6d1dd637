"""Reads runs, nodes, their logs and artifacts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from adjudge.domain.authority import Authority, parse_authority
from adjudge.domain.errors import NotFound
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.accounts.users import actor_name
from adjudge.store.chains.models import Artifact, ChainNodeRow, ChainRunRow, ChainStatusChange, NodeLogRow
from adjudge.store.chains.statements import SELECT_DAG
from adjudge.store.engine import notify
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import decode_json
from adjudge.store.engine.statement import Row, Statement

CHANGED = notify.CHANNEL_CHAIN_RUNS
"""Notified when a node or a run changed, or a node wrote a log line."""
STOPPING = "adjudge_chain_stop"
"""Notified when a run is asked to stop."""

RUN = f"""
    chain_runs.id AS id, chain_id, chains.name AS chain_name, chain_version, status, parameters, trigger_kind,
    idempotency_key, started_by, {actor_name("started_by")} AS started_by_name, {actor_name("actor")} AS actor, reason,
    trace_id, nodes_total, nodes_open, nodes_failed, parent_run_id,
    parent_node_id, origin_run_id, slot, chain_runs.created_at AS created_at, chain_runs.updated_at AS updated_at,
    started_at, finished_at
    """
_NODE = f"""
    run_id, node_id, type, status, attempt, last_error, artifact, artifact_digest, artifact_bytes, job_id,
    {actor_name("actor")} AS actor,
    reason, ordinal, priority, waiting_on, parent_id, item, slot, wait_on, wait_key, wait_until, updated_at,
    started_at, ended_at
    """

FIND = Statement(
    "chain_runs.find",
    "Read a run.",
    f"SELECT {RUN} FROM chain_runs JOIN chains ON chains.id = chain_id WHERE chain_runs.id = :run_id",
)

PAGE = Statement(
    "chain_runs.page",
    "List runs, newest first, optionally by chain and status.",
    f"""
    SELECT {RUN} FROM chain_runs JOIN chains ON chains.id = chain_id
    WHERE (CAST(:chain_id AS text) = '' OR chain_id = :chain_id) AND (CAST(:status AS text) = '' OR status = :status)
      AND chain_runs.id < :before
    ORDER BY chain_runs.id DESC LIMIT :limit
    """,
)

NODES = Statement(
    "chain_nodes.of_run", "Read the nodes of a run.", f"SELECT {_NODE} FROM chain_nodes WHERE run_id = :run_id"
)

FIND_NODE = Statement(
    "chain_nodes.find",
    "Read one node of a run.",
    f"SELECT {_NODE} FROM chain_nodes WHERE run_id = :run_id AND node_id = :node_id",
)

STATUS_LOG = Statement(
    "chain_status_log.of_run",
    "List status transitions of a run and its nodes, keyset-paginated.",
    f"""
    SELECT id, node_id, from_status, to_status, attempt, {actor_name("actor")} AS actor, reason, at
    FROM chain_status_log
    WHERE run_id = :run_id AND id > :after ORDER BY id LIMIT :limit
    """,
)

READ_LOG = Statement(
    "chain_node_logs.read",
    "List log lines of a node after a given id.",
    """
    SELECT id, node_id, attempt, text, at FROM chain_node_logs
    WHERE run_id = :run_id AND node_id = :node_id AND id > :after ORDER BY id LIMIT :limit
    """,
)

READ_LOG_TAIL = Statement(
    "chain_node_logs.read_tail",
    "Read the last log lines of a node, latest first.",
    """
    SELECT id, node_id, attempt, text, at FROM chain_node_logs
    WHERE run_id = :run_id AND node_id = :node_id ORDER BY id DESC LIMIT :limit
    """,
)

TASKS = Statement(
    "chain_nodes.tasks",
    "Read what a worker needs to execute nodes.",
    """
    SELECT n.run_id, n.node_id, n.status, n.type, n.job_id, n.attempt, n.item, n.parent_id, r.status, r.parameters,
           r.chain_id, r.chain_version, chains.name, r.started_by, r.authority, r.trace_id, k.checkpoint
    FROM {given} JOIN chain_nodes n ON n.run_id = given_run_id AND n.node_id = given_node_id
    JOIN chain_runs r ON r.id = n.run_id JOIN chains ON chains.id = r.chain_id
    LEFT JOIN chain_checkpoints k ON k.run_id = n.run_id AND k.node_id = n.node_id
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
)

ARTIFACTS = Statement(
    "chain_nodes.artifacts",
    "Read the artifacts of nodes.",
    """
    SELECT run_id, node_id, status, artifact, artifact_digest, artifact_bytes
    FROM {given} JOIN chain_nodes ON run_id = given_run_id AND node_id = given_node_id
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
)

INSTANCE_ARTIFACTS = Statement(
    "chain_nodes.instance_artifacts",
    "Read the artifacts of the instances of mapped nodes, in item order.",
    """
    SELECT parent_id, artifact, artifact_digest, artifact_bytes
    FROM {given} JOIN chain_nodes ON run_id = given_run_id AND parent_id = given_node_id
    ORDER BY ordinal
    """,
    input_columns={"given_run_id": "text", "given_node_id": "text"},
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


_PAGE_OF = """
      AND (CAST(:chain_id AS text) = '' OR chain_id = :chain_id) AND (CAST(:status AS text) = '' OR status = :status)
      AND chain_runs.id < :before
    ORDER BY chain_runs.id DESC LIMIT :limit
    """

PAGE_STARTED_BY = Statement(
    "chain_runs.page_started_by",
    "List runs started by a user, newest first, optionally by chain and status.",
    f"SELECT {RUN} FROM chain_runs JOIN chains ON chains.id = chain_id WHERE started_by = :started_by {_PAGE_OF}",
)

PAGE_BY_IDS = Statement(
    "chain_runs.page_by_ids",
    "List the given runs, newest first, optionally by chain and status.",
    f"""
    SELECT {RUN} FROM {{given}} JOIN chain_runs ON chain_runs.id = given_id JOIN chains ON chains.id = chain_id
    WHERE true {_PAGE_OF}
    """,
    input_columns={"given_id": "text"},
)

APPROVALS_FOR = Statement(
    "chain_nodes.approvals_for",
    "Find open approvals addressed to given users.",
    """
    SELECT run_id, artifact FROM chain_nodes
    WHERE wait_on IS NOT NULL AND wait_on = 'approval' ORDER BY run_id DESC LIMIT :limit
    """,
)

APPROVALS_OF_RUN = Statement(
    "chain_nodes.approvals_of_run",
    "Read the approvals of a run with their answers.",
    "SELECT artifact FROM chain_nodes WHERE run_id = :run_id AND type = 'wait_approval'",
)

_QUESTIONS = 1_000
"""How many open approvals are searched for those of a user."""


class NodeTask(NamedTuple):
    """The inputs for executing a node."""

    status: NodeStatus
    type: str
    job_id: str | None
    attempt: int
    item: Any
    is_instance: bool
    run_status: ChainRunStatus
    parameters: Mapping[str, Any]
    chain_id: str
    chain_version: int
    chain_name: str
    started_by: str
    authority: Authority | None
    trace_id: str | None
    checkpoint: Any


async def find_run(tx: Tx, run_id: str) -> ChainRunRow:
    row = await fetch_one(tx, FIND, run_id=run_id)
    if row is None:
        raise NotFound("run", run_id)
    return run_from_row(row)


async def snapshot(tx: Tx, run_id: str) -> Mapping[str, Any]:
    """The definition of a run (its snapshot)."""
    row = await fetch_one(tx, SELECT_DAG, run_id=run_id)
    if row is None:
        raise NotFound("run", run_id)
    return dict(json.loads(row["dag"]))


async def page_runs(
    tx: Tx, *, chain_id: str = "", status: ChainRunStatus | None = None, before: str = "", limit: int = 50
) -> list[ChainRunRow]:
    """List runs, newest first; ``before`` is the last id of the previous page."""
    rows = await tx.fetch(PAGE, chain_id=chain_id, status=str(status or ""), before=before or LAST, limit=limit)
    return [run_from_row(row) for row in rows]


async def list_nodes(tx: Tx, run_id: str) -> list[ChainNodeRow]:
    """Read the nodes of a run in the order of its DAG, instances after their mapped node."""
    await find_run(tx, run_id)
    found = [_node(row) for row in await tx.fetch(NODES, run_id=run_id)]
    position = {node.node_id: node.ordinal for node in found if node.parent_id is None}
    return sorted(
        found, key=lambda node: (position[node.parent_id or node.node_id], bool(node.parent_id), node.ordinal)
    )


async def find_node(tx: Tx, run_id: str, node_id: str) -> ChainNodeRow:
    row = await fetch_one(tx, FIND_NODE, run_id=run_id, node_id=node_id)
    if row is None:
        await find_run(tx, run_id)
        raise NotFound("node", node_id)
    return _node(row)


async def status_log(tx: Tx, run_id: str, *, after: int = 0, limit: int = 500) -> list[ChainStatusChange]:
    """Read transitions after a known one."""
    rows = await tx.fetch(STATUS_LOG, run_id=run_id, after=after, limit=limit)
    return [ChainStatusChange(*row) for row in rows]


async def read_log(tx: Tx, run_id: str, node_id: str, *, after: int = 0, limit: int = 500) -> list[NodeLogRow]:
    """Read log lines of a node after a known one; the channel ``CHANGED`` notifies of new ones."""
    rows = await tx.fetch(READ_LOG, run_id=run_id, node_id=node_id, after=after, limit=limit)
    return [NodeLogRow(*row) for row in rows]


async def read_log_tail(tx: Tx, run_id: str, node_id: str, *, limit: int = 500) -> list[NodeLogRow]:
    """Read the last log lines of a node, in the order in which they were written."""
    rows = await tx.fetch(READ_LOG_TAIL, run_id=run_id, node_id=node_id, limit=limit)
    return [NodeLogRow(*row) for row in reversed(rows)]


async def find_node_tasks(tx: Tx, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], NodeTask]:
    """Read the inputs for executing nodes, by run and node."""
    found = {}
    for run_id, node_id, *columns in await tx.fetch(TASKS, sorted(set(keys))):
        found[run_id, node_id] = node_task_from_columns(columns)
    return found


def node_task_from_columns(columns: Sequence[Any]) -> NodeTask:
    """The inputs for executing a node, from the columns of ``chain_nodes.tasks`` after its key."""
    status, type_name, job_id, attempt, item, parent_id, run_status, parameters, *chain, trace_id, checkpoint = columns
    chain_id, chain_version, chain_name, started_by, authority = chain
    return NodeTask(
        NodeStatus(status),
        type_name,
        job_id,
        attempt,
        decode_json(item),
        parent_id is not None,
        ChainRunStatus(run_status),
        decode_json(parameters),
        chain_id,
        chain_version,
        chain_name,
        started_by or "system",
        parse_authority(decode_json(authority)),
        trace_id,
        decode_json(checkpoint),
    )


async def find_artifacts_by_node(tx: Tx, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Artifact]:
    """Read artifacts of nodes of any runs, by run and node; a node that did not succeed has none."""
    wanted = sorted(set(keys))
    rows = await tx.fetch(ARTIFACTS, wanted) if wanted else []
    return {(row["run_id"], row["node_id"]): _artifact(row) for row in rows if row["status"] == NodeStatus.SUCCESS}


async def find_artifacts(
    tx: Tx, run_id: str, plain: Iterable[str], mapped: Iterable[str] = ()
) -> dict[str, Artifact | list[Artifact]]:
    """Read artifacts of nodes; for a mapped node without its own, those of its instances.

    A node that did not succeed has none.
    """
    mapped = set(mapped)
    keys = [(run_id, node_id) for node_id in sorted({*plain, *mapped})]
    found: dict[str, Artifact | list[Artifact]] = {}
    for row in await tx.fetch(ARTIFACTS, keys) if keys else []:
        if row["status"] == NodeStatus.SUCCESS:
            found[row["node_id"]] = _artifact(row)
    lists = [key for key in keys if key[1] in mapped and found.get(key[1]) == Artifact()]
    gathered: dict[str, list[Artifact]] = defaultdict(list)
    for row in await tx.fetch(INSTANCE_ARTIFACTS, lists) if lists else []:
        gathered[row["parent_id"]].append(_artifact(row))
    return found | {node_id: gathered[node_id] for _, node_id in lists}


async def find_stopping_runs(tx: Tx, run_ids: Iterable[str]) -> set[str]:
    """Those of the runs that are stopping or stopped."""
    rows = [(run_id,) for run_id in sorted(set(run_ids))]
    return {row["id"] for row in await tx.fetch(STOPPING_RUNS, rows)} if rows else set()


def run_from_row(row: Row) -> ChainRunRow:
    values = dict(zip(ChainRunRow.__slots__, row, strict=True))
    return ChainRunRow(
        **values | {"status": ChainRunStatus(values["status"]), "parameters": decode_json(values["parameters"])}
    )


def _node(row: Row) -> ChainNodeRow:
    values = dict(zip(ChainNodeRow.__slots__, row, strict=True))
    decoded = {name: decode_json(values[name]) for name in ("artifact", "item")}
    return ChainNodeRow(**values | decoded | {"status": NodeStatus(values["status"])})


def _artifact(row: Row) -> Artifact:
    found = row["artifact"]
    text = found if found is None or isinstance(found, str) else json.dumps(found)
    return Artifact(text, row["artifact_digest"], row["artifact_bytes"])


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
    rows = await tx.fetch(PAGE_STARTED_BY, started_by=user_id, **narrow)
    asking = {row["run_id"] for row in await tx.fetch(APPROVALS_FOR, limit=_QUESTIONS) if _is_asked(row, names)}
    if asking:
        rows += await tx.fetch(PAGE_BY_IDS, sorted((run_id,) for run_id in asking), **narrow)
    found = {run.id: run for run in map(run_from_row, rows)}
    return [found[run_id] for run_id in sorted(found, reverse=True)[:limit]]


async def has_question_for(tx: Tx, run_id: str, names: Sequence[str]) -> bool:
    """Whether a node of a run asks a user, by name or id, or was answered by this user."""
    return any(_is_asked(row, names) for row in await tx.fetch(APPROVALS_OF_RUN, run_id=run_id))


def _is_asked(row: Row, names: Sequence[str]) -> bool:
    """Whether a node names a user. The artifact of a node that was completed manually may have any shape."""
    asked = decode_json(row["artifact"])
    if not isinstance(asked, Mapping):
        return False
    approvers = asked.get("approvers")
    named = approvers if isinstance(approvers, list) else []
    return any(name in (asked.get("by_id"), *named) for name in names)
