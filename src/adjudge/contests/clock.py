"""The contest clock: contest time, participant time, phases. Pure functions of the timeline and a timestamp.

Contest time is the time since the start without removed intervals. It is never stored, because a new interval changes
it; every caller computes it from ``received_at``. Timestamps are microseconds since the Unix epoch, durations end in
``_us``. Starts are inclusive, ends exclusive, and the freeze is inclusive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import InvalidInput
from adjudge.domain.timestamps import format_timestamp


@dataclass(frozen=True, slots=True)
class RemovedInterval:
    """Wall time that does not count, ``[from_at, to_at)``; without an end the contest is paused."""

    from_at: int
    to_at: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The times of a contest that hold for everyone."""

    starts_at: int | None
    """None: the countdown is paused, or no start is planned."""
    duration_us: int
    countdown_pause_us: int | None = None
    """Time left to the start when the countdown was paused; only without ``starts_at``."""
    freeze_ct_us: int | None = None
    """Contest time of the planned freeze."""
    frozen_at: int | None = None
    """Timestamp since which submissions are frozen, whatever their contest time is now: "freeze now", and the old
    freeze when the timeline was changed after it."""
    thaw_at: int | None = None
    removed: tuple[RemovedInterval, ...] = ()
    window_us: int | None = None
    """Length of individual windows: each participant starts when they choose, within the contest."""

    @property
    def has_freeze(self) -> bool:
        """Whether the public scoreboard can differ from the jury's."""
        return self.window_us is None and (self.freeze_ct_us is not None or self.frozen_at is not None)


@dataclass(frozen=True, slots=True)
class ParticipantClock:
    """The times of one participant."""

    delay_us: int = 0
    """Starts, and ends, this much later than the others."""
    extra_us: int = 0
    """Has this much more time."""
    started_at: int | None = None
    """The own start, in contests with windows and in virtual runs; else None."""
    is_virtual: bool = False
    """A virtual run: its time is that since ``started_at``, without the contest's intervals and end."""


def contest_time(timeline: Timeline, at: int) -> int | None:
    """Return the contest time at a timestamp, negative before the start; None if there is no start.

    While the countdown is paused it is the time left, negated. Within a removed interval it is that of its beginning.
    """
    if timeline.starts_at is None:
        return None if timeline.countdown_pause_us is None else -timeline.countdown_pause_us
    return at - timeline.starts_at - _removed_us(timeline.removed, timeline.starts_at, at)


def participant_time(timeline: Timeline, clock: ParticipantClock, at: int) -> int | None:
    """Return the time since the participant's start, negative before it; None if there is no start yet."""
    if clock.is_virtual:
        return None if clock.started_at is None else at - clock.started_at
    if timeline.window_us is not None:
        if clock.started_at is None:
            return None
        return at - clock.started_at - _removed_us(timeline.removed, clock.started_at, at)
    ct = contest_time(timeline, at)
    return None if ct is None else ct - clock.delay_us


def is_counted(timeline: Timeline, clock: ParticipantClock, at: int) -> bool:
    """Whether a submission received at a timestamp counts: within the own time, end exclusive."""
    pt = participant_time(timeline, clock, at)
    if pt is None or pt < 0 or pt >= _own_length_us(timeline, clock):
        return False
    if timeline.window_us is None or clock.is_virtual:
        return True
    ct = contest_time(timeline, at)
    return ct is not None and clock.delay_us <= ct < timeline.duration_us + clock.delay_us + clock.extra_us


def is_after_freeze(timeline: Timeline, ct: int | None, received_at: int) -> bool:
    """Whether a submission is pending on the public scoreboard until the thaw, whatever its verdict."""
    if not timeline.has_freeze:
        return False
    by_plan = timeline.freeze_ct_us is not None and ct is not None and ct >= timeline.freeze_ct_us
    return by_plan or (timeline.frozen_at is not None and received_at >= timeline.frozen_at)


def freezes_at(timeline: Timeline) -> int | None:
    """Return the timestamp since which submissions are frozen; None if there is no freeze or it is not known yet."""
    if not timeline.has_freeze:
        return None
    planned = None if timeline.freeze_ct_us is None else timestamp_of(timeline, timeline.freeze_ct_us)
    return min((at for at in (planned, timeline.frozen_at) if at is not None), default=None)


def timestamp_of(timeline: Timeline, ct_us: int) -> int | None:
    """Return the first timestamp with this contest time; None without a start, or if a pause is before it."""
    if timeline.starts_at is None:
        return None
    return _advance(timeline.removed, timeline.starts_at, ct_us)


def ends_at(timeline: Timeline, clock: ParticipantClock | None = None) -> int | None:
    """Return the end for a participant, or without one the end for participants without delay and extra time.

    None: no start is known, or the contest is paused before the end. A participant of a contest with windows who has
    not started ends with the contest, because they may start until then.
    """
    clock = clock or ParticipantClock()
    if clock.is_virtual:
        return None if clock.started_at is None else clock.started_at + _own_length_us(timeline, clock)
    contest_end = timestamp_of(timeline, timeline.duration_us + clock.delay_us + clock.extra_us)
    if timeline.window_us is None or clock.started_at is None or contest_end is None:
        return contest_end
    own_end = _advance(timeline.removed, clock.started_at, timeline.window_us + clock.extra_us)
    return None if own_end is None else min(own_end, contest_end)


