"""The contest clock: intervals, pauses, extra time, windows, phases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests import clock
from adjudge.contests.clock import ParticipantClock, RemovedInterval, Timeline
from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import InvalidInput

BEFORE, RUNNING, FROZEN, ENDED, THAWED = ContestPhase
START = 1_000
PLAIN = Timeline(starts_at=START, duration_us=300)
FREEZING = Timeline(starts_at=START, duration_us=300, freeze_ct_us=240)
EVERYONE = ParticipantClock()


def _with(*removed: tuple[int, int | None], **changes: int | None) -> Timeline:
    values: dict[str, int | None] = {"duration_us": 300, "starts_at": START, **changes}
    return Timeline(removed=tuple(RemovedInterval(*item) for item in removed), **values)  # type: ignore[arg-type]


def test_contest_time_skips_removed_intervals() -> None:
    # removed: [1100, 1150) and [1200, 1210)
    timeline = _with((1_100, 1_150), (1_200, 1_210))
    times = {at: clock.contest_time(timeline, at) for at in (990, 1_000, 1_100, 1_149, 1_150, 1_200, 1_205, 1_300)}
    assert times == {
        990: -10,
        1_000: 0,
        1_100: 100,
        1_149: 100,
        1_150: 100,
        1_200: 150,
        1_205: 150,
        1_300: 240,
    }
    assert clock.ends_at(timeline) == 1_360


def test_interval_before_the_start_does_not_count() -> None:
    timeline = _with((900, 1_050))
    assert clock.contest_time(timeline, 950) == -50
    assert clock.contest_time(timeline, 1_060) == 10
    assert clock.ends_at(timeline) == 1_350
    assert clock.timestamp_of(timeline, 0) == START
    assert clock.timestamp_of(timeline, 1) == 1_051


def test_open_interval_pauses_the_contest() -> None:
    timeline = _with((1_100, None))
    assert clock.contest_time(timeline, 5_000) == 100
    assert clock.ends_at(timeline) is None
    assert clock.timestamp_of(timeline, 100) == 1_100
    assert clock.phase(timeline, EVERYONE, 5_000, None) is RUNNING


def test_countdown_pause_shows_the_time_left() -> None:
    paused = Timeline(starts_at=None, duration_us=300, countdown_pause_us=120)
    assert clock.contest_time(paused, 50) == clock.contest_time(paused, 90) == -120
    assert clock.phase(paused, None, 10_000, None) is BEFORE
    assert clock.ends_at(paused) is None
    assert clock.contest_time(Timeline(starts_at=None, duration_us=300), 50) is None


@pytest.mark.parametrize(("at", "counted"), [(999, False), (1_000, True), (1_299, True), (1_300, False)])
def test_end_is_exclusive_and_start_inclusive(at: int, counted: bool) -> None:
    assert clock.is_counted(PLAIN, EVERYONE, at) is counted


def test_delay_shifts_and_extra_time_extends() -> None:
    late = ParticipantClock(delay_us=30, extra_us=15)
    assert clock.participant_time(PLAIN, late, 1_029) == -1
    assert clock.participant_time(PLAIN, late, 1_100) == 70
    assert [clock.is_counted(PLAIN, late, at) for at in (1_029, 1_030, 1_344, 1_345)] == [False, True, True, False]
    assert clock.ends_at(PLAIN, late) == 1_345
    assert clock.ends_for_all_at(PLAIN, [EVERYONE, late]) == 1_345


def test_window_runs_from_the_own_start_and_within_the_contest() -> None:
    timeline = _with((1_120, 1_130), window_us=60)
    early, late = ParticipantClock(started_at=1_100), ParticipantClock(started_at=1_290)
    assert clock.participant_time(timeline, early, 1_140) == 30
    assert clock.ends_at(timeline, early) == 1_170  # 60 active and 10 removed
    assert clock.ends_at(timeline, late) == 1_310  # the contest ends: 300 active and 10 removed
    assert [clock.is_counted(timeline, late, at) for at in (1_289, 1_290, 1_309, 1_310)] == [False, True, True, False]
    assert clock.participant_time(timeline, EVERYONE, 1_140) is None
    assert clock.ends_at(timeline, EVERYONE) == 1_310
    assert clock.ends_at(timeline, ParticipantClock(started_at=1_290, extra_us=5)) == 1_315


def test_window_phases_follow_the_own_window() -> None:
    timeline = _with(window_us=60)
    runner = ParticipantClock(started_at=1_100)
    ends_for_all = 1_300
    assert clock.phase(timeline, EVERYONE, 1_200, ends_for_all) is BEFORE
    assert clock.phase(timeline, EVERYONE, 1_300, ends_for_all) is THAWED
    assert clock.phase(timeline, runner, 1_159, ends_for_all) is RUNNING
    assert clock.phase(timeline, runner, 1_160, ends_for_all) is ENDED
    assert clock.phase(timeline, runner, 1_300, ends_for_all) is THAWED


def test_virtual_run_has_its_own_time() -> None:
    run = ParticipantClock(started_at=9_000, is_virtual=True)
    assert clock.participant_time(FREEZING, run, 9_100) == 100
    assert clock.ends_at(FREEZING, run) == 9_300
    assert [clock.is_counted(FREEZING, run, at) for at in (8_999, 9_000, 9_299, 9_300)] == [False, True, True, False]
    assert clock.phase(FREEZING, run, 9_299, 1_300) is RUNNING
    thawed = Timeline(starts_at=START, duration_us=300, freeze_ct_us=240, thaw_at=2_000)
    assert clock.phase(thawed, run, 9_300, 1_300) is THAWED


@pytest.mark.parametrize(
    ("at", "expected"),
    [(999, BEFORE), (1_000, RUNNING), (1_239, RUNNING), (1_240, FROZEN), (1_299, FROZEN), (1_300, ENDED)],
)
def test_phases_for_everyone(at: int, expected: ContestPhase) -> None:
    assert clock.phase(FREEZING, None, at, 1_300) is expected


def test_thaw_needs_its_time_and_the_last_participant() -> None:
    timeline = Timeline(starts_at=START, duration_us=300, freeze_ct_us=240, thaw_at=1_310)
    assert clock.phase(timeline, None, 1_309, 1_300) is ENDED
    assert clock.phase(timeline, None, 1_310, 1_300) is THAWED
    assert clock.phase(timeline, None, 1_310, 1_345) is ENDED
    assert clock.phase(timeline, None, 1_310, None) is ENDED


def test_without_a_freeze_ended_for_all_means_thawed() -> None:
    assert clock.phase(PLAIN, None, 1_300, 1_345) is ENDED
    assert clock.phase(PLAIN, None, 1_345, 1_345) is THAWED


def test_participant_with_extra_time_still_runs() -> None:
    extra = ParticipantClock(extra_us=45)
    assert clock.phase(FREEZING, extra, 1_344, 1_345) is FROZEN
    assert clock.phase(PLAIN, extra, 1_344, 1_345) is RUNNING
    assert clock.phase(PLAIN, ParticipantClock(delay_us=45), 1_010, 1_345) is BEFORE


def test_freeze_is_inclusive_and_keeps_a_stored_time() -> None:
    assert not clock.is_after_freeze(FREEZING, 239, 1_239)
    assert clock.is_after_freeze(FREEZING, 240, 1_240)
    # An interval is removed after the freeze: contest times become smaller, but the stored time still holds.
    moved = _with((1_000, 1_100), freeze_ct_us=240, frozen_at=1_240)
    assert clock.contest_time(moved, 1_250) == 150
    assert clock.is_after_freeze(moved, 150, 1_250)
    assert clock.is_after_freeze(moved, 140, 1_240)
    assert not clock.is_after_freeze(moved, 139, 1_239)
    assert clock.freezes_at(moved) == 1_240
    assert clock.freezes_at(FREEZING) == 1_240
    assert clock.freezes_at(PLAIN) is None


@pytest.mark.parametrize(
    ("known", "new", "text"),
    [
        ((10, 20), (15, 30), "from_at: overlaps the removed interval from 1970-01-01T00:00:00.000Z to"),
        ((15, 30), (10, 20), "from_at: overlaps the removed interval"),
        ((15, 30), (10, None), "from_at: overlaps the removed interval"),
        ((10, None), (15, 30), "from_at: the contest is paused since 1970-01-01T00:00:00.000Z; resume it first."),
        ((10, None), (20, None), "from_at: the contest is paused"),
        ((50, 60), (10, 10), "to_at: must be after from_at."),
    ],
)
def test_overlapping_intervals_are_refused(
    known: tuple[int, int | None], new: tuple[int, int | None], text: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        clock.check_new_interval([RemovedInterval(*known)], RemovedInterval(*new))
    assert caught.value.message.startswith(text)
    assert caught.value.fields["field"] == text.partition(":")[0]


def test_touching_intervals_and_one_before_a_pause_are_allowed() -> None:
    clock.check_new_interval([RemovedInterval(10, 20)], RemovedInterval(20, None))
    clock.check_new_interval([RemovedInterval(20, None)], RemovedInterval(10, 20))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"duration_us": 0}, "duration_sec"),
        ({"freeze_ct_us": 301}, "freeze_after_sec"),
        ({"freeze_ct_us": -1}, "freeze_after_sec"),
        ({"freeze_ct_us": 100, "window_us": 60}, "freeze_after_sec"),
        ({"window_us": 301}, "window_sec"),
        ({"countdown_pause_us": 5}, "starts_at"),
        ({"countdown_pause_us": -5, "starts_at": None}, "countdown_pause_sec"),
    ],
)
def test_invalid_timelines_name_the_field(changes: dict[str, int | None], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        clock.check_timeline(_with(**changes))
    assert caught.value.fields["field"] == field


@st.composite
def _timelines(draw: st.DrawFn) -> Timeline:
    cuts = sorted(draw(st.lists(st.integers(980, 1_120), max_size=6, unique=True)))
    removed = tuple(RemovedInterval(*pair) for pair in zip(cuts[::2], cuts[1::2], strict=False))
    return Timeline(starts_at=START, duration_us=draw(st.integers(1, 80)), removed=removed)


@given(_timelines(), st.integers(990, 1_300))
def test_contest_time_equals_counting_every_microsecond(timeline: Timeline, at: int) -> None:
    removed = {step for item in timeline.removed for step in range(item.from_at, item.to_at or 0)}
    expected = sum(step not in removed for step in range(START, at)) if at >= START else at - START
    assert clock.contest_time(timeline, at) == expected


@given(_timelines(), st.integers(0, 20), st.integers(0, 20))
def test_end_is_the_first_timestamp_that_does_not_count(timeline: Timeline, delay_us: int, extra_us: int) -> None:
    participant = ParticipantClock(delay_us, extra_us)
    end = clock.ends_at(timeline, participant)
    assert end is not None
    assert clock.is_counted(timeline, participant, end - 1)
    assert not clock.is_counted(timeline, participant, end)
