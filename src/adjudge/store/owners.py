"""Several owners of one kind of job: each is told in turn, in the one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.store.driver import Tx
from adjudge.store.job_values import Ended, Job, JobOwner
from adjudge.store.rejudge import BatchOwner
from adjudge.store.submissions import JudgeRunOwner
from adjudge.store.webhooks import Announcer


class Owners:
    """Owners that are told together. The order is part of the meaning: what the first wrote, the next may read."""

    def __init__(self, *owners: JobOwner) -> None:
        self._owners = owners

    async def started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs were claimed."""
        for owner in self._owners:
            await owner.started(tx, jobs)

    async def released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """These jobs went back to waiting."""
        for owner in self._owners:
            await owner.released(tx, jobs)

    async def ended(self, tx: Tx, ended: Sequence[Ended]) -> None:
        """These jobs ended."""
        for owner in self._owners:
            await owner.ended(tx, ended)


def judge_run_owners() -> Owners:
    """All that a judge run belongs to: its batch, then its submission, then those who want to be told of it."""
    return Owners(BatchOwner(), JudgeRunOwner(), Announcer())
