"""Announces the transitions of contests to the triggers of chains, and to webhooks and event streams of participants.

The phase of a contest is computed from the database clock on every request; nothing waits for this task, so a late pass
only delays triggers and deliveries. A transition is recorded once in ``contest_log``, in the transaction that ticks the
triggers and creates the deliveries. If the timeline moves and puts it into the future, its record is removed, and it is
announced again when it happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from adjudge.contests.times import load_times, load_times_of
from adjudge.contests.transitions import find_transitions
from adjudge.domain.timestamps import format_timestamp
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.chains import triggers
from adjudge.store.contests import commands, event_log, queries
from adjudge.store.contests.event_log import NewContestEvent
from adjudge.store.webhooks import commands as webhooks

_log = get_logger(__name__)
_LOOK_BACK_US: Final = 7 * 86_400 * 1_000_000
"""A contest that ended or changed within this time is announced after downtime."""


class ContestAnnouncer:
    """Compares what has happened in contests with what was announced. Any number may run at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run_once(self) -> int:
        """Announce and retract what is due; return the number of both."""
        changed = 0
        for contest_id in await self._database.read(_find_outdated):
            changed += await self._database.transact(partial(_announce, contest_id=contest_id))
        return changed


async def _find_outdated(tx: Tx) -> list[str]:
    """The contests whose record differs from what has happened."""
    contests = await queries.announceable(tx, back_us=_LOOK_BACK_US)
    if not contests:
        return []
    times = await load_times_of(tx, contests)
    known: dict[str, set[str]] = {contest.id: set() for contest in contests}
    for item in await queries.announced(tx, list(known)):
        known[item.contest_id].add(item.transition)
    return [item.id for item in contests if find_transitions(item, times[item.id]).keys() != known[item.id]]


async def _announce(tx: Tx, contest_id: str) -> int:
    """Bring the record of one contest up to date; its lock keeps the timeline unchanged meanwhile."""
    contest = await commands.lock(tx, contest_id)
    happened = find_transitions(contest, await load_times(tx, contest))
    known = {item.transition for item in await queries.announced(tx, [contest_id])}
    retracted = await commands.retract(tx, [(contest_id, name) for name in sorted(known - happened.keys())])
    new = await commands.announce(tx, [(contest_id, name, happened[name]) for name in _in_order(happened)])
    for _, name, due_at in new:
        _log.info("contest_transition_announced", contest=contest.slug, transition=name)
        if (event := triggers.CONTEST_EVENTS.get(name)) is not None:
            payload = {"event": event, "contest_id": contest_id, "contest": contest.slug}
            await triggers.fire_event(tx, event, payload, key=f"{contest_id}:{due_at}", due_at=due_at)
            data = {"contest_id": contest_id, "contest": contest.slug, "at": format_timestamp(due_at)}
            await webhooks.enqueue_transition(tx, contest_id, event, data)
            await event_log.append(tx, [NewContestEvent(contest_id, transition=name, at=due_at)])
    return retracted + len(new)


def _in_order(happened: Mapping[str, int]) -> list[str]:
    return sorted(happened, key=lambda name: happened[name])
