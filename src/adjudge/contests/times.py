"""Loads the timeline of a contest, for the pure functions of ``contests/clock.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adjudge.contests import clock
from adjudge.contests.clock import ParticipantClock, RemovedInterval, Timeline
from adjudge.domain.contest import ContestPhase, ParticipantKind
from adjudge.store import Tx
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestRow, ParticipantRow, RemovedIntervalRow


@dataclass(frozen=True, slots=True)
class ContestTimes:
    """The timeline of a contest at one time of the database clock."""

    timeline: Timeline
    now_us: int
    ends_for_all_at: int | None

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
    """Read the intervals and the clock of the database."""
    timeline = make_timeline(contest, await queries.intervals(tx, contest.id))
    now_us, longest_us = await queries.clock(tx, contest.id)
    last = ParticipantClock(extra_us=longest_us)
    return ContestTimes(timeline, now_us, clock.ends_for_all_at(timeline, [last]))


def participant_clock(participant: ParticipantRow) -> ParticipantClock:
    """The clock of a participant."""
    return ParticipantClock(
        delay_us=participant.delay_us,
        extra_us=participant.extra_us,
        started_at=participant.started_at,
        is_virtual=participant.kind is ParticipantKind.VIRTUAL,
    )
