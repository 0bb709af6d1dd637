"""What the database itself refuses and remembers, generated from the tables of legal edges.

A *guard* refuses a change that the state machine does not have, so that terminal states are final even for a statement
somebody types by hand. A *log* appends every transition to the status log in the transaction that makes it, so that no
code path can forget to. A *watch* is all of them that stand on one table. They are written over OLD and NEW, once for
both databases. A *sweep* deletes what the logs say of rows that are deleted, whoever deletes them.

On SQLite each is a trigger of its own, and a guard comes before the row is written. On PostgreSQL a table's guards and
logs share one trigger after the write, because there a trigger costs more than what it does: its condition is parsed
anew in every statement, one before the write makes the server find and lock each row twice, each function call sets up
a statement. So CHECK constraints speak first there, and a guard about rows that they let pass.

For the same reason a log's rows have a foreign key on SQLite alone, which sweeps too. On PostgreSQL they still speak of
nothing that is not there. What appends them is the trigger of the row they speak of (or of one with a foreign key to
it), or the statement that creates it, in the same transaction; whoever deletes the row waits for that transaction, and
then sweeps after all else that goes with the row.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.states import CHAIN_RUN, JOB, NODE, SUBMISSION, S, StateMachine
from adjudge.store.engine.statement import Dialect


def _quoted(values: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))


def _legal_edge(machine: StateMachine[S]) -> str:
    """The table of edges as a boolean expression over OLD and NEW."""
    arms = []
    for source in machine.statuses:
        targets = {edge.target for edge in machine.edges if edge.source is source}
        if targets:
            arms.append(f"(OLD.status = '{source}' AND NEW.status IN ({_quoted(targets)}))")
    return "(" + " OR ".join(arms) + ")"


def _is_terminal(machine: StateMachine[S], row: str) -> str:
    return f"{row}.status IN ({_quoted(machine.terminal)})"


_COLUMN = re.compile(r"\b(?:OLD|NEW)\.\w+")


def _aliased(text: str) -> str:
    """OLD and NEW as the transition tables are called in a join."""
    return text.replace("OLD.", "o.").replace("NEW.", "n.")


def _read_as(column: re.Match[str]) -> str:
    return column[0].lower().replace(".", "_")


def _function(name: str, body: str, setting: str = "") -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {setting}AS $$ BEGIN {body} RETURN NULL; END $$"


@dataclass(frozen=True)
class GuardTrigger:
    """Refuses an UPDATE that names one of ``columns`` (any, where none are said) whenever ``when`` holds."""

    name: str
    when: str
    columns: tuple[str, ...] = ()

    def sqlite(self, table: str) -> str:
        """The trigger that is this guard."""
        of = f" OF {', '.join(self.columns)}" if self.columns else ""
        refuse = f"BEGIN SELECT RAISE(ABORT, '{self.name}'); END"
        return f"CREATE TRIGGER {self.name} BEFORE UPDATE{of} ON {table} WHEN {self.when} {refuse}"

    def refuse_call(self, old: str, new: str) -> str:
        """The call that refuses on PostgreSQL, given how the statuses before and after are written."""
        return f"adjudge_refuse('{self.name}', {old}, {new})"


@dataclass(frozen=True)
class LogTrigger:
    """Appends ``values`` to ``into`` for every changed row for which ``when`` holds.

    What is appended speaks of the row of ``of`` that the column ``key`` names, and is deleted with it.
    """

    name: str
    into: str
    of: str
    key: str
    columns: str
    values: str
    when: str

    @property
    def insert(self) -> str:
        """How the statement begins that appends."""
        return f"INSERT INTO {self.into} ({self.columns})"

    def sqlite(self, table: str) -> str:
        """The trigger that is this log."""
        body = f"BEGIN {self.insert} VALUES ({self.values}); END"
        return f"CREATE TRIGGER {self.name} AFTER UPDATE OF status ON {table} WHEN {self.when} {body}"


@dataclass(frozen=True)
class TableTriggers(ABC):
    """The guards and logs of one table."""

    table: str
    guards: tuple[GuardTrigger, ...]
    logs: tuple[LogTrigger, ...]

    @property
    def name(self) -> str:
        """Of the trigger that is all of them on PostgreSQL, and of its function."""
        return f"{self.table}_guard_and_log"

    @property
    def parts(self) -> tuple[GuardTrigger | LogTrigger, ...]:
        """All of them."""
        return self.guards + self.logs

    def create(self, dialect: Dialect) -> list[str]:
        """The DDL that sets the watch up."""
        if dialect is Dialect.SQLITE:
            return [part.sqlite(self.table) for part in self.parts]
        return self._postgres()

    @abstractmethod
    def _postgres(self) -> list[str]:
        """The same, as few calls."""


@dataclass(frozen=True)
class RowTriggers(TableTriggers):
    """Called for each row whose status is written: for a table whose rows change one or a few at a time."""

    only: str = ""
    """The trigger's own condition, without which nothing is to be done: where many rows keep the status they name."""

    def _postgres(self) -> list[str]:
        steps = [
            f"IF {guard.when} THEN PERFORM {guard.refuse_call('OLD.status', 'NEW.status')};" for guard in self.guards
        ]
        steps += [f"IF {log.when} THEN {log.insert} VALUES ({log.values});" for log in self.logs]
        when = f"WHEN ({self.only}) " if self.only else ""
        return [
            _function(self.name, " ".join(f"{step} END IF;" for step in steps)),
            (
                f"CREATE TRIGGER {self.name} AFTER UPDATE OF status ON {self.table} FOR EACH ROW {when}"
                f"EXECUTE FUNCTION {self.name}()"
            ),
        ]


