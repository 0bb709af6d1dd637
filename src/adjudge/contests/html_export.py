"""A scoreboard as one HTML file without scripts and without references to other files."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from adjudge.contests.board import Board, BoardProblem
from adjudge.contests.exports import points_number
from adjudge.contests.formats.base import Cell
from adjudge.contests.ranking import RankedRow, first_solves
from adjudge.domain.contest import MINUTE_US

_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; color: #1c1d1f; background: #fff; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #c8c8c4; padding: .25rem .5rem; text-align: center; }
td.name { text-align: left; }
small { color: #5d6066; }
.solved { background: #b8f0b8; } .first { background: #1b7a1b; color: #fff; font-weight: 700; }
.tried { background: #f6c6c6; } .pending { background: #c9d0ff; }
"""


def scoreboard_html(board: Board, rows: Iterable[RankedRow], *, title: str, notes: Iterable[str] = ()) -> str:
    """Build the file; a cell shows its state by a sign as well as by its colour."""
    firsts = first_solves(board)
    totals = "<th>Solved</th><th>Penalty</th>" if board.is_pass_fail else "<th>Score</th>"
    heads = "".join(_head(item) for item in board.problems)
    lines = "\n".join(_row(board, item, firsts) for item in rows)
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>{said}\n<table><thead><tr><th>Rank</th>"
        f"<th>Participant</th>{totals}{heads}</tr></thead><tbody>\n{lines}\n</tbody></table></body></html>\n"
    )


def _head(problem: BoardProblem) -> str:
    title = f' title="{escape(problem.name)}"' if problem.name else ""
    return f"<th{title}>{escape(problem.label)}</th>"


def _row(board: Board, item: RankedRow, firsts: dict[str, str]) -> str:
    participant, keys = item.row.participant, item.row.keys
    rank = "" if item.rank is None else str(item.rank)
    scores = (str(keys.k1), str(-keys.k2 // 60)) if board.is_pass_fail else (f"{points_number(keys.k1):g}",)
    totals = "".join(f"<td>{score}</td>" for score in scores)
    cells = "".join(
        _cell(board, cell, is_first=cell.is_solved and firsts.get(problem.id) == participant.id)
        for problem, cell in zip(board.problems, item.row.cells, strict=True)
    )
    name = f"{escape(participant.name)} <small>{escape(participant.organization_name)}</small>"
    return f'<tr><td>{rank}</td><td class="name">{name}</td>{totals}{cells}</tr>'


def _cell(board: Board, cell: Cell, *, is_first: bool) -> str:
    pending = f" +{cell.pending}?" if cell.pending else ""
    if cell.is_solved and board.is_pass_fail:
        minutes = (cell.solved_us or 0) // MINUTE_US
        kind, sign = ("first", "★") if is_first else ("solved", "+")
        return f'<td class="{kind}">{sign}{cell.attempts} ({minutes}){pending}</td>'
    if not board.is_pass_fail and cell.score_micro:
        kind = "first" if is_first else "solved" if cell.is_solved else "tried"
        return f'<td class="{kind}">{points_number(cell.score_micro):g}{pending}</td>'
    if cell.pending:
        return f'<td class="pending">{f"-{cell.attempts} " if cell.attempts else ""}?{cell.pending}</td>'
    return f'<td class="tried">-{cell.attempts}</td>' if cell.attempts else "<td></td>"
