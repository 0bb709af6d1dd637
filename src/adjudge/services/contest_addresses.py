"""The networks from which participants may log in and submit."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.contests.times import load_times_of
from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import Forbidden
from adjudge.domain.ip_addresses import is_in_networks
from adjudge.store import Tx
from adjudge.store.contests import accounts, hidden, participants
from adjudge.store.contests.models import ContestRow

_OPEN = frozenset({ContestPhase.RUNNING, ContestPhase.FROZEN})


def require_address(ranges: Sequence[str] | None, address: str) -> None:
    """Raise, unless there are no ranges or the address is in one of them."""
    if ranges and not is_in_networks(address, ranges):
        raise Forbidden("This address is not allowed in the contest; use a computer of the contest network.")


async def find_refusing_contest(tx: Tx, user_id: str, address: str) -> ContestRow | None:
    """A contest that runs for a user, who takes part without a role, and whose networks do not have the address."""
    found = await accounts.restricted_contests(tx, user_id)
    if not found:
        return None
    contests = {row.id: row for row in await hidden.find_contests(tx, sorted({item.contest_id for item in found}))}
    own = {row.id: row for row in await participants.find_many(tx, [item.participant_id for item in found])}
    times = await load_times_of(tx, list(contests.values()))
    for item in found:
        contest = contests[item.contest_id]
        is_running = times[contest.id].phase(own[item.participant_id]) in _OPEN
        if is_running and not is_in_networks(address, contest.settings.address_ranges or ()):
            return contest
    return None
