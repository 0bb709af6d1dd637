"""Ranks, listing order and first solves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests.board import Board, BoardRow
from adjudge.contests.formats.base import Cell
from adjudge.contests.ranking import EqualRankOrder, LiveRanking, first_solves, rank_board
from adjudge.domain.contest import ParticipantKind
from tests.unit.contests.boards import board, icpc_row, row, solved, tried


def _ranks(value: Board, order: EqualRankOrder = EqualRankOrder.NAME) -> list[tuple[str, int | None]]:
    return [(item.row.participant.name, item.rank) for item in rank_board(value, order)]


def test_equal_keys_share_a_rank_and_the_next_is_skipped() -> None:
    rows = [icpc_row("d", 1, 10, 10), icpc_row("c", 2, 60, 30), icpc_row("b", 2, 60, 30), icpc_row("a", 3, 99, 40)]
    assert _ranks(board(*rows)) == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]


def test_all_three_keys_decide() -> None:
    rows = [icpc_row("a", 2, 60, 31), icpc_row("b", 2, 60, 30), icpc_row("c", 2, 61, 1)]
    assert _ranks(board(*rows)) == [("b", 1), ("a", 2), ("c", 3)]


def test_equal_ranks_are_listed_by_organization_or_name() -> None:
    rows = [
        icpc_row("Émile", 1, organization_name="Utrecht"),
        icpc_row("adam", 1, organization_name="zagreb"),
        icpc_row("Zoë", 1, organization_name="Ankara"),
    ]
    assert [name for name, _ in _ranks(board(*rows))] == ["adam", "Émile", "Zoë"]
    assert [name for name, _ in _ranks(board(*rows), EqualRankOrder.ORGANIZATION)] == ["Zoë", "Émile", "adam"]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ParticipantKind.UNOFFICIAL},
        {"kind": ParticipantKind.TEST},
        {"kind": ParticipantKind.VIRTUAL},
        {"is_hidden": True},
        {"has_unranked_group": True},
    ],
)
def test_unranked_participants_take_no_rank(changes: dict[str, Any]) -> None:
    rows = [icpc_row("a", 3), icpc_row("guest", 2, **changes), icpc_row("b", 1)]
    assert _ranks(board(*rows)) == [("a", 1), ("guest", None), ("b", 2)]


def test_disqualified_participants_are_listed_last() -> None:
    assert _ranks(board(icpc_row("a", 3, is_disqualified=True), icpc_row("b", 1))) == [("b", 1), ("a", None)]


def test_filters_rank_anew() -> None:
    rows = [
        icpc_row("a", 3, group_ids=("east",), organization_id="uni"),
        icpc_row("b", 2, group_ids=("west", "east")),
        icpc_row("c", 1, group_ids=("west",), organization_id="uni"),
    ]
    assert _ranks(board(*rows).filtered(group_id="west")) == [("b", 1), ("c", 2)]
    assert _ranks(board(*rows).filtered(organization_id="uni")) == [("a", 1), ("c", 2)]
    assert _ranks(board(*rows).filtered(organization_id="uni", group_id="west")) == [("c", 1)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=12))
def test_rank_is_one_plus_the_number_of_better_ranked_rows(values: list[tuple[int, int, bool]]) -> None:
    rows = [icpc_row(f"p{index}", k1, k2, is_hidden=hidden) for index, (k1, k2, hidden) in enumerate(values)]
    for item in rank_board(board(*rows)):
        better = sum(other.keys > item.row.keys for other in rows if other.participant.is_ranked)
        assert item.rank == (better + 1 if item.row.participant.is_ranked else None)


def _firsts(*rows: BoardRow) -> dict[str, str]:
    return first_solves(board(*rows))


def test_first_to_solve_has_the_lowest_number() -> None:
    assert _firsts(row("a", cells=[solved(30, 7)]), row("b", cells=[solved(20, 3)])) == {"problem-a": "b"}


@pytest.mark.parametrize(("pending", "expected"), [(2, {}), (4, {"problem-a": "b"})])
def test_earlier_pending_submission_of_another_leaves_first_open(pending: int, expected: dict[str, str]) -> None:
    assert _firsts(row("a", cells=[tried(pending=pending)]), row("b", cells=[solved(20, 3)])) == expected


def test_own_pending_submission_does_not_leave_first_open() -> None:
    assert _firsts(row("a", cells=[solved(20, 3, pending=1)])) == {"problem-a": "a"}


@pytest.mark.parametrize("cell", [solved(10, 1), tried(pending=1)])
def test_unranked_participants_are_not_first_and_leave_nothing_open(cell: Cell) -> None:
    rows = [row("guest", cells=[cell], kind=ParticipantKind.UNOFFICIAL), row("b", cells=[solved(20, 3)])]
    assert _firsts(*rows) == {"problem-a": "b"}


_values = st.tuples(st.integers(0, 2), st.integers(0, 2))


@given(
    st.lists(st.tuples(_values, st.sampled_from(["", "hidden", "disqualified"])), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), _values), max_size=8),
)
def test_live_ranking_equals_ranking_anew_after_every_change(
    start: list[tuple[tuple[int, int], str]], changes: list[tuple[int, tuple[int, int]]]
) -> None:
    rows = [
        icpc_row(f"p{index % 3}{index}", *keys, is_hidden=status == "hidden", is_disqualified=status == "disqualified")
        for index, (keys, status) in enumerate(start)
    ]
    live = LiveRanking(rows)
    for index, (k1, k2) in changes:
        position = index % len(rows)
        rows[position] = BoardRow(rows[position].participant, icpc_row("", k1, k2).keys, ())
        live.update(rows[position])
        expected = rank_board(board(*rows))
        assert live.page(0, len(live)) == expected
        assert live.page(1, 2) == expected[1:3]
        for place, item in enumerate(expected):
            assert live.position_of(item.row.participant.id) == place
            assert live.rank_of(item.row.participant.id) == item.rank
