"""Pausing the judging of a problem: its judge runs are accepted and held, and released when judging resumes.

The flag of the problem, or the pause of an operator (``judging_pauses``), is what was decided; a job says by its due
time whether it is held. Both are compared after a change and periodically by the scheduler, so a crash between them
loses nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from adjudge.store import Database, Tx
from adjudge.store.contests import commands, judging_pause
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.ops import audit_log, judging_pauses

_BATCH: Final = 500
_REASON: Final = "judging_paused"


async def set_paused(tx: Tx, contest_id: str, label: str, *, is_paused: bool, actor: str, reason: str) -> None:
    """Pause or resume the judging of a problem; ``apply_holds`` follows."""
    await commands.lock(tx, contest_id)
    await judging_pause.set_paused(tx, contest_id, label, is_paused=is_paused)
    await commands.next_version(tx, contest_id, actor=actor, reason=reason)
    await audit_log.record(
        tx,
        actor=actor,
        action="contest.pause_judging" if is_paused else "contest.resume_judging",
        object_kind="contest",
        objects={contest_id: {"problem": label}},
        reason=reason,
    )


async def apply_holds(database: Database, jobs: JobCommands, *, actor: str) -> int:
    """Hold the judge runs that a pause concerns and release the others; return how many changed.

    A judge run that has begun is finished; if it has to be tried again, it is held.
    """
    changed = 0
    finders = [judging_pause.find_to_hold]
    if await database.read(judging_pauses.list_all):
        finders.append(judging_pauses.find_to_hold)
    for find in finders:
        while ids := await database.read(partial(find, limit=_BATCH)):
            await database.transact(partial(jobs.hold, job_ids=ids, actor=actor, reason=_REASON))
            changed += len(ids)
            if len(ids) < _BATCH:
                break
    while ids := await database.read(lambda tx: judging_pause.find_to_release(tx, limit=_BATCH)):
        await database.transact(partial(jobs.unhold, job_ids=ids))
        changed += len(ids)
        if len(ids) < _BATCH:
            break
    return changed
