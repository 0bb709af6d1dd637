"""Awards: medals, World Finals ranks, honors, winners, and the merge with manual changes."""

from __future__ import annotations

import pytest

from adjudge.contests.awards import (
    Award,
    AwardRules,
    RankRule,
    compute_awards,
    edit_award,
    final_ranks,
    merge_awards,
    parse_award_rules,
)
from adjudge.contests.board import Board, BoardGroup
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import InvalidInput
from tests.unit.contests.boards import board, icpc_row, row, solved, tried

ONE_EACH = AwardRules(gold=1, silver=1, bronze=1)


def _awards(value: Board, rules: AwardRules) -> dict[str, tuple[str, ...]]:
    return {award.id: award.participant_ids for award in compute_awards(value, rules)}


def test_medals_go_by_rank_and_extra_bronze_extends_them() -> None:
    value = board(*(icpc_row(name, 9 - index) for index, name in enumerate("abcdef")))
    assert _awards(value, AwardRules(gold=1, silver=1, bronze=1, bronze_extra=2)) == {
        "winner": ("a",),
        "gold-medal": ("a",),
        "silver-medal": ("b",),
        "bronze-medal": ("c", "d", "e"),
    }


def test_equal_ranks_get_the_same_medal_and_use_up_the_next() -> None:
    value = board(icpc_row("a", 5), icpc_row("b", 5), icpc_row("c", 4), icpc_row("d", 3))
    # ranks 1, 1, 3, 4: two gold medals, no silver one (rank 2 is empty), rank 3 is bronze
    assert _awards(value, ONE_EACH) == {"winner": ("a", "b"), "gold-medal": ("a", "b"), "bronze-medal": ("c",)}


def test_no_award_without_a_solved_problem_or_for_the_unranked() -> None:
    guest = icpc_row("guest", 9, kind=ParticipantKind.UNOFFICIAL)
    assert _awards(board(guest, icpc_row("a", 1), icpc_row("b", 0)), ONE_EACH) == {
        "winner": ("a",),
        "gold-medal": ("a",),
    }


WORLD = AwardRules(gold=1, silver=1, bronze=1, rank_rule=RankRule.WORLD_FINALS, honors=True)


def _world() -> Board:
    # Solved problems: 9 8 7 | 7 7 6 6 5 4 3 2: medals for three; the median of eleven (the sixth) solved 6.
    names, counts = "abcdefghijk", (9, 8, 7, 7, 7, 6, 6, 5, 4, 3, 2)
    return board(*(icpc_row(name, count, 10 * i) for i, (name, count) in enumerate(zip(names, counts, strict=True))))


def test_world_finals_ranks_below_the_medals_by_solved_problems() -> None:
    ranks = {item.row.participant.id: item.rank for item in final_ranks(_world(), WORLD)}
    # d and e solved as many as the bronze medal and share the next rank 4; f and g share 6; below 6 solved: no rank
    assert ranks == dict(zip("abcdefghijk", (1, 2, 3, 4, 4, 6, 6, None, None, None, None), strict=True))


def test_honors_go_by_solved_problems_relative_to_the_last_medal() -> None:
    # The last medal has 7: with 7 highest, with 6 high honors; fewer are below the median and mentioned.
    awards = _awards(_world(), WORLD)
    assert awards["highest-honors"] == ("d", "e")
    assert awards["high-honors"] == ("f", "g")
    assert "honors" not in awards
    assert awards["honorable-mention"] == ("h", "i", "j", "k")
    assert (awards["rank-4"], awards["rank-6"]) == (("d", "e"), ("f", "g"))


def test_plain_honors_with_normal_ranks() -> None:
    rules = AwardRules(gold=1, silver=1, bronze=1, honors=True)
    assert _awards(_world(), rules)["honors"] == ("h", "i", "j", "k")


