"""Scoreboards in a database: as stored, and computed again from the submissions."""

from __future__ import annotations

from collections import defaultdict

from adjudge.contests.cell_json import EMPTY_CELL, encode_cell
from adjudge.contests.folding import fold_cell, group_by_cell, load_rules
from adjudge.store import Tx
from adjudge.store.contests import participants, scoreboard_log
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.scoreboard import PUBLIC

Board = dict[str, tuple[tuple[int, int, int], dict[str, str]]]
"""Participant → sort keys and cells that are not empty."""


async def stored_board(tx: Tx, contest_id: str, view: str) -> Board:
    """A view of the scoreboard as stored; rows without anything are left out."""
    found = await scoreboard_log.snapshot(tx, contest_id, view)
    cells: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for cell in found.cells:
        if cell.cell != EMPTY_CELL:
            cells[cell.participant_id][cell.problem_id] = cell.cell
    keys = {row.participant_id: (row.k1, row.k2, row.k3) for row in found.rows}
    return without_empty_rows({item: (keys.get(item, (0, 0, 0)), cells[item]) for item in {*keys, *cells}})


async def recomputed_board(tx: Tx, contest_id: str, view: str) -> Board:
    """A view of the scoreboard, computed from the submissions alone."""
    rules = await load_rules(tx, contest_id)
    people = await participants.page(tx, contest_id, limit=100_000)
    rows = group_by_cell(await scoreboard_store.submissions_of_participants(tx, [item.id for item in people]))
    board: Board = {}
    for item in people:
        cells = {
            problem_id: fold_cell(rules, item, problem, rows.get((item.id, problem_id), ()))[view == PUBLIC]
            for problem_id, problem in rules.problems.items()
        }
        keys = rules.format.combine(rules.config, cells.values(), item.penalty_adjust_sec)
        texts = {key: encode_cell(cell) for key, cell in cells.items()}
        board[item.id] = tuple(keys), {key: text for key, text in texts.items() if text != EMPTY_CELL}  # type: ignore[assignment]  # RowKeys has three fields
    return without_empty_rows(board)


def without_empty_rows(board: Board) -> Board:
    """The rows with anything in them, by participant."""
    return {key: row for key, row in sorted(board.items()) if row != ((0, 0, 0), {})}
