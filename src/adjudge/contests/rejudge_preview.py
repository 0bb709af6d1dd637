"""How a rejudge batch would change the scoreboards of contests, before it is applied. Writes nothing.

The cells of the batch's submissions are folded with the new verdicts; everything else is as stored. Ranks, first solves
and awards are derived from the two boards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from adjudge.contests import ranking
from adjudge.contests.board import Board, BoardRow
from adjudge.contests.cell_json import decode_cell
from adjudge.contests.folding import CellKey, ParticipantChange, fold_participant, group_by_cell, load_rules
from adjudge.contests.formats.base import RowKeys
from adjudge.contests.judged_scores import scores_of
from adjudge.contests.load_board import load_board
from adjudge.contests.scoreboard import read_boards
from adjudge.store import Tx
from adjudge.store.contests import rejudge_preview as store
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.models import ContestRow
from adjudge.store.contests.scoreboard import JURY, CellSubmission


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row whose rank or sort keys would change."""

    participant_id: str
    old_rank: int | None
    new_rank: int | None
    old_keys: RowKeys
    new_keys: RowKeys


@dataclass(frozen=True, slots=True)
class ScoreboardPreview:
    """The jury's scoreboard of a contest before and after a batch; awards are computed from either."""

    contest: ContestRow
    before: Board
    after: Board

    def row_differences(self) -> list[RowDifference]:
        """The rows whose rank or sort keys differ, in the order of the new scoreboard."""
        old = {item.row.participant.id: item for item in ranking.rank_board(self.before)}
        found = []
        for new in ranking.rank_board(self.after):
            was = old[new.row.participant.id]
            if (was.rank, was.row.keys) != (new.rank, new.row.keys):
                found.append(RowDifference(new.row.participant.id, was.rank, new.rank, was.row.keys, new.row.keys))
        return found

    def first_solve_differences(self) -> dict[str, tuple[str | None, str | None]]:
        """The problems whose first solver differs: problem → old and new participant."""
        old, new = ranking.first_solves(self.before), ranking.first_solves(self.after)
        changed = (key for key in sorted({*old, *new}) if old.get(key) != new.get(key))
        return {key: (old.get(key), new.get(key)) for key in changed}


async def preview(tx: Tx, batch_id: str, *, hidden_contests: Container[str] = ()) -> list[ScoreboardPreview]:
    """Compute how a batch would change the scoreboard of every contest of its submissions that is not hidden."""
    items: defaultdict[str, list[store.PreviewItem]] = defaultdict(list)
    for item in await store.items(tx, batch_id):
        if item.target.contest_id not in hidden_contests:
            items[item.target.contest_id].append(item)
    return [await _preview_contest(tx, contest_id, items[contest_id]) for contest_id in sorted(items)]


async def _preview_contest(tx: Tx, contest_id: str, items: Sequence[store.PreviewItem]) -> ScoreboardPreview:
    rules = await load_rules(tx, contest_id)
    keys: set[CellKey] = {(item.target.participant_id, item.target.problem_id) for item in items}
    participants = await scoreboard_store.read_participants(tx, {key[0] for key in keys})
    new = {item.target.submission_id: item for item in items}
    rows = await scoreboard_store.submissions_of_cells(tx, keys)
    submissions = group_by_cell(
        _rejudged(row, new[row.submission_id]) if row.submission_id in new else row for row in rows
    )
    boards = await read_boards(tx, [item.id for item in participants])
    changes = {
        item.id: fold_participant(
            rules, item, boards[item.id], submissions, [problem for owner, problem in keys if owner == item.id]
        )
        for item in participants
    }
    before = (await load_board(tx, rules.contest, JURY)).board
    after = replace(before, rows=tuple(_changed_row(before, row, changes) for row in before.rows))
    return ScoreboardPreview(rules.contest, before, after)


def _rejudged(row: CellSubmission, item: store.PreviewItem) -> CellSubmission:
    score_micro, max_score_micro, subtasks = scores_of(item.target)
    return replace(
        row,
        status=item.verdict.status,
        verdict=item.verdict,
        score_micro=score_micro,
        max_score_micro=max_score_micro,
        subtasks=subtasks,
    )


def _changed_row(board: Board, row: BoardRow, changes: dict[str, ParticipantChange]) -> BoardRow:
    change = changes.get(row.participant.id)
    view = next((item for item in change.views if item.view == JURY), None) if change else None
    if view is None:
        return row
    cells = tuple(
        decode_cell(view.cells[problem.id]) if problem.id in view.cells else cell
        for problem, cell in zip(board.problems, row.cells, strict=True)
    )
    return replace(row, keys=view.keys, cells=cells)
