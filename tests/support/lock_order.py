"""Records the statements of every transaction on PostgreSQL and reports those that violate the lock order.

The order is the one of ``docs/explanation/lock-order.md``: jobs, outbox, what jobs belong to, dead letters. Two
transactions that lock the same rows in the same order cannot deadlock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from adjudge.store.engine.postgres import _PostgresTx
from adjudge.store.engine.script import Inputs, Script, Step
from adjudge.store.engine.statement import Dialect, Rows, Statement, render

ORDER: Final = (
    "jobs",
    "rejudge_batches",
    "submissions",
    "contests",
    "contest_counters",
    "contest_submissions",
    "participants",
    "executions",
    "evaluations",
    "evaluation_items",
    "problem_imports",
    "webhook_deliveries",
    "chains",
    "chain_runs",
    "chain_nodes",
    "dead_letters",
)
"""The tables whose rows are locked by transactions that lock rows of another of them as well, first to last."""

OUTBOX: Final = "outbox"
"""An outbox row is locked by the transaction that holds its job, and by the dispatcher, which waits for no lock."""

_LOCKS = re.compile(
    r"UPDATE\s+(?P<updated>\w+)\s+(?:AS\s+\w+\s+)?SET"
    r"|DELETE\s+FROM\s+(?P<deleted>\w+)"
    r"|FOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|SHARE)(?:\s+OF\s+(?P<of>\w+))?(?P<skips>\s+SKIP\s+LOCKED)?"
    r"|(?:FROM|JOIN)\s+(?P<source>[a-z_]+)\b"
)
_EXEMPT: Final = {
    "chain_nodes": {
        "chain_nodes.start",
        "chain_nodes.finish",
        "chains.finish_nodes.finished_node",
    },
    "jobs": {"chain_runs.delete_jobs", "jobs.delete_orphaned"},
    "chain_runs": {"chain_waits.lock_run_status"},
    "dead_letters": {"chain_runs.delete_dead_letters"},
}
"""By table, the statements that cannot cause a deadlock although they are out of order.

Nodes are changed by the transaction that has locked their open job, which may then wait for the run. An awaited run is
locked before the chain of the waiting run, also by the transaction that finishes it. Retention locks the rows that own
what it deletes, skips locked rows, and deletes only finished objects, whose jobs no other transaction locks.
"""
_TAKES_OUTBOX_ALONE: Final = frozenset({"outbox.take_due.taken"})
"""The one statement that locks outbox rows without their jobs: it skips locked rows and locks nothing else."""
_LOCKED: Final = {"chain_concurrency.lock_chain_of_run": ["chains"]}
"""Tables that cannot be derived from the text of a statement."""


def locked_tables(statement: Statement | Step) -> list[str]:
    """The ordered tables whose rows a statement, or a step of a script, locks, in the order of its text."""
    if statement.name in _LOCKED:
        return _LOCKED[statement.name]
    found, source = [], None
    sql = statement.sql if isinstance(statement, Step) else render(statement, Dialect.POSTGRES, "now").sql
    for match in _LOCKS.finditer(sql):
        if match["source"]:
            source = match["source"] if match["source"] in ORDER else source
            continue
        table = match["updated"] or match["deleted"] or match["of"] or source
        if table in (*ORDER, OUTBOX):
            found.append(table)
    return list(dict.fromkeys(found))


class LockOrder:
    """Collects the violations of the lock order, one sentence each."""

    def __init__(self) -> None:
        self.violations: dict[str, str] = {}
        self._known: dict[str, list[str]] = {}
        self._held: dict[int, tuple[object, list[tuple[str, str]], set[str]]] = {}

    def note(self, tx: object, statement: Statement, rows: Rows | None) -> None:
        """Record a statement before a transaction runs it."""
        self._note(tx, statement.name, statement, rows)
        if statement.name == "jobs.insert" and rows is not None:
            self._held[id(tx)][2].update(str(row[0]) for row in rows)

    def note_script(self, tx: object, script: Script, inputs: Inputs) -> None:
        """Record a script before a transaction runs it; its steps lock their rows in their order."""
        for step in script.steps:
            self._note(tx, f"{script.name}.{step.name}", step, None)
        self._held[id(tx)][2].update(str(row[0]) for row in inputs.get("new_job", ()))

    def _note(self, tx: object, name: str, statement: Statement | Step, rows: Rows | None) -> None:
        if name not in self._known:
            self._known[name] = locked_tables(statement)
        _, held, created = self._held.setdefault(id(tx), (tx, [], set()))
        for table in self._known[name]:
            if table == "jobs" and rows is not None and {str(row[0]) for row in rows} <= created:
                continue  # created by this transaction: invisible to others
            if name in _EXEMPT.get(table, ()):
                continue
            if table == OUTBOX:
                if name not in _TAKES_OUTBOX_ALONE and not created and all(kept != "jobs" for _, kept in held):
                    self.violations[name] = f"{name} locks outbox rows whose jobs are not held."
                continue
            later = [item for item in held if ORDER.index(item[1]) > ORDER.index(table)]
            if later and all(kept != table for _, kept in held):
                (before, kept), path = later[0], [name for name, _ in held]
                self.violations[f"{before} > {name}"] = f"{name} locks {table} after {before} locked {kept}: {path}"
            held.append((name, table))


@contextmanager
def record_lock_order() -> Iterator[LockOrder]:
    """Record every transaction on PostgreSQL that this process begins within the block."""
    recorder, run, run_script = LockOrder(), _PostgresTx._run, _PostgresTx.run

    async def noted(self: Any, call: Any, statement: Statement, rows: Rows | None, parameters: Any) -> Any:
        recorder.note(self, statement, rows)
        return await run(self, call, statement, rows, parameters)

    async def noted_script(self: Any, script: Script, inputs: Inputs, /, **parameters: Any) -> Any:
        recorder.note_script(self, script, inputs)
        return await run_script(self, script, inputs, **parameters)

    _PostgresTx._run = noted  # type: ignore[method-assign]
    _PostgresTx.run = noted_script  # type: ignore[method-assign]
    try:
        yield recorder
    finally:
        _PostgresTx._run = run  # type: ignore[method-assign]
        _PostgresTx.run = run_script  # type: ignore[method-assign]
