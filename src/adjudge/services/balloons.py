"""The balloon queue of a contest: what is to be delivered, and who delivered it.

Which balloons exist follows from the scoreboard (``contests/scoreboard.py``). Until the thaw, the rule of the contest
holds back balloons of the freeze: the staff then sees them neither in the list nor in totals and first marks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from adjudge.contests import clock
from adjudge.contests.live_board import LiveBoard
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ContestPhase, ContestRole
from adjudge.domain.errors import Conflict, NotFound
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.scoreboard_feed import BoardKey, ScoreboardFeed
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import balloons, participants, queries
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.activity_models import BalloonRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.ops import audit_log

STAFF: Final = (ContestRole.BALLOON, ContestRole.ORGANISER, ContestRole.JUDGE)


class BalloonFilter(StrEnum):
    """Which balloons are listed."""

    ALL = "all"
    WAITING = "waiting"
    DELIVERED = "delivered"
    COLLECT = "collect"
    """Delivered for a problem that is no longer solved."""


@dataclass(frozen=True, slots=True)
class BalloonDetail:
    """A balloon with its first marks."""

    row: BalloonRow
    is_first_of_problem: bool
    is_first_of_contest: bool


@dataclass(frozen=True, slots=True)
class BalloonList:
    """Balloons of a contest."""

    view: ContestView
    items: list[BalloonDetail]


@dataclass(frozen=True, slots=True)
class _FreezeRule:
    """What of the freeze is held back from whom."""

    frozen_from: int
    minimum: int
    with_held: bool


@dataclass(frozen=True, slots=True)
class BalloonService:
    """Operations on balloons."""

    database: Database
    feed: ScoreboardFeed

    async def list_balloons(
        self,
        viewer: Viewer,
        contest: str,
        *,
        which: BalloonFilter = BalloonFilter.ALL,
        after: int = 0,
        limit: int,
        newest_first: bool = False,
    ) -> BalloonList:
        """The balloons that the viewer may see, by the number of the accepted submission."""

        async def read(tx: Tx) -> tuple[ContestView, list[BalloonRow]]:
            view = await _find_as_staff(tx, viewer, contest, *STAFF, ContestRole.API_READER)
            if not _is_open(view):
                return view, []
            rule = _freeze_rule(view)
            rows = await balloons.page(
                tx,
                view.contest.id,
                frozen_from=rule.frozen_from,
                minimum=rule.minimum,
                with_held=rule.with_held,
                state=which,
                after=after,
                limit=limit,
                newest_first=newest_first,
            )
            return view, rows

        view, rows = await self.database.read(read)
        return BalloonList(view, await self._details(view, rows))

    async def deliver(self, viewer: Viewer, contest: str, participant: str, label: str) -> BalloonDetail:
        """Mark a balloon as delivered; one that is delivered stays as it is."""

        async def change(tx: Tx, row: BalloonRow) -> None:
            if row.state == "held":
                raise Conflict("The rule of the contest holds this balloon back until the thaw.")
            if row.state == "waiting":
                await balloons.deliver(tx, row, viewer.id)
                await _log(tx, viewer, "balloon.deliver", row)

        return await self._change(viewer, contest, participant, label, change)

    async def undo(self, viewer: Viewer, contest: str, participant: str, label: str) -> BalloonDetail:
        """Put a delivered balloon back into the queue; one that waits stays as it is."""

        async def change(tx: Tx, row: BalloonRow) -> None:
            if row.state == "collect":
                raise Conflict("The problem is no longer solved: collect the balloon instead.")
            if row.state == "delivered":
                await balloons.undeliver(tx, row)
                await _log(tx, viewer, "balloon.undo", row)

        return await self._change(viewer, contest, participant, label, change)

    async def collect(self, viewer: Viewer, contest: str, participant: str, label: str) -> None:
        """Remove a balloon that was delivered for a problem that is no longer solved, and is collected."""

        async def operation(tx: Tx) -> None:
            _, row = await _find_locked(tx, viewer, contest, participant, label)
            if row.state != "collect":
                raise Conflict("The problem is solved: there is nothing to collect.")
            await balloons.delete(tx, row)
            await _log(tx, viewer, "balloon.collect", row)

        await self.database.transact(operation)

    async def _change(
        self,
        viewer: Viewer,
        contest: str,
        participant: str,
        label: str,
        change: Callable[[Tx, BalloonRow], Awaitable[None]],
    ) -> BalloonDetail:
        async def operation(tx: Tx) -> tuple[ContestView, BalloonRow]:
            view, row = await _find_locked(tx, viewer, contest, participant, label)
            await change(tx, row)
            after = await _find_row(tx, view, row.participant_id, row.problem_id)
            return view, after or replace(row, delivered_at=None, delivered_by=None, is_held=True)

        view, row = await self.database.transact(operation)
        return (await self._details(view, [row]))[0]

    async def _details(self, view: ContestView, rows: Sequence[BalloonRow]) -> list[BalloonDetail]:
        """Add the first marks, from the scoreboard in memory."""
        if not rows:
            return []
        board = await self.feed.board(BoardKey(view.contest.id, JURY, is_complete=False))
        index = {problem.id: position for position, problem in enumerate(board.source.problems)}
        return [_detail(view, board, index.get(row.problem_id), row) for row in rows]


def _detail(view: ContestView, board: LiveBoard, index: int | None, row: BalloonRow) -> BalloonDetail:
    """First marks of the freeze would tell of solves that are held back: where the rule applies, only the jury."""
    if index is None or row.withdrawn_at is not None or (row.is_of_freeze and not view.sees_all):
        return BalloonDetail(row, is_first_of_problem=False, is_first_of_contest=False)
    return BalloonDetail(
        row,
        is_first_of_problem=board.first_solver(index) == row.participant_id,
        is_first_of_contest=board.first_solver_of_all() == (row.participant_id, index),
    )


def _is_open(view: ContestView) -> bool:
    settings = view.contest.settings
    return settings.balloons_enabled and view.access(RouteClass.BALLOONS) is not Access.NONE


def _freeze_rule(view: ContestView) -> _FreezeRule:
    """In the freeze, only participants with fewer balloons than the minimum get one; without a minimum, all do."""
    minimum, began = view.contest.settings.freeze_balloon_minimum, clock.freezes_at(view.times.timeline)
    if minimum is None or began is None or view.public_phase is ContestPhase.THAWED:
        return _FreezeRule(balloons.NEVER_US, 0, view.sees_all)
    return _FreezeRule(began, minimum, view.sees_all)


async def _find_as_staff(tx: Tx, viewer: Viewer, contest: str, *roles: ContestRole) -> ContestView:
    view = await find_view(tx, viewer, contest)
    view.require(*roles)
    return view


async def _find_locked(
    tx: Tx, viewer: Viewer, contest: str, participant: str, label: str
) -> tuple[ContestView, BalloonRow]:
    """A balloon that the viewer may see, by code or id of the participant and label of the problem.

    The participant is locked as for a verdict, so that the balloon is not withdrawn at the same time.
    """
    view = await _find_as_staff(tx, viewer, contest, *STAFF)
    missing = NotFound("balloon", f"{participant}/{label}")
    found = (await participants.find_by_codes(tx, view.contest.id, [participant])).get(participant)
    participant_id = participant if found is None else found.id
    problems = await queries.problems(tx, view.contest.id)
    problem_id = next((row.problem.problem_id for row in problems if row.problem.label == label), None)
    if problem_id is None or not _is_open(view):
        raise missing
    await scoreboard_store.lock_participants(tx, [participant_id])
    row = await _find_row(tx, view, participant_id, problem_id)
    if row is None:
        raise missing
    return view, row


async def _find_row(tx: Tx, view: ContestView, participant_id: str, problem_id: str) -> BalloonRow | None:
    rule = _freeze_rule(view)
    return await balloons.find(
        tx,
        view.contest.id,
        participant_id,
        problem_id,
        frozen_from=rule.frozen_from,
        minimum=rule.minimum,
        with_held=rule.with_held,
    )


async def _log(tx: Tx, viewer: Viewer, action: str, row: BalloonRow) -> None:
    await audit_log.record(
        tx,
        actor=viewer.id,
        action=action,
        object_kind="participant",
        objects={row.participant_id: {"problem": row.label}},
        reason="",
    )
