"""Keeps the scoreboard up to date: refolds cells in the transaction that changes a submission.

A cell is never changed by a difference. It is computed again from all its submissions (``fold``), and the row from all
its cells (``combine``), so that the stored scoreboard equals a recomputation at any time. Locks, in this order: the
scoreboard of the contest (shared, so that its timeline stays), then the participants by id, before anything is read.

A view whose bytes change gets an entry in the log. In the public view, submissions since the freeze are pending,
whatever their verdict: a late verdict changes no byte of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adjudge.contests.cell_json import decode_cell
from adjudge.contests.folding import (
    CellKey,
    ParticipantChange,
    Rules,
    StoredBoard,
    Submissions,
    fold_participant,
    group_by_cell,
    load_rules,
)
from adjudge.contests.judged_scores import score_columns
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import Conflict
from adjudge.store import Tx
from adjudge.store.contests import balloons
from adjudge.store.contests import scoreboard as store
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import CellRow, ScoreboardRow
from adjudge.store.contests.scoreboard_log import NewLogEntry, append_log

_PAGE: Final = 500
"""Participants that a complete refold computes at a time."""


async def update_submissions(tx: Tx, submission_ids: Sequence[str]) -> None:
    """Refold the cells of submissions whose verdict or status changed."""
    targets = await store.targets(tx, submission_ids)
    if not targets:
        return
    cells: defaultdict[str, set[CellKey]] = defaultdict(set)
    for target in targets:
        cells[target.contest_id].add((target.participant_id, target.problem_id))
    await store.lock_shared(tx, cells)
    await store.set_scores(tx, sorted(map(score_columns, targets), key=lambda row: row[0]))
    await refold_cells(tx, cells)


async def refold_cells(tx: Tx, cells: Mapping[str, set[CellKey]]) -> None:
    """Refold cells of contests; the caller holds the shared locks of their scoreboards."""
    wanted = {participant_id for keys in cells.values() for participant_id, _ in keys}
    participants = await store.lock_participants(tx, wanted)
    submissions = group_by_cell(await store.submissions_of_cells(tx, {key for keys in cells.values() for key in keys}))
    for contest_id in sorted(cells):
        rules = await load_rules(tx, contest_id)
        own = [item for item in participants if item.contest_id == contest_id]
        await _store(tx, rules, await _changes(tx, rules, own, submissions, cells[contest_id]), log=True)


async def refold_participants(tx: Tx, contest_id: str, participant_ids: Iterable[str]) -> None:
    """Refold everything of some participants: after extra time, a delay, a disqualification, an added penalty."""
    await store.lock_shared(tx, [contest_id])
    participants = await store.lock_participants(tx, participant_ids)
    rules = await load_rules(tx, contest_id)
    await _refold(tx, rules, participants, log=True)
    await append_log(tx, [NewLogEntry(contest_id, "participant", None, item.id) for item in participants])


async def refold_all(tx: Tx, contest_id: str) -> None:
    """Refold the whole scoreboard under the exclusive lock, which the caller holds: one ``reset`` in the log."""
    rules = await load_rules(tx, contest_id)
    await store.delete_cells_of_removed_problems(tx, contest_id)
    after = ""
    while ids := await store.participant_ids(tx, contest_id, after=after, limit=_PAGE):
        await _refold(tx, rules, await store.lock_participants(tx, ids), log=False)
        after = ids[-1]
    await reset(tx, contest_id)


async def reset(tx: Tx, contest_id: str) -> None:
    """Tell the readers to read the scoreboard again."""
    await append_log(tx, [NewLogEntry(contest_id, "reset")])


async def _refold(tx: Tx, rules: Rules, participants: Sequence[ParticipantRow], *, log: bool) -> None:
    ids = [item.id for item in participants]
    submissions = group_by_cell(await store.submissions_of_participants(tx, ids))
    keys = {(participant_id, problem_id) for participant_id in ids for problem_id in rules.problems}
    await _store(tx, rules, await _changes(tx, rules, participants, submissions, keys), log=log)
    await _sync_balloons(tx, rules, participants)


async def read_boards(tx: Tx, participant_ids: Sequence[str]) -> dict[str, StoredBoard]:
    """The stored cells and rows of participants."""
    cells: defaultdict[str, dict[str, CellRow]] = defaultdict(dict)
    rows: defaultdict[str, dict[str, ScoreboardRow]] = defaultdict(dict)
    for cell in await store.cells(tx, participant_ids):
        cells[cell.participant_id][cell.problem_id] = cell
    for row in await store.rows(tx, participant_ids):
        rows[row.participant_id][row.view] = row
    return {item: StoredBoard(cells[item], rows[item]) for item in participant_ids}


async def _changes(
    tx: Tx, rules: Rules, participants: Sequence[ParticipantRow], submissions: Submissions, keys: set[CellKey]
) -> list[ParticipantChange]:
    """Fold ``keys`` of locked participants; return what changes."""
    if not participants:
        return []
    boards = await read_boards(tx, [item.id for item in participants])
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for participant_id, problem_id in keys:
        wanted[participant_id].append(problem_id)
    found = (fold_participant(rules, item, boards[item.id], submissions, wanted[item.id]) for item in participants)
    return [item for item in found if item.views]


async def _store(tx: Tx, rules: Rules, changes: Sequence[ParticipantChange], *, log: bool) -> None:
    """Write the cells, rows, balloons and log entries."""
    contest = rules.contest
    if contest.end_of_updates_at is not None and any(
        item.participant.kind is not ParticipantKind.VIRTUAL for item in changes
    ):
        raise Conflict(f"The results of the contest {contest.slug!r} are final; nothing of it can change any more.")
    cells = [cell for item in changes for cell in item.cells]
    await store.write(tx, contest.id, cells, [row for item in changes for row in item.rows])
    await _update_balloons(tx, rules, changes)
    if log:
        entries = [view.log_entry(contest.id, item.participant.id) for item in changes for view in item.views]
        await append_log(tx, entries)


_WITH_BALLOONS: Final = (ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL)


async def _update_balloons(tx: Tx, rules: Rules, changes: Sequence[ParticipantChange]) -> None:
    """Add and withdraw the balloons of changed cells."""
    if not rules.contest.settings.balloons_enabled:
        return
    solves = [
        (item.participant.id, problem_id, number)
        for item in changes
        if item.participant.kind in _WITH_BALLOONS
        for problem_id, number in item.solves
    ]
    solved = [(item, problem_id, number) for item, problem_id, number in solves if number is not None]
    await balloons.set_solved(tx, rules.contest.id, solved)
    await balloons.withdraw(tx, [(item, problem_id) for item, problem_id, number in solves if number is None])


async def _sync_balloons(tx: Tx, rules: Rules, participants: Sequence[ParticipantRow]) -> None:
    """Let participants have the balloons of their stored cells: after a change of the rules or of a participant."""
    if not rules.contest.settings.balloons_enabled:
        return
    ids = [item.id for item in participants]
    entitled = {item.id for item in participants if item.kind in _WITH_BALLOONS}
    solved = {
        (cell.participant_id, cell.problem_id): number
        for cell in await store.cells(tx, ids)
        if cell.participant_id in entitled and cell.problem_id in rules.problems
        if (number := decode_cell(cell.jury).first_accepted_number) is not None
    }
    await balloons.set_solved(tx, rules.contest.id, [(*cell, number) for cell, number in solved.items()])
    await balloons.withdraw(tx, await balloons.of_participants(tx, ids) - solved.keys())
