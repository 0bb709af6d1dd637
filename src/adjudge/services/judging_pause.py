"""Pauses and resumes the judging of a problem in a contest, for its jury."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.contests import judging_pause
from adjudge.domain.errors import Conflict
from adjudge.services.contest_access import find_view
from adjudge.services.jury_submissions import JURY
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands


@dataclass(frozen=True, slots=True)
class JudgingPauseService:
    """Submissions to a paused problem are accepted; their judge runs wait."""

    database: Database
    jobs: JobCommands

    async def set_paused(self, viewer: Viewer, name: str, label: str, *, is_paused: bool, reason: str) -> None:
        """Pause or resume the judging of the problem with this label."""

        async def operation(tx: Tx) -> None:
            view = await find_view(tx, viewer, name)
            view.require(*JURY)
            if view.contest.end_of_updates_at is not None:
                raise Conflict("The results of this contest are final; nothing of it can change any more.")
            await judging_pause.set_paused(
                tx, view.contest.id, label, is_paused=is_paused, actor=viewer.id, reason=reason.strip()
            )

        await self.database.transact(operation)
        await judging_pause.apply_holds(self.database, self.jobs, actor=viewer.id)
