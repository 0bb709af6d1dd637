"""Ratings over contests: Elo-MMR with normally distributed performances, computed from the results alone (ADR 0090).

Every computation starts from the first contest, so a rejudge of an old one changes the history exactly as if the new
result had always been there. Ratings are integers (thousandths), and sums are exact (``fsum``): the same results give
the same ratings, in whatever order the participants of a contest are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum, isqrt, pi, sqrt, tanh
from typing import Final

from adjudge.domain.errors import InvalidInput

MILLI: Final = 1_000
INITIAL_RATING_MILLI: Final = 1_500 * MILLI
INITIAL_DEVIATION_MILLI: Final = 350 * MILLI
PERFORMANCE_DEVIATION_MILLI: Final = 200 * MILLI
"""How much the performance in one contest varies around the skill."""
DIFFUSION_MILLI: Final = 35 * MILLI
"""How much skill may change between two contests."""
LOWEST_PERFORMANCE: Final = -3_000
HIGHEST_PERFORMANCE: Final = 9_000


@dataclass(frozen=True, slots=True)
class RatedContest:
    """The final ranks of a contest; equal ranks are ties."""

    id: str
    ranks: Mapping[str, int]
    """Rank by user; only ranked, rated participants."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What is known about a user's skill, in thousandths of a rating point."""

    rating_milli: int = INITIAL_RATING_MILLI
    deviation_milli: int = INITIAL_DEVIATION_MILLI


@dataclass(frozen=True, slots=True)
class RatingChange:
    """What one contest changed for one user."""

    contest_id: str
    user_id: str
    rank: int
    performance_milli: int
    """The rating at which the result would have been expected."""
    before: Rating
    after: Rating

    @property
    def delta(self) -> int:
        """The change of the displayed rating."""
        return displayed_rating(self.after) - displayed_rating(self.before)


def displayed_rating(rating: Rating) -> int:
    """Return a rating as it is shown: whole points, rounded half up."""
    return (rating.rating_milli + MILLI // 2) // MILLI


def compute_ratings(contests: Sequence[RatedContest]) -> dict[str, list[RatingChange]]:
    """Compute the history of every user from all contests, in the order in which they ended.

    A contest with fewer than two rated participants says nothing and changes nothing.
    """
    if len({contest.id for contest in contests}) != len(contests):
        raise InvalidInput("contests: a contest is listed twice; list each once.", field="contests")
    current: dict[str, Rating] = {}
    history: dict[str, list[RatingChange]] = {}
    for contest in contests:
        for change in rate_contest(contest, current):
            current[change.user_id] = change.after
            history.setdefault(change.user_id, []).append(change)
    return history


def rate_contest(contest: RatedContest, ratings: Mapping[str, Rating]) -> list[RatingChange]:
    """Compute the changes of one contest, sorted by rank and user; users without a rating get the initial one."""
    if len(contest.ranks) < 2:
        return []
    order = sorted(contest.ranks, key=lambda user: (contest.ranks[user], user))
    before = {user: _diffused(ratings.get(user, Rating())) for user in order}
    performances = _performances(contest.ranks, before, order)
    return [
        RatingChange(
            contest.id,
            user,
            contest.ranks[user],
            performances[user],
            ratings.get(user, Rating()),
            _updated(before[user], performances[user]),
        )
        for user in order
    ]


def _diffused(rating: Rating) -> Rating:
    """Return the rating before a contest: skill may have changed since the last one."""
    deviation = isqrt(rating.deviation_milli**2 + DIFFUSION_MILLI**2)
    return Rating(rating.rating_milli, min(deviation, INITIAL_DEVIATION_MILLI))


def _updated(before: Rating, performance_milli: int) -> Rating:
    """Combine two normal distributions, the prior and that of the performance; exact in integers up to rounding."""
    prior, noise = before.deviation_milli**2, PERFORMANCE_DEVIATION_MILLI**2
    total = prior + noise
    weighted = before.rating_milli * noise + performance_milli * prior
    return Rating((weighted + total // 2) // total, isqrt(prior * noise // total))


class _Opponent:
    """A player as others see them: a logistic distribution of performances with the same variance."""

    __slots__ = ("center", "scale", "weight")

    def __init__(self, rating: Rating) -> None:
        deviation = sqrt(rating.deviation_milli**2 + PERFORMANCE_DEVIATION_MILLI**2) / MILLI
        self.center = rating.rating_milli / MILLI
        self.scale = 2 * sqrt(3) / pi * deviation
        self.weight = 1 / deviation

    def pull(self, performance: int) -> float:
        return self.weight * tanh((performance - self.center) / self.scale)


def _performances(ranks: Mapping[str, int], before: Mapping[str, Rating], order: Iterable[str]) -> dict[str, int]:
    """Find the performance of each rank, in thousandths.

    The likelihood of a result has its maximum where the pulls of all players, with those of equal rank counted twice,
    equal the weights of the worse players minus those of the better ones. The first sum is the same for all ranks, so
    each of its values is computed once, at whole points; between two of them the sum is almost a straight line.
    """
    opponents = {user: _Opponent(rating) for user, rating in before.items()}
    field = _Field(before.values())
    total = fsum(opponent.weight for opponent in opponents.values())
    better = 0.0
    found: dict[str, int] = {}
    for _, group in groupby(order, key=lambda user: ranks[user]):
        tied = list(group)
        own = [opponents[user] for user in tied]
        own_weight = fsum(opponent.weight for opponent in own)
        goal = (total - better - own_weight) - better
        performance_milli = _solve(field, own, goal)
        found.update(dict.fromkeys(tied, performance_milli))
        better = fsum((better, own_weight))
    return found


class _Field:
    """The summed pull of all players, remembered for each performance."""

    def __init__(self, ratings: Iterable[Rating]) -> None:
        counts = Counter(ratings)
        self._opponents = [(_Opponent(rating), count) for rating, count in counts.items()]
        self._sums: dict[int, float] = {}

    def pull(self, performance: int) -> float:
        if performance not in self._sums:
            self._sums[performance] = fsum(count * item.pull(performance) for item, count in self._opponents)
        return self._sums[performance]


def _solve(field: _Field, own: Sequence[_Opponent], goal: float) -> int:
    """Find where the pulls equal the goal: bisection to whole points, then linear interpolation."""

    def pulls(performance: int) -> float:
        return field.pull(performance) + fsum(opponent.pull(performance) for opponent in own)

    low, high = LOWEST_PERFORMANCE, HIGHEST_PERFORMANCE
    while high - low > 1:
        middle = (low + high) // 2
        if pulls(middle) < goal:
            low = middle
        else:
            high = middle
    below, above = pulls(low), pulls(high)
    if not below < goal <= above:
        return (low if goal <= below else high) * MILLI
    return low * MILLI + round(MILLI * (goal - below) / (above - below))
