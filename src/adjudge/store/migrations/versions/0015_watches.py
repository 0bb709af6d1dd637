"""On PostgreSQL one trigger a table guards and logs, after the write; SQLite's stay as they are.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from collections.abc import Iterable

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

DROP_APART = (
    "DROP TRIGGER chain_nodes_log ON chain_nodes",
    "DROP FUNCTION chain_nodes_log()",
    "DROP TRIGGER chain_runs_log ON chain_runs",
    "DROP FUNCTION chain_runs_log()",
    "DROP TRIGGER submissions_log ON submissions",
    "DROP FUNCTION submissions_log()",
    "DROP TRIGGER jobs_attempts ON jobs",
    "DROP FUNCTION jobs_attempts()",
    "DROP TRIGGER jobs_log ON jobs",
    "DROP FUNCTION jobs_log()",
    "DROP TRIGGER chain_nodes_legal_edge ON chain_nodes",
    "DROP TRIGGER chain_runs_legal_edge ON chain_runs",
    "DROP TRIGGER submissions_legal_edge ON submissions",
    "DROP TRIGGER jobs_legal_edge ON jobs",
    "DROP TRIGGER jobs_terminal_is_final ON jobs",
    "DROP FUNCTION adjudge_refuse()",
)
CREATE_WATCHES = (
    "CREATE FUNCTION adjudge_refuse(guard text, old_status text, new_status text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE integrity_constraint_violation USING CONSTRAINT = guard, MESSAGE = concat(guard, ' refused ', old_status, ' -> ', new_status); END $$",
    "CREATE FUNCTION jobs_watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN WITH changed AS MATERIALIZED (SELECT n.actor AS new_actor, n.attempt_id AS new_attempt_id, n.error AS new_error, n.error_code AS new_error_code, n.id AS new_id, n.reason AS new_reason, n.status AS new_status, n.updated_at AS new_updated_at, o.attempt_id AS old_attempt_id, o.id AS old_id, o.lease_owner AS old_lease_owner, o.started_at AS old_started_at, o.status AS old_status FROM old_rows o FULL JOIN new_rows n ON n.id = o.id WHERE CASE WHEN o.id IS NULL THEN false WHEN (o.status IN ('canceled', 'failed', 'succeeded')) IS NOT FALSE THEN adjudge_refuse('jobs_terminal_is_final', o.status, n.status) WHEN ((o.status <> n.status OR o.attempt_id <> n.attempt_id) AND NOT o.status IN ('canceled', 'failed', 'succeeded') AND NOT (((o.status = 'pending' AND n.status IN ('canceled', 'failed', 'queued', 'running')) OR (o.status = 'queued' AND n.status IN ('canceled', 'failed', 'pending', 'running')) OR (o.status = 'running' AND n.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (n.attempt_id > o.attempt_id) = (n.status = 'running'))) IS NOT FALSE THEN adjudge_refuse('jobs_legal_edge', o.status, n.status) ELSE (o.status <> n.status OR o.attempt_id <> n.attempt_id) OR o.status = 'running' AND (o.status <> n.status OR o.attempt_id <> n.attempt_id) END), jobs_log AS (INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at) SELECT new_id, old_status, new_status, new_attempt_id, new_actor, new_reason, new_updated_at FROM changed WHERE (old_status <> new_status OR old_attempt_id <> new_attempt_id)) INSERT INTO job_attempts (job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error) SELECT old_id, old_attempt_id, old_lease_owner, old_started_at, new_updated_at, CASE new_status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE new_status END, new_reason, new_error_code, new_error FROM changed WHERE old_status = 'running' AND (old_status <> new_status OR old_attempt_id <> new_attempt_id); RETURN NULL; END $$",
    "CREATE TRIGGER jobs_watch AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_watch()",
    "CREATE FUNCTION jobs_legal_edge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT OLD.status IN ('canceled', 'failed', 'succeeded') AND NOT (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'failed', 'queued', 'running')) OR (OLD.status = 'queued' AND NEW.status IN ('canceled', 'failed', 'pending', 'running')) OR (OLD.status = 'running' AND NEW.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running')) THEN PERFORM adjudge_refuse('jobs_legal_edge', OLD.status, NEW.status); END IF; RETURN NULL; END $$",
    "CREATE TRIGGER jobs_legal_edge AFTER UPDATE OF status, attempt_id ON jobs FOR EACH ROW WHEN (OLD.status = NEW.status AND OLD.attempt_id = NEW.attempt_id) EXECUTE FUNCTION jobs_legal_edge()",
    "CREATE FUNCTION submissions_watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN WITH changed AS MATERIALIZED (SELECT n.actor AS new_actor, n.id AS new_id, n.judged_by_job_id AS new_judged_by_job_id, n.reason AS new_reason, n.status AS new_status, n.updated_at AS new_updated_at, n.verdict AS new_verdict, n.version AS new_version, o.status AS old_status, o.version AS old_version FROM old_rows o FULL JOIN new_rows n ON n.id = o.id WHERE CASE WHEN o.id IS NULL THEN false WHEN (NOT (n.version = o.version + 1 AND (((o.status = 'pending' AND n.status IN ('canceled', 'judging')) OR (o.status = 'judging' AND n.status IN ('accepted', 'canceled', 'error', 'wrong_answer'))) OR (o.status = n.status AND NOT o.status IN ('accepted', 'canceled', 'error', 'wrong_answer')) OR (o.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND n.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND COALESCE(n.judged_by_job_id, '') <> COALESCE(o.judged_by_job_id, ''))))) IS NOT FALSE THEN adjudge_refuse('submissions_legal_edge', o.status, n.status) ELSE o.version <> n.version END) INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at) SELECT new_id, old_status, new_status, new_verdict, new_judged_by_job_id, new_version, new_actor, new_reason, new_updated_at FROM changed WHERE old_version <> new_version; RETURN NULL; END $$",
    "CREATE TRIGGER submissions_watch AFTER UPDATE ON submissions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_watch()",
    "CREATE FUNCTION chain_runs_watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'stopping')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'stopping', 'success')) OR (OLD.status = 'stopping' AND NEW.status IN ('stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('running')) OR (OLD.status = 'stopped' AND NEW.status IN ('running'))) THEN PERFORM adjudge_refuse('chain_runs_legal_edge', OLD.status, NEW.status); END IF; IF OLD.status <> NEW.status THEN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at); END IF; RETURN NULL; END $$",
    "CREATE TRIGGER chain_runs_watch AFTER UPDATE OF status ON chain_runs FOR EACH ROW EXECUTE FUNCTION chain_runs_watch()",
    "CREATE FUNCTION chain_nodes_watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.status <> NEW.status AND NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'stopped' AND NEW.status IN ('pending', 'retrying', 'success')) OR (OLD.status = 'skipped' AND NEW.status IN ('pending'))) THEN PERFORM adjudge_refuse('chain_nodes_legal_edge', OLD.status, NEW.status); END IF; IF OLD.status <> NEW.status THEN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.run_id, NEW.node_id, OLD.status, NEW.status, NEW.attempt, NEW.actor, NEW.reason, NEW.updated_at); END IF; RETURN NULL; END $$",
    "CREATE TRIGGER chain_nodes_watch AFTER UPDATE OF status ON chain_nodes FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION chain_nodes_watch()",
)
DROP_WATCHES = (
    "DROP TRIGGER chain_nodes_watch ON chain_nodes",
    "DROP FUNCTION chain_nodes_watch()",
    "DROP TRIGGER chain_runs_watch ON chain_runs",
    "DROP FUNCTION chain_runs_watch()",
    "DROP TRIGGER submissions_watch ON submissions",
    "DROP FUNCTION submissions_watch()",
    "DROP TRIGGER jobs_legal_edge ON jobs",
    "DROP FUNCTION jobs_legal_edge()",
    "DROP TRIGGER jobs_watch ON jobs",
    "DROP FUNCTION jobs_watch()",
    "DROP FUNCTION adjudge_refuse(text, text, text)",
)
CREATE_APART = (
    "CREATE FUNCTION adjudge_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE integrity_constraint_violation USING CONSTRAINT = TG_ARGV[0], MESSAGE = TG_ARGV[0] || ' refused ' || OLD.status || ' -> ' || NEW.status; END $$",
    "CREATE TRIGGER jobs_terminal_is_final BEFORE UPDATE ON jobs FOR EACH ROW WHEN (OLD.status IN ('canceled', 'failed', 'succeeded')) EXECUTE FUNCTION adjudge_refuse('jobs_terminal_is_final')",
    "CREATE TRIGGER jobs_legal_edge BEFORE UPDATE OF status, attempt_id ON jobs FOR EACH ROW WHEN (NOT OLD.status IN ('canceled', 'failed', 'succeeded') AND NOT (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'failed', 'queued', 'running')) OR (OLD.status = 'queued' AND NEW.status IN ('canceled', 'failed', 'pending', 'running')) OR (OLD.status = 'running' AND NEW.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running'))) EXECUTE FUNCTION adjudge_refuse('jobs_legal_edge')",
    "CREATE TRIGGER submissions_legal_edge BEFORE UPDATE ON submissions FOR EACH ROW WHEN (NOT (NEW.version = OLD.version + 1 AND (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'judging')) OR (OLD.status = 'judging' AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer'))) OR (OLD.status = NEW.status AND NOT OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer')) OR (OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND COALESCE(NEW.judged_by_job_id, '') <> COALESCE(OLD.judged_by_job_id, ''))))) EXECUTE FUNCTION adjudge_refuse('submissions_legal_edge')",
    "CREATE TRIGGER chain_runs_legal_edge BEFORE UPDATE OF status ON chain_runs FOR EACH ROW WHEN (NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'stopping')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'stopping', 'success')) OR (OLD.status = 'stopping' AND NEW.status IN ('stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('running')) OR (OLD.status = 'stopped' AND NEW.status IN ('running')))) EXECUTE FUNCTION adjudge_refuse('chain_runs_legal_edge')",
    "CREATE TRIGGER chain_nodes_legal_edge BEFORE UPDATE OF status ON chain_nodes FOR EACH ROW WHEN (OLD.status <> NEW.status AND NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'stopped' AND NEW.status IN ('pending', 'retrying', 'success')) OR (OLD.status = 'skipped' AND NEW.status IN ('pending')))) EXECUTE FUNCTION adjudge_refuse('chain_nodes_legal_edge')",
    "CREATE FUNCTION jobs_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at) SELECT n.id, o.status, n.status, n.attempt_id, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE (o.status <> n.status OR o.attempt_id <> n.attempt_id); RETURN NULL; END $$",
    "CREATE TRIGGER jobs_log AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_log()",
    "CREATE FUNCTION jobs_attempts() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO job_attempts (job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error) SELECT o.id, o.attempt_id, o.lease_owner, o.started_at, n.updated_at, CASE n.status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE n.status END, n.reason, n.error_code, n.error FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE o.status = 'running' AND (o.status <> n.status OR o.attempt_id <> n.attempt_id); RETURN NULL; END $$",
    "CREATE TRIGGER jobs_attempts AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_attempts()",
    "CREATE FUNCTION submissions_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at) SELECT n.id, o.status, n.status, n.verdict, n.judged_by_job_id, n.version, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE o.version <> n.version; RETURN NULL; END $$",
    "CREATE TRIGGER submissions_log AFTER UPDATE ON submissions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_log()",
    "CREATE FUNCTION chain_runs_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at); RETURN NULL; END $$",
    "CREATE TRIGGER chain_runs_log AFTER UPDATE OF status ON chain_runs FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION chain_runs_log()",
    "CREATE FUNCTION chain_nodes_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) SELECT n.run_id, n.node_id, o.status, n.status, n.attempt, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.run_id = n.run_id AND o.node_id = n.node_id WHERE o.status <> n.status; RETURN NULL; END $$",
    "CREATE TRIGGER chain_nodes_log AFTER UPDATE ON chain_nodes REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION chain_nodes_log()",
)


def on_postgres(statements: Iterable[str]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for text in statements:
            op.execute(text)


def upgrade() -> None:
    on_postgres((*DROP_APART, *CREATE_WATCHES))


def downgrade() -> None:
    on_postgres((*DROP_WATCHES, *CREATE_APART))
