"""Chains: definitions with their versions, runs with a snapshot of the DAG, and nodes."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
    true,
)

from adjudge.domain.states import CHAIN_RUN, NODE, NodeStatus, RunStatus
from adjudge.store.tables.base import (
    METADATA,
    SERIAL,
    document,
    exactly_when,
    identifier,
    logged,
    moment,
    number,
    one_of,
    reference,
    words,
)


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(where), sqlite_where=text(where))


chains = Table(
    "chains",
    METADATA,
    identifier(),
    words("name"),
    words("description", nullable=True),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    number("version", 1),
    document("dag"),
    moment("created_at"),
    moment("updated_at"),
    # Of whoever saved it last.
    document("authority", nullable=True),
    UniqueConstraint("name"),
    CheckConstraint("version > 0", name="version_positive"),
)

chain_versions = Table(
    "chain_versions",
    METADATA,
    reference("chain_id", "chains", ondelete="CASCADE"),
    number("version", None),
    words("name"),
    words("description", nullable=True),
    document("dag"),
    words("actor", nullable=True),
    moment("created_at"),
    PrimaryKeyConstraint("chain_id", "version"),
)

chain_runs = Table(
    "chain_runs",
    METADATA,
    identifier(),
    reference("chain_id", "chains"),
    number("chain_version", None),
    words("idempotency_key", nullable=True),
    words("status", default=CHAIN_RUN.initial.value),
    words("prior_status", nullable=True),
    document("dag"),
    document("parameters", default=text("'{}'")),
    words("trigger_kind", default="manual"),
    words("actor", nullable=True),
    words("reason", nullable=True),
    words("trace_id", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    moment("started_at", nullable=True),
    moment("finished_at", nullable=True),
    # Kept under the lock of this row, so that ending a node never counts the others.
    number("nodes_total"),
    number("nodes_open"),
    number("nodes_failed"),
    moment("stop_requested_at", nullable=True),
    words("started_by", nullable=True),
    words("parent_run_id", nullable=True),
    words("parent_node_id", nullable=True),
    words("origin_run_id", nullable=True),
    # Only in chains that limit their runs: 'wanted' by one that waits for its turn, 'held' by one that has it.
    words("place", nullable=True),
    # On whose authority nodes act: users and their tokens, by id (``domain.authority``).
    document("authority", nullable=True),
    one_of("status", RunStatus),
    exactly_when("finished_at", "status", CHAIN_RUN.terminal),
    UniqueConstraint("chain_id", "idempotency_key"),
    Index(None, "chain_id", "id"),
    Index(None, "started_by", "id"),
    Index(
        "chain_runs_open",
        "id",
        postgresql_where=text("finished_at IS NULL"),
        sqlite_where=text("finished_at IS NULL"),
    ),
    _partial("chain_runs_finished", "finished_at", where="finished_at IS NOT NULL"),
    _partial("chain_runs_stopping", "stop_requested_at", where="status = 'stopping'"),
    _partial("chain_runs_parent", "parent_run_id", where="parent_run_id IS NOT NULL"),
    _partial("chain_runs_places", "chain_id", "place", "id", where="place IS NOT NULL"),
)

chain_nodes = Table(
    "chain_nodes",
    METADATA,
    reference("run_id", "chain_runs", ondelete="CASCADE"),
    words("node_id"),
    words("type"),
    words("status", default=NODE.initial.value),
    words("prior_status", nullable=True),
    number("attempt"),
    words("last_error", nullable=True),
    document("artifact", nullable=True),
    words("job_id", nullable=True),
    words("actor", nullable=True),
    words("reason", nullable=True),
    moment("updated_at"),
    moment("started_at", nullable=True),
    moment("ended_at", nullable=True),
    number("ordinal"),
    number("priority", 2),
    # How many of its dependencies have still to end, and how the others did; of a mapped node that has begun, the same
    # of its instances.
    number("waiting_on"),
    number("deps_success"),
    number("deps_failed"),
    number("deps_skipped"),
    words("parent_id", nullable=True),
    document("item", nullable=True),
    words("artifact_digest", nullable=True),
    number("artifact_bytes"),
    # Only in runs that limit how many nodes may run at once: 'wanted' by one that may run, 'held' by one that does.
    words("place", nullable=True),
    words("wait_on", nullable=True),
    words("wait_key", nullable=True),
    moment("wait_until", nullable=True),
    # Only in chains that limit something over all of their runs: the chain, whose row is the lock of what it limits.
    words("pool", nullable=True),
    PrimaryKeyConstraint("run_id", "node_id"),
    one_of("status", NodeStatus),
    _partial("chain_nodes_instances", "run_id", "parent_id", "ordinal", where="parent_id IS NOT NULL"),
    _partial("chain_nodes_places", "run_id", "place", "priority", "ordinal", where="place IS NOT NULL"),
    _partial(
        "chain_nodes_pools",
        "pool",
        "place",
        "priority",
        "run_id",
        "ordinal",
        "node_id",
        where="pool IS NOT NULL AND place IS NOT NULL",
    ),
    _partial("chain_nodes_waits", "wait_on", "wait_key", where="wait_on IS NOT NULL"),
    _partial("chain_nodes_wait_until", "wait_until", where="wait_until IS NOT NULL"),
)

chain_secrets = Table(
    "chain_secrets",
    METADATA,
    words("name"),
    words("ciphertext"),
    words("created_by", nullable=True),
    moment("created_at"),
    words("updated_by", nullable=True),
    moment("updated_at"),
    PrimaryKeyConstraint("name"),
)

chain_checkpoints = Table(
    "chain_checkpoints",
    METADATA,
    reference("run_id", "chain_runs", ondelete="CASCADE"),
    words("node_id"),
    number("attempt_id", None),
    document("checkpoint"),
    moment("updated_at"),
    PrimaryKeyConstraint("run_id", "node_id"),
)

chain_node_logs = Table(
    "chain_node_logs",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    reference("run_id", "chain_runs", ondelete="CASCADE"),
    words("node_id"),
    number("attempt", None),
    words("text"),
    moment("at"),
    Index(None, "run_id", "node_id", "id"),
)

chain_status_log = Table(
    "chain_status_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    *logged("run_id", "chain_runs"),
    words("node_id", nullable=True),
    words("from_status"),
    words("to_status"),
    number("attempt", None, nullable=True),
    words("actor", nullable=True),
    words("reason", nullable=True),
    moment("at"),
    Index(None, "run_id"),
)
