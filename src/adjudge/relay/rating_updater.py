"""Keeps the ratings up to date: computed from all rated contests whenever one of their results changes."""

from __future__ import annotations

import asyncio

from adjudge.contests.load_board import load_board
from adjudge.contests.ranking import rank_board
from adjudge.contests.rating import RatedContest, RatingChange, compute_ratings
from adjudge.contests.times import load_times
from adjudge.domain.contest import ContestPhase
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.contests import ratings
from adjudge.store.contests.activity_models import RatingRow
from adjudge.store.contests.models import ContestRow
from adjudge.store.contests.ratings import RatedContestVersion
from adjudge.store.contests.scoreboard import JURY

_log = get_logger(__name__)
_FinalRanks = list[tuple[RatedContest, int]]
"""Contests with the time at which each ended, in that order."""


class RatingUpdater:
    """Computes all ratings again when a rated contest is finalized, thawed, reopened or changed.

    The first pass of a process computes them in any case. Any number of processes may run it: all compute the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: list[RatedContestVersion] | None = None

    async def run_once(self) -> int:
        """Update the ratings if a result changed; return how many were written."""
        versions = await self._database.read(ratings.contest_versions)
        if versions == self._seen:
            return 0
        final = await self._database.read(_load_final_ranks)
        history = await asyncio.to_thread(compute_ratings, [contest for contest, _ in final])
        ended = {contest.id: ended_at for contest, ended_at in final}
        rows = [_row(change, ended) for changes in history.values() for change in changes]
        rows.sort(key=lambda row: (row.rated_at, row.contest_id, row.rank, row.user_id))

        async def replace(tx: Tx) -> int:
            await ratings.lock(tx)
            if await ratings.contest_versions(tx) != versions or await ratings.list_ratings(tx) == rows:
                return 0
            await ratings.replace_ratings(tx, rows)
            return len(rows)

        written = await self._database.transact(replace)
        if written:
            _log.info("ratings_updated", contests=len(final), count=written)
        self._seen = versions
        return written


async def _load_final_ranks(tx: Tx) -> _FinalRanks:
    """The ranks of individuals in all rated contests whose results are public, in the order of their ends."""
    found: _FinalRanks = []
    for contest in await ratings.rated_contests(tx):
        times = await load_times(tx, contest)
        if times.phase() is ContestPhase.THAWED and times.ends_for_all_at is not None:
            found.append((RatedContest(contest.id, await _load_ranks(tx, contest)), times.ends_for_all_at))
    return sorted(found, key=lambda item: (item[1], item[0].id))


async def _load_ranks(tx: Tx, contest: ContestRow) -> dict[str, int]:
    """User → rank, for individuals who are ranked and have submitted."""
    board = (await load_board(tx, contest, JURY)).board
    users = await ratings.individuals(tx, contest.id)
    return {
        users[item.row.participant.id]: item.rank
        for item in rank_board(board)
        if item.rank is not None and item.row.participant.id in users and any(cell.attempts for cell in item.row.cells)
    }


def _row(change: RatingChange, ended: dict[str, int]) -> RatingRow:
    return RatingRow(
        contest_id=change.contest_id,
        user_id=change.user_id,
        rank=change.rank,
        performance_milli=change.performance_milli,
        before_rating_milli=change.before.rating_milli,
        before_deviation_milli=change.before.deviation_milli,
        rating_milli=change.after.rating_milli,
        deviation_milli=change.after.deviation_milli,
        rated_at=ended[change.contest_id],
    )
