"""Statistics of problems, counted once a minute for all lists, and a user's progress with one problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from types import MappingProxyType

from adjudge.cache.policies import CacheEntity
from adjudge.cache.two_tier import TwoTierCache
from adjudge.contests.times import hidden_contests
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.problems import stats
from adjudge.store.problems.stats import ProblemStats, UserProblemStatus


@dataclass(frozen=True, slots=True)
class ProblemStatsService:
    """Counts per problem, and the state of a problem for a user."""

    database: Database
    cache: TwoTierCache

    async def list_problem_stats(self) -> Mapping[str, ProblemStats]:
        """Problem → counts, at most a few minutes old.

        All problems are counted together under one cache key: counting for each search would cost one query per search.
        """

        async def load() -> bytes:
            counted = await self.database.read(_count)
            return json.dumps({problem_id: astuple(counts) for problem_id, counts in counted.items()}).encode()

        found = await self.cache.get(CacheEntity.PROBLEM_STATS, "all", load)
        return _read(found.body) if found else {}

    async def get_user_progress(self, viewer: Viewer, problem_id: str) -> UserProblemStatus:
        """Whether the viewer has solved or tried a problem; a visitor has done neither."""
        user_id = viewer.user_id
        if user_id is None:
            return UserProblemStatus()

        async def read(tx: Tx) -> UserProblemStatus:
            hidden = await hidden_contests(tx, problem_id=problem_id)
            return await stats.find_user_status(tx, user_id=user_id, problem_id=problem_id, hidden_contests=hidden)

        return await self.database.read(read)


async def _count(tx: Tx) -> dict[str, ProblemStats]:
    """Contests count when their results are public."""
    return await stats.count_by_problem(tx, hidden_contests=await hidden_contests(tx))


@lru_cache(maxsize=2)
def _read(body: bytes) -> Mapping[str, ProblemStats]:
    """Decode cached bytes, once while they stay the same: their hash is cached by Python, so a lookup is cheap."""
    return MappingProxyType({problem_id: ProblemStats(*numbers) for problem_id, numbers in json.loads(body).items()})
