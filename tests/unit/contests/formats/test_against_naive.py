"""Every format against the naive implementation, on random histories.

A history has rejudges, overrides, ignored and restored submissions, delay and extra time, removed intervals and a
freeze; jury and public view are compared.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.contests import clock
from adjudge.contests.clock import ParticipantClock, RemovedInterval, Timeline
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring
from adjudge.domain.verdict import Verdict
from tests.unit.contests.formats.naive import PROBLEMS, Action, History, NaiveCell, naive_board

MICRO = 1_000_000
UNITS_US = {"homework": 6 * 3_600 * MICRO}
CONFIGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "icpc": st.fixed_dictionaries(
        {"penalty_minutes": st.integers(0, 20), "compile_error_penalty": st.booleans(), "seconds": st.booleans()}
    ),
    "ioi": st.fixed_dictionaries({"tie_break": st.sampled_from(["none", "time"])}),
    "best": st.fixed_dictionaries({"tie_break": st.sampled_from(["none", "time"])}),
    "last": st.fixed_dictionaries(
        {"tie_break": st.sampled_from(["none", "time"]), "ignore_compile_errors": st.booleans()}
    ),
    "atcoder": st.fixed_dictionaries({"penalty_minutes": st.integers(0, 20)}),
    "homework": st.fixed_dictionaries(
        {
            "deadline_sec": st.integers(0, 12).map(lambda units: units * UNITS_US["homework"] // MICRO),
            "late_penalty_percent_per_day": st.integers(0, 60),
            "late_penalty_cap_percent": st.integers(0, 100),
            "counts": st.sampled_from(["best", "last"]),
        }
    ),
}
_judgements = st.one_of(
    st.tuples(st.sampled_from(["WA", "TLE", "RE", "CE", "SE"]), st.just((0, 0))),
    st.tuples(st.just("PA"), st.tuples(st.sampled_from([0, 33_333_333]), st.sampled_from([0, 17 * MICRO, 50 * MICRO]))),
    st.just(("AC", (50 * MICRO, 50 * MICRO))),
)


@st.composite
def histories(draw: st.DrawFn, unit_us: int) -> History:
    received = sorted(draw(st.lists(st.integers(95, 130), max_size=7)))
    actions = [
        Action("submit", number, at, draw(st.sampled_from(range(len(PROBLEMS)))))
        for number, at in enumerate(received, 1)
    ]
    for _ in range(draw(st.integers(0, 12)) if actions else 0):
        number = draw(st.integers(1, len(received)))
        kind = draw(st.sampled_from(["judge", "judge", "judge", "override", "ignore", "restore"]))
        verdict, subtasks = draw(_judgements)
        actions.append(Action(kind, number, verdict=verdict, subtasks=subtasks))
    cuts = sorted(draw(st.lists(st.integers(95, 130), max_size=4, unique=True)))
    return History(
        unit_us=unit_us,
        starts=100,
        duration=draw(st.integers(5, 20)),
        freeze=draw(st.integers(0, 20)),
        removed=tuple(zip(cuts[::2], cuts[1::2], strict=False)),
        delay=draw(st.integers(0, 3)),
        extra=draw(st.integers(0, 5)),
        actions=tuple(actions),
    )


def _judged_submissions(history: History, problem: int, *, public: bool) -> list[JudgedSubmission]:
    """What the store passes to ``fold``: the state after all actions, through the clock."""
    unit = history.unit_us
    timeline = Timeline(
        starts_at=history.starts * unit,
        duration_us=history.duration * unit,
        freeze_ct_us=history.freeze * unit,
        removed=tuple(RemovedInterval(first * unit, end * unit) for first, end in history.removed),
    )
    participant = ParticipantClock(history.delay * unit, history.extra * unit)
    state: dict[int, dict[str, Any]] = {}
    for action in history.actions:
        if action.kind == "submit":
            state[action.number] = {"at": action.at * unit, "problem": action.problem}
        elif action.kind in ("judge", "override"):
            state[action.number][action.kind] = (action.verdict, action.subtasks)
        else:
            state[action.number]["ignored"] = action.kind == "ignore"
    submissions = []
    for number, row in sorted(state.items()):
        if row["problem"] != problem or row.get("ignored") or not clock.is_counted(timeline, participant, row["at"]):
            continue
        verdict, subtasks = row.get("override") or row.get("judge") or (None, (0, 0))
        time_us = clock.participant_time(timeline, participant, row["at"])
        assert time_us is not None
        item = JudgedSubmission(
            number,
            row["at"],
            time_us,
            None if verdict is None else Verdict(verdict),
            sum(subtasks),
            {"one": subtasks[0], "two": subtasks[1]},
            participant.extra_us,
        )
        frozen = clock.is_after_freeze(timeline, clock.contest_time(timeline, row["at"]), row["at"])
        submissions.append(item.as_pending() if public and frozen else item)
    return submissions


def _as_naive(cell: Cell) -> NaiveCell:
    return NaiveCell(
        cell.attempts,
        cell.pending,
        cell.solved_us,
        cell.score_micro,
        cell.penalty_sec,
        cell.first_accepted_number,
        cell.earliest_pending_number,
    )


@pytest.mark.parametrize("examples", [50, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("public", [False, True], ids=["jury", "public"])
@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_format_equals_naive_implementation(name: str, public: bool, examples: int) -> None:
    scoring = get_format(name)

    @settings(max_examples=examples)
    @given(histories(UNITS_US.get(name, 17 * MICRO)), CONFIGS[name], st.integers(-600, 600))
    def check(history: History, cfg: dict[str, Any], adjust_sec: int) -> None:
        config = scoring.parse_config(cfg)
        cells = [
            scoring.fold(config, ProblemScoring(*problem), _judged_submissions(history, index, public=public))
            for index, problem in enumerate(PROBLEMS)
        ]
        keys = scoring.combine(config, cells, adjust_sec)
        expected_cells, expected_keys = naive_board(name, history, cfg, adjust_sec, public=public)
        assert [_as_naive(cell) for cell in cells] == expected_cells
        assert tuple(keys) == expected_keys

    check()
