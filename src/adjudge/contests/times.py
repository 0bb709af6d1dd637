"""Loads the timeline of a contest, for the pure functions of ``contests/clock.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjudge.contests import clock
from adjudge.contests.clock import ParticipantClock, RemovedInterval, Timeline
from adjudge.domain.contest import ContestPhase, ParticipantKind
from adjudge.store import Tx
from adjudge.store.contests import hidden, queries
from adjudge.store.contests.models import ContestRow, ParticipantRow, RemovedIntervalRow


@dataclass(frozen=True, slots=True)
class ContestTimes:
    """The timeline of a contest at one time of the database clock."""

    timeline: Timeline
    now_us: int
    ends_for_all_at: int | None
    longest_us: int = 0
    """The longest delay and extra time of an official participant."""

    def phase(self, participant: ParticipantRow | None = None) -> ContestPhase:
        """The phase for a participant, or for everyone else."""
        own = None if participant is None else participant_clock(participant)
        return clock.phase(self.timeline, own, self.now_us, self.ends_for_all_at)

    @property
    def has_ended_for_all(self) -> bool:
        """Whether every official participant has ended."""
        return self.ends_for_all_at is not None and self.ends_for_all_at <= self.now_us


def make_timeline(contest: ContestRow, intervals: Iterable[RemovedIntervalRow]) -> Timeline:
    """The timeline from the stored values; undone intervals do not count."""
    settings = contest.settings
    return Timeline(
        starts_at=settings.starts_at,
        duration_us=settings.duration_us,
        countdown_pause_us=settings.countdown_pause_us,
        freeze_ct_us=settings.freeze_ct_us,
        frozen_at=contest.frozen_at,
        thaw_at=contest.thaw_at,
        removed=tuple(RemovedInterval(item.from_at, item.to_at) for item in intervals if item.undone_at is None),
        window_us=settings.window_us,
    )


async def load_times(tx: Tx, contest: ContestRow) -> ContestTimes:
    """Read the intervals of a contest and the clock of the database."""
    return (await load_times_of(tx, [contest]))[contest.id]


async def load_times_of(tx: Tx, contests: Sequence[ContestRow]) -> dict[str, ContestTimes]:
    """Read the intervals of contests and the clock of the database; by id of the contest."""
    ids = [contest.id for contest in contests]
    intervals, clocks = await queries.intervals(tx, ids), await queries.clocks(tx, ids)
    found = {}
    for contest in contests:
        timeline = make_timeline(contest, [item for item in intervals if item.contest_id == contest.id])
        now_us, longest_us = clocks[contest.id]
        last = ParticipantClock(extra_us=longest_us)
        found[contest.id] = ContestTimes(timeline, now_us, clock.ends_for_all_at(timeline, [last]), longest_us)
    return found


def participant_clock(participant: ParticipantRow) -> ParticipantClock:
    """The clock of a participant."""
    return ParticipantClock(
        delay_us=participant.delay_us,
        extra_us=participant.extra_us,
        started_at=participant.started_at,
        is_virtual=participant.kind is ParticipantKind.VIRTUAL,
    )


async def find_unthawed(tx: Tx, contests: Sequence[ContestRow]) -> list[str]:
    """Those of the contests whose results are not public yet."""
    if not contests:
        return []
    times = await load_times_of(tx, contests)
    return [contest_id for contest_id, found in times.items() if found.phase() is not ContestPhase.THAWED]


async def hidden_contests(tx: Tx, *, problem_id: str | None = None) -> str:
    """The contests whose submissions statistics leave out, of one problem or of all, for ``:hidden_contests``."""
    return hidden.join_ids(await find_unthawed(tx, await hidden.open_contests(tx, problem_id=problem_id)))