def test_world_finals_rank_after_tied_last_medal() -> None:
    # Ranks 1, 2, 3, 3, 5: the tied third gets bronze twice, so the next rank is 5, not 4.
    value = board(*(icpc_row(name, count) for name, count in zip("abcde", (9, 8, 7, 7, 6), strict=True)))
    rules = AwardRules(gold=1, silver=1, bronze=1, rank_rule=RankRule.WORLD_FINALS)
    assert [item.rank for item in final_ranks(value, rules)] == [1, 2, 3, 3, None]
    wider = board(*value.rows, icpc_row("f", 6, 5), icpc_row("g", 6, 9))
    assert [item.rank for item in final_ranks(wider, rules)] == [1, 2, 3, 3, None, None, None]
    widest = board(*wider.rows, icpc_row("h", 5), icpc_row("i", 5))
    assert [item.rank for item in final_ranks(widest, rules)] == [1, 2, 3, 3, 5, 5, 5, None, None]


def test_median_of_an_even_number_is_the_lower_one() -> None:
    # Solved 9, 8, 7, 6: number 4 / 2 + 1 = 3 solved 7, so 7 is ranked and 6 is not.
    value = board(*(icpc_row(name, count) for name, count in zip("abcd", (9, 8, 7, 6), strict=True)))
    rules = AwardRules(gold=1, silver=0, bronze=0, rank_rule=RankRule.WORLD_FINALS)
    assert [item.rank for item in final_ranks(value, rules)] == [1, 2, 3, None]


def test_group_and_organization_winners() -> None:
    value = board(
        icpc_row("a", 3, group_ids=("east",), organization_id="x"),
        icpc_row("b", 2, group_ids=("west",), organization_id="x"),
        icpc_row("c", 2, group_ids=("west",), organization_id="y"),
        icpc_row("d", 0, group_ids=("south",), organization_id="z"),
        groups=[BoardGroup("east", "East"), BoardGroup("west", "West"), BoardGroup("south", "South")],
        organizations={"x": "University X", "y": "University Y", "z": "University Z"},
    )
    awards = _awards(value, AwardRules(0, 0, 0, organization_winners=True))
    assert awards == {
        "winner": ("a",),
        "group-winner-east": ("a",),
        "group-winner-west": ("b", "c"),
        "organization-winner-x": ("a",),
        "organization-winner-y": ("c",),
    }


def test_first_to_solve_is_an_award_per_problem() -> None:
    value = board(row("a", (1,), [solved(5, 2), tried()]), row("b", (1,), [solved(9, 4), tried()]))
    assert _awards(value, AwardRules(0, 0, 0))["first-to-solve-problem-a"] == ("a",)
    assert not [name for name in _awards(value, AwardRules(0, 0, 0, first_to_solve=False)) if "first" in name]


def test_manual_awards_survive_and_managed_ones_are_replaced() -> None:
    computed = [Award("winner", "Contest winner", ("b",)), Award("gold-medal", "Gold medal winner", ("b",))]
    stored = [
        Award("winner", "Contest winner", ("a",)),
        edit_award(Award("gold-medal", "Gold medal winner", ("a",)), participant_ids=()),
        Award("silver-medal", "Silver medal winner", ("a",)),
        Award("best-name", "Best team name", ("c",), is_managed=False),
    ]
    assert merge_awards(computed, stored) == [
        Award("winner", "Contest winner", ("b",)),
        Award("gold-medal", "Gold medal winner", (), is_managed=False),
        Award("best-name", "Best team name", ("c",), is_managed=False),
    ]


def test_edit_keeps_what_is_not_changed() -> None:
    award = Award("winner", "Contest winner", ("a",))
    assert edit_award(award, citation="Champion") == Award("winner", "Champion", ("a",), is_managed=False)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"gold": -1}, "awards.gold: must be an integer from 0 to 10000."),
        ({"rank_rule": "strict"}, "awards.rank_rule: must be one of normal, world_finals."),
        ({"platinum": 1}, "awards.platinum: unknown field; remove it"),
    ],
)
def test_award_rules_name_the_wrong_field(document: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_award_rules(document)
    assert caught.value.message.startswith(text)


def test_award_rules_defaults_are_those_of_the_ccs() -> None:
    assert parse_award_rules({}) == AwardRules(gold=4, silver=4, bronze=4, bronze_extra=0)
    assert parse_award_rules({"rank_rule": "world_finals"}).rank_rule is RankRule.WORLD_FINALS