def ends_for_all_at(timeline: Timeline, official: Iterable[ParticipantClock]) -> int | None:
    """Return when the contest has ended for every official participant; None if that is not known yet.

    Instead of thousands of clocks a caller may pass one whose ``extra_us`` is the largest sum of delay and extra time.
    """
    ends = [ends_at(timeline), *(ends_at(timeline, clock) for clock in official)]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def phase(timeline: Timeline, clock: ParticipantClock | None, now: int, ends_for_all_at: int | None) -> ContestPhase:
    """Return the phase for a participant, or without a clock that for everyone else.

    ``ends_for_all_at`` is the end for the last official participant; nothing is thawed before.
    """
    if clock is not None and (own := _own_phase(timeline, clock, now)) is not None:
        return own
    ct = contest_time(timeline, now)
    if ct is None or ct < 0:
        return ContestPhase.BEFORE
    has_ended = ct >= timeline.duration_us if clock is None else True
    if has_ended:
        return ContestPhase.THAWED if _is_thawed(timeline, now, ends_for_all_at) else ContestPhase.ENDED
    return ContestPhase.FROZEN if is_after_freeze(timeline, ct, now) else ContestPhase.RUNNING


def check_timeline(timeline: Timeline) -> None:
    """Check the times of a contest; raises InvalidInput with the field, named as in requests, and the fix."""
    if timeline.duration_us <= 0:
        raise InvalidInput("duration_sec: must be positive.", field="duration_sec")
    if timeline.countdown_pause_us is not None and timeline.starts_at is not None:
        raise InvalidInput("starts_at: the countdown is paused; continue it, or remove the start.", field="starts_at")
    if timeline.countdown_pause_us is not None and timeline.countdown_pause_us < 0:
        raise InvalidInput("countdown_pause_sec: must not be negative.", field="countdown_pause_sec")
    if timeline.window_us is not None and not 0 < timeline.window_us <= timeline.duration_us:
        raise InvalidInput(
            "window_sec: must be positive and not longer than the contest; change the window or the duration.",
            field="window_sec",
        )
    _check_freeze(timeline)


def check_new_interval(known: Iterable[RemovedInterval], new: RemovedInterval) -> None:
    """Check an interval that is to be removed: not empty, and apart from those that are removed already."""
    if new.to_at is not None and new.to_at <= new.from_at:
        raise InvalidInput("to_at: must be after from_at.", field="to_at")
    for item in known:
        begins_before_end = item.to_at is None or new.from_at < item.to_at
        if begins_before_end and (new.to_at is None or item.from_at < new.to_at):
            raise _overlap(item)


def _overlap(item: RemovedInterval) -> InvalidInput:
    begin, end = format_timestamp(item.from_at), format_timestamp(item.to_at)
    if end is None:
        return InvalidInput(f"from_at: the contest is paused since {begin}; resume it first.", field="from_at")
    return InvalidInput(
        f"from_at: overlaps the removed interval from {begin} to {end}; choose times outside of it, or undo it first.",
        field="from_at",
    )


def _own_phase(timeline: Timeline, clock: ParticipantClock, now: int) -> ContestPhase | None:
    """Return the phase up to the participant's own end; None after it."""
    if not clock.is_virtual and timeline.window_us is not None and clock.started_at is None:
        end = ends_at(timeline, clock)
        return ContestPhase.BEFORE if end is None or now < end else None
    pt = participant_time(timeline, clock, now)
    if pt is None or pt < 0:
        return ContestPhase.BEFORE
    if not is_counted(timeline, clock, now):
        return None
    if clock.is_virtual:
        return ContestPhase.RUNNING
    is_frozen = is_after_freeze(timeline, contest_time(timeline, now), now)
    return ContestPhase.FROZEN if is_frozen else ContestPhase.RUNNING


def _is_thawed(timeline: Timeline, now: int, ends_for_all_at: int | None) -> bool:
    if ends_for_all_at is None or now < ends_for_all_at:
        return False
    return not timeline.has_freeze or (timeline.thaw_at is not None and timeline.thaw_at <= now)


def _own_length_us(timeline: Timeline, clock: ParticipantClock) -> int:
    length_us = timeline.duration_us if timeline.window_us is None else timeline.window_us
    return length_us + clock.extra_us


def _removed_us(removed: Iterable[RemovedInterval], start: int, at: int) -> int:
    """Return how much of ``[start, at)`` is removed."""
    return sum(max(0, min(at, at if item.to_at is None else item.to_at) - max(start, item.from_at)) for item in removed)


def _advance(removed: Iterable[RemovedInterval], start: int, active_us: int) -> int | None:
    """Return the first timestamp at which ``active_us`` have passed since ``start``; None if a pause is before it."""
    at = start + active_us
    for item in sorted(removed, key=lambda item: item.from_at):
        if max(start, item.from_at) >= at:
            break
        if item.to_at is None:
            return None
        at += max(0, item.to_at - max(start, item.from_at))
    return at


def _check_freeze(timeline: Timeline) -> None:
    if timeline.freeze_ct_us is None:
        return
    if timeline.window_us is not None:
        raise InvalidInput(
            "freeze_after_sec: a contest with individual windows has no freeze; remove the freeze or the windows.",
            field="freeze_after_sec",
        )
    if timeline.freeze_ct_us < 0:
        raise InvalidInput("freeze_after_sec: must not be negative.", field="freeze_after_sec")
    if timeline.freeze_ct_us > timeline.duration_us:
        raise InvalidInput(
            "freeze_after_sec: the contest would end before its freeze; give an earlier freeze, or none, "
            "in the same change as the duration.",
            field="freeze_after_sec",
        )
