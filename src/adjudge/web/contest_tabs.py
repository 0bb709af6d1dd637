"""Tabs of the contest pages: one line for each page; a tab shows if the viewer may use the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adjudge.contests.visibility import Access, RouteClass
from adjudge.services.balloons import STAFF as BALLOON_STAFF
from adjudge.services.contest_access import ContestView
from adjudge.services.prints import sees_queue
from adjudge.services.scoreboard_access import board_access


@dataclass(frozen=True, slots=True)
class ContestTab:
    """One tab; ``path`` follows ``/contests/{slug}``."""

    path: str
    label: str
    """Translation key."""
    is_shown: Callable[[ContestView], bool]


def _everyone(_: ContestView) -> bool:
    return True


def _takes_part(view: ContestView) -> bool:
    return bool(view.participants)


def _sees_others(view: ContestView) -> bool:
    return view.access(RouteClass.OTHER_SUBMISSIONS) is not Access.NONE


def _organisers(view: ContestView) -> bool:
    return view.is_organiser


def _delivers_balloons(view: ContestView) -> bool:
    return view.contest.settings.balloons_enabled and not view.roles.isdisjoint(BALLOON_STAFF)


def _prints(view: ContestView) -> bool:
    return view.contest.settings.printing_enabled and (bool(view.participants) or sees_queue(view))


def _sees_scoreboard(view: ContestView) -> bool:
    found = board_access(view, is_jury=False)
    return view.sees_all or found.rows is not Access.NONE or found.own is not Access.NONE


TABS: Final = (
    ContestTab("", "contest.tab_overview", _everyone),
    ContestTab("/problems", "contest.tab_problems", lambda view: view.sees_problems),
    ContestTab("/submissions", "contest.tab_submissions", _takes_part),
    ContestTab("/submissions/all", "contest.tab_all_submissions", _sees_others),
    ContestTab("/clarifications", "contest.tab_clarifications", _everyone),
    ContestTab("/scoreboard", "contest.tab_scoreboard", _sees_scoreboard),
    ContestTab("/participants", "people.participants", _everyone),
    ContestTab("/balloons", "contest.tab_balloons", _delivers_balloons),
    ContestTab("/jury", "contest.tab_jury", lambda view: view.is_jury),
    ContestTab("/prints", "contest.tab_prints", _prints),
    ContestTab("/settings", "contest.tab_settings", _organisers),
)
"""In the order of the page: those for everyone, then those for staff."""


def contest_tabs(view: ContestView) -> list[ContestTab]:
    """The tabs for a viewer."""
    return [tab for tab in TABS if tab.is_shown(view)]
