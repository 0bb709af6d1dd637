"""Changes of a contest's state and times; each is one transaction with an entry in the audit log."""

from __future__ import annotations

from adjudge.contests.times import load_times
from adjudge.domain.errors import Conflict
from adjudge.store import Tx
from adjudge.store.contests import commands


async def thaw(tx: Tx, contest_id: str, *, actor: str, reason: str) -> bool:
    """Thaw the public scoreboard of a contest that has ended for all; return whether it was frozen."""
    contest = await commands.lock(tx, contest_id)
    times = await load_times(tx, contest)
    if not times.has_ended_for_all:
        raise Conflict(f"The contest {contest.slug!r} still runs; it can be thawed when it has ended for all.")
    if not times.timeline.has_freeze or contest.thaw_at is not None:
        return False
    await commands.set_times(tx, contest, thaw_at=times.now_us, actor=actor, reason=reason)
    return True
