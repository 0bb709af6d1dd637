"""Results of a simulated contest, computed from its verdicts alone, apart from the scoreboard of the server. Pure.

The server's times differ from one simulation to the next. ``planned_rows`` uses the planned times in a contest of five
hours instead, so that two simulations with the same seed can be compared completely: ranks, penalties and all cells.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests.formats import icpc
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.contests.simulation import SimulationPlan
from adjudge.domain.contest import MICRO_POINTS, SECOND_US
from adjudge.domain.verdict import Verdict

_DURATION_US: Final = 5 * 3_600 * SECOND_US
_PROBLEM: Final = ProblemScoring(MICRO_POINTS)
_CONFIG: Final = icpc.FORMAT.parse_config({})


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """The row of a team by planned times."""

    rank: int
    team: int
    solved: int
    penalty_min: int
    cells: tuple[tuple[int, bool], ...]
    """Attempts and whether it is solved, in the order of the problems."""


@dataclass(frozen=True, slots=True)
class VerdictInContest:
    """A verdict as the server lists it."""

    number: int
    participant_id: str
    problem: str
    verdict: Verdict | None


def count_cells(verdicts: Iterable[VerdictInContest]) -> dict[tuple[str, str], Cell]:
    """Cells by participant and problem, without times: attempts, pending, solved."""
    found: defaultdict[tuple[str, str], list[JudgedSubmission]] = defaultdict(list)
    for item in sorted(verdicts, key=lambda item: item.number):
        judged = JudgedSubmission(item.number, 0, 0, item.verdict)
        found[item.participant_id, item.problem].append(judged)
    return {key: icpc.FORMAT.fold(_CONFIG, _PROBLEM, items) for key, items in found.items()}


def planned_rows(plan: SimulationPlan, verdicts: Sequence[Verdict | None]) -> list[PlannedRow]:
    """The scoreboard as if every submission had been received at its planned time, best teams first."""
    found: defaultdict[tuple[int, str], list[JudgedSubmission]] = defaultdict(list)
    for number, (item, verdict) in enumerate(zip(plan.submissions, verdicts, strict=True), 1):
        time_us = round(item.at * _DURATION_US)
        found[item.team, item.problem].append(JudgedSubmission(number, time_us, time_us, verdict))
    rows = []
    for team in range(plan.teams):
        cells = [icpc.FORMAT.fold(_CONFIG, _PROBLEM, found[team, problem]) for problem in plan.problems]
        rows.append((icpc.FORMAT.combine(_CONFIG, cells), team, cells))
    rows.sort(key=lambda row: ([-key for key in row[0]], row[1]))
    ranks: dict[RowKeys, int] = {}
    for position, row in enumerate(rows, 1):
        ranks.setdefault(row[0], position)
    return [
        PlannedRow(
            ranks[key],
            team,
            key.k1,
            -key.k2 // 60,
            tuple((cell.attempts, cell.is_solved) for cell in cells),
        )
        for key, team, cells in rows
    ]


def fingerprint(rows: Sequence[PlannedRow]) -> str:
    """A hash of a scoreboard: equal scoreboards have equal hashes."""
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
