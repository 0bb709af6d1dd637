"""Database triggers, generated from the state machines.

A *guard* rejects a change that is not a transition of the state machine, so that terminal states are final even for
manual SQL. A *log* trigger appends every transition to the status log in the same transaction. Both are written in
terms of OLD and NEW, once for both databases. A *log cleanup* deletes the log entries of deleted rows.

On SQLite each of them is a separate trigger, and guards run before the write. On PostgreSQL the guards and logs of a
table share one trigger after the write, because triggers are expensive there: a condition is parsed in every statement,
a trigger before the write makes the server find and lock each row twice, and each function call starts a statement. So
CHECK constraints are evaluated first there, and guards for the rows that pass them.

For the same reason log tables have foreign keys on SQLite only, which also delete the entries. On PostgreSQL an entry
still never refers to a missing row: it is appended by the trigger of its row (or of a row with a foreign key to it), or
by the statement that creates the row, in the same transaction. A transaction that deletes the row waits for that
transaction, and its cleanup runs last.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.states import CHAIN_RUN, CONTEST, JOB, NODE, SUBMISSION, S, StateMachine
from adjudge.store.engine.contest_triggers import contest_closed_triggers
from adjudge.store.engine.statement import Dialect


def _quoted(values: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))


def _legal_edge(machine: StateMachine[S], column: str = "status") -> str:
    """The transitions as a boolean expression over OLD and NEW."""
    arms = []
    for source in machine.statuses:
        targets = {edge.target for edge in machine.edges if edge.source is source}
        if targets:
            arms.append(f"(OLD.{column} = '{source}' AND NEW.{column} IN ({_quoted(targets)}))")
    return "(" + " OR ".join(arms) + ")"


def _is_terminal(machine: StateMachine[S], row: str) -> str:
    return f"{row}.status IN ({_quoted(machine.terminal)})"


_COLUMN = re.compile(r"\b(?:OLD|NEW)\.\w+")


def _aliased(text: str) -> str:
    """Replace OLD and NEW by the aliases of the transition tables."""
    return text.replace("OLD.", "o.").replace("NEW.", "n.")


def _read_as(column: re.Match[str]) -> str:
    return column[0].lower().replace(".", "_")


def _function(name: str, body: str, setting: str = "") -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {setting}AS $$ BEGIN {body} RETURN NULL; END $$"


@dataclass(frozen=True)
class GuardTrigger:
    """Rejects an UPDATE of one of ``columns`` (default: any) if ``when`` holds."""

    name: str
    when: str
    columns: tuple[str, ...] = ()

    def sqlite(self, table: str) -> str:
        of = f" OF {', '.join(self.columns)}" if self.columns else ""
        refuse = f"BEGIN SELECT RAISE(ABORT, '{self.name}'); END"
        return f"CREATE TRIGGER {self.name} BEFORE UPDATE{of} ON {table} WHEN {self.when} {refuse}"

    def refuse_call(self, old: str, new: str) -> str:
        """The call that raises the error on PostgreSQL, with the expressions of the old and new status."""
        return f"adjudge_refuse('{self.name}', {old}, {new})"


@dataclass(frozen=True)
class LogTrigger:
    """Appends ``values`` to ``into`` for every changed row for which ``when`` holds.

    The entry belongs to the row of ``of`` with the id in the column ``key``, and is deleted with it.
    """

    name: str
    into: str
    of: str
    key: str
    columns: str
    values: str
    when: str
    column: str = "status"
    """The column whose changes are logged."""

    @property
    def insert(self) -> str:
        return f"INSERT INTO {self.into} ({self.columns})"

    def sqlite(self, table: str) -> str:
        body = f"BEGIN {self.insert} VALUES ({self.values}); END"
        return f"CREATE TRIGGER {self.name} AFTER UPDATE OF {self.column} ON {table} WHEN {self.when} {body}"


@dataclass(frozen=True)
class TableTriggers(ABC):
    """The guards and logs of one table."""

    table: str
    guards: tuple[GuardTrigger, ...]
    logs: tuple[LogTrigger, ...]

    @property
    def name(self) -> str:
        """The name of the trigger and its function on PostgreSQL."""
        return f"{self.table}_guard_and_log"

    @property
    def parts(self) -> tuple[GuardTrigger | LogTrigger, ...]:
        return self.guards + self.logs

    def create(self, dialect: Dialect) -> list[str]:
        """The DDL of all guards and logs."""
        if dialect is Dialect.SQLITE:
            return [part.sqlite(self.table) for part in self.parts]
        return self._postgres()

    @abstractmethod
    def _postgres(self) -> list[str]:
        """The DDL on PostgreSQL."""


@dataclass(frozen=True)
class RowTriggers(TableTriggers):
    """Row triggers, for tables whose rows are updated one or a few at a time."""

    only: str = ""
    """The WHEN condition of the trigger, for statements that write the same status to many rows."""
    column: str = "status"
    """The guarded column."""

    def _postgres(self) -> list[str]:
        old, new = f"OLD.{self.column}", f"NEW.{self.column}"
        steps = [f"IF {guard.when} THEN PERFORM {guard.refuse_call(old, new)};" for guard in self.guards]
        steps += [f"IF {log.when} THEN {log.insert} VALUES ({log.values});" for log in self.logs]
        when = f"WHEN ({self.only}) " if self.only else ""
        return [
            _function(self.name, " ".join(f"{step} END IF;" for step in steps)),
            (
                f"CREATE TRIGGER {self.name} AFTER UPDATE OF {self.column} ON {self.table} FOR EACH ROW {when}"
                f"EXECUTE FUNCTION {self.name}()"
            ),
        ]


@dataclass(frozen=True)
class StatementTriggers(TableTriggers):
    """Statement triggers, for tables whose rows are updated in batches.

    Old and new rows are joined by a FULL JOIN, which excludes a nested loop: a session keeps the plan of its first
    batch, and a nested loop planned for one row would need a million comparisons for a thousand rows. A row whose id
    changed has no match, and is rejected by the guards.
    """

    def _postgres(self) -> list[str]:
        *others, last = self.logs
        parts = [f"changed AS MATERIALIZED ({self._changed()})"]
        parts += [f"{log.name} AS ({self._append(log)})" for log in others]
        rows = "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT"
        return [
            _function(self.name, f"WITH {', '.join(parts)} {self._append(last)};"),
            f"CREATE TRIGGER {self.name} AFTER UPDATE ON {self.table} {rows} EXECUTE FUNCTION {self.name}()",
            *(text for guard in self.guards if guard.columns for text in self._named(guard)),
        ]

    def _changed(self) -> str:
        """The changed rows that pass the guards; a CASE, because it is evaluated in order."""
        arms = ["WHEN o.id IS NULL THEN false"]
        for guard in self.guards:
            changes = " OR ".join(f"OLD.{column} <> NEW.{column}" for column in guard.columns)
            when = f"({changes}) AND {guard.when}" if changes else guard.when
            arms.append(f"WHEN ({_aliased(when)}) IS NOT FALSE THEN {guard.refuse_call('o.status', 'n.status')}")
        wanted = " OR ".join(_aliased(log.when) for log in self.logs)
        return (
            f"SELECT {', '.join(self._read())} FROM old_rows o FULL JOIN new_rows n ON n.id = o.id "
            f"WHERE CASE {' '.join(arms)} ELSE {wanted} END"
        )

    def _read(self) -> list[str]:
        texts = " ".join(f"{log.values} {log.when}" for log in self.logs)
        found = sorted(set(_COLUMN.findall(texts)))
        return [f"{_aliased(column)} AS {_COLUMN.sub(_read_as, column)}" for column in found]

    def _append(self, log: LogTrigger) -> str:
        values, when = (_COLUMN.sub(_read_as, text) for text in (log.values, log.when))
        return f"{log.insert} SELECT {values} FROM changed WHERE {when}"

    def _named(self, guard: GuardTrigger) -> list[str]:
        """For rows whose guarded columns were written without a change, which transition tables do not show."""
        kept = " AND ".join(f"OLD.{column} = NEW.{column}" for column in guard.columns)
        refuse = f"IF {guard.when} THEN PERFORM {guard.refuse_call('OLD.status', 'NEW.status')}; END IF;"
        return [
            _function(guard.name, refuse),
            (
                f"CREATE TRIGGER {guard.name} AFTER UPDATE OF {', '.join(guard.columns)} ON {self.table} FOR EACH ROW "
                f"WHEN ({kept}) EXECUTE FUNCTION {guard.name}()"
            ),
        ]


@dataclass(frozen=True)
class LogCleanupTrigger:
    """Deletes the entries of ``logs`` (table and key column) for deleted rows of ``table``, on PostgreSQL.

    Sequential scans are disabled, because a session keeps a plan that it made when the log was short.
    """

    table: str
    logs: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return f"{self.table}_log_cleanup"

    def create(self) -> list[str]:
        gone = "ANY (ARRAY(SELECT id FROM old_rows))"
        body = " ".join(f"DELETE FROM {log} WHERE {key} = {gone};" for log, key in self.logs)
        rows = "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"
        return [
            _function(self.name, body, "SET enable_seqscan = off "),
            f"CREATE TRIGGER {self.name} AFTER DELETE ON {self.table} {rows} EXECUTE FUNCTION {self.name}()",
        ]


def _log_cleanups(tables: Iterable[TableTriggers]) -> tuple[LogCleanupTrigger, ...]:
    found: dict[str, dict[tuple[str, str], None]] = {}
    for table in tables:
        for log in table.logs:
            found.setdefault(log.of, {})[log.into, log.key] = None
    return tuple(LogCleanupTrigger(table, tuple(logs)) for table, logs in found.items())


REFUSE_FUNCTION = (
    "CREATE FUNCTION adjudge_refuse(guard text, old_status text, new_status text) RETURNS boolean LANGUAGE plpgsql "
    "AS $$ BEGIN RAISE integrity_constraint_violation USING CONSTRAINT = guard, "
    "MESSAGE = concat(guard, ' refused ', old_status, ' -> ', new_status); END $$"
)

_MOVED = "OLD.status <> NEW.status"
_MOVED_OR_TAKEN = f"({_MOVED} OR OLD.attempt_id <> NEW.attempt_id)"

TABLE_TRIGGERS: tuple[TableTriggers, ...] = (
    StatementTriggers(
        table="jobs",
        guards=(
            GuardTrigger("jobs_terminal_is_final", _is_terminal(JOB, "OLD")),
            GuardTrigger(
                "jobs_legal_edge",
                f"NOT {_is_terminal(JOB, 'OLD')} AND NOT ({_legal_edge(JOB)} "
                "AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running'))",
                columns=("status", "attempt_id"),
            ),
        ),
        logs=(
            LogTrigger(
                name="jobs_log",
                into="job_status_log",
                of="jobs",
                key="job_id",
                columns="job_id, from_status, to_status, attempt_id, actor, reason, at",
                values="NEW.id, OLD.status, NEW.status, NEW.attempt_id, NEW.actor, NEW.reason, NEW.updated_at",
                when=_MOVED_OR_TAKEN,
            ),
            LogTrigger(
                name="jobs_attempts",
                into="job_attempts",
                of="jobs",
                key="job_id",
                columns="job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error",
                values="OLD.id, OLD.attempt_id, OLD.lease_owner, OLD.started_at, NEW.updated_at, "
                "CASE NEW.status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE NEW.status END, "
                "NEW.reason, NEW.error_code, NEW.error",
                when=f"OLD.status = 'running' AND {_MOVED_OR_TAKEN}",
            ),
        ),
    ),
    # Every update of a submission increments its version. A terminal status changes only together with the judge run
    # that decided it: by an applied rejudge or a replay.
    StatementTriggers(
        table="submissions",
        guards=(
            GuardTrigger(
                "submissions_legal_edge",
                f"NOT (NEW.version = OLD.version + 1 AND ({_legal_edge(SUBMISSION)} OR "
                f"(OLD.status = NEW.status AND NOT {_is_terminal(SUBMISSION, 'OLD')}) OR "
                f"({_is_terminal(SUBMISSION, 'OLD')} AND {_is_terminal(SUBMISSION, 'NEW')} "
                "AND COALESCE(NEW.judged_by_job_id, '') <> COALESCE(OLD.judged_by_job_id, ''))))",
            ),
        ),
        logs=(
            LogTrigger(
                name="submissions_log",
                into="submission_status_log",
                of="submissions",
                key="submission_id",
                columns="submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at",
                values="NEW.id, OLD.status, NEW.status, NEW.verdict, NEW.judged_by_job_id, NEW.version, NEW.actor, "
                "NEW.reason, NEW.updated_at",
                when="OLD.version <> NEW.version",
            ),
        ),
    ),
    RowTriggers(
        table="chain_runs",
        guards=(GuardTrigger("chain_runs_legal_edge", f"NOT {_legal_edge(CHAIN_RUN)}", columns=("status",)),),
        logs=(
            LogTrigger(
                name="chain_runs_log",
                into="chain_status_log",
                of="chain_runs",
                key="run_id",
                columns="run_id, node_id, from_status, to_status, attempt, actor, reason, at",
                values="NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at",
                when=_MOVED,
            ),
        ),
    ),
    # A statement that decrements dependency counters may start nodes: it writes the status of all rows, changing some.
    RowTriggers(
        table="chain_nodes",
        only=_MOVED,
        guards=(GuardTrigger("chain_nodes_legal_edge", f"{_MOVED} AND NOT {_legal_edge(NODE)}", columns=("status",)),),
        logs=(
            LogTrigger(
                name="chain_nodes_log",
                into="chain_status_log",
                of="chain_runs",
                key="run_id",
                columns="run_id, node_id, from_status, to_status, attempt, actor, reason, at",
                values="NEW.run_id, NEW.node_id, OLD.status, NEW.status, NEW.attempt, NEW.actor, NEW.reason, "
                "NEW.updated_at",
                when=_MOVED,
            ),
        ),
    ),
    RowTriggers(
        table="contests",
        column="state",
        only="OLD.state <> NEW.state",
        guards=(
            GuardTrigger(
                "contests_legal_edge",
                f"OLD.state <> NEW.state AND NOT {_legal_edge(CONTEST, 'state')}",
                columns=("state",),
            ),
        ),
        logs=(
            LogTrigger(
                name="contests_log",
                into="contest_state_log",
                of="contests",
                key="contest_id",
                columns="contest_id, from_state, to_state, version, actor, reason, at",
                values="NEW.id, OLD.state, NEW.state, NEW.version, NEW.actor, NEW.reason, NEW.updated_at",
                when="OLD.state <> NEW.state",
                column="state",
            ),
        ),
    ),
)

LOG_CLEANUPS = _log_cleanups(TABLE_TRIGGERS)


def trigger_ddl(dialect: Dialect) -> list[str]:
    triggers = [text for item in TABLE_TRIGGERS for text in item.create(dialect)]
    triggers += contest_closed_triggers(dialect)
    if dialect is Dialect.SQLITE:
        return triggers
    return [REFUSE_FUNCTION, *triggers, *(text for item in LOG_CLEANUPS for text in item.create())]
