"""Holds and releases judge runs of problems whose judging was paused or resumed by settings, or before a crash."""

from __future__ import annotations

from adjudge.contests.judging_pause import apply_holds
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands


class JudgingPauses:
    """Compares paused problems with held jobs. Any number may run at once."""

    def __init__(self, database: Database, jobs: JobCommands, *, name: str) -> None:
        self._database = database
        self._jobs = jobs
        self._name = name

    async def run_once(self) -> int:
        """Hold and release what differs; return the number of jobs."""
        return await apply_holds(self._database, self._jobs, actor=self._name)
