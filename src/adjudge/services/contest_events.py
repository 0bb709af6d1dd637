"""Events of contests for the streams of users: what each may see of messages, verdicts and transitions, now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.domain.timestamps import format_timestamp
from adjudge.services.contest_access import ContestView, make_views
from adjudge.services.contest_notifications import find_recipient, message_data
from adjudge.services.submission_access import SubmissionRights, find_rights
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.chains.triggers import CONTEST_EVENTS
from adjudge.store.contests import event_log, queries
from adjudge.store.contests.event_log import ContestEventEntry, SentMessage
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.events import EventOffset
from adjudge.store.webhooks import commands as webhooks

VERDICT: Final = "contest.verdict"
Described = tuple[str, dict[str, Any]]
"""Name and data of an event."""


@dataclass(frozen=True, slots=True)
class _Objects:
    """What the entries refer to, as far as the viewer takes part."""

    views: Mapping[str, ContestView]
    messages: Mapping[str, SentMessage]
    in_groups: Mapping[str, set[str]]
    """Participants of the viewer in the groups of a message."""
    rights: Mapping[str, SubmissionRights]


async def describe_entries(
    tx: Tx, viewer: Viewer, entries: Sequence[ContestEventEntry]
) -> dict[EventOffset, Described]:
    """The events that a viewer gets; entries that are hidden from the viewer are left out."""
    objects = await _read(tx, viewer, entries)
    found = {}
    for entry in entries:
        view = objects.views.get(entry.contest_id)
        if view is not None and (described := _describe(view, entry, objects)) is not None:
            found[entry.offset] = described
    return found


async def _read(tx: Tx, viewer: Viewer, entries: Sequence[ContestEventEntry]) -> _Objects:
    contests = await queries.find_contests(tx, sorted({item.contest_id for item in entries}))
    views = {view.contest.id: view for view in await make_views(tx, viewer, contests) if view.participants}
    messages = await event_log.read_messages(tx, [item.clarification_id for item in entries if item.clarification_id])
    to_groups = [item.id for item in messages.values() if item.audience == "groups"]
    own_ids = [item.id for view in views.values() for item in view.participants]
    in_groups: defaultdict[str, set[str]] = defaultdict(set)
    for clarification_id, participant_id in await event_log.find_group_recipients(tx, to_groups, own_ids):
        in_groups[clarification_id].add(participant_id)
    ids = [item.submission_id for item in entries if item.submission_id]
    rights = await find_rights(tx, viewer, await submission_queries.find_submissions(tx, ids)) if ids else {}
    return _Objects(views, messages, in_groups, rights)


def _describe(view: ContestView, entry: ContestEventEntry, objects: _Objects) -> Described | None:
    if entry.clarification_id is not None:
        message = objects.messages.get(entry.clarification_id)
        return None if message is None else _message(view, message, objects.in_groups.get(message.id, set()))
    if entry.submission_id is not None:
        return _verdict(view, entry, objects)
    data = {"contest_id": view.contest.id, "contest": view.contest.slug, "at": format_timestamp(entry.at)}
    return CONTEST_EVENTS[entry.transition or ""], data


def _message(view: ContestView, message: SentMessage, in_groups: set[str]) -> Described | None:
    seen_as = replace(view, roles=frozenset())
    own = find_recipient(seen_as, message, view.participants, in_groups)
    if own is None:
        return None
    is_answer = own.id == message.asked_by
    data = message_data(view, message, message.label, message.question_number if is_answer else None)
    return webhooks.ANSWERED if is_answer else webhooks.ANNOUNCEMENT, data


def _verdict(view: ContestView, entry: ContestEventEntry, objects: _Objects) -> Described | None:
    rights = objects.rights.get(entry.submission_id or "")
    row = None if rights is None else rights.decision
    if rights is None or row is None or not (rights.is_own and rights.shows_verdict):
        return None
    data = {
        "contest_id": view.contest.id,
        "contest": view.contest.slug,
        "submission_id": row.submission_id,
        "number": row.number,
        "problem": row.label,
        "verdict": row.override_verdict or row.verdict,
        "at": format_timestamp(entry.at),
    }
    return VERDICT, data
