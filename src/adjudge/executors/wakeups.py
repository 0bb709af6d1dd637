"""Resumes nodes that wait for submissions, rejudge batches or chain runs, in the transaction that finishes those.

A submission finishes with its judge run, so the listener of judge runs is wrapped. Chain runs fire the triggers that
wait for them. The probes check whether an object had finished before the wait was stored.
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
    WAIT_APPROVAL: never_missed,  # no decision is possible before the wait is stored
}
"""Kind of wait → probe that returns the result if the awaited object has finished."""


class JudgeRunWakeupListener:
    """Wraps the listener of judge runs and resumes the nodes that wait for their submissions.

    It adds one statement per transaction, however many judge runs finish in it, and more only if nodes wait. ``resume``
    is a callable, because the engine that resumes nodes is itself built on jobs and their listeners.
    """

    def __init__(self, listener: JobListener, resume: Callable[[], ResumeNodes]) -> None:
        self._listener = listener
        self._resume = resume

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        await self._listener.on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        await self._listener.on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Write the verdicts, then resume the nodes that wait for these submissions or for a completed batch."""
        await self._listener.on_finished(tx, ended)
        jobs = [item.job for item in ended]
        awaited = {(WAIT_SUBMISSION, job.submission_id) for job in jobs if job.rejudge_batch_id is None}
        awaited |= {(WAIT_REJUDGE, job.rejudge_batch_id) for job in jobs if job.rejudge_batch_id is not None}
        for on, key in await waits.find_awaited(tx, [(on, key) for on, key in awaited if key is not None]):
            outcome = await WAIT_PROBES[on](tx, key)
            if outcome is not None:
                await self._resume()(
                    tx, on=on, key=key, success=outcome.success, artifact=outcome.artifact, error=outcome.error
                )


async def fire_chain_finished(tx: Tx, end: ChainRunFinished) -> None:
    """Fire the triggers that wait for a finished run of a chain."""
    payload = {"chain_id": end.chain_id, "run_id": end.run_id, "status": str(end.status)}
    await chain_triggers.fire_event(tx, chain_triggers.CHAIN_FINISHED, payload)
