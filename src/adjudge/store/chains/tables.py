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

from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from adjudge.store.engine.columns import (
    METADATA,
    SERIAL,
    check_one_of,
    check_set_exactly_when,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    log_foreign_key,
    partial_index,
    text_column,
    timestamp_column,
)

chains = Table(
    "chains",
    METADATA,
    id_column(),
    text_column("name"),
    text_column("description", nullable=True),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    integer_column("version", 1),
    json_column("dag"),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    # Of the user who saved it last.
    json_column("authority", nullable=True),
    # Of the run that was started last. Counted here because old runs are deleted.
    integer_column("last_run_number"),
    UniqueConstraint("name"),
    CheckConstraint("version > 0", name="version_positive"),
)

chain_versions = Table(
    "chain_versions",
    METADATA,
    foreign_key("chain_id", "chains", ondelete="CASCADE"),
    integer_column("version", None),
    text_column("name"),
    text_column("description", nullable=True),
    json_column("dag"),
    text_column("actor", nullable=True),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("chain_id", "version"),
)

chain_runs = Table(
    "chain_runs",
    METADATA,
    id_column(),
    foreign_key("chain_id", "chains"),
    integer_column("number", None),
    integer_column("chain_version", None),
    text_column("idempotency_key", nullable=True),
    text_column("status", default=CHAIN_RUN.initial.value),
    text_column("prior_status", nullable=True),
    json_column("dag"),
    json_column("parameters", default=text("'{}'")),
    text_column("trigger_kind", default="manual"),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    text_column("trace_id", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    timestamp_column("started_at", nullable=True),
    timestamp_column("finished_at", nullable=True),
    # Kept under the lock of this row, so that ending a node never counts the others.
    integer_column("nodes_total"),
    integer_column("nodes_open"),
    integer_column("nodes_failed"),
    timestamp_column("stop_requested_at", nullable=True),
    text_column("started_by", nullable=True),
    text_column("parent_run_id", nullable=True),
    text_column("parent_node_id", nullable=True),
    text_column("origin_run_id", nullable=True),
    # Only in chains that limit their runs: 'wanted' by one that waits for its turn, 'held' by one that has it.
    text_column("slot", nullable=True),
    # On whose authority nodes act: users and their tokens, by id (``domain.authority``).
    json_column("authority", nullable=True),
    check_one_of("status", ChainRunStatus),
    check_set_exactly_when("finished_at", "status", CHAIN_RUN.terminal),
    UniqueConstraint("chain_id", "idempotency_key"),
    UniqueConstraint("chain_id", "number"),
    Index(None, "chain_id", "id"),
    Index(None, "started_by", "id"),
    partial_index("chain_runs_open", "id", where="finished_at IS NULL"),
    partial_index("chain_runs_finished", "finished_at", where="finished_at IS NOT NULL"),
    partial_index("chain_runs_stopping", "stop_requested_at", where="status = 'stopping'"),
    partial_index("chain_runs_parent", "parent_run_id", where="parent_run_id IS NOT NULL"),
    partial_index("chain_runs_slots", "chain_id", "slot", "id", where="slot IS NOT NULL"),
)

chain_nodes = Table(
    "chain_nodes",
    METADATA,
    foreign_key("run_id", "chain_runs", ondelete="CASCADE"),
    text_column("node_id"),
    text_column("type"),
    text_column("status", default=NODE.initial.value),
    text_column("prior_status", nullable=True),
    integer_column("attempt"),
    text_column("last_error", nullable=True),
    json_column("artifact", nullable=True),
    text_column("job_id", nullable=True),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    timestamp_column("updated_at"),
    timestamp_column("started_at", nullable=True),
    timestamp_column("ended_at", nullable=True),
    integer_column("ordinal"),
    integer_column("priority", 2),
    # How many of its dependencies have still to end, and how the others did; of a mapped node that has begun, the same
    # of its instances.
    integer_column("waiting_on"),
    integer_column("deps_success"),
    integer_column("deps_failed"),
    integer_column("deps_skipped"),
    text_column("parent_id", nullable=True),
    json_column("item", nullable=True),
    text_column("artifact_digest", nullable=True),
    integer_column("artifact_bytes"),
    # Only in runs that limit how many nodes may run at once: 'wanted' by one that may run, 'held' by one that does.
    text_column("slot", nullable=True),
    text_column("wait_on", nullable=True),
    text_column("wait_key", nullable=True),
    timestamp_column("wait_until", nullable=True),
    # Only in chains that limit something over all of their runs: the chain, whose row is the lock of what it limits.
    text_column("concurrency_pool", nullable=True),
    PrimaryKeyConstraint("run_id", "node_id"),
    check_one_of("status", NodeStatus),
    partial_index("chain_nodes_instances", "run_id", "parent_id", "ordinal", where="parent_id IS NOT NULL"),
    partial_index("chain_nodes_slots", "run_id", "slot", "priority", "ordinal", where="slot IS NOT NULL"),
    partial_index(
        "chain_nodes_pools",
        "concurrency_pool",
        "slot",
        "priority",
        "run_id",
        "ordinal",
        "node_id",
        where="concurrency_pool IS NOT NULL AND slot IS NOT NULL",
    ),
    partial_index("chain_nodes_waits", "wait_on", "wait_key", where="wait_on IS NOT NULL"),
    partial_index("chain_nodes_wait_until", "wait_until", where="wait_until IS NOT NULL"),
)

chain_secrets = Table(
    "chain_secrets",
    METADATA,
    text_column("name"),
    text_column("ciphertext"),
    text_column("created_by", nullable=True),
    timestamp_column("created_at"),
    text_column("updated_by", nullable=True),
    timestamp_column("updated_at"),
    PrimaryKeyConstraint("name"),
)

chain_checkpoints = Table(
    "chain_checkpoints",
    METADATA,
    foreign_key("run_id", "chain_runs", ondelete="CASCADE"),
    text_column("node_id"),
    integer_column("attempt_id", None),
    json_column("checkpoint"),
    timestamp_column("updated_at"),
    PrimaryKeyConstraint("run_id", "node_id"),
)

chain_node_logs = Table(
    "chain_node_logs",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    foreign_key("run_id", "chain_runs", ondelete="CASCADE"),
    text_column("node_id"),
    integer_column("attempt", None),
    text_column("text"),
    timestamp_column("at"),
    Index(None, "run_id", "node_id", "id"),
)

chain_status_log = Table(
    "chain_status_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    *log_foreign_key("run_id", "chain_runs"),
    text_column("node_id", nullable=True),
    text_column("from_status"),
    text_column("to_status"),
    integer_column("attempt", None, nullable=True),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    timestamp_column("at"),
    Index(None, "run_id"),
)

TRIGGER_KINDS = ("cron", "delay", "event", "webhook", "chain")
TICK_STATES = ("pending", "started", "failed")

chain_triggers = Table(
    "chain_triggers",
    METADATA,
    id_column(),
    foreign_key("chain_id", "chains", ondelete="CASCADE"),
    text_column("name"),
    text_column("kind"),
    json_column("spec"),
    text_column("event", nullable=True),
    text_column("secret_hash", nullable=True),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    timestamp_column("next_at", nullable=True),
    text_column("last_tick", nullable=True),
    text_column("last_error", nullable=True),
    integer_column("version", 1),
    text_column("created_by", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    # Of the user who saved it last.
    json_column("authority", nullable=True),
    check_one_of("kind", TRIGGER_KINDS),
    UniqueConstraint("chain_id", "name"),
    partial_index("chain_triggers_due", "next_at", where="enabled"),
    partial_index("chain_triggers_event", "event", where="event IS NOT NULL"),
)

chain_trigger_ticks = Table(
    "chain_trigger_ticks",
    METADATA,
    foreign_key("trigger_id", "chain_triggers", ondelete="CASCADE"),
    text_column("tick"),
    timestamp_column("due_at"),
    json_column("payload", default=text("'{}'")),
    text_column("state", default="pending"),
    text_column("run_id", nullable=True),
    text_column("error", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("settled_at", nullable=True),
    PrimaryKeyConstraint("trigger_id", "tick"),
    check_one_of("state", TICK_STATES),
    partial_index("chain_trigger_ticks_pending", "due_at", where="state = 'pending'"),
)
