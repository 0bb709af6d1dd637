"""Wire models of ratings."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class RankedUserRead(ResponseModel):
    """A user in the ranking list."""

    rank: int
    user: str
    display_name: str | None
    rating: int = field(metadata=doc(examples=[1734]))
    deviation: int = field(metadata=doc("The uncertainty of the rating; it falls with every contest."))
    contests: int = field(metadata=doc("The number of rated contests."))


@dataclass(frozen=True, kw_only=True)
class RatingPage(ResponseModel):
    """Users with a rating, best first."""

    items: list[RankedUserRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class RatingChangeRead(ResponseModel):
    """What one contest changed."""

    contest: str | None = field(metadata=doc("The slug; null if you may not see the contest."))
    title: str | None
    rated_at: Timestamp
    rank: int
    performance: int = field(metadata=doc("The rating at which the result would have been expected."))
    old_rating: int
    rating: int
    deviation: int


@dataclass(frozen=True, kw_only=True)
class RatingHistoryRead(ResponseModel):
    """The rating of a user and its history, oldest first."""

    user: str
    display_name: str | None
    rating: int
    deviation: int
    changes: list[RatingChangeRead]
