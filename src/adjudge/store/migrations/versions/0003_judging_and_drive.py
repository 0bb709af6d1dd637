"""Submissions, jobs and what drives them.

Frozen: later changes are later migrations. A test holds that all of them together arrive at ``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

CREATE_TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER jobs_terminal_is_final BEFORE UPDATE ON jobs WHEN OLD.status IN ('canceled', 'failed', 'succeeded') BEGIN SELECT RAISE(ABORT, 'jobs_terminal_is_final'); END",
        "CREATE TRIGGER jobs_legal_edge BEFORE UPDATE OF status, attempt_id ON jobs WHEN NOT OLD.status IN ('canceled', 'failed', 'succeeded') AND NOT (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'failed', 'queued', 'running')) OR (OLD.status = 'queued' AND NEW.status IN ('canceled', 'failed', 'pending', 'running')) OR (OLD.status = 'running' AND NEW.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running')) BEGIN SELECT RAISE(ABORT, 'jobs_legal_edge'); END",
        "CREATE TRIGGER submissions_legal_edge BEFORE UPDATE ON submissions WHEN NOT (NEW.version = OLD.version + 1 AND (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'judging')) OR (OLD.status = 'judging' AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer'))) OR (OLD.status = NEW.status AND NOT OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer')) OR (OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND COALESCE(NEW.judged_by_job_id, '') <> COALESCE(OLD.judged_by_job_id, '')))) BEGIN SELECT RAISE(ABORT, 'submissions_legal_edge'); END",
        "CREATE TRIGGER jobs_log AFTER UPDATE OF status ON jobs WHEN (OLD.status <> NEW.status OR OLD.attempt_id <> NEW.attempt_id) BEGIN INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at) VALUES (NEW.id, OLD.status, NEW.status, NEW.attempt_id, NEW.actor, NEW.reason, NEW.updated_at); END",
        "CREATE TRIGGER jobs_attempts AFTER UPDATE OF status ON jobs WHEN OLD.status = 'running' AND (OLD.status <> NEW.status OR OLD.attempt_id <> NEW.attempt_id) BEGIN INSERT INTO job_attempts (job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error) VALUES (OLD.id, OLD.attempt_id, OLD.lease_owner, OLD.started_at, NEW.updated_at, CASE NEW.status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE NEW.status END, NEW.reason, NEW.error_code, NEW.error); END",
        "CREATE TRIGGER submissions_log AFTER UPDATE OF status ON submissions WHEN OLD.version <> NEW.version BEGIN INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at) VALUES (NEW.id, OLD.status, NEW.status, NEW.verdict, NEW.judged_by_job_id, NEW.version, NEW.actor, NEW.reason, NEW.updated_at); END",
    ],
    "postgresql": [
        "CREATE TRIGGER jobs_terminal_is_final BEFORE UPDATE ON jobs FOR EACH ROW WHEN (OLD.status IN ('canceled', 'failed', 'succeeded')) EXECUTE FUNCTION adjudge_refuse('jobs_terminal_is_final')",
        "CREATE TRIGGER jobs_legal_edge BEFORE UPDATE OF status, attempt_id ON jobs FOR EACH ROW WHEN (NOT OLD.status IN ('canceled', 'failed', 'succeeded') AND NOT (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'failed', 'queued', 'running')) OR (OLD.status = 'queued' AND NEW.status IN ('canceled', 'failed', 'pending', 'running')) OR (OLD.status = 'running' AND NEW.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running'))) EXECUTE FUNCTION adjudge_refuse('jobs_legal_edge')",
        "CREATE TRIGGER submissions_legal_edge BEFORE UPDATE ON submissions FOR EACH ROW WHEN (NOT (NEW.version = OLD.version + 1 AND (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'judging')) OR (OLD.status = 'judging' AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer'))) OR (OLD.status = NEW.status AND NOT OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer')) OR (OLD.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND NEW.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND COALESCE(NEW.judged_by_job_id, '') <> COALESCE(OLD.judged_by_job_id, ''))))) EXECUTE FUNCTION adjudge_refuse('submissions_legal_edge')",
        "CREATE FUNCTION jobs_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at) SELECT n.id, o.status, n.status, n.attempt_id, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE (o.status <> n.status OR o.attempt_id <> n.attempt_id); RETURN NULL; END $$",
        "CREATE TRIGGER jobs_log AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_log()",
        "CREATE FUNCTION jobs_attempts() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO job_attempts (job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error) SELECT o.id, o.attempt_id, o.lease_owner, o.started_at, n.updated_at, CASE n.status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE n.status END, n.reason, n.error_code, n.error FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE o.status = 'running' AND (o.status <> n.status OR o.attempt_id <> n.attempt_id); RETURN NULL; END $$",
        "CREATE TRIGGER jobs_attempts AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_attempts()",
        "CREATE FUNCTION submissions_log() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$ BEGIN INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at) SELECT n.id, o.status, n.status, n.verdict, n.judged_by_job_id, n.version, n.actor, n.reason, n.updated_at FROM old_rows o JOIN new_rows n ON o.id = n.id WHERE o.version <> n.version; RETURN NULL; END $$",
        "CREATE TRIGGER submissions_log AFTER UPDATE ON submissions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_log()",
    ],
}
DROP_TRIGGERS = {
    "sqlite": [
        "DROP TRIGGER submissions_log",
        "DROP TRIGGER jobs_attempts",
        "DROP TRIGGER jobs_log",
        "DROP TRIGGER submissions_legal_edge",
        "DROP TRIGGER jobs_legal_edge",
        "DROP TRIGGER jobs_terminal_is_final",
    ],
    "postgresql": [
        "DROP TRIGGER submissions_log ON submissions",
        "DROP FUNCTION submissions_log()",
        "DROP TRIGGER jobs_attempts ON jobs",
        "DROP FUNCTION jobs_attempts()",
        "DROP TRIGGER jobs_log ON jobs",
        "DROP FUNCTION jobs_log()",
        "DROP TRIGGER submissions_legal_edge ON submissions",
        "DROP TRIGGER jobs_legal_edge ON jobs",
        "DROP TRIGGER jobs_terminal_is_final ON jobs",
    ],
}


def upgrade() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("slots", sa.BigInteger(), nullable=False),
        sa.Column("capabilities", JSON_TEXT, nullable=False),
        sa.Column("health", sa.Text(), server_default="starting", nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("workers_pkey")),
    )
    op.create_index(op.f("workers_lease_until"), "workers", ["lease_until"], unique=False)
    op.create_table(
        "rejudge_batches",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("filter", JSON_TEXT, nullable=False),
        sa.Column("policy", sa.Text(), server_default="latest", nullable=False),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("applied_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "policy IN ('latest', 'best', 'first_accepted_stays')", name=op.f("rejudge_batches_policy_known")
        ),
        sa.CheckConstraint(
            "state IN ('running', 'ready', 'applied', 'discarded', 'canceled')",
            name=op.f("rejudge_batches_state_known"),
        ),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("rejudge_batches_created_by_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("rejudge_batches_pkey")),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("revision_id", sa.Text(), nullable=False),
        sa.Column("contest_id", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("source_digest", sa.Text(), nullable=False),
        sa.Column("source_bytes", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("prior_status", sa.Text(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("time_ms", sa.BigInteger(), nullable=True),
        sa.Column("mem_kb", sa.BigInteger(), nullable=True),
        sa.Column("judged_by_job_id", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (status IN ('accepted', 'canceled', 'error', 'wrong_answer'))",
            name=op.f("submissions_finished_at_exactly_when"),
        ),
        sa.CheckConstraint(
            "(verdict IS NOT NULL) = (status IN ('accepted', 'error', 'wrong_answer'))",
            name=op.f("submissions_verdict_exactly_when"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'judging', 'accepted', 'wrong_answer', 'error', 'canceled')",
            name=op.f("submissions_status_known"),
        ),
        sa.CheckConstraint(
            "verdict IN ('AC', 'PA', 'WA', 'OLE', 'TLE', 'MLE', 'RE', 'CE', 'SE')",
            name=op.f("submissions_verdict_known"),
        ),
        sa.ForeignKeyConstraint(["contest_id"], ["contests.id"], name=op.f("submissions_contest_id_fkey")),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("submissions_problem_id_fkey")),
        sa.ForeignKeyConstraint(["revision_id"], ["problem_revisions.id"], name=op.f("submissions_revision_id_fkey")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("submissions_user_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("submissions_pkey")),
    )
    op.create_index(op.f("submissions_contest_id_id"), "submissions", ["contest_id", "id"], unique=False)
    op.create_index(
        "submissions_open",
        "submissions",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NULL"),
        sqlite_where=sa.text("finished_at IS NULL"),
    )
    op.create_index(op.f("submissions_problem_id_id"), "submissions", ["problem_id", "id"], unique=False)
    op.create_index(op.f("submissions_user_id_id"), "submissions", ["user_id", "id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.Column("submission_id", sa.Text(), nullable=True),
        sa.Column("rejudge_batch_id", sa.Text(), nullable=True),
        sa.Column("chain_run_id", sa.Text(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("origin_job_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("prior_status", sa.Text(), nullable=True),
        sa.Column("attempt_id", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), server_default="4", nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="2", nullable=False),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=True),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("payload", JSON_TEXT, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("result", JSON_TEXT, nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (status IN ('canceled', 'failed', 'succeeded'))",
            name=op.f("jobs_finished_at_exactly_when"),
        ),
        sa.CheckConstraint(
            "(lease_owner IS NOT NULL) = (status IN ('running'))", name=op.f("jobs_lease_owner_exactly_when")
        ),
        sa.CheckConstraint(
            "(lease_until IS NOT NULL) = (status IN ('running'))", name=op.f("jobs_lease_until_exactly_when")
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'queued', 'running', 'succeeded', 'failed', 'canceled')",
            name=op.f("jobs_status_known"),
        ),
        sa.CheckConstraint("attempt_id >= 0 AND attempt_id <= max_attempts", name=op.f("jobs_attempt_id_bounded")),
        sa.ForeignKeyConstraint(["chain_run_id"], ["chain_runs.id"], name=op.f("jobs_chain_run_id_fkey")),
        sa.ForeignKeyConstraint(["origin_job_id"], ["jobs.id"], name=op.f("jobs_origin_job_id_fkey")),
        sa.ForeignKeyConstraint(["rejudge_batch_id"], ["rejudge_batches.id"], name=op.f("jobs_rejudge_batch_id_fkey")),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name=op.f("jobs_submission_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("jobs_pkey")),
        postgresql_with={"fillfactor": "70", "autovacuum_vacuum_scale_factor": "0.02"},
    )
    op.create_index(
        "jobs_batch",
        "jobs",
        ["rejudge_batch_id"],
        unique=False,
        postgresql_where=sa.text("rejudge_batch_id IS NOT NULL"),
        sqlite_where=sa.text("rejudge_batch_id IS NOT NULL"),
    )
    op.create_index(
        "jobs_dedupe",
        "jobs",
        ["kind", "dedupe_key"],
        unique=True,
        postgresql_where=sa.text("dedupe_key IS NOT NULL"),
        sqlite_where=sa.text("dedupe_key IS NOT NULL"),
    )
    op.create_index(
        "jobs_node",
        "jobs",
        ["chain_run_id", "node_id"],
        unique=False,
        postgresql_where=sa.text("chain_run_id IS NOT NULL"),
        sqlite_where=sa.text("chain_run_id IS NOT NULL"),
    )
    op.create_index(
        "jobs_origin",
        "jobs",
        ["origin_job_id"],
        unique=False,
        postgresql_where=sa.text("origin_job_id IS NOT NULL"),
        sqlite_where=sa.text("origin_job_id IS NOT NULL"),
    )
    op.create_index(
        "jobs_queued",
        "jobs",
        ["queued_at"],
        unique=False,
        postgresql_where=sa.text("status = 'queued'"),
        sqlite_where=sa.text("status = 'queued'"),
    )
    op.create_index(
        "jobs_running",
        "jobs",
        ["id"],
        unique=False,
        postgresql_where=sa.text("status = 'running'"),
        sqlite_where=sa.text("status = 'running'"),
    )
    op.create_index(
        "jobs_submission",
        "jobs",
        ["submission_id"],
        unique=False,
        postgresql_where=sa.text("submission_id IS NOT NULL"),
        sqlite_where=sa.text("submission_id IS NOT NULL"),
    )
    op.create_index(
        "jobs_waiting",
        "jobs",
        ["priority", "available_at"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'queued')"),
        sqlite_where=sa.text("status IN ('pending', 'queued')"),
    )
    op.create_table(
        "submission_status_log",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("submission_id", sa.Text(), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("version > 0", name=op.f("submission_status_log_version_positive")),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name=op.f("submission_status_log_submission_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("submission_status_log_pkey")),
    )
    op.create_index(
        op.f("submission_status_log_submission_id"), "submission_status_log", ["submission_id"], unique=False
    )
    op.create_table(
        "case_results",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("mem_kb", sa.BigInteger(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("exit_signal", sa.BigInteger(), nullable=True),
        sa.Column("limit_hit", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "verdict IN ('AC', 'PA', 'WA', 'OLE', 'TLE', 'MLE', 'RE', 'CE', 'SE')",
            name=op.f("case_results_verdict_known"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("case_results_job_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=op.f("case_results_pkey")),
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("replayed_by_job_id", sa.Text(), nullable=True),
        sa.Column("resolved_by", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(resolved_at IS NULL) = (state = 'open')", name=op.f("dead_letters_resolved_at_exactly_when")
        ),
        sa.CheckConstraint("state IN ('open', 'replayed', 'discarded')", name=op.f("dead_letters_state_known")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("dead_letters_job_id_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["replayed_by_job_id"], ["jobs.id"], name=op.f("dead_letters_replayed_by_job_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("dead_letters_pkey")),
        sa.UniqueConstraint("job_id", name=op.f("dead_letters_job_id_key")),
    )
    op.create_index(
        "dead_letters_open",
        "dead_letters",
        ["created_at"],
        unique=False,
        postgresql_where=sa.text("state = 'open'"),
        sqlite_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "job_attempts",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("job_attempts_job_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt_id", name=op.f("job_attempts_pkey")),
    )
    op.create_table(
        "job_status_log",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("job_status_log_job_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("job_status_log_pkey")),
    )
    op.create_index(op.f("job_status_log_job_id"), "job_status_log", ["job_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="2", nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("takings", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("dispatched_at", sa.BigInteger(), nullable=True),
        sa.Column("stream_entry_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("state IN ('pending', 'delivered', 'dropped')", name=op.f("outbox_state_known")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("outbox_job_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pkey")),
        sa.UniqueConstraint("job_id", name=op.f("outbox_job_id_key")),
        postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
    )
    op.create_index(
        "outbox_due",
        "outbox",
        ["next_attempt_at", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'pending'"),
        sqlite_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "rejudge_items",
        sa.Column("batch_id", sa.Text(), nullable=False),
        sa.Column("submission_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("old_verdict", sa.Text(), nullable=True),
        sa.Column("old_score", sa.Double(), nullable=True),
        sa.Column("applied", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["rejudge_batches.id"], name=op.f("rejudge_items_batch_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("rejudge_items_job_id_fkey")),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name=op.f("rejudge_items_submission_id_fkey")),
        sa.PrimaryKeyConstraint("batch_id", "submission_id", name=op.f("rejudge_items_pkey")),
    )
    op.create_index(op.f("rejudge_items_job_id"), "rejudge_items", ["job_id"], unique=False)
    for ddl in CREATE_TRIGGERS[op.get_bind().dialect.name]:
        op.get_bind().exec_driver_sql(ddl)


def downgrade() -> None:
    for ddl in DROP_TRIGGERS[op.get_bind().dialect.name]:
        op.get_bind().exec_driver_sql(ddl)
    op.drop_table("rejudge_items")
    op.drop_table("outbox")
    op.drop_table("job_status_log")
    op.drop_table("job_attempts")
    op.drop_table("dead_letters")
    op.drop_table("case_results")
    op.drop_table("submission_status_log")
    op.drop_table("jobs")
    op.drop_table("submissions")
    op.drop_table("rejudge_batches")
    op.drop_table("workers")
