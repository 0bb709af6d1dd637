"""When the accounts of a contest expire: a day after it has ended for all, whatever happens to its timeline."""

from __future__ import annotations

from adjudge.contests.times import ContestTimes, load_times
from adjudge.domain.contest import DAY_US
from adjudge.store import Tx
from adjudge.store.contests import accounts, queries


def account_expiry(times: ContestTimes) -> int | None:
    """When accounts of the contest expire; None while its end is not known."""
    return None if times.ends_for_all_at is None else times.ends_for_all_at + DAY_US


async def follow_timeline(tx: Tx, contest_id: str) -> None:
    """Write the expiry of the accounts again after a change of the timeline or of a participant's times.

    The caller has locked the contest: of two changes at the same time, the later one must see the earlier one.
    """
    contest = await queries.find_contest(tx, contest_id)
    await accounts.set_expiry(tx, contest_id, account_expiry(await load_times(tx, contest)))
