"""Ratings: properties that users rely on, and exact recomputation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests.rating import (
    INITIAL_DEVIATION_MILLI,
    INITIAL_RATING_MILLI,
    RatedContest,
    Rating,
    RatingChange,
    compute_ratings,
    displayed_rating,
    rate_contest,
)
from adjudge.domain.errors import InvalidInput

USERS = "abcdefgh"
_ratings = st.dictionaries(
    st.sampled_from(USERS),
    st.builds(Rating, st.integers(500_000, 3_500_000), st.integers(40_000, INITIAL_DEVIATION_MILLI)),
)
_ranks = st.dictionaries(st.sampled_from(USERS), st.integers(1, 5), min_size=2)


def _by_user(changes: list[RatingChange]) -> dict[str, RatingChange]:
    return {change.user_id: change for change in changes}


@given(_ranks, _ratings, st.randoms(use_true_random=False))
def test_order_of_participants_does_not_matter(
    ranks: dict[str, int], ratings: dict[str, Rating], random: object
) -> None:
    users = list(ranks)
    random.shuffle(users)  # type: ignore[attr-defined]  # hypothesis types it as random.Random at run time only
    shuffled = RatedContest("c", {user: ranks[user] for user in users})
    assert rate_contest(shuffled, ratings) == rate_contest(RatedContest("c", ranks), ratings)


@given(_ranks, st.integers(500_000, 3_500_000), st.integers(40_000, 350_000))
def test_equal_ratings_change_by_rank_alone(ranks: dict[str, int], rating_milli: int, deviation_milli: int) -> None:
    ratings = dict.fromkeys(USERS, Rating(rating_milli, deviation_milli))
    changes = rate_contest(RatedContest("c", ranks), ratings)
    for first in changes:
        for second in changes:
            if first.rank == second.rank:
                assert first.after == second.after
            if first.rank < second.rank:
                assert first.after.rating_milli > second.after.rating_milli
                assert first.performance_milli > second.performance_milli


@given(_ranks, _ratings, st.sampled_from(USERS))
def test_better_rank_never_costs_rating(ranks: dict[str, int], ratings: dict[str, Rating], user: str) -> None:
    worse = {**ranks, user: 4}
    better = {**ranks, user: 2}
    if len(worse) < 2:
        return
    before = _by_user(rate_contest(RatedContest("c", worse), ratings))[user]
    after = _by_user(rate_contest(RatedContest("c", better), ratings))[user]
    assert after.after.rating_milli >= before.after.rating_milli


@given(_ranks, _ratings)
def test_performance_does_not_depend_on_the_absolute_level(ranks: dict[str, int], ratings: dict[str, Rating]) -> None:
    """Adding 100 points to everybody adds 100 to every performance, up to rounding."""
    full = {user: ratings.get(user, Rating()) for user in USERS}
    raised = {user: Rating(item.rating_milli + 100_000, item.deviation_milli) for user, item in full.items()}
    low = _by_user(rate_contest(RatedContest("c", ranks), full))
    high = _by_user(rate_contest(RatedContest("c", ranks), raised))
    assert all(abs(high[user].performance_milli - low[user].performance_milli - 100_000) <= 1 for user in ranks)


def test_two_new_users() -> None:
    # Both 1500 +- 350. The winner's performance p solves 2(1 - t) = 1 + t, so t = tanh(x) = 1/3 and x = ln(2) / 2.
    # With the deviation sqrt(350^2 + 200^2) = 403.11 the scale is 2 sqrt(3) / pi * 403.11 = 444.49: p = 1500 + 154.05.
    # Weight of a performance: 350^2 / (350^2 + 200^2) = 0.75385: 1500 +- 0.75385 * 154.05 = 1500 +- 116.13.
    first, second = rate_contest(RatedContest("c", {"a": 1, "b": 2}), {})
    assert [round(change.performance_milli / 10) for change in (first, second)] == [165_405, 134_595]
    assert [round(change.after.rating_milli / 10) for change in (first, second)] == [161_613, 138_387]
    # 350 * 200 / 403.11 = 173.648
    assert first.after.deviation_milli == second.after.deviation_milli == 173_648
    assert first.before == Rating(INITIAL_RATING_MILLI, INITIAL_DEVIATION_MILLI)
    assert (first.delta, second.delta, displayed_rating(second.after)) == (116, -116, 1384)


def test_deviation_grows_between_contests_up_to_the_initial_one() -> None:
    # Before the contest: sqrt(60^2 + 35^2) = 69.462; after it: 69.462 * 200 / sqrt(69.462^2 + 200^2) = 65.617.
    ratings = {"a": Rating(1_500_000, 60_000)}
    change = _by_user(rate_contest(RatedContest("c", {"a": 1, "b": 2}), ratings))["a"]
    assert change.after.deviation_milli // 10 == 6_561


def test_uncertain_ratings_change_more() -> None:
    ratings = {"new": Rating(1_500_000, 350_000), "old": Rating(1_500_000, 60_000)}
    changes = _by_user(rate_contest(RatedContest("c", {"new": 1, "old": 1, "x": 2}), ratings))
    assert changes["new"].delta > changes["old"].delta > 0


def test_contest_with_one_participant_changes_nothing() -> None:
    assert compute_ratings([RatedContest("c", {"a": 1}), RatedContest("d", {})]) == {}


def test_history_is_chained_and_recomputed_after_a_rejudge() -> None:
    first = RatedContest("one", {"a": 1, "b": 2, "c": 3})
    rejudged = RatedContest("one", {"a": 3, "b": 2, "c": 1})
    second = RatedContest("two", {"a": 1, "b": 2})
    before, after = compute_ratings([first, second]), compute_ratings([rejudged, second])
    assert before["a"][1].before == before["a"][0].after
    assert before["a"][1].after != after["a"][1].after
    assert compute_ratings([first, second]) == before
    # Undoing the rejudge restores the history exactly.
    assert compute_ratings([first, second]) != after
    # The history up to the changed contest is not touched by later ones.
    assert compute_ratings([first])["c"] == before["c"]


def test_contest_listed_twice_is_refused() -> None:
    contest = RatedContest("one", {"a": 1, "b": 2})
    with pytest.raises(InvalidInput, match="listed twice"):
        compute_ratings([contest, contest])
