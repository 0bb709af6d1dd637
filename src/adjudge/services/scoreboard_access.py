"""What a viewer may see of a scoreboard, now and while a stream is open."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests import clock
from adjudge.contests.board import Board, BoardProblem
from adjudge.contests.times import participant_clock
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import MINUTE_US, ContestPhase, ContestRole
from adjudge.services.contest_access import ContestView
from adjudge.services.scoreboard_feed import BoardKey
from adjudge.store.contests.scoreboard import JURY, PUBLIC

BEAT_SEC: Final = 15.0
_CHECK_SEC: Final = 30.0
"""How often a stream checks whether its viewer may still see the scoreboard."""
_STAFF: Final = (ContestRole.ORGANISER, ContestRole.JUDGE, ContestRole.API_READER)
_FROZEN: Final = (ContestPhase.FROZEN, ContestPhase.ENDED)


@dataclass(frozen=True, slots=True)
class BoardAccess:
    """What one viewer may see of a scoreboard."""

    contest: ContestView
    rows: Access
    own: Access
    is_jury: bool
    """Whether the complete jury view was asked for."""

    @property
    def key(self) -> BoardKey | None:
        """The board with the rows of everybody; None if the viewer sees none."""
        if self.rows not in (Access.PUBLIC_VIEW, Access.JURY_VIEW):
            return None
        view = JURY if self.rows is Access.JURY_VIEW else PUBLIC
        return BoardKey(self.contest.contest.id, view, self.is_jury)

    @property
    def jury_key(self) -> BoardKey:
        """The board that own rows are read from."""
        return BoardKey(self.contest.contest.id, JURY, is_complete=True)

    @property
    def own_id(self) -> str | None:
        """The participant whose own row the viewer may see."""
        participant = self.contest.participant
        return None if participant is None or self.own is Access.NONE or self.is_jury else participant.id

    def shown_columns(self, board: Board) -> Board:
        """The board without the names and colours of problems that the viewer does not see; labels remain."""
        sees = self.contest.sees_problem
        problems = (item if sees(item) else BoardProblem(item.id, item.label) for item in board.problems)
        return replace(board, problems=tuple(problems))

    @property
    def replay_us(self) -> int | None:
        """The time of the viewer's virtual run, if the rows are those of the contest at that time."""
        return None if self.is_jury or self.rows is not Access.PUBLIC_VIEW else self.contest.virtual_time_us

    @property
    def is_frozen(self) -> bool:
        """Whether the rows are those of the freeze."""
        timeline = self.contest.times.timeline
        return self.rows is Access.PUBLIC_VIEW and timeline.has_freeze and self.contest.public_phase in _FROZEN

    @property
    def frozen_min(self) -> int | None:
        """With how many minutes remaining the rows were frozen."""
        timeline = self.contest.times.timeline
        began = clock.freezes_at(timeline) if self.is_frozen else None
        ct_us = None if began is None else clock.contest_time(timeline, began)
        return None if ct_us is None else max(0, timeline.duration_us - ct_us) // MINUTE_US


class ElapsedAccess:
    """How long a stream is open: whether the clock of the contest has changed what its viewer may see."""

    def __init__(self, found: BoardAccess) -> None:
        self.found = found
        self._seen = _visible(found)
        self._started = self._checked = asyncio.get_running_loop().time()

    def checked(self, found: BoardAccess) -> None:
        """Continue from what was read just now."""
        self.found = found
        self._started = self._checked = asyncio.get_running_loop().time()

    def is_check_due(self) -> bool:
        return asyncio.get_running_loop().time() - self._checked >= _CHECK_SEC

    def is_over(self) -> bool:
        """Whether the viewer may see something else now."""
        return _visible(self._at_present()) != self._seen

    def replay_us(self) -> int | None:
        """The time of the viewer's virtual run now."""
        return self._at_present().replay_us

    def wait_sec(self) -> float:
        """How long to wait for events: until the next heartbeat, or the next change of the phase."""
        view = self._at_present().contest
        own = None if view.participant is None else participant_clock(view.participant)
        timeline = view.times.timeline
        due = (
            timeline.starts_at,
            clock.freezes_at(timeline),
            clock.ends_at(timeline),
            clock.ends_at(timeline, own),
            view.times.ends_for_all_at,
        )
        left_us = [at - view.times.now_us for at in due if at is not None and at > view.times.now_us]
        return min(BEAT_SEC, min(left_us, default=60_000_000) / 1_000_000 + 0.01)

    def _at_present(self) -> BoardAccess:
        passed_us = round((asyncio.get_running_loop().time() - self._started) * 1_000_000)
        view = self.found.contest
        times = replace(view.times, now_us=view.times.now_us + passed_us)
        return board_access(replace(view, times=times), is_jury=self.found.is_jury)


def _visible(found: BoardAccess) -> tuple[object, ...]:
    is_replay = found.replay_us is not None
    return found.rows, found.own, found.contest.public_phase, found.contest.contest.state, is_replay


def board_access(view: ContestView, *, is_jury: bool) -> BoardAccess:
    """What a viewer may see. Members of the jury see the view of participants, unless they ask for theirs.

    While a virtual run of the viewer runs, roles change nothing: the rows are those of the replay.
    """
    if is_jury:
        view.require(*_STAFF)
        return BoardAccess(view, Access.JURY_VIEW, Access.NONE, is_jury=True)
    shown = replace(view, roles=frozenset()) if view.sees_all else view
    if view.virtual_time_us is not None:
        rows = replace(view, roles=frozenset()).access(RouteClass.SCOREBOARD)
    else:
        rows = view.participant_access(RouteClass.SCOREBOARD) if view.sees_all else view.access(RouteClass.SCOREBOARD)
    return BoardAccess(view, rows, shown.access(RouteClass.OWN_ROW, is_own=True), is_jury=False)
