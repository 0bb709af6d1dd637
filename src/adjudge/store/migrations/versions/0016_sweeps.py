"""On PostgreSQL a sweep deletes what logs say of a deleted row, instead of a foreign key; SQLite keeps its keys.

On both, an index finds the dead letters that a job was a replay of: who deletes the job asks for them.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

CREATE_SWEEPS = (
    "CREATE FUNCTION jobs_sweep() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM job_status_log WHERE job_id = ANY (ARRAY(SELECT id FROM old_rows)); DELETE FROM job_attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$",
    "CREATE TRIGGER jobs_sweep AFTER DELETE ON jobs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_sweep()",
    "CREATE FUNCTION submissions_sweep() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM submission_status_log WHERE submission_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$",
    "CREATE TRIGGER submissions_sweep AFTER DELETE ON submissions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_sweep()",
    "CREATE FUNCTION chain_runs_sweep() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM chain_status_log WHERE run_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$",
    "CREATE TRIGGER chain_runs_sweep AFTER DELETE ON chain_runs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION chain_runs_sweep()",
)
DROP_KEYS = (
    "ALTER TABLE job_status_log DROP CONSTRAINT job_status_log_job_id_fkey",
    "ALTER TABLE job_attempts DROP CONSTRAINT job_attempts_job_id_fkey",
    "ALTER TABLE submission_status_log DROP CONSTRAINT submission_status_log_submission_id_fkey",
    "ALTER TABLE chain_status_log DROP CONSTRAINT chain_status_log_run_id_fkey",
)
CREATE_KEYS = (
    "ALTER TABLE chain_status_log ADD CONSTRAINT chain_status_log_run_id_fkey FOREIGN KEY (run_id) REFERENCES chain_runs (id) ON DELETE CASCADE",
    "ALTER TABLE submission_status_log ADD CONSTRAINT submission_status_log_submission_id_fkey FOREIGN KEY (submission_id) REFERENCES submissions (id) ON DELETE CASCADE",
    "ALTER TABLE job_attempts ADD CONSTRAINT job_attempts_job_id_fkey FOREIGN KEY (job_id) REFERENCES jobs (id) ON DELETE CASCADE",
    "ALTER TABLE job_status_log ADD CONSTRAINT job_status_log_job_id_fkey FOREIGN KEY (job_id) REFERENCES jobs (id) ON DELETE CASCADE",
)
DROP_SWEEPS = (
    "DROP TRIGGER chain_runs_sweep ON chain_runs",
    "DROP FUNCTION chain_runs_sweep()",
    "DROP TRIGGER submissions_sweep ON submissions",
    "DROP FUNCTION submissions_sweep()",
    "DROP TRIGGER jobs_sweep ON jobs",
    "DROP FUNCTION jobs_sweep()",
)


def on_postgres(statements: Iterable[str]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for text in statements:
            op.execute(text)


def upgrade() -> None:
    op.create_index(
        op.f("dead_letters_replayed_by"),
        "dead_letters",
        ["replayed_by_job_id"],
        sqlite_where=sa.text("replayed_by_job_id IS NOT NULL"),
        postgresql_where=sa.text("replayed_by_job_id IS NOT NULL"),
    )
    on_postgres((*CREATE_SWEEPS, *DROP_KEYS))


def downgrade() -> None:
    on_postgres((*CREATE_KEYS, *DROP_SWEEPS))
    op.drop_index(op.f("dead_letters_replayed_by"), "dead_letters")
