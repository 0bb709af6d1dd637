"""Ratings over contests: the stored history, the ranking list, and which contests are rated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from adjudge.store.contests import scoreboard
from adjudge.store.contests.activity_models import RatingRow
from adjudge.store.contests.models import ContestRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

_LOCK_KEY = "ratings"


@dataclass(frozen=True, slots=True)
class RankedUser:
    """A user with a rating, in the ranking list."""

    user_id: str
    name: str
    display_name: str | None
    rank: int
    rating_milli: int
    deviation_milli: int
    contests: int


@dataclass(frozen=True, slots=True)
class RatedContestVersion:
    """What the ranks of a rated contest depend on; a change means that ratings must be computed again."""

    contest_id: str
    version: int
    scoreboard_version: int
    participants_version: int


DELETE_RATINGS = Statement(
    "ratings.delete", "Delete all ratings before they are computed again.", "DELETE FROM ratings"
)
INSERT_RATINGS = Statement(
    "ratings.insert",
    "Store ratings.",
    """
    INSERT INTO ratings (contest_id, user_id, rank, performance_milli, before_rating_milli, before_deviation_milli,
                         rating_milli, deviation_milli, rated_at)
    SELECT given_contest_id, given_user_id, given_rank, given_performance, given_before_rating, given_before_deviation,
           given_rating, given_deviation, given_rated_at
    FROM {given}
    """,
    input_columns={
        "given_contest_id": "text",
        "given_user_id": "text",
        "given_rank": "bigint",
        "given_performance": "bigint",
        "given_before_rating": "bigint",
        "given_before_deviation": "bigint",
        "given_rating": "bigint",
        "given_deviation": "bigint",
        "given_rated_at": "bigint",
    },
)
RATINGS_OF_USER = Statement(
    "ratings.of_user",
    "List the ratings of a user, oldest first.",
    "SELECT {columns} FROM ratings WHERE user_id = :user_id ORDER BY rated_at, contest_id",
    row=RatingRow,
)
ALL_RATINGS = Statement(
    "ratings.list",
    "List all ratings.",
    "SELECT {columns} FROM ratings ORDER BY rated_at, contest_id, rank, user_id",
    row=RatingRow,
)
RANKING = Statement(
    "ratings.ranking",
    "List users by their last rating, keyset-paginated.",
    """
    SELECT {columns:ranked} FROM (
        SELECT user_id, rating_milli, deviation_milli, rank() OVER (ORDER BY rating_milli DESC) AS rank,
            (SELECT count(*) FROM ratings AS every WHERE every.user_id = ratings.user_id) AS contests
        FROM ratings
        WHERE NOT EXISTS (
            SELECT 1 FROM ratings AS later WHERE later.user_id = ratings.user_id
              AND (later.rated_at, later.contest_id) > (ratings.rated_at, ratings.contest_id)
        )
    ) AS ranked JOIN users ON users.id = ranked.user_id
    WHERE (ranked.rating_milli < :rating_milli OR (ranked.rating_milli = :rating_milli AND ranked.user_id > :after))
    ORDER BY ranked.rating_milli DESC, ranked.user_id LIMIT :limit
    """,
    row=RankedUser,
    columns={"name": "users.name", "display_name": "users.display_name"},
)
_RATED = "contests.rated AND contests.state = 'finalized'"
RATED_VERSIONS = Statement(
    "ratings.contest_versions",
    "Read what the ranks of the rated, finalized contests depend on.",
    f"""
    SELECT {{columns:contests}} FROM contests WHERE {_RATED} ORDER BY contests.id
    """,
    row=RatedContestVersion,
    columns={
        "contest_id": "contests.id",
        "scoreboard_version": "COALESCE((SELECT CAST(sum(scoreboard_rows.version) AS bigint) FROM scoreboard_rows"
        " WHERE scoreboard_rows.contest_id = contests.id AND view = 'jury'), 0)",
        "participants_version": "COALESCE((SELECT CAST(sum(participants.version) AS bigint) FROM participants"
        " WHERE participants.contest_id = contests.id), 0)",
    },
)
RATED_CONTESTS = Statement(
    "ratings.contests",
    "List the rated, finalized contests.",
    f"SELECT {{columns}} FROM contests WHERE {_RATED} ORDER BY id",
    row=ContestRow,
)
USERS_OF_PARTICIPANTS = Statement(
    "ratings.users",
    "Find the users who take part in a contest as individuals.",
    "SELECT id, user_id FROM participants WHERE contest_id = :contest_id AND user_id IS NOT NULL",
)


async def lock(tx: Tx) -> None:
    """Let one transaction at a time replace the ratings."""
    await scoreboard.lock_exclusive(tx, _LOCK_KEY)


async def replace_ratings(tx: Tx, items: Sequence[RatingRow]) -> None:
    """Replace all ratings: they are computed from the first contest on."""
    await tx.execute(DELETE_RATINGS)
    if items:
        await tx.execute(INSERT_RATINGS, [astuple(item) for item in items])


async def list_ratings(tx: Tx) -> list[RatingRow]:
    """All ratings, by contest and rank."""
    return await tx.fetch(ALL_RATINGS)


async def ratings_of_user(tx: Tx, user_id: str) -> list[RatingRow]:
    """The ratings of a user, oldest first."""
    return await tx.fetch(RATINGS_OF_USER, user_id=user_id)


async def page_ranking(tx: Tx, *, rating_milli: int, after: str, limit: int) -> list[RankedUser]:
    """Users by rating, best first; the last user of the previous page has ``rating_milli`` and the id ``after``."""
    return await tx.fetch(RANKING, rating_milli=rating_milli, after=after, limit=limit)


async def contest_versions(tx: Tx) -> list[RatedContestVersion]:
    """What the ranks of the rated, finalized contests depend on."""
    return await tx.fetch(RATED_VERSIONS)


async def rated_contests(tx: Tx) -> list[ContestRow]:
    """The rated, finalized contests."""
    return await tx.fetch(RATED_CONTESTS)


async def individuals(tx: Tx, contest_id: str) -> dict[str, str]:
    """Participant → user, for those who are not teams."""
    rows = await tx.fetch(USERS_OF_PARTICIPANTS, contest_id=contest_id)
    return {row["id"]: row["user_id"] for row in rows}
