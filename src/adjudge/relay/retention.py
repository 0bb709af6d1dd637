"""Retention: deletes rows whose time to live is over, table by table, in bounded batches.

``store/ops/retention_policy.py`` says what is kept how long. A pass deletes at most a few thousand rows of each table,
so that it never holds up judging; what is left is deleted by the next pass, and ``adjudge_retention_behind`` shows it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from adjudge.domain.errors import Unavailable
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.accounts import api_tokens, password_resets, sessions
from adjudge.store.chains import triggers
from adjudge.store.contests import scoreboard_log
from adjudge.store.jobs import dead_letters, history, progress, retention
from adjudge.store.judging import evaluations, executions
from adjudge.store.ops import audit_log, idempotency_keys, mails, metric_samples, operational_events
from adjudge.store.problems import imports
from adjudge.store.webhooks import commands as webhooks

_log = get_logger(__name__)
_DAY_MS: Final = 24 * 3600 * 1_000
_PROGRESS_MS: Final = 10 * 60 * 1_000
"""After this time, the progress of a finished judge run is no longer needed."""
_SESSIONS_MS: Final = 7 * _DAY_MS
_TICKS_MS: Final = 90 * _DAY_MS
_BATCHES: Final = 20
"""Batches of one table in a pass."""
_SELDOM: Final = 60
"""Small tables without an index by time are read completely, so only every sixtieth pass looks at them."""

P = TypeVar("P")
DeleteBatch = Callable[[Tx], Awaitable[int]]


class DeletePage(Protocol[P]):
    """Deletes what is due after a position; returns the number of rows, and the next position, None at the end."""

    async def __call__(self, tx: Tx, position: P | None) -> tuple[int, P | None]: ...


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """Times to live in milliseconds; None: unlimited."""

    deliveries_ms: int
    mails_ms: int = 30 * _DAY_MS
    history_ms: int | None = None
    audit_ms: int | None = None
    imports_ms: int | None = None
    tokens_ms: int | None = None
    dead_letters_ms: int | None = None


class Sweep:
    """Deletes the due rows of one table, a batch per transaction."""

    def __init__(self, delete: DeleteBatch, *, passes: int = 1) -> None:
        self._delete = delete
        self._passes = passes
        self._number = -1

    async def run(self, database: Database) -> tuple[int, bool]:
        """Delete up to ``_BATCHES`` batches; return the number of rows, and whether more may be due."""
        self._number += 1
        if self._number % self._passes:
            return 0, False
        total = 0
        for _ in range(_BATCHES):
            deleted = await database.transact(self._delete)
            total += deleted
            if not deleted:
                return total, False
        return total, True


class PagedSweep(Generic[P]):
    """The same for a table that is read page by page, from its oldest row on; a pass continues where the last ended."""

    def __init__(self, delete: DeletePage[P]) -> None:
        self._delete = delete
        self._position: P | None = None

    async def run(self, database: Database) -> tuple[int, bool]:
        total = 0
        for _ in range(_BATCHES):
            deleted, self._position = await database.transact(partial(self._delete, position=self._position))
            total += deleted
            if self._position is None:
                return total, False
        return total, True


AnySweep = Sweep | PagedSweep[Any]


class Retention:
    """Runs the sweeps of all tables."""

    def __init__(self, database: Database, options: RetentionOptions) -> None:
        self._database = database
        self.sweeps: Mapping[str, AnySweep] = _sweeps(options)
        """By table; a table whose retention is unlimited has none."""

    async def run_once(self) -> int:
        """Delete what is due; return how many rows. A table that fails does not keep the others from being swept."""
        total = 0
        for table, sweep in self.sweeps.items():
            try:
                deleted, is_behind = await sweep.run(self._database)
            except Unavailable:
                raise
            except Exception:  # noqa: BLE001 — a defect in one table must not fill the disk with the others
                _log.exception("retention_failed", table=table)
                continue
            metrics.RETENTION_DELETED.labels(table).inc(deleted)
            metrics.RETENTION_BEHIND.labels(table).set(is_behind)
            if deleted:
                _log.info("retention_deleted", table=table, count=deleted)
            total += deleted
        metrics.RETENTION_LAST_RUN.set(time.time())
        return total


def _sweeps(options: RetentionOptions) -> dict[str, AnySweep]:
    sweeps: dict[str, AnySweep] = {
        "executions": Sweep(executions.delete_expired),
        "evaluations": Sweep(evaluations.delete_expired),
        "webhook_deliveries": Sweep(partial(webhooks.delete_old, older_than_ms=options.deliveries_ms)),
        "password_resets": Sweep(password_resets.delete_old),
        "mails": Sweep(partial(mails.delete_old, older_than_ms=options.mails_ms)),
        "operational_events": Sweep(partial(operational_events.delete_old, older_than_ms=options.mails_ms)),
        "jobs": PagedSweep(partial(retention.delete_orphaned, older_than_ms=_DAY_MS)),
        "outbox": PagedSweep(partial(history.delete_page, table=history.OUTBOX, older_than_ms=_DAY_MS)),
        "idempotency_keys": Sweep(idempotency_keys.delete_expired),
        "job_progress": Sweep(partial(progress.delete_old, older_than_ms=_PROGRESS_MS)),
        "scoreboard_log": Sweep(partial(scoreboard_log.delete_old_log, older_than_ms=_DAY_MS)),
        "metric_samples": Sweep(partial(metric_samples.delete_old, older_than_ms=_DAY_MS)),
        "sessions": Sweep(partial(sessions.delete_expired, older_than_ms=_SESSIONS_MS)),
        "chain_trigger_ticks": Sweep(partial(triggers.delete_old_ticks, older_than_ms=_TICKS_MS), passes=_SELDOM),
    }
    if options.history_ms is not None:
        for table in (history.STATUS_LOG, history.ATTEMPTS):
            page = partial(history.delete_page, table=table, older_than_ms=options.history_ms)
            sweeps[table.name] = PagedSweep(page)
    if options.audit_ms is not None:
        sweeps["audit_log"] = Sweep(partial(audit_log.delete_old, older_than_ms=options.audit_ms))
    if options.imports_ms is not None:
        delete = partial(imports.delete_old, older_than_ms=options.imports_ms)
        sweeps["problem_imports"] = Sweep(delete, passes=_SELDOM)
    if options.tokens_ms is not None:
        ended = partial(api_tokens.delete_ended, older_than_ms=options.tokens_ms)
        sweeps["api_tokens"] = Sweep(ended, passes=_SELDOM)
    if options.dead_letters_ms is not None:
        resolved = partial(dead_letters.delete_resolved, older_than_ms=options.dead_letters_ms)
        sweeps["dead_letters"] = Sweep(resolved)
    return sweeps
