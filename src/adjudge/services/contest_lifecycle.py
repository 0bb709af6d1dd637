"""The lifecycle of contests: states, start, pauses, freeze, thaw and final results.

The rules are in ``contests.lifecycle``; here they are bound to the viewer and to one transaction each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from adjudge.contests import clock, lifecycle
from adjudge.domain.contest import SECOND_US, ContestRole
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.services.contest_access import ContestAccess, ContestView
from adjudge.services.contests import change_as_organiser
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestSettings, ContestStateChange, RemovedIntervalRow

_NOTICE_US: Final = 30 * SECOND_US
"""A start that is nearer is not changed by the Contest API: clients count down to it."""


@dataclass(frozen=True, slots=True)
class ContestLifecycleService:
    """Operations of organisers on the state and the times of a contest."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def publish(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.publish)

    async def unpublish(self, viewer: Viewer, name: str, reason: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.unpublish, reason)

    async def cancel(self, viewer: Viewer, name: str, reason: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.cancel, reason)

    async def finalize(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.finalize)

    async def list_blockers(self, viewer: Viewer, name: str) -> list[str]:
        """What prevents that the contest is finalized."""
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER, ContestRole.JUDGE)
        found = await self.database.read(lambda tx: lifecycle.find_blockers(tx, view.contest, view.times))
        return [item.message for item in found]

    async def reopen(self, viewer: Viewer, name: str, reason: str) -> ContestView:
        """Take back the finalization; needs ``contest:admin``."""
        viewer.require(Permission.CONTEST_ADMIN)
        return await self._change(viewer, name, lifecycle.reopen, reason)

    async def close_updates(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.close_updates)

    async def list_state_changes(self, viewer: Viewer, name: str) -> list[ContestStateChange]:
        """The changes of the stored state, for the jury."""
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER, ContestRole.JUDGE)
        return await self.database.read(lambda tx: queries.state_log(tx, view.contest.id))

    # The clock.

    async def set_start(self, viewer: Viewer, name: str, starts_at: int | None) -> ContestView:
        """Set the start; None starts the contest now. A paused countdown ends."""

        def change(view: ContestView) -> ContestSettings:
            start = view.times.now_us if starts_at is None else starts_at
            return replace(view.contest.settings, starts_at=start, countdown_pause_us=None)

        return await self._update(viewer, name, change)

    async def set_countdown(
        self, viewer: Viewer, name: str, starts_at: int | None, *, pause_us: int | None = None
    ) -> ContestView:
        """Set the start of the Contest API, up to 30 seconds before it; without one the countdown is paused.

        ``pause_us`` is the time that is left then; by default what was left at this time.
        """

        def change(view: ContestView) -> ContestSettings:
            settings, now_us = view.contest.settings, view.times.now_us
            if settings.starts_at is not None and settings.starts_at - now_us < _NOTICE_US:
                raise Forbidden("start_time: the contest has started, or starts within 30 seconds.")
            if starts_at is not None:
                if starts_at - now_us < _NOTICE_US:
                    raise Forbidden("start_time: is in the past or within 30 seconds; give a later one.")
                return replace(settings, starts_at=starts_at, countdown_pause_us=None)
            left_us = settings.countdown_pause_us if settings.starts_at is None else settings.starts_at - now_us
            return replace(settings, starts_at=None, countdown_pause_us=left_us if pause_us is None else pause_us)

        return await self._update(viewer, name, change)

    async def pause_countdown(self, viewer: Viewer, name: str) -> ContestView:
        """Stop the countdown before the start; the time that is left is kept."""

        def change(view: ContestView) -> ContestSettings:
            starts_at = view.contest.settings.starts_at
            if starts_at is None or view.times.now_us >= starts_at:
                raise Conflict("Only the countdown before the start can be paused; pause the contest instead.")
            left_us = starts_at - view.times.now_us
            return replace(view.contest.settings, starts_at=None, countdown_pause_us=left_us)

        return await self._update(viewer, name, change)

    async def resume_countdown(self, viewer: Viewer, name: str) -> ContestView:
        """Continue the countdown with the time that was left."""

        def change(view: ContestView) -> ContestSettings:
            left_us = view.contest.settings.countdown_pause_us
            if left_us is None:
                raise Conflict("The countdown is not paused.")
            return replace(view.contest.settings, starts_at=view.times.now_us + left_us, countdown_pause_us=None)

        return await self._update(viewer, name, change)

    async def extend(self, viewer: Viewer, name: str, extra_us: int, reason: str) -> ContestView:
        """Make the contest longer, or shorter by a negative value."""

        def change(view: ContestView) -> ContestSettings:
            duration_us = view.contest.settings.duration_us + extra_us
            if duration_us <= 0:
                raise InvalidInput("extra_sec: the contest would have no time left.", field="extra_sec")
            if (view.contest.settings.freeze_ct_us or 0) > duration_us:
                raise InvalidInput(
                    "extra_sec: the contest would end before its freeze; change the duration and the freeze together "
                    "in the settings.",
                    field="extra_sec",
                )
            return replace(view.contest.settings, duration_us=duration_us)

        return await self._update(viewer, name, change, reason)

    async def end_now(self, viewer: Viewer, name: str, reason: str) -> ContestView:
        """End a running contest now by making it as long as it has lasted; a later freeze begins at the end."""

        def change(view: ContestView) -> ContestSettings:
            settings, timeline = view.contest.settings, view.times.timeline
            lasted_us = clock.contest_time(timeline, view.times.now_us)
            if lasted_us is None or not 0 < lasted_us < settings.duration_us:
                raise Conflict(f"Contest {view.contest.slug!r} is not running, so it cannot be ended.")
            freeze_us = None if settings.freeze_ct_us is None else min(settings.freeze_ct_us, lasted_us)
            return replace(settings, duration_us=lasted_us, freeze_ct_us=freeze_us)

        return await self._update(viewer, name, change, reason)

    async def pause(self, viewer: Viewer, name: str, reason: str) -> ContestView:
        """Stop the contest clock from now on."""
        return await self._remove(viewer, name, None, None, reason)

    async def remove_interval(
        self, viewer: Viewer, name: str, from_at: int, to_at: int | None, reason: str
    ) -> ContestView:
        """Remove an interval that has passed from the contest clock; without an end the contest is paused."""
        return await self._remove(viewer, name, from_at, to_at, reason)

    async def resume(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.resume)

    async def undo_interval(self, viewer: Viewer, name: str, interval_id: str, reason: str) -> ContestView:
        """Let the time of a removed interval count again."""

        async def operation(tx: Tx, view: ContestView) -> None:
            await lifecycle.undo_interval(tx, view.contest.id, interval_id, actor=viewer.id, reason=reason)

        return await change_as_organiser(self.database, viewer, name, operation)

    async def list_intervals(self, viewer: Viewer, name: str) -> list[RemovedIntervalRow]:
        """The removed intervals, undone ones included, for the jury."""
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER, ContestRole.JUDGE)
        return await self.database.read(lambda tx: queries.intervals(tx, [view.contest.id]))

    async def freeze_now(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.freeze_now)

    async def thaw(self, viewer: Viewer, name: str) -> ContestView:
        return await self._change(viewer, name, lifecycle.thaw)

    async def _change(self, viewer: Viewer, name: str, change: _LifecycleChange, reason: str = "") -> ContestView:
        async def operation(tx: Tx, view: ContestView) -> None:
            await change(tx, view.contest.id, actor=viewer.id, reason=reason)

        return await change_as_organiser(self.database, viewer, name, operation)

    async def _update(
        self, viewer: Viewer, name: str, change: Callable[[ContestView], ContestSettings], reason: str = ""
    ) -> ContestView:
        async def operation(tx: Tx, view: ContestView) -> None:
            contest = view.contest
            await lifecycle.update(
                tx,
                contest.id,
                change(view),
                version=contest.version,
                slug=contest.slug,
                actor=viewer.id,
                reason=reason,
            )

        return await change_as_organiser(self.database, viewer, name, operation)

    async def _remove(
        self, viewer: Viewer, name: str, from_at: int | None, to_at: int | None, reason: str
    ) -> ContestView:
        async def operation(tx: Tx, view: ContestView) -> None:
            await lifecycle.remove_interval(
                tx,
                view.contest.id,
                self.new_id(),
                from_at=view.times.now_us if from_at is None else from_at,
                to_at=to_at,
                actor=viewer.id,
                created_by=viewer.id,
                reason=reason,
            )

        return await change_as_organiser(self.database, viewer, name, operation)


class _LifecycleChange(Protocol):
    """A change of ``contests.lifecycle`` that needs nothing but a reason."""

    async def __call__(self, tx: Tx, contest_id: str, *, actor: str, reason: str) -> object: ...
