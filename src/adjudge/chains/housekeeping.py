"""Periodic tasks of the chain engine in the scheduler: find overdue nodes and runs, from the rows alone.

Any number may run at once: every write names the state that it expects, so only one of two takes effect.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import WaitResult
from adjudge.chains.run_lifecycle import WAIT_TIMER
from adjudge.domain.errors import Conflict, NotFound, Unavailable
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Operation, Tx
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import concurrency, waits
from adjudge.store.chains.waits import NodeWait, StoppableJob
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.isolation import JobIsolation
from adjudge.store.jobs.models import Job

_log = get_logger(__name__)
_BATCH = 200


@dataclass(frozen=True, slots=True)
class HousekeepingOptions:
    """Options of housekeeping."""

    stop_grace_ms: int = 10_000
    """Grace period of a running node after its run was asked to stop."""
    recheck_interval_ms: int = 30_000
    """Minimum age of a wait, and interval between two checks of it, in case its end was missed."""
    retention_ms: int | None = None
    """How long finished runs are kept; forever if not set."""


class ChainHousekeeping:
    """Cancels nodes that do not stop, ends due waits, checks for missed ends and free slots, deletes old runs."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        engine: ChainEngine,
        *,
        name: str,
        settings: HousekeepingOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._engine = engine
        self._name = name
        self._settings = settings or HousekeepingOptions()
        self._clock = clock
        self._looked_at: NodeWait | None = None
        self._stoppable_after: StoppableJob | None = None
        self._due_after: NodeWait | None = None
        self._orphans_after = ""
        self._isolation = JobIsolation(database, jobs, actor=name)
        self._next_look_sec = -math.inf

    async def run_once(self) -> int:
        """Run all tasks once; return how much there was to do. A failing task is logged and stops no other."""
        done = 0
        parts = (
            self.cancel_stopping_jobs,
            self.finish_due_waits,
            self.stop_orphaned_runs,
            self.start_waiting_nodes,
            self.recheck_waits,
            self.delete_old,
        )
        for part in parts:
            try:
                done += await part()
            except Unavailable:
                raise
            except Exception:  # noqa: BLE001 — logged, and tried again in the next pass
                _log.exception("chain_housekeeping_failed", part=part.__name__)
        return done

    async def cancel_stopping_jobs(self) -> int:
        """Cancel jobs of stopping runs: waiting ones immediately, running ones after the grace period.

        After a full batch the next pass continues behind it: jobs that cannot be canceled must not hide the others.
        """
        grace_ms, after = self._settings.stop_grace_ms, self._stoppable_after
        jobs = await self._database.read(
            lambda tx: waits.find_jobs_to_cancel(tx, grace_ms=grace_ms, limit=_BATCH, after=after)
        )
        self._stoppable_after = jobs[-1] if len(jobs) == _BATCH else None
        if not jobs:
            return 0

        async def cancel(tx: Tx, job_ids: Sequence[str]) -> Sequence[Job]:
            return (await self._jobs.cancel(tx, job_ids, actor=self._name, reason="run_stopped")).done

        count = len(await self._isolation.run([job.id for job in jobs], cancel))
        _log.info("chain_jobs_canceled", jobs=count)
        return count

    async def finish_due_waits(self) -> int:
        """End due waits: a timer succeeds, any other wait times out.

        After a full batch the next pass continues behind it: waits that cannot be ended must not hide the others.
        """
        after = self._due_after
        due = await self._database.read(lambda tx: waits.find_due(tx, limit=_BATCH, after=after))
        self._due_after = due[-1] if len(due) == _BATCH else None
        ended = 0
        for wait in due:
            operation = partial(self._end, wait=wait, awaited=_result_when_due(wait))
            ended += await self._apart(operation, "chain_wait_check_failed", run_id=wait.run_id, node_id=wait.node_id)
        return ended

    async def recheck_waits(self) -> int:
        """Check long waits for a missed end: some in each pass, each of them once per interval."""
        after, older_than_ms = self._looked_at, self._settings.recheck_interval_ms
        if after is None:
            if self._clock() < self._next_look_sec:
                return 0
            self._next_look_sec = self._clock() + older_than_ms / 1_000
        unmissable = self._engine.lifecycle.unmissable()
        long_waits = await self._database.read(
            lambda tx: waits.find_long_waits(
                tx, after=after, older_than_ms=older_than_ms, limit=_BATCH, unmissable=unmissable
            )
        )
        self._looked_at = long_waits[-1] if len(long_waits) == _BATCH else None
        looks = [
            await self._apart(
                partial(self._look, wait=wait), "chain_wait_check_failed", run_id=wait.run_id, node_id=wait.node_id
            )
            for wait in long_waits
        ]
        return sum(looks)

    async def _apart(self, operation: Operation[int], trouble: str, **about: str) -> int:
        """Run one operation in its own transaction; a failure is logged with its ids and stops no other."""
        try:
            return await self._database.transact(operation)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 — logged, and tried again in the next pass
            _log.exception(trouble, **about)
            return 0

    async def stop_orphaned_runs(self) -> int:
        """Stop sub-chain runs whose parent run stops; after a full batch the next pass continues behind it."""
        after = self._orphans_after
        found = await self._database.read(lambda tx: waits.find_orphaned_runs(tx, limit=_BATCH, after=after))
        self._orphans_after = found[-1] if len(found) == _BATCH else ""
        why, stopped = "the run that started it was stopped", 0
        for run_id in found:
            operation = partial(self._stop, run_id=run_id, reason=why)
            stopped += await self._apart(operation, "orphan_not_stopped", run_id=run_id)
        return stopped

    async def _stop(self, tx: Tx, run_id: str, reason: str) -> int:
        try:
            await self._engine.stop(tx, run_id, actor=self._name, reason=reason)
        except (Conflict, NotFound):  # it finished or was deleted in the meantime
            return 0
        return 1

    async def start_waiting_nodes(self) -> int:
        """Give free slots to waiting nodes and runs: a limit may have been raised."""
        found = await self._database.read(concurrency.find_chains_with_waiters)
        share_out = self._engine.lifecycle.start_waiting
        shares = [
            await self._apart(partial(share_out, chain_id=chain_id), "chain_slot_allocation_failed", chain_id=chain_id)
            for chain_id in found
        ]
        return sum(shares)

    async def delete_old(self) -> int:
        """Delete runs after their retention time."""
        retention_ms = self._settings.retention_ms
        if retention_ms is None:
            return 0
        deleted = await self._database.transact(
            lambda tx: chain_commands.delete_old_runs(tx, older_than_ms=retention_ms, limit=_BATCH)
        )
        metrics.RETENTION_DELETED.labels("chain_runs").inc(deleted)
        return deleted

    async def _look(self, tx: Tx, wait: NodeWait) -> int:
        awaited = await self._engine.lifecycle.probe(tx, wait.kind, wait.key)
        return 0 if awaited is None else await self._end(tx, wait, awaited)

    async def _end(self, tx: Tx, wait: NodeWait, awaited: WaitResult) -> int:
        return await self._engine.lifecycle.finish_waits(tx, [wait], awaited, self._name)


def _result_when_due(wait: NodeWait) -> WaitResult:
    if wait.kind == WAIT_TIMER:
        return WaitResult(success=True)
    return WaitResult(success=False, error=f"Timed out waiting for {wait.kind} {wait.key}.")
