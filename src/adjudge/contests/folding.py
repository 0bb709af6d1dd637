"""Folds the submissions of participants into cells and rows of a scoreboard; computes only, writes nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.contests import clock
from adjudge.contests.cell_json import EMPTY_CELL, decode_cell, encode_cell
from adjudge.contests.clock import Timeline
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys, ScoringFormat
from adjudge.contests.times import make_timeline, participant_clock
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestProblem, ContestRow, ParticipantRow
from adjudge.store.contests.scoreboard import JURY, PUBLIC, CellRow, CellSubmission, ScoreboardRow
from adjudge.store.contests.scoreboard_log import NewLogEntry

CellKey = tuple[str, str]
"""Participant and problem."""
Submissions = Mapping[CellKey, Sequence[CellSubmission]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything of a contest that its scoreboard depends on, apart from participants and submissions."""

    contest: ContestRow
    timeline: Timeline
    format: ScoringFormat[Any]
    config: Any
    problems: Mapping[str, ContestProblem]


async def load_rules(tx: Tx, contest_id: str) -> Rules:
    """Read the rules; the caller holds the lock of the scoreboard if they must not change meanwhile."""
    contest = await queries.find_contest(tx, contest_id)
    scoring = get_format(contest.settings.format)
    return Rules(
        contest=contest,
        timeline=make_timeline(contest, await queries.intervals(tx, [contest_id])),
        format=scoring,
        config=scoring.parse_config(contest.settings.format_cfg),
        problems={row.problem.problem_id: row.problem for row in await queries.problems(tx, contest_id)},
    )


def judged(rules: Rules, participant: ParticipantRow, row: CellSubmission) -> JudgedSubmission | None:
    """A submission as scoring sees it; None if it does not count."""
    own = participant_clock(participant)
    if row.ignored_at is not None or row.status is SubmissionStatus.CANCELED:
        return None
    if not row.official and not clock.is_counted(rules.timeline, own, row.received_at):
        return None
    verdict, score_micro = row.verdict, row.score_micro or 0
    if row.override_verdict is not None:
        verdict = row.override_verdict
        full = (row.max_score_micro or 0) if verdict is Verdict.AC else 0
        score_micro = full if row.override_score_micro is None else row.override_score_micro
    elif rules.contest.settings.verify_required and row.verified_at is None:
        verdict = None
    time_us = clock.participant_time(rules.timeline, own, row.received_at) or 0
    found = JudgedSubmission(
        number=row.number,
        received_at=row.received_at,
        time_us=max(0, time_us),  # the jury may count a submission from before a start that was moved
        verdict=verdict,
        score_micro=score_micro,
        subtasks={} if row.override_verdict is not None else row.subtasks or {},
        extra_us=participant.extra_us,
    )
    return found.as_pending() if verdict is None else found


def list_counted(rules: Rules, participant: ParticipantRow, rows: Iterable[CellSubmission]) -> list[JudgedSubmission]:
    """Those of the submissions that count, as scoring sees them."""
    return [item for row in rows if (item := judged(rules, participant, row)) is not None]


def problem_scoring(problem: ContestProblem, rows: Iterable[CellSubmission]) -> ProblemScoring:
    """How a problem counts in a cell with these submissions."""
    maximum = max((row.max_score_micro for row in rows if row.max_score_micro is not None), default=None)
    return ProblemScoring(problem.points_micro, maximum)


def fold_cell(
    rules: Rules, participant: ParticipantRow, problem: ContestProblem, rows: Sequence[CellSubmission]
) -> tuple[Cell, Cell]:
    """The cell in the jury view and in the public view."""
    if participant.disqualified_at is not None:
        return Cell(), Cell()
    counted, scoring = list_counted(rules, participant, rows), problem_scoring(problem, rows)
    jury = rules.format.fold(rules.config, scoring, counted)
    if participant.kind is ParticipantKind.VIRTUAL:
        return jury, jury
    shown = [item.as_pending() if _is_frozen(rules.timeline, item) else item for item in counted]
    return jury, jury if shown == counted else rules.format.fold(rules.config, scoring, shown)


def _is_frozen(timeline: Timeline, item: JudgedSubmission) -> bool:
    return clock.is_after_freeze(timeline, clock.contest_time(timeline, item.received_at), item.received_at)


def group_by_cell(rows: Iterable[CellSubmission]) -> Submissions:
    """The submissions of each cell, in their order."""
    found: defaultdict[CellKey, list[CellSubmission]] = defaultdict(list)
    for row in rows:
        found[row.participant_id, row.problem_id].append(row)
    return found


