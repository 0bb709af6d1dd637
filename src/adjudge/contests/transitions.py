"""Which transitions of a contest have happened: start, freeze, end, thaw, finalize, end of updates. Pure."""

from __future__ import annotations

from adjudge.contests import clock
from adjudge.contests.times import ContestTimes
from adjudge.store.contests.models import ContestRow


def find_transitions(contest: ContestRow, times: ContestTimes) -> dict[str, int]:
    """The transitions that have happened, and when each was due; the end is the end for all participants."""
    due = {
        "start": contest.settings.starts_at,
        "freeze": clock.freezes_at(times.timeline),
        "end": times.ends_for_all_at,
        "thaw": contest.thaw_at,
        "finalize": contest.finalized_at,
        "end_of_updates": contest.end_of_updates_at,
    }
    return {name: at for name, at in due.items() if at is not None and at <= times.now_us}
