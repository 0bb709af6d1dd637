"""What ends elsewhere and nodes wait for: how the engine is told, in the transaction in which it ends.

Submissions end with their judge runs, so the owner of judge runs is wrapped. Runs of chains tell their own end to the
triggers that wait for it. The probes look at what ended before a wait was written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adjudge.chains.executor import Probe, never_missed
from adjudge.chains.executors.approval import APPROVAL, Resume
from adjudge.chains.executors.judging import SUBMISSION_ENDED, submission_ended
from adjudge.chains.executors.rejudging import BATCH_READY, batch_ready
from adjudge.store import Tx, chain_triggers, node_work
from adjudge.store.chain_values import RunEnded
from adjudge.store.job_values import Ended, Job, JobOwner

PROBES: Final[Mapping[str, Probe]] = {
    SUBMISSION_ENDED: submission_ended,
    BATCH_READY: batch_ready,
    APPROVAL: never_missed,  # nobody can answer before the question stands
}
"""Kind of wait → how to look whether it is over."""


class JudgeRunsAwaited:
    """The owner of judge runs, which also wakes the nodes that wait for their submissions.

    It costs one statement a transaction, however many runs end in it; more only where nodes do wait. ``resume`` is
    asked for late, because the engine that resumes nodes is itself built on jobs and their owners.
    """

    def __init__(self, owner: JobOwner, resume: Callable[[], Resume]) -> None:
        self._owner = owner
        self._resume = resume

    async def started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing more than the owner does."""
        await self._owner.started(tx, jobs)

    async def released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing more than the owner does."""
        await self._owner.released(tx, jobs)

    async def ended(self, tx: Tx, ended: Sequence[Ended]) -> None:
        """Write the verdicts, then wake who waits for them, or for the batch that they were the last of."""
        await self._owner.ended(tx, ended)
        jobs = [item.job for item in ended]
        things = {(SUBMISSION_ENDED, job.submission_id) for job in jobs if job.rejudge_batch_id is None}
        things |= {(BATCH_READY, job.rejudge_batch_id) for job in jobs if job.rejudge_batch_id is not None}
        for on, key in await node_work.awaited(tx, [(on, key) for on, key in things if key is not None]):
            outcome = await PROBES[on](tx, key)
            if outcome is not None:
                await self._resume()(
                    tx, on=on, key=key, success=outcome.success, artifact=outcome.artifact, error=outcome.error
                )


async def run_ended(tx: Tx, end: RunEnded) -> None:
    """Tell the triggers that wait for a chain that a run of it has ended."""
    payload = {"chain_id": end.chain_id, "run_id": end.run_id, "status": str(end.status)}
    await chain_triggers.fire_event(tx, chain_triggers.CHAIN_FINISHED, payload)
