"""The unfreezing ceremony: the steps from the public board to the jury board, forwards and backwards.

From the lowest row upwards, the cells of a row that the freeze hides are revealed from left to right. A revealed cell
may move its row. When a row has nothing more to reveal, its awards are announced and the row above follows. Every step
has what is needed to apply it and to undo it, so that a page needs no rules of scoring.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from adjudge.contests.awards import Award, awards_by_participant
from adjudge.contests.board import Board, BoardParticipant, BoardRow
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.ranking import EqualRankOrder, listing_positions, rank_rows, sort_key

CombineCells: TypeAlias = Callable[[BoardParticipant, Sequence[Cell]], RowKeys]
"""Computes the sort keys of a participant's row; it knows format, configuration and penalty adjustments."""


@dataclass(frozen=True, slots=True)
class RevealStep:
    """A cell of the public view is replaced by that of the jury view."""

    participant_id: str
    problem_index: int
    before: Cell
    after: Cell
    keys_before: RowKeys
    keys_after: RowKeys


@dataclass(frozen=True, slots=True)
class MoveStep:
    """A row moves to another position of the list, counted from 0 at the top."""

    participant_id: str
    from_position: int
    to_position: int


@dataclass(frozen=True, slots=True)
class AwardStep:
    """The final rank and the awards of a participant are announced."""

    participant_id: str
    rank: int | None
    award_ids: tuple[str, ...]


ResolverStep: TypeAlias = RevealStep | MoveStep | AwardStep


@dataclass(frozen=True, slots=True)
class ResolverState:
    """What the ceremony shows between two steps."""

    rows: tuple[BoardRow, ...]
    """In listing order."""
    announced: tuple[AwardStep, ...] = ()


def first_state(public: Board, order: EqualRankOrder = EqualRankOrder.NAME) -> ResolverState:
    """Return what the ceremony begins with: the public board in listing order."""
    positions = listing_positions((row.participant for row in public.rows), order)
    return ResolverState(tuple(item.row for item in rank_rows(public.rows, positions)))


def resolver_steps(
    public: Board,
    jury: Board,
    combine: CombineCells,
    awards: Sequence[Award] = (),
    order: EqualRankOrder = EqualRankOrder.NAME,
) -> tuple[ResolverStep, ...]:
    """Compute all steps. Both boards have the same participants and problems."""
    ceremony = _Ceremony(public, jury, combine, awards, order)
    ceremony.run()
    return tuple(ceremony.steps)


def apply_step(state: ResolverState, step: ResolverStep) -> ResolverState:
    """Go one step forwards."""
    match step:
        case RevealStep():
            return _with_cell(state, step, step.after, step.keys_after)
        case MoveStep():
            return _moved(state, step.from_position, step.to_position)
        case AwardStep():
            return replace(state, announced=(*state.announced, step))


def undo_step(state: ResolverState, step: ResolverStep) -> ResolverState:
    """Go one step backwards; ``step`` is the one that was applied last."""
    match step:
        case RevealStep():
            return _with_cell(state, step, step.before, step.keys_before)
        case MoveStep():
            return _moved(state, step.to_position, step.from_position)
        case AwardStep():
            return replace(state, announced=state.announced[:-1])


def cell_document(cell: Cell) -> dict[str, Any]:
    """Return a cell as JSON."""
    return {
        "attempts": cell.attempts,
        "pending": cell.pending,
        "solved_us": cell.solved_us,
        "score_micro": cell.score_micro,
        "time_us": cell.time_us,
        "penalty_sec": cell.penalty_sec,
    }


def step_document(step: ResolverStep, board: Board) -> dict[str, Any]:
    """Return a step as JSON."""
    match step:
        case RevealStep():
            return {
                "kind": "reveal",
                "participant_id": step.participant_id,
                "problem_id": board.problems[step.problem_index].id,
                "before": cell_document(step.before),
                "after": cell_document(step.after),
                "keys_before": list(step.keys_before),
                "keys_after": list(step.keys_after),
            }
        case MoveStep():
            return {
                "kind": "move",
                "participant_id": step.participant_id,
                "from_position": step.from_position,
                "to_position": step.to_position,
            }
        case AwardStep():
            return {
                "kind": "award",
                "participant_id": step.participant_id,
                "rank": step.rank,
                "award_ids": list(step.award_ids),
            }


