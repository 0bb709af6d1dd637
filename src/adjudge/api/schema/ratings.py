"""Conversion of ratings to their wire models: whole points, rounded half up."""

from __future__ import annotations

from adjudge.contests.rating import Rating, displayed_rating
from adjudge.domain.timestamps import format_timestamp
from adjudge.schema.ratings import RankedUserRead, RatingChangeRead, RatingHistoryRead
from adjudge.services.ratings import RatingHistory
from adjudge.store.contests.activity_models import RatingRow
from adjudge.store.contests.ratings import RankedUser


def read_ranked(item: RankedUser) -> RankedUserRead:
    return RankedUserRead(
        rank=item.rank,
        user=item.name,
        display_name=item.display_name,
        rating=_points(item.rating_milli),
        deviation=_points(item.deviation_milli),
        contests=item.contests,
    )


def read_history(history: RatingHistory) -> RatingHistoryRead:
    last = history.rows[-1]
    return RatingHistoryRead(
        user=history.user.name,
        display_name=history.user.display_name,
        rating=_points(last.rating_milli),
        deviation=_points(last.deviation_milli),
        changes=[_read_change(history, row) for row in history.rows],
    )


def _read_change(history: RatingHistory, row: RatingRow) -> RatingChangeRead:
    view = history.contests.get(row.contest_id)
    return RatingChangeRead(
        contest=view.contest.slug if view else None,
        title=view.contest.settings.title if view else None,
        rated_at=format_timestamp(row.rated_at),
        rank=row.rank,
        performance=_points(row.performance_milli),
        old_rating=_points(row.before_rating_milli),
        rating=_points(row.rating_milli),
        deviation=_points(row.deviation_milli),
    )


def _points(milli: int) -> int:
    return displayed_rating(Rating(milli))
