"""Contest-only mode: the installation serves one contest, and nothing else, to those who are not staff.

``services.viewer.ContestOnlyMode`` says which contest that is and whom it limits. Limited viewers carry its id
(``Viewer.only_contest_id``): services answer as if other contests, submissions and problems did not exist, and
``api.contest_only`` refuses all paths that are not listed there. Here is who turns it on and off.
"""

from __future__ import annotations

from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer
from adjudge.store.contests.models import ContestSettings

_FIELDS: Final = ("contest_only", "contest_only_from", "contest_only_until")


def check_change(viewer: Viewer, before: ContestSettings | None, after: ContestSettings) -> None:
    """Only admins turn the mode on or off: it concerns everybody, not only the contest."""
    start, end = after.contest_only_from, after.contest_only_until
    if start is not None and end is not None and start >= end:
        raise InvalidInput("contest_only_until: must be after contest_only_from.", field="contest_only_until")
    was = [None if before is None else getattr(before, name) for name in _FIELDS]
    changed = next(
        (name for name, old in zip(_FIELDS, was, strict=True) if (getattr(after, name) or None) != (old or None)), None
    )
    if changed is not None and not viewer.can(Permission.CONTEST_ADMIN):
        raise InvalidInput(
            f"{changed}: only an admin (contest:admin) changes the contest-only mode.",
            field=changed,
        )
