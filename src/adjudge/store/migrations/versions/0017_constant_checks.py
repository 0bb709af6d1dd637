"""On PostgreSQL the lists of CHECKs are constants, because it reads them in every statement; SQLite's stay as they are.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

from collections.abc import Callable

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

CHECKS = (
    ("case_results", "case_results_verdict_known", "verdict {}", "AC,PA,WA,OLE,TLE,MLE,RE,CE,SE"),
    ("chain_nodes", "chain_nodes_status_known", "status {}", "pending,running,retrying,success,failed,stopped,skipped"),
    (
        "chain_runs",
        "chain_runs_finished_at_exactly_when",
        "(finished_at IS NOT NULL) = (status {})",
        "failed,stopped,success",
    ),
    ("chain_runs", "chain_runs_status_known", "status {}", "pending,running,stopping,success,failed,stopped"),
    ("chain_trigger_ticks", "chain_trigger_ticks_state_known", "state {}", "pending,started,failed"),
    ("chain_triggers", "chain_triggers_kind_known", "kind {}", "cron,delay,event,webhook,chain"),
    ("dead_letters", "dead_letters_state_known", "state {}", "open,replayed,discarded"),
    ("execution_runs", "execution_runs_verdict_known", "verdict {}", "AC,PA,WA,OLE,TLE,MLE,RE,CE,SE"),
    ("executions", "executions_state_known", "state {}", "pending,finished,failed,canceled"),
    ("executions", "executions_verdict_known", "verdict {}", "AC,PA,WA,OLE,TLE,MLE,RE,CE,SE"),
    ("invitations", "invitations_role_known", "role {}", "admin,setter,judge,contestant,service"),
    ("jobs", "jobs_finished_at_exactly_when", "(finished_at IS NOT NULL) = (status {})", "canceled,failed,succeeded"),
    ("jobs", "jobs_status_known", "status {}", "pending,queued,running,succeeded,failed,canceled"),
    ("outbox", "outbox_state_known", "state {}", "pending,delivered,dropped"),
    ("problem_imports", "problem_imports_purpose_known", "purpose {}", "import,verify"),
    ("problem_imports", "problem_imports_state_known", "state {}", "pending,running,succeeded,failed,canceled"),
    ("problem_revisions", "problem_revisions_state_known", "state {}", "draft,published,withdrawn"),
    ("rejudge_batches", "rejudge_batches_policy_known", "policy {}", "latest,best,first_accepted_stays"),
    ("rejudge_batches", "rejudge_batches_state_known", "state {}", "running,ready,applied,discarded,canceled"),
    (
        "submissions",
        "submissions_finished_at_exactly_when",
        "(finished_at IS NOT NULL) = (status {})",
        "accepted,canceled,error,wrong_answer",
    ),
    ("submissions", "submissions_status_known", "status {}", "pending,judging,accepted,wrong_answer,error,canceled"),
    (
        "submissions",
        "submissions_verdict_exactly_when",
        "(verdict IS NOT NULL) = (status {})",
        "accepted,error,wrong_answer",
    ),
    ("submissions", "submissions_verdict_known", "verdict {}", "AC,PA,WA,OLE,TLE,MLE,RE,CE,SE"),
    ("users", "users_role_known", "role {}", "admin,setter,judge,contestant,service"),
    ("webhook_deliveries", "webhook_deliveries_state_known", "state {}", "pending,delivered,failed,canceled"),
)


def upgrade() -> None:
    write(lambda values: f"= ANY ('{{{values}}}')")


def downgrade() -> None:
    write(lambda values: "IN ('" + values.replace(",", "', '") + "')")


def write(among: Callable[[str], str]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, name, condition, values in CHECKS:
            check = f"ADD CONSTRAINT {name} CHECK ({condition.format(among(values))})"
            op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}, {check}")
