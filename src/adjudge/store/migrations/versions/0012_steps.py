"""A statement that counts nodes down may let some of them begin; runs log their status only when it changes.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

EDGES = (
    "((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) "
    "OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) "
    "OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) "
    "OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) "
    "OR (OLD.status = 'stopped' AND NEW.status IN ('pending', 'retrying', 'success')) "
    "OR (OLD.status = 'skipped' AND NEW.status IN ('pending')))"
)
GUARD = {
    "sqlite": "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes "
    "WHEN {when} BEGIN SELECT RAISE(ABORT, 'chain_nodes_legal_edge'); END",
    "postgresql": "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes FOR EACH ROW "
    "WHEN ({when}) EXECUTE FUNCTION adjudge_refuse('chain_nodes_legal_edge')",
}
UNGUARD = {
    "sqlite": "DROP TRIGGER chain_nodes_legal_edge",
    "postgresql": "DROP TRIGGER chain_nodes_legal_edge ON chain_nodes",
}
INSERT = "INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at)"
LOG_BY_ROW = (
    (
        f"CREATE FUNCTION chain_runs_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {INSERT} VALUES (NEW.id, NULL, "
        "OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at); RETURN NULL; END $$"
    ),
    (
        "CREATE TRIGGER chain_runs_log AFTER UPDATE OF status ON chain_runs FOR EACH ROW "
        "WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION chain_runs_log()"
    ),
)
LOG_BY_STATEMENT = (
    (
        "CREATE FUNCTION chain_runs_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN "
        f"{INSERT} SELECT n.id, NULL, o.status, n.status, NULL, n.actor, n.reason, n.updated_at FROM old_rows o "
        "JOIN new_rows n ON o.id = n.id WHERE o.status <> n.status; RETURN NULL; END $$"
    ),
    (
        "CREATE TRIGGER chain_runs_log AFTER UPDATE ON chain_runs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION chain_runs_log()"
    ),
)


def guard(when: str) -> None:
    dialect = op.get_bind().dialect.name
    op.execute(UNGUARD[dialect])
    op.execute(GUARD[dialect].format(when=when))


def log(*statements: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for text in ("DROP TRIGGER chain_runs_log ON chain_runs", "DROP FUNCTION chain_runs_log()", *statements):
            op.execute(text)


def upgrade() -> None:
    guard(f"OLD.status <> NEW.status AND NOT {EDGES}")
    log(*LOG_BY_ROW)


def downgrade() -> None:
    guard(f"NOT {EDGES}")
    log(*LOG_BY_STATEMENT)
