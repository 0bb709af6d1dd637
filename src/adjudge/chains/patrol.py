"""The engine's rounds in the scheduler: whatever waits too long is noticed here, from the rows alone.

Any number may run at once: every write is guarded by what it expects, so what two notice one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from adjudge.chains.engine import Engine
from adjudge.chains.executor import Awaited
from adjudge.chains.progress import TIMER, awaited_closing
from adjudge.chains.sharing import lock_chains
from adjudge.chains.standing import close, lock
from adjudge.domain.errors import Conflict, NotFound, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Operation, Tx, chain_runs, chain_waits
from adjudge.store.chain_waits import Wait
from adjudge.store.jobs import Jobs

_log = get_logger(__name__)
_BATCH = 200


@dataclass(frozen=True, slots=True)
class PatrolSettings:
    """What the rounds may be told."""

    stop_grace_ms: int = 10_000
    """How long a running node may take to end in good order once its run is to stop."""
    look_again_ms: int = 30_000
    """After how long a wait is looked at again, should its end have been missed."""
    keep_ms: int | None = None
    """How long ended runs are kept; for ever where nothing is given."""


class ChainPatrol:
    """Kills what does not stop, ends waits whose moment has come, looks for missed ends and places, deletes the old."""

    def __init__(
        self, database: Database, jobs: Jobs, engine: Engine, *, name: str, settings: PatrolSettings | None = None
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._engine = engine
        self._name = name
        self._settings = settings or PatrolSettings()
        self._looked_at: Wait | None = None

    async def tick(self) -> int:
        """Make one round; return how much there was to do."""
        done = await self.kill() + await self.end_due() + await self.stop_orphans() + await self.share_out()
        return done + await self.look_again() + await self.delete_old()

    async def kill(self) -> int:
        """Cancel jobs of runs that are to stop: those that wait at once, those that run after the grace."""
        grace_ms = self._settings.stop_grace_ms
        jobs = await self._database.read(lambda tx: chain_waits.stoppable_jobs(tx, grace_ms=grace_ms, at_most=_BATCH))
        if not jobs:
            return 0

        async def cancel(tx: Tx) -> int:
            outcome = await self._jobs.cancel(tx, jobs, actor=self._name, reason="run_stopped")
            return len(outcome.done)

        count = await self._database.transact(cancel)
        _log.info("chain_nodes_stopped", jobs=count)
        return count

    async def end_due(self) -> int:
        """End waits whose moment has come: a timer well, any other as timed out."""
        due = await self._database.read(lambda tx: chain_waits.due(tx, at_most=_BATCH))
        for wait in due:
            operation = partial(self._end, wait=wait, awaited=_at_its_moment(wait))
            await self._apart(operation, "wait_not_ended", run_id=wait.run_id, node_id=wait.node_id)
        return len(due)

    async def look_again(self) -> int:
        """Ask after things that have been waited for long, some at each round."""
        after, older_ms = self._looked_at, self._settings.look_again_ms
        waits = await self._database.read(
            lambda tx: chain_waits.open_waits(tx, after=after, older_ms=older_ms, at_most=_BATCH)
        )
        self._looked_at = waits[-1] if len(waits) == _BATCH else None
        looks = [
            await self._apart(
                partial(self._look, wait=wait), "wait_not_ended", run_id=wait.run_id, node_id=wait.node_id
            )
            for wait in waits
        ]
        return sum(looks)

    async def _apart(self, operation: Operation[int], trouble: str, **about: str) -> int:
        """See to one thing; what cannot be seen to holds up no other."""
        try:
            return await self._database.transact(operation)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 — it is in the log, and comes up again at the next round
            _log.exception(trouble, **about)
            return 0

    async def stop_orphans(self) -> int:
        """Stop sub-chains whose parent run stops."""
        found = await self._database.read(lambda tx: chain_waits.orphans(tx, at_most=_BATCH))
        why = "the run that started it was stopped"
        for run_id in found:
            try:
                await self._database.transact(partial(self._engine.stop, run_id=run_id, actor=self._name, reason=why))
            except (Conflict, NotFound):  # it ended, or was deleted, between the look and the order
                continue
        return len(found)

    async def share_out(self) -> int:
        """Look whether there is a place for what waits for one: a limit may have been raised meanwhile."""
        found = await self._database.read(chain_runs.waited_for)
        share_out = self._engine.progress.share_out
        shares = [
            await self._apart(partial(share_out, chain_id=chain_id), "places_not_shared_out", chain_id=chain_id)
            for chain_id in found
        ]
        return sum(shares)

    async def delete_old(self) -> int:
        """Delete runs that are kept no longer."""
        keep_ms = self._settings.keep_ms
        if keep_ms is None:
            return 0
        return await self._database.transact(lambda tx: chain_runs.delete_old(tx, older_ms=keep_ms, at_most=_BATCH))

    async def _look(self, tx: Tx, wait: Wait) -> int:
        await lock_chains(tx, [wait.pool])
        awaited = await self._engine.progress.probe(tx, wait.on, wait.key)
        return 0 if awaited is None else await self._end(tx, wait, awaited)

    async def _end(self, tx: Tx, wait: Wait, awaited: Awaited) -> int:
        await lock_chains(tx, [wait.pool])
        await lock(tx, [wait.run_id])
        node, thing = (wait.run_id, wait.node_id), (wait.on, wait.key)
        over = await close(tx, [awaited_closing(node, thing, awaited, self._name)])
        await self._engine.progress.ended(tx, over)
        return len(over)


def _at_its_moment(wait: Wait) -> Awaited:
    if wait.on == TIMER:
        return Awaited(success=True)
    return Awaited(success=False, error=f"Timed out waiting for {wait.on} {wait.key}.")
