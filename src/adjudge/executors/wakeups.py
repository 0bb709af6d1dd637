"""What ends elsewhere and nodes wait for: how the engine is told, in the transaction in which it ends.

Submissions end with their judge runs, so the owner of judge runs is wrapped. Runs of chains tell their own end to the
triggers that wait for it. The probes look at what ended before a wait was written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adjudge.chains.approval import WAIT_APPROVAL, ResumeNodes
from adjudge.chains.executor import WaitProbe, never_missed
from adjudge.executors.judge import WAIT_SUBMISSION, probe_submission
from adjudge.executors.rejudge import WAIT_REJUDGE, probe_rejudge_batch
from adjudge.store import Tx
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains import waits
from adjudge.store.chains.models import ChainRunFinished
from adjudge.store.jobs.models import FinishedJob, Job, JobListener

WAIT_PROBES: Final[Mapping[str, WaitProbe]] = {
    WAIT_SUBMISSION: probe_submission,
    WAIT_REJUDGE: probe_rejudge_batch,
    WAIT_APPROVAL: never_missed,  # nobody can answer before the question stands
}
"""Kind of wait → how to look whether it is over."""


class JudgeRunWakeupListener:
    """The owner of judge runs, which also wakes the nodes that wait for their submissions.

    It costs one statement a transaction, however many runs end in it; more only where nodes do wait. ``resume`` is
    asked for late, because the engine that resumes nodes is itself built on jobs and their owners.
    """

    def __init__(self, owner: JobListener, resume: Callable[[], ResumeNodes]) -> None:
        self._owner = owner
        self._resume = resume

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing more than the owner does."""
        await self._owner.on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Nothing more than the owner does."""
        await self._owner.on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Write the verdicts, then wake who waits for them, or for the batch that they were the last of."""
        await self._owner.on_finished(tx, ended)
        jobs = [item.job for item in ended]
        things = {(WAIT_SUBMISSION, job.submission_id) for job in jobs if job.rejudge_batch_id is None}
        things |= {(WAIT_REJUDGE, job.rejudge_batch_id) for job in jobs if job.rejudge_batch_id is not None}
        for on, key in await waits.find_awaited(tx, [(on, key) for on, key in things if key is not None]):
            outcome = await WAIT_PROBES[on](tx, key)
            if outcome is not None:
                await self._resume()(
                    tx, on=on, key=key, success=outcome.success, artifact=outcome.artifact, error=outcome.error
                )


async def fire_chain_finished(tx: Tx, end: ChainRunFinished) -> None:
    """Tell the triggers that wait for a chain that a run of it has ended."""
    payload = {"chain_id": end.chain_id, "run_id": end.run_id, "status": str(end.status)}
    await chain_triggers.fire_event(tx, chain_triggers.CHAIN_FINISHED, payload)
