"""Retention: deletes old data in small batches, each in its own transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.jobs import progress, retention
from adjudge.store.judging import executions
from adjudge.store.ops import idempotency_keys
from adjudge.store.webhooks import commands as webhook_commands

_log = get_logger(__name__)
_PROGRESS_MS: Final = 10 * 60 * 1_000
"""After this time, the progress of a finished judge run is no longer needed."""
_JOBS_MS: Final = 24 * 60 * 60 * 1_000
"""How long a finished job is kept after its execution or delivery was deleted, to look up the reason."""
_ROUNDS: Final = 20


class Retention:
    """Deletes old executions, deliveries, their jobs, idempotency keys and progress."""

    def __init__(self, database: Database, *, deliveries_ms: int) -> None:
        self._database = database
        self._rounds: dict[str, Callable[[Tx], Awaitable[int]]] = {
            "executions": executions.delete_expired,
            "deliveries": lambda tx: webhook_commands.delete_old(tx, older_than_ms=deliveries_ms),
            "jobs": lambda tx: retention.forget(tx, older_than_ms=_JOBS_MS),
            "idempotency_keys": idempotency_keys.delete_expired,
            "progress": lambda tx: progress.delete_old(tx, older_than_ms=_PROGRESS_MS),
        }

    async def run_once(self) -> int:
        """Delete what is due; return how much."""
        total = 0
        for name, forget in self._rounds.items():
            count = 0
            for _ in range(_ROUNDS):
                forgotten = await self._database.transact(forget)
                count += forgotten
                if not forgotten:
                    break
            if count:
                _log.info("retention_deleted", what=name, count=count)
            total += count
        return total
