"""A board in memory: versions, ranks by filter, and first solves that are kept up to date."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from typing import Any

from adjudge.contests.awards import AwardRules, compute_awards
from adjudge.contests.board import BoardGroup, BoardRow
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.live_board import BoardFilter, LiveBoard
from adjudge.contests.load_board import LoadedBoard
from adjudge.contests.ranking import first_solves, rank_board
from adjudge.domain.contest import ParticipantKind
from adjudge.store.contests.scoreboard_log import ScoreboardLogEntry
from adjudge.store.judging.events import START, EventOffset
from tests.unit.contests.boards import board, row, solved, tried

VIEW = "jury"


def entry(number: int, row: BoardRow, version: int, cells: dict[int, Cell]) -> ScoreboardLogEntry:
    """An entry of the log with the keys of ``row`` and some of its cells."""
    documents = {f"problem-{'abcdefgh'[index]}": asdict(cell) for index, cell in cells.items()}
    payload = json.dumps({"keys": list(row.keys), "cells": documents})
    return ScoreboardLogEntry(EventOffset(0, number), "contest", "cells", VIEW, row.participant.id, version, payload)


def live(*rows: BoardRow, is_complete: bool = True, **options: Any) -> LiveBoard:
    loaded = LoadedBoard(board(*rows, **options), EventOffset(0, 1), {}, {})
    return LiveBoard(loaded, view=VIEW, is_complete=is_complete, last=START)


def test_old_and_repeated_entries_change_nothing() -> None:
    ada = row("ada", (0, 0, 0), [Cell(), Cell()])
    found = live(ada, row("ben", (0, 0, 0), [Cell(), Cell()]))
    first = replace(ada, keys=RowKeys(1, -600, -600))
    assert [item.row.participant.id for item in found.apply(entry(2, first, 1, {0: solved(10, 1)}))] == ["ada"]
    assert found.apply(entry(2, first, 1, {0: solved(10, 1)})) == []
    assert found.last == EventOffset(0, 2)
    assert found.apply(entry(0, first, 9, {0: tried()})) == [], "below the offset of the snapshot"


def test_entries_out_of_order_end_in_the_same_row() -> None:
    start = row("ada", (0, 0, 0), [Cell(), Cell()])
    one = entry(2, replace(start, keys=RowKeys(1, -600, -600)), 1, {0: solved(10, 1)})
    two = entry(3, replace(start, keys=RowKeys(2, -1800, -1200)), 2, {1: solved(20, 2)})
    forwards, backwards = live(start), live(start)
    for item in (one, two):
        forwards.apply(item)
    for item in (two, one):
        backwards.apply(item)
    assert forwards.row("ada") == backwards.row("ada")
    assert backwards.row("ada").keys == RowKeys(2, -1800, -1200)  # type: ignore[union-attr]  # the row is there


def test_hidden_rows_are_for_complete_boards() -> None:
    rows = (
        row("ada", (0, 0, 0), [Cell()]),
        row("hid", (0, 0, 0), [Cell()], is_hidden=True),
        row("tess", (0, 0, 0), [Cell()], kind=ParticipantKind.TEST),
    )
    public, jury = live(*rows, is_complete=False), live(*rows)
    assert (len(public), len(jury)) == (1, 3)
    assert public.apply(entry(2, rows[1], 1, {0: tried()})) == []
    assert public.last == START
    assert len(jury.apply(entry(2, rows[1], 1, {0: tried()}))) == 1


def test_first_solver_that_changes_is_reported() -> None:
    found = live(row("ada", (0, 0, 0), [tried(0, pending=1)]), row("ben", (1, -300, -300), [solved(5, 2)]))
    assert found.first_solver(0) is None, "an earlier submission is pending"
    rejected = found.apply(entry(2, found.row("ada"), 1, {0: tried(1)}))  # type: ignore[arg-type]  # the row is there
    assert [item.row.participant.id for item in rejected] == ["ada", "ben"]
    assert found.first_solver(0) == "ben"


def test_random_changes_keep_ranks_and_first_solves_equal_to_recomputation() -> None:
    chance = random.Random(15)
    rows = [
        row(f"p{number}", (0, 0, 0), [Cell(), Cell(), Cell()], group_ids=("g1",) if number % 3 else ())
        for number in range(20)
    ]
    rows[4] = replace(rows[4], participant=replace(rows[4].participant, is_disqualified=True))
    found, which = live(*rows), BoardFilter(group_id="g1")
    found.ranking(which)
    for number in range(2, 400):
        old = found.row(f"p{chance.randrange(20)}")
        assert old is not None
        index, serial = chance.randrange(3), chance.randrange(1, 500)
        cell = chance.choice([tried(1), tried(0, pending=serial), solved(serial // 10, serial), Cell()])
        new = replace(old, keys=RowKeys(chance.randrange(3), -chance.randrange(3)))
        found.apply(entry(number, new, number, {index: cell}))
        whole = found.board()
        firsts = {problem.id: found.first_solver(index) for index, problem in enumerate(whole.problems)}
        assert {key: value for key, value in firsts.items() if value} == first_solves(whole)
        assert found.ranking().page(0, 100) == rank_board(whole)
        assert found.ranking(which).page(0, 100) == rank_board(whole.filtered(group_id="g1"))


def test_hidden_groups_and_organisations_of_hidden_rows_are_for_complete_boards() -> None:
    rows = (
        row("ada", (1, 0, 0), [solved(1, 1)], organization_id="north", group_ids=("all", "staff")),
        row("hid", (0, 0, 0), [Cell()], is_hidden=True, organization_id="south"),
        row("tess", (0, 0, 0), [Cell()], kind=ParticipantKind.TEST, organization_id="west"),
    )
    groups = (BoardGroup("all", "All"), BoardGroup("staff", "Staff", is_hidden=True))
    names = {"north": "North", "south": "South", "west": "West"}
    public = live(*rows, is_complete=False, groups=groups, organizations=names)
    jury = live(*rows, groups=groups, organizations=names)
    assert dict(public.source.organizations) == {"north": "North"}
    assert [item.id for item in public.source.groups] == ["all"]
    assert [item.participant.group_ids for item in public.rows()] == [("all",)]
    assert len(public.ranking(BoardFilter(group_id="staff"))) == 0
    assert (dict(jury.source.organizations), jury.source.groups) == (names, groups)
    winners = {item.id for item in compute_awards(public.board(), AwardRules(group_winners=True))}
    assert ("group-winner-all" in winners, "group-winner-staff" in winners) == (True, False)