@dataclass(frozen=True, slots=True)
class StoredBoard:
    """The stored cells (by problem) and rows (by view) of one participant."""

    cells: Mapping[str, CellRow] = field(default_factory=dict)
    rows: Mapping[str, ScoreboardRow] = field(default_factory=dict)

    def next_version(self, view: str) -> int:
        """The version of the next change of a view."""
        return 1 + (self.rows[view].version if view in self.rows else 0)

    def text(self, view: str, problem_id: str) -> str:
        """The cell of a view as text."""
        cell = self.cells.get(problem_id)
        return EMPTY_CELL if cell is None else cell.text(view)

    def keys(self, view: str) -> RowKeys:
        """The sort keys of a view; a participant without a row has achieved nothing."""
        row = self.rows.get(view)
        return RowKeys(0, 0, 0) if row is None else RowKeys(row.k1, row.k2, row.k3)


@dataclass(frozen=True, slots=True)
class ViewChange:
    """What changes for one participant in one view: the sort keys, and cells by problem."""

    view: str
    version: int
    keys: RowKeys
    cells: Mapping[str, str]

    def log_entry(self, contest_id: str, participant_id: str) -> NewLogEntry:
        """The entry of the log."""
        cells = {problem_id: json.loads(text) for problem_id, text in sorted(self.cells.items())}
        payload = json.dumps({"keys": list(self.keys), "cells": cells})
        return NewLogEntry(contest_id, "cells", self.view, participant_id, self.version, payload)


@dataclass(frozen=True, slots=True)
class ParticipantChange:
    """What changes for one participant."""

    participant: ParticipantRow
    cells: list[CellRow]
    views: list[ViewChange]
    solves: list[tuple[str, int | None]]
    """Problems whose first accepted submission changed, with its number; None: no longer solved."""

    @property
    def rows(self) -> list[ScoreboardRow]:
        """The rows to be written."""
        return [ScoreboardRow(self.participant.id, item.view, *item.keys, item.version) for item in self.views]


def fold_participant(
    rules: Rules, participant: ParticipantRow, stored: StoredBoard, submissions: Submissions, problem_ids: Iterable[str]
) -> ParticipantChange:
    """Fold some cells of a participant and combine all of them; return what differs from what is stored."""
    texts: dict[str, dict[str, str]] = {JURY: {}, PUBLIC: {}}
    for problem_id in problem_ids:
        problem = rules.problems.get(problem_id)
        if problem is not None:
            cells = fold_cell(rules, participant, problem, submissions.get((participant.id, problem_id), ()))
            texts[JURY][problem_id], texts[PUBLIC][problem_id] = map(encode_cell, cells)
    views = [item for view in (JURY, PUBLIC) if (item := _view_change(rules, participant, stored, view, texts[view]))]
    changed = {problem_id for item in views for problem_id in item.cells}
    rows = [_cell_row(participant.id, problem_id, stored, texts) for problem_id in sorted(changed)]
    return ParticipantChange(participant, rows, views, _changed_solves(stored, rows))


def _changed_solves(stored: StoredBoard, rows: Iterable[CellRow]) -> list[tuple[str, int | None]]:
    found = ((row.problem_id, decode_cell(row.jury).first_accepted_number) for row in rows)
    known = {row.problem_id: decode_cell(row.jury).first_accepted_number for row in stored.cells.values()}
    return [(problem_id, number) for problem_id, number in found if number != known.get(problem_id)]


def _cell_row(participant_id: str, problem_id: str, stored: StoredBoard, texts: dict[str, dict[str, str]]) -> CellRow:
    before = stored.cells.get(problem_id)
    versions = {}
    for view in (JURY, PUBLIC):
        known = before.view_version(view) if before else 0
        is_new = texts[view][problem_id] != stored.text(view, problem_id)
        versions[view] = stored.next_version(view) if is_new else known
    return CellRow(
        participant_id, problem_id, texts[JURY][problem_id], texts[PUBLIC][problem_id], versions[JURY], versions[PUBLIC]
    )


def _view_change(
    rules: Rules, participant: ParticipantRow, stored: StoredBoard, view: str, texts: Mapping[str, str]
) -> ViewChange | None:
    moved = {problem_id: text for problem_id, text in texts.items() if text != stored.text(view, problem_id)}
    all_texts = {problem_id: texts.get(problem_id) or stored.text(view, problem_id) for problem_id in rules.problems}
    cells = [decode_cell(text) for text in all_texts.values() if text != EMPTY_CELL]
    keys = rules.format.combine(rules.config, cells, participant.penalty_adjust_sec)
    if not moved and keys == stored.keys(view):
        return None
    return ViewChange(view, stored.next_version(view), keys, moved)
