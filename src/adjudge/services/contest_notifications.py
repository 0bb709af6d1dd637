"""Webhook events about messages of the jury, for those participants who may see the message when it is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.ids import IdFactory
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.contest_access import ContestView
from adjudge.store import Tx
from adjudge.store.contests import participants
from adjudge.store.contests.activity_models import ClarificationRow
from adjudge.store.contests.event_log import SentMessage
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.webhooks import commands as webhooks
from adjudge.store.webhooks.models import ContestSubscription

Message = ClarificationRow | SentMessage


async def notify_of_message(
    tx: Tx,
    view: ContestView,
    row: ClarificationRow,
    *,
    group_ids: Collection[str],
    question: ClarificationRow | None,
    label: str | None,
    new_id: IdFactory,
) -> None:
    """Create deliveries of a message of the jury: an answer for who asked, an announcement for all other recipients."""
    wanted = (webhooks.ANSWERED, webhooks.ANNOUNCEMENT)
    subscribers = await webhooks.list_contest_subscribers(tx, view.contest.id)
    subscribers = [item for item in subscribers if any(event in wanted for event in item.events)]
    if not subscribers:
        return
    people = {item.id: item for item in await participants.find_many(tx, {it.participant_id for it in subscribers})}
    pairs = await participants.groups_of(tx, list(people)) if group_ids else []
    in_groups = {participant_id for group_id, participant_id in pairs if group_id in group_ids}
    asker = None if question is None else question.from_participant_id
    deliveries = []
    for webhook_id, items in _by_webhook(subscribers).items():
        own = find_recipient(view, row, [people[item.participant_id] for item in items], in_groups)
        if own is None:
            continue
        event = webhooks.ANSWERED if own.id == asker else webhooks.ANNOUNCEMENT
        if event in items[0].events:
            reply_to = question.number if question is not None and own.id == asker else None
            deliveries.append((webhook_id, event, message_data(view, row, label, reply_to)))
    await webhooks.enqueue(tx, deliveries, new_id=new_id)


def _by_webhook(subscribers: Sequence[ContestSubscription]) -> dict[str, list[ContestSubscription]]:
    found: defaultdict[str, list[ContestSubscription]] = defaultdict(list)
    for item in subscribers:
        found[item.webhook_id].append(item)
    return found


def find_recipient(
    view: ContestView, row: Message, own: Sequence[ParticipantRow], in_groups: Collection[str]
) -> ParticipantRow | None:
    """The participant of a user as which the user sees the message now; None if it is hidden."""
    seen_as = replace(view, roles=frozenset(), participants=own)
    participant = seen_as.participant
    access = seen_as.access(RouteClass.CLARIFICATIONS, is_own=True)
    if participant is None or access is Access.NONE:
        return None
    if access is Access.BROADCASTS_WITHOUT_PROBLEM:
        is_shown = row.audience == "all" and row.problem_id is None
    else:
        is_shown = row.audience == "all" or row.to_participant_id == participant.id or participant.id in in_groups
    return participant if is_shown else None


def message_data(view: ContestView, row: Message, label: str | None, reply_to: int | None) -> dict[str, Any]:
    """The data of an event about a message; ``reply_to`` is for who asked."""
    return {
        "contest_id": view.contest.id,
        "contest": view.contest.slug,
        "number": row.number,
        "reply_to": reply_to,
        "problem": label,
        "body": row.body,
        "at": format_timestamp(row.created_at),
    }
