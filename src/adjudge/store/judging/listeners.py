"""Combines several listeners of one kind of job."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import FinishedJob, Job, JobListener
from adjudge.store.judging.commands import JudgeRunListener
from adjudge.store.judging.rejudge import RejudgeListener
from adjudge.store.judging.submission_listener import SubmissionListener
from adjudge.store.webhooks.commands import SubmissionWebhookListener


class CompositeJobListener:
    """Calls several listeners in their order, in one transaction: each may read what the previous ones wrote."""

    def __init__(self, *listeners: JobListener) -> None:
        self._listeners = listeners

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        for listener in self._listeners:
            await listener.on_started(tx, jobs)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        for listener in self._listeners:
            await listener.on_released(tx, jobs)

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        for listener in self._listeners:
            await listener.on_finished(tx, ended)


def judge_run_listeners(listener: SubmissionListener | None = None) -> CompositeJobListener:
    """The listeners of judge runs: rejudge batch, submission (and its contest), webhooks."""
    return CompositeJobListener(RejudgeListener(), JudgeRunListener(listener), SubmissionWebhookListener())
