"""Paths that remain in contest-only mode for those whom it limits. All others are answered as unknown paths.

What belongs to a contest or submission is decided by the services, which know the limit of the viewer.
"""

from __future__ import annotations

import re
from typing import Final

from adjudge.domain.errors import NotFound
from adjudge.store.contests.contest_only import ContestOnlyRow

_API: Final = r"/api/v1"
_CCS: Final = r"/api(/v4|/2023-06|/2026-01)?"
"""The Contest API."""
_ALWAYS: Final = re.compile(
    rf"/|/contests|/login|/logout|/register|/me(/.*)?|/preferences/.*|/static/.*|/submissions/[^/]+(/.*)?"
    rf"|{_API}/contests|{_API}/submissions(:batch|/.*)?|{_API}/me(:password|/(tokens|sessions)(/.*)?)?"
    rf"|{_API}/(login|logout|register|oidc|languages|health|version)([:/].*)?"
    rf"|{_CCS}/?|{_CCS}/contests|/api(/v4)?/(info|user|users|version|printing/team)"
)
_IN_CONTEST: Final = re.compile(rf"({_API}|{_CCS})?/contests/(?P<name>[^/:]+)([/:].*)?")


def check_path(path: str, contest: ContestOnlyRow) -> None:
    """Raise, unless a limited viewer may use the path."""
    if _ALWAYS.fullmatch(path):
        return
    found = _IN_CONTEST.fullmatch(path)
    if found is None:
        raise NotFound("page", path)
    if found["name"] not in (contest.slug, contest.id):
        raise NotFound("contest", found["name"])
