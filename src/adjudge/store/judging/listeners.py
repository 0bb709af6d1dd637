"""Several owners of one kind of job: each is told in turn, in the one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import FinishedJob, Job, JobListener
from adjudge.store.judging.commands import JudgeRunListener
from adjudge.store.judging.rejudge import RejudgeListener
from adjudge.store.webhooks.commands import SubmissionWebhookListener


class CompositeJobListener:
    """Owners that are told together. The order is part of the meaning: what the first wrote, the next may read."""

    def __init__(self, *listeners: JobListener) -> None:
        self._listeners = listeners

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs were claimed."""
        for owner in self._listeners:
            await owner.on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs went back to waiting."""
        for owner in self._listeners:
            await owner.on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """These jobs ended."""
        for owner in self._listeners:
            await owner.on_finished(tx, ended)


def judge_run_listeners() -> CompositeJobListener:
    """All that a judge run belongs to: its batch, then its submission, then those who want to be told of it."""
    return CompositeJobListener(RejudgeListener(), JudgeRunListener(), SubmissionWebhookListener())
