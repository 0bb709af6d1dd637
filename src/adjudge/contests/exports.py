"""Documents of a board: ``results.tsv`` and CSV. Pure builders; JSON files are made by ``contests.ccs``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests.awards import HONORS, MEDALS, Award, awards_by_participant
from adjudge.contests.board import Board, BoardRow, collation_key
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.ranking import RankedRow
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US

_RESULT_AWARDS: Final = {
    "gold-medal": "Gold Medal",
    "silver-medal": "Silver Medal",
    "bronze-medal": "Bronze Medal",
    "highest-honors": "Highest Honors",
    "high-honors": "High Honors",
    "honors": "Honors",
}
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class StateTimes:
    """The ``state`` object of the CCS: when the contest entered each state; None if it has not."""

    started: int | None = None
    frozen: int | None = None
    ended: int | None = None
    thawed: int | None = None
    finalized: int | None = None
    end_of_updates: int | None = None


def points_number(score_micro: int) -> int | float:
    """Return micro-points as a JSON number of points."""
    whole, rest = divmod(score_micro, MICRO_POINTS)
    return score_micro / MICRO_POINTS if rest else whole


def results_tsv(board: Board, rows: Sequence[RankedRow], awards: Sequence[Award]) -> str:
    """Build ``results.tsv`` from the final ranks: ranked teams by rank, then the others by name.

    A team without a solved problem has no rank. Participants who are never ranked are left out. A team without an
    ICPC id is named by its code.
    """
    by_participant = awards_by_participant(awards)
    candidates = [item for item in rows if item.row.participant.is_ranked]
    ranked = [item for item in candidates if item.rank is not None and item.row.keys.k1 > 0]
    others = [item for item in candidates if item.rank is None or item.row.keys.k1 <= 0]
    others.sort(key=lambda item: (collation_key(item.row.participant.name), item.row.participant.id))
    names = {group.id: group.name for group in board.groups}
    lines = [
        "results\t1",
        *(_result_line(item.row, str(item.rank), by_participant, names) for item in ranked),
        *(_result_line(item.row, "", by_participant, names) for item in others),
    ]
    return "".join(f"{line}\n" for line in lines)


def scoreboard_csv(board: Board, rows: Iterable[RankedRow]) -> str:
    """Build a CSV file with a line per participant; times in minutes, scores in points."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    totals = ["solved", "penalty_min"] if board.is_pass_fail else ["score"]
    parts = ("attempts", "pending", "solved_min") if board.is_pass_fail else ("score", "attempts", "pending")
    columns = [f"{problem.label}_{part}" for problem in board.problems for part in parts]
    writer.writerow(["rank", "id", "name", "organization", *totals, *columns])
    for item in rows:
        participant = item.row.participant
        names = [_csv_text(value) for value in (participant.id, participant.name, participant.organization_name)]
        cells = [value for cell in item.row.cells for value in _csv_cell(board, cell)]
        writer.writerow(["" if item.rank is None else item.rank, *names, *_csv_totals(board, item.row.keys), *cells])
    return text.getvalue()


def _result_line(
    row: BoardRow, rank: str, award_ids: Mapping[str, Sequence[str]], group_names: Mapping[str, str]
) -> str:
    own = award_ids.get(row.participant.id, ())
    award = next(
        (_RESULT_AWARDS[name] for name in (*MEDALS, *HONORS) if name in own), "Ranked" if rank else "Honorable"
    )
    group = next((name for group_id, name in group_names.items() if f"group-winner-{group_id}" in own), "")
    solved, penalty_min, last_min = row.keys.k1, -row.keys.k2 // 60, -row.keys.k3 // 60
    values = [
        row.participant.icpc_id or row.participant.code or row.participant.id,
        rank,
        award,
        solved,
        penalty_min,
        last_min,
        group,
    ]
    return "\t".join(" ".join(str(value).split()) for value in values)


def _csv_totals(board: Board, keys: RowKeys) -> list[int | float]:
    return [keys.k1, -keys.k2 // 60] if board.is_pass_fail else [points_number(keys.k1)]


def _csv_cell(board: Board, cell: Cell) -> list[int | float | str]:
    if board.is_pass_fail:
        return [cell.attempts, cell.pending, "" if cell.solved_us is None else cell.solved_us // MINUTE_US]
    return [points_number(cell.score_micro), cell.attempts, cell.pending]


def _csv_text(value: str) -> str:
    """Return a name that spreadsheets do not execute as a formula."""
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
