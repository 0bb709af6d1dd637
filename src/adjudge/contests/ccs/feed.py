"""The event feed of a contest: which events make a reader's objects equal to the present ones. Pure.

Objects are compared as text. They are grouped in *parts* that are always loaded completely, so that an object of a part
that is not among the loaded ones no longer exists, or is no longer visible in the view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from adjudge.contests.times import ContestTimes
from adjudge.domain.contest import ContestVisibility
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import ContestState
from adjudge.store.contests.feed import FeedRow, LiveObject, NewEvent
from adjudge.store.contests.models import ContestRow

_TOKEN: Final = re.compile(r"([0-9a-f]{12})-(\d{1,15})")
_TAG_LENGTH: Final = 12
_HIDDEN: Final = frozenset({ContestState.DRAFT, ContestState.CANCELED})


class FeedView(StrEnum):
    """The views that have a feed, by what they contain: each has everything of those before it."""

    VISITOR = "visitor"
    PARTICIPANT = "participant"
    """What participants see of others. Own verdicts in the freeze and own clarifications are not in it."""
    JURY = "jury"

    @property
    def rank(self) -> int:
        """The position among the views."""
        return list(FeedView).index(self)


@dataclass(frozen=True, slots=True)
class FeedScope:
    """The view of a contest that a feed shows, at one time."""

    contest: ContestRow
    times: ContestTimes
    view: FeedView


@dataclass(frozen=True, slots=True)
class FeedObject:
    """An object of the API in a view, as text."""

    part: str
    collection: str
    object_id: str
    data: str


@dataclass(frozen=True, slots=True)
class FeedChanges:
    """The events to append, and the sequence numbers of the events that they replace."""

    events: list[NewEvent]
    superseded: list[int]


def is_hidden_from(contest: ContestRow, view: FeedView) -> bool:
    """Whether those who read a view may not know of the contest at present."""
    if view is FeedView.JURY:
        return False
    is_private = contest.settings.visibility is ContestVisibility.PRIVATE
    return contest.state in _HIDDEN or (view is FeedView.VISITOR and is_private)


def feed_object(part: str, collection: str, object_id: str, data: Mapping[str, Any]) -> FeedObject:
    """An object with its canonical text."""
    return FeedObject(part, collection, object_id, json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def compare(live: Iterable[LiveObject], present: Sequence[FeedObject]) -> FeedChanges:
    """The events from the live objects of some parts to all present objects of these parts.

    New and changed objects come in their order, then deletions, the last object first: what refers to others is
    created after them and deleted before them.
    """
    known = {(item.part, item.collection, item.object_id): item for item in live}
    events, superseded = [], []
    for item in present:
        before = known.pop((item.part, item.collection, item.object_id), None)
        if before is not None and before.data == item.data:
            continue
        if before is not None:
            superseded.append(before.sequence)
        events.append(NewEvent(item.part, item.collection, item.object_id, item.data))
    gone = sorted(known.values(), key=lambda item: -item.sequence)
    events += [NewEvent(item.part, item.collection, item.object_id, None) for item in gone]
    return FeedChanges(events, superseded)


def format_token(feed_id: str, sequence: int) -> str:
    """The token of an event: it names the feed, so that a token of another feed is refused."""
    return f"{feed_id[-_TAG_LENGTH:]}-{sequence}"


def parse_token(text: str, feed: FeedRow) -> int:
    """The sequence number of a token; raises InvalidInput unless this feed has sent it."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"since_token: {text[:64]!r} is not a token of an event; leave it out to start again.", field="since_token"
        )
    if match[1] != feed.id[-_TAG_LENGTH:]:
        raise InvalidInput(
            "since_token: this token belongs to another contest or to another role; leave it out to start again.",
            field="since_token",
        )
    sequence = int(match[2])
    if sequence > feed.last_sequence:
        raise InvalidInput(
            f"since_token: the feed has no event {sequence}; leave it out to start again.", field="since_token"
        )
    return sequence