def resolver_document(
    public: Board,
    steps: Sequence[ResolverStep],
    order: EqualRankOrder = EqualRankOrder.NAME,
    photos: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the whole ceremony as JSON: the first rows in listing order, and the steps."""
    return {
        "problems": [{"id": item.id, "label": item.label, "name": item.name} for item in public.problems],
        "rows": [
            {
                "participant_id": row.participant.id,
                "name": row.participant.name,
                "organization": row.participant.organization_name,
                "is_ranked": row.participant.is_ranked,
                "keys": list(row.keys),
                "cells": [cell_document(cell) for cell in row.cells],
                "photo": (photos or {}).get(row.participant.id),
            }
            for row in first_state(public, order).rows
        ],
        "steps": [step_document(step, public) for step in steps],
    }


class _Ceremony:
    """Plays the ceremony once and records its steps."""

    def __init__(
        self, public: Board, jury: Board, combine: CombineCells, awards: Sequence[Award], order: EqualRankOrder
    ) -> None:
        self.steps: list[ResolverStep] = []
        self._combine = combine
        self._positions = listing_positions((row.participant for row in public.rows), order)
        self._rows = list(first_state(public, order).rows)
        self._keys = [sort_key(row, self._positions) for row in self._rows]
        self._jury_cells = {row.participant.id: row.cells for row in jury.rows}
        self._ranks = {item.row.participant.id: item.rank for item in rank_rows(jury.rows, self._positions)}
        self._awards = awards_by_participant(awards)
        self._announced: set[str] = set()

    def run(self) -> None:
        position = len(self._rows) - 1
        while position >= 0:
            index = self._hidden_cell(self._rows[position])
            if index is None:
                self._announce(self._rows[position].participant.id)
                position -= 1
            else:
                # A row of some formats can also fall; it is then continued where it is.
                position = max(position, self._reveal(position, index))

    def _hidden_cell(self, row: BoardRow) -> int | None:
        final = self._jury_cells[row.participant.id]
        return next((index for index, cell in enumerate(row.cells) if cell != final[index]), None)

    def _reveal(self, position: int, index: int) -> int:
        """Reveal a cell and move its row; return where the row is now."""
        row = self._rows[position]
        participant = row.participant
        after = self._jury_cells[participant.id][index]
        keys = self._combine(participant, [*row.cells[:index], after, *row.cells[index + 1 :]])
        self.steps.append(RevealStep(participant.id, index, row.cells[index], after, row.keys, keys))
        revealed = row.with_cell(index, after, keys)
        del self._rows[position], self._keys[position]
        target = bisect_left(self._keys, sort_key(revealed, self._positions))
        self._rows.insert(target, revealed)
        self._keys.insert(target, sort_key(revealed, self._positions))
        if target != position:
            self.steps.append(MoveStep(participant.id, position, target))
        return target

    def _announce(self, participant_id: str) -> None:
        awards = self._awards.get(participant_id)
        if awards and participant_id not in self._announced:
            self._announced.add(participant_id)
            self.steps.append(AwardStep(participant_id, self._ranks[participant_id], tuple(awards)))


def _with_cell(state: ResolverState, step: RevealStep, cell: Cell, keys: RowKeys) -> ResolverState:
    rows = tuple(
        row.with_cell(step.problem_index, cell, keys) if row.participant.id == step.participant_id else row
        for row in state.rows
    )
    return replace(state, rows=rows)


def _moved(state: ResolverState, source: int, target: int) -> ResolverState:
    rows = list(state.rows)
    rows.insert(target, rows.pop(source))
    return replace(state, rows=tuple(rows))
