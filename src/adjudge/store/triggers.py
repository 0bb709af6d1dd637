"""What the database itself refuses and remembers, generated from the tables of legal edges.

Two kinds of trigger stand on each table with a status. A *guard* refuses a change that the state machine does not have,
so that terminal states are final even for a statement somebody types by hand. A *log* appends every transition to the
status log in the transaction that makes it, so that no code path can forget to. Both write the legality of an edge as
one SQL expression that serves both databases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.states import CHAIN_RUN, JOB, NODE, SUBMISSION, Machine, S
from adjudge.store.statement import Dialect


def _quoted(values: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))


def _legal_edge(machine: Machine[S]) -> str:
    """The table of edges as a boolean expression over OLD and NEW."""
    arms = []
    for source in machine.statuses:
        targets = {edge.target for edge in machine.edges if edge.source is source}
        if targets:
            arms.append(f"(OLD.status = '{source}' AND NEW.status IN ({_quoted(targets)}))")
    return "(" + " OR ".join(arms) + ")"


def _is_terminal(machine: Machine[S], row: str) -> str:
    return f"{row}.status IN ({_quoted(machine.terminal)})"


@dataclass(frozen=True)
class Guard:
    """Refuses an UPDATE of ``columns`` (all, where none are named) whenever ``when`` holds."""

    name: str
    table: str
    when: str
    columns: str = ""

    def create(self, dialect: Dialect) -> list[str]:
        """The DDL that sets the guard up."""
        of = f" OF {self.columns}" if self.columns else ""
        if dialect is Dialect.SQLITE:
            refuse = f"WHEN {self.when} BEGIN SELECT RAISE(ABORT, '{self.name}'); END"
        else:
            refuse = f"FOR EACH ROW WHEN ({self.when}) EXECUTE FUNCTION adjudge_refuse('{self.name}')"
        return [f"CREATE TRIGGER {self.name} BEFORE UPDATE{of} ON {self.table} {refuse}"]


@dataclass(frozen=True)
class Log:
    """Appends to ``into`` for every changed row for which ``when`` holds, reading from OLD and NEW.

    SQLite does it row by row. PostgreSQL does it once a statement over its transition tables, so that a batch of a
    thousand jobs costs one INSERT. Nested loops are off in there: a session keeps the plan that it made for its first
    batch, and one made for a single row joins a thousand with a million comparisons.
    """

    name: str
    table: str
    key: str
    into: str
    columns: str
    values: str
    when: str
    by_row: bool = False
    """On PostgreSQL, too: for a table whose rows change one at a time, and mostly otherwise than in their status."""

    def create(self, dialect: Dialect) -> list[str]:
        """The DDL that sets the log up."""
        insert = f"INSERT INTO {self.into} ({self.columns})"
        if dialect is Dialect.SQLITE:
            body = f"BEGIN {insert} VALUES ({self.values}); END"
            return [f"CREATE TRIGGER {self.name} AFTER UPDATE OF status ON {self.table} WHEN {self.when} {body}"]
        if self.by_row:
            return [
                (
                    f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $$ "
                    f"BEGIN {insert} VALUES ({self.values}); RETURN NULL; END $$"
                ),
                (
                    f"CREATE TRIGGER {self.name} AFTER UPDATE OF status ON {self.table} FOR EACH ROW "
                    f"WHEN ({self.when}) EXECUTE FUNCTION {self.name}()"
                ),
            ]
        values, when = (part.replace("OLD.", "o.").replace("NEW.", "n.") for part in (self.values, self.when))
        same = " AND ".join(f"o.{column} = n.{column}" for column in self.key.split(", "))
        body = f"{insert} SELECT {values} FROM old_rows o JOIN new_rows n ON {same} WHERE {when}; RETURN NULL;"
        rows = "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT"
        function = f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off"
        return [
            f"{function} AS $$ BEGIN {body} END $$",
            f"CREATE TRIGGER {self.name} AFTER UPDATE ON {self.table} {rows} EXECUTE FUNCTION {self.name}()",
        ]


REFUSE = (
    "CREATE FUNCTION adjudge_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE integrity_constraint_violation USING CONSTRAINT = TG_ARGV[0], "
    "MESSAGE = TG_ARGV[0] || ' refused ' || OLD.status || ' -> ' || NEW.status; END $$"
)

_CHANGED = "(OLD.status <> NEW.status OR OLD.attempt_id <> NEW.attempt_id)"

TRIGGERS: tuple[Guard | Log, ...] = (
    Guard("jobs_terminal_is_final", "jobs", _is_terminal(JOB, "OLD")),
    Guard(
        "jobs_legal_edge",
        "jobs",
        f"NOT {_is_terminal(JOB, 'OLD')} AND NOT ({_legal_edge(JOB)} "
        "AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running'))",
        columns="status, attempt_id",
    ),
    # Every write of a submission grows its version by one. A terminal one changes only together with the run that
    # judged it: by applying a rejudge or a replay.
    Guard(
        "submissions_legal_edge",
        "submissions",
        f"NOT (NEW.version = OLD.version + 1 AND ({_legal_edge(SUBMISSION)} OR "
        f"(OLD.status = NEW.status AND NOT {_is_terminal(SUBMISSION, 'OLD')}) OR "
        f"({_is_terminal(SUBMISSION, 'OLD')} AND {_is_terminal(SUBMISSION, 'NEW')} "
        "AND COALESCE(NEW.judged_by_job_id, '') <> COALESCE(OLD.judged_by_job_id, ''))))",
    ),
    Guard("chain_runs_legal_edge", "chain_runs", f"NOT {_legal_edge(CHAIN_RUN)}", columns="status"),
    # A statement that counts a node down may also let it begin: it names the status of every row, and changes some.
    Guard(
        "chain_nodes_legal_edge",
        "chain_nodes",
        f"OLD.status <> NEW.status AND NOT {_legal_edge(NODE)}",
        columns="status",
    ),
    Log(
        name="jobs_log",
        table="jobs",
        key="id",
        into="job_status_log",
        columns="job_id, from_status, to_status, attempt_id, actor, reason, at",
        values="NEW.id, OLD.status, NEW.status, NEW.attempt_id, NEW.actor, NEW.reason, NEW.updated_at",
        when=_CHANGED,
    ),
    Log(
        name="jobs_attempts",
        table="jobs",
        key="id",
        into="job_attempts",
        columns="job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error",
        values="OLD.id, OLD.attempt_id, OLD.lease_owner, OLD.started_at, NEW.updated_at, "
        "CASE NEW.status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE NEW.status END, "
        "NEW.reason, NEW.error_code, NEW.error",
        when=f"OLD.status = 'running' AND {_CHANGED}",
    ),
    Log(
        name="submissions_log",
        table="submissions",
        key="id",
        into="submission_status_log",
        columns="submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at",
        values="NEW.id, OLD.status, NEW.status, NEW.verdict, NEW.judged_by_job_id, NEW.version, NEW.actor, NEW.reason, "
        "NEW.updated_at",
        when="OLD.version <> NEW.version",
    ),
    Log(
        name="chain_runs_log",
        table="chain_runs",
        key="id",
        into="chain_status_log",
        columns="run_id, node_id, from_status, to_status, attempt, actor, reason, at",
        values="NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at",
        when="OLD.status <> NEW.status",
        by_row=True,
    ),
    Log(
        name="chain_nodes_log",
        table="chain_nodes",
        key="run_id, node_id",
        into="chain_status_log",
        columns="run_id, node_id, from_status, to_status, attempt, actor, reason, at",
        values="NEW.run_id, NEW.node_id, OLD.status, NEW.status, NEW.attempt, NEW.actor, NEW.reason, NEW.updated_at",
        when="OLD.status <> NEW.status",
    ),
)


def create_triggers(dialect: Dialect) -> list[str]:
    """All the DDL, in order."""
    shared = [REFUSE] if dialect is Dialect.POSTGRES else []
    return [*shared, *(text for trigger in TRIGGERS for text in trigger.create(dialect))]