@dataclass(frozen=True)
class StatementTriggers(TableTriggers):
    """Called once a statement, with all of its rows: a batch of a thousand costs one statement more.

    The rows before and after are brought together by a FULL JOIN, which no nested loop can do. That matters: a session
    keeps the plan that it made for its first batch, and a loop made for a single row joins a thousand with a million
    comparisons. A row whose id changed finds no partner: nothing can be said of it, and the guards refuse it.
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
        """What the logs read of rows that the guards let pass; a CASE, because it alone is evaluated in order."""
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
        """For rows whose guarded columns were named and kept: transition tables do not tell them from the others."""
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
    """Deletes what ``logs``, each a table and its key, say of rows of ``table`` that were deleted; for PostgreSQL.

    Sequential scans are off: a session keeps the plan that it made when a log was short, and the log grows.
    """

    table: str
    logs: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Of the trigger and of its function."""
        return f"{self.table}_log_cleanup"

    def create(self) -> list[str]:
        """The DDL that sets the sweep up."""
        gone = "ANY (ARRAY(SELECT id FROM old_rows))"
        body = " ".join(f"DELETE FROM {log} WHERE {key} = {gone};" for log, key in self.logs)
        rows = "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"
        return [
            _function(self.name, body, "SET enable_seqscan = off "),
            f"CREATE TRIGGER {self.name} AFTER DELETE ON {self.table} {rows} EXECUTE FUNCTION {self.name}()",
        ]


def _sweeps(watches: Iterable[TableTriggers]) -> tuple[LogCleanupTrigger, ...]:
    """One for each table that any log speaks of."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    for watch in watches:
        for log in watch.logs:
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
    # Every write of a submission grows its version by one. A terminal one changes only together with the run that
    # judged it: by applying a rejudge or a replay.
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
    # A statement that counts a node down may also let it begin: it names the status of every row, and changes some.
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
)

LOG_CLEANUPS = _sweeps(TABLE_TRIGGERS)


def trigger_ddl(dialect: Dialect) -> list[str]:
    """All the DDL, in order."""
    watches = [text for watch in TABLE_TRIGGERS for text in watch.create(dialect)]
    if dialect is Dialect.SQLITE:
        return watches
    return [REFUSE_FUNCTION, *watches, *(text for sweep in LOG_CLEANUPS for text in sweep.create())]
