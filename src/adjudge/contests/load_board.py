"""Reads the stored scoreboard of a contest as a ``Board``: one view, with participants, groups and organisations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.contests.board import Board, BoardGroup, BoardParticipant, BoardProblem, BoardRow
from adjudge.contests.cell_json import EMPTY_CELL, decode_cell
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import RowKeys
from adjudge.store import Tx
from adjudge.store.contests import participants, queries, scoreboard_log
from adjudge.store.contests.models import ContestRow, ScoreboardParticipant
from adjudge.store.judging.events import EventOffset


@dataclass(frozen=True, slots=True)
class LoadedBoard:
    """A board with everything that a reader of the log needs to continue from it."""

    board: Board
    offset: EventOffset
    """Entries of the log from here on may repeat what is in the board."""
    row_versions: Mapping[str, int]
    cell_versions: Mapping[tuple[str, str], int]


async def load_board(tx: Tx, contest: ContestRow, view: str) -> LoadedBoard:
    """Read a board; practice participants have no row."""
    found = await scoreboard_log.snapshot(tx, contest.id, view)
    keys = {row.participant_id: RowKeys(row.k1, row.k2, row.k3) for row in found.rows}
    texts: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for cell in found.cells:
        texts[cell.participant_id][cell.problem_id] = cell.cell
    problems = tuple(
        BoardProblem(row.problem.problem_id, row.problem.label, row.title, row.problem.rgb, row.problem.opens_ct_us)
        for row in await queries.problems(tx, contest.id)
    )
    groups = {item.id: item for item in await participants.groups(tx, contest.id)}
    memberships: defaultdict[str, list[str]] = defaultdict(list)
    for group_id, participant_id in await participants.group_members(tx, contest.id):
        memberships[participant_id].append(group_id)
    everybody = await participants.on_scoreboard(tx, contest.id)
    rows = tuple(
        BoardRow(
            _participant(item, memberships[item.id], {key for key, group in groups.items() if not group.ranked}),
            keys.get(item.id, RowKeys(0, 0, 0)),
            tuple(decode_cell(texts[item.id].get(problem.id, EMPTY_CELL)) for problem in problems),
        )
        for item in everybody
    )
    board = Board(
        problems=problems,
        rows=rows,
        groups=tuple(BoardGroup(item.id, item.name, item.ranked, item.hidden) for item in groups.values()),
        organizations={item.organization_id: item.organization_name for item in everybody if item.organization_id},
        is_pass_fail=get_format(contest.settings.format).is_pass_fail,
    )
    return LoadedBoard(
        board,
        found.offset,
        {row.participant_id: row.version for row in found.rows},
        {(item.participant_id, item.problem_id): item.version for item in found.cells},
    )


def _participant(row: ScoreboardParticipant, group_ids: list[str], unranked: set[str]) -> BoardParticipant:
    return BoardParticipant(
        id=row.id,
        name=row.name,
        kind=row.kind,
        organization_id=row.organization_id,
        organization_name=row.organization_name,
        group_ids=tuple(sorted(group_ids)),
        has_unranked_group=not unranked.isdisjoint(group_ids),
        is_hidden=row.hidden,
        is_disqualified=row.disqualified_at is not None,
        icpc_id=row.icpc_id,
        code=row.code,
    )
