"""Ratings over contests: the ranking list and the history of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.services.contest_access import ContestView, make_views
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import ratings
from adjudge.store.contests.activity_models import RatingRow
from adjudge.store.contests.ratings import RankedUser

_ABOVE_ALL = 2**62


@dataclass(frozen=True, slots=True)
class RatingHistory:
    """The ratings of a user; ``contests`` has those that the viewer may know of, by id."""

    user: users.UserRow
    rows: Sequence[RatingRow]
    contests: dict[str, ContestView]


@dataclass(frozen=True, slots=True)
class RatingService:
    """Reads ratings; ``relay.rating_updater`` writes them."""

    database: Database

    async def list_ranking(self, *, after: tuple[int, str] | None, limit: int) -> list[RankedUser]:
        """Users by rating, best first; ``after`` is the rating and the id of the last user of the previous page."""
        rating_milli, user_id = after or (_ABOVE_ALL, "")
        return await self.database.read(
            lambda tx: ratings.page_ranking(tx, rating_milli=rating_milli, after=user_id, limit=limit)
        )

    async def find_history(self, viewer: Viewer, name: str) -> RatingHistory:
        """The ratings of a user, oldest first; a user without a rating answers like one that does not exist."""

        async def read(tx: Tx) -> RatingHistory:
            user_id = await users.find_id(tx, name)
            rows = [] if user_id is None else await ratings.ratings_of_user(tx, user_id)
            if user_id is None or not rows:
                raise NotFound("rating", name)
            rated = {row.contest_id for row in rows}
            contests = [contest for contest in await ratings.rated_contests(tx) if contest.id in rated]
            views = {view.contest.id: view for view in await make_views(tx, viewer, contests)}
            return RatingHistory(await users.find(tx, user_id), rows, views)

        return await self.database.read(read)
