"""Entries of the navigation bar, by permission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the navigation bar."""

    path: str
    label: str
    """Translation key."""
    permission: Permission
    also: str = ""
    """Another path prefix whose pages belong to this entry."""

    def is_active(self, path: str) -> bool:
        """Whether the page at ``path`` belongs to this entry."""
        return any(path == start or path.startswith(f"{start}/") for start in (self.path, self.also) if start)


ENTRIES: Final = (
    NavItem("/problems", "nav.problems", Permission.PROBLEM_READ),
    NavItem("/contests", "nav.contests", Permission.CONTEST_READ),
    NavItem("/submissions", "nav.submissions", Permission.SUBMISSION_READ),
    NavItem("/manage", "nav.problem_admin", Permission.PROBLEM_WRITE),
    NavItem("/chains", "nav.chains", Permission.CHAIN_READ, also="/runs"),
    NavItem("/rejudge", "nav.rejudge", Permission.REJUDGE_READ),
    NavItem("/ops", "nav.ops", Permission.OPS_READ),
)


def navigation(viewer: Viewer) -> list[NavItem]:
    """The entries for a viewer; in contest-only mode only the contests, which lead to the contest."""
    if viewer.only_contest_id is not None:
        return [entry for entry in ENTRIES if entry.path == "/contests"]
    return [entry for entry in ENTRIES if viewer.can(entry.permission)]
