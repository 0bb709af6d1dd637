"""The header of every contest page: title, phase, countdown and tabs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response

from adjudge.contests import clock
from adjudge.contests.times import participant_clock
from adjudge.domain.contest import ContestPhase
from adjudge.domain.states import ContestState
from adjudge.services.clarifications import ClarificationService
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_own import OwnContestService
from adjudge.web.contest_durations import format_left
from adjudge.web.contest_tabs import contest_tabs
from adjudge.web.render import PageRenderer

_POLL_MIN_MS: Final = 1_000
_POLL_MAX_MS: Final = 30_000
_NOTICES: Final = 5
"""The newest unread verdicts and messages, for notifications of the browser."""
_STYLES: Final = {"running": "good", "frozen": "info", "paused": "warn", "draft": "warn", "canceled": "bad"}


@dataclass(frozen=True, slots=True)
class Countdown:
    """The time left to the start or the end."""

    label: str
    """``starts_in`` or ``ends_in``."""
    left_us: int
    is_running: bool
    """False while the countdown or the contest is paused."""

    @property
    def text(self) -> str:
        """Hours, minutes and seconds, as the page's script writes them."""
        return format_left(self.left_us)


@dataclass(frozen=True, slots=True)
class ContestHeader:
    """What every page of a contest shows above its content."""

    slug: str
    title: str
    status: str
    """The stored state if it is not ``published``, else ``paused`` or the phase for the viewer; the phase of a virtual
    participation that runs."""
    countdown: Countdown | None

    @property
    def style(self) -> str:
        """The style class of the badge."""
        return _STYLES.get(self.status, "")

    @property
    def poll_ms(self) -> int:
        """When to ask again: soon after the countdown ends, and in between for changes by the organiser."""
        if self.countdown is None or not self.countdown.is_running:
            return _POLL_MAX_MS
        return min(max(self.countdown.left_us // 1_000 + 200, _POLL_MIN_MS), _POLL_MAX_MS)

    @property
    def is_final(self) -> bool:
        """Whether nothing in the header changes any more."""
        return self.status in (ContestState.CANCELED, ContestState.FINALIZED)


@dataclass(frozen=True, slots=True)
class ContestPageRenderer:
    """Renders pages that extend ``contest_base.html``."""

    pages: PageRenderer
    clarifications: ClarificationService
    own: OwnContestService

    async def render(
        self, request: Request, view: ContestView, template: str, *, tab: str = "", status: int = 200, **shown: object
    ) -> Response:
        """Render a page of a contest; ``tab`` is the path of its tab."""
        return await self.pages.render(
            request,
            template,
            status=status,
            view=view,
            contest=view.contest,
            tab=tab,
            **await self._header_values(view),
            **shown,
        )

    async def render_header(self, request: Request, view: ContestView, *, tab: str) -> Response:
        """Render the header alone: the live region of every page of a contest."""
        return await self.pages.render(request, "contest_header.html", tab=tab, **await self._header_values(view))

    async def _header_values(self, view: ContestView) -> dict[str, Any]:
        messages, verdicts = await self.clarifications.count_unread(view), await self.own.count_unread(view)
        return {
            "header": make_header(view),
            "tabs": contest_tabs(view),
            "unread": {"/clarifications": messages, "/submissions": verdicts.count},
            "unread_messages": await self.clarifications.list_unread(view, limit=_NOTICES) if messages else [],
            "unread_verdicts": await self.own.list_unread(view, limit=_NOTICES) if verdicts.count else [],
            "own_ids": {item.id for item in view.participants},
        }


def make_header(view: ContestView) -> ContestHeader:
    """The header for the viewer, at the time of the database clock."""
    contest = view.contest
    return ContestHeader(contest.slug, contest.settings.title, _status(view), _countdown(view))


def _status(view: ContestView) -> str:
    if view.contest.state is not ContestState.PUBLISHED and not _runs_virtually(view):
        return view.contest.state
    return "paused" if is_paused(view) else view.phase


def _runs_virtually(view: ContestView) -> bool:
    """Whether the viewer takes part after the contest was finalized."""
    return view.contest.state is ContestState.FINALIZED and view.phase in (ContestPhase.RUNNING, ContestPhase.FROZEN)


def is_paused(view: ContestView) -> bool:
    """Whether the countdown or the running contest is paused."""
    timeline = view.times.timeline
    return timeline.countdown_pause_us is not None or any(item.to_at is None for item in timeline.removed)


def _countdown(view: ContestView) -> Countdown | None:
    if view.contest.state not in (ContestState.DRAFT, ContestState.PUBLISHED) and not _runs_virtually(view):
        return None
    timeline, now_us, is_running = view.times.timeline, view.times.now_us, not is_paused(view)
    ct = clock.contest_time(timeline, now_us)
    delay_us = 0 if view.participant is None else view.participant.delay_us
    if ct is None:
        return None
    if view.phase is ContestPhase.BEFORE and ct < delay_us:
        return Countdown("starts_in", delay_us - ct, is_running)
    if view.phase not in (ContestPhase.RUNNING, ContestPhase.FROZEN, ContestPhase.BEFORE):
        return None
    return Countdown("ends_in", _left_us(view, ct), is_running)


def _left_us(view: ContestView, ct: int) -> int:
    """The time left for the viewer. While the contest is paused its end is not known, but the time left is."""
    timeline, now_us = view.times.timeline, view.times.now_us
    own = None if view.participant is None else participant_clock(view.participant)
    end = clock.ends_at(timeline, own)
    if end is not None:
        return end - now_us
    delay_us, extra_us = (0, 0) if own is None else (own.delay_us, own.extra_us)
    left_us = timeline.duration_us + delay_us + extra_us - ct
    if timeline.window_us is None or own is None or own.started_at is None:
        return left_us
    return min(left_us, timeline.window_us + extra_us - (clock.participant_time(timeline, own, now_us) or 0))
