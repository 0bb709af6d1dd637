"""The unfreezing ceremony: its steps lead from the public to the jury board, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests.awards import Award
from adjudge.contests.board import Board, BoardParticipant, BoardRow
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import Cell, JudgedSubmission, ProblemScoring, RowKeys
from adjudge.contests.ranking import rank_board
from adjudge.contests.resolver import (
    AwardStep,
    MoveStep,
    RevealStep,
    apply_step,
    first_state,
    resolver_document,
    resolver_steps,
    undo_step,
)
from adjudge.domain.contest import MICRO_POINTS
from tests.unit.contests.boards import board
from tests.unit.contests.formats.histories import submission

PROBLEM = ProblemScoring(100 * MICRO_POINTS, 100 * MICRO_POINTS)
Histories = dict[str, list[list[JudgedSubmission]]]


def _combine(name: str, adjust: dict[str, int]) -> object:
    scoring = get_format(name)
    config = scoring.parse_config({})

    def combine(participant: BoardParticipant, cells: Sequence[Cell]) -> RowKeys:
        return scoring.combine(config, cells, adjust.get(participant.id, 0))

    return combine


def _boards(
    name: str, histories: Histories, freeze_min: int, adjust: dict[str, int] | None = None
) -> tuple[Board, Board]:
    scoring = get_format(name)
    config = scoring.parse_config({})
    views = []
    for public in (True, False):
        rows = []
        for participant, problems in histories.items():
            shown = [
                [item.as_pending() if public and item.time_us >= freeze_min * 60_000_000 else item for item in items]
                for items in problems
            ]
            cells = tuple(scoring.fold(config, PROBLEM, items) for items in shown)
            keys = scoring.combine(config, cells, (adjust or {}).get(participant, 0))
            rows.append(BoardRow(BoardParticipant(participant, participant), keys, cells))
        views.append(board(*rows))
    return views[0], views[1]


def _ceremony(
    name: str, public: Board, jury: Board, awards: Sequence[Award] = (), adjust: dict[str, int] | None = None
) -> list[RevealStep | MoveStep | AwardStep]:
    return list(resolver_steps(public, jury, _combine(name, adjust or {}), awards))  # type: ignore[arg-type]


def test_reveals_from_the_bottom_and_from_left_to_right() -> None:
    # Frozen at 240. Before: a 1 solved (10 min), b 1 solved (20 min), c nothing.
    # c solves A at 250 and B at 260 and rises past b and a; b's B is rejected.
    public, jury = _boards(
        "icpc",
        {
            "a": [[submission(1, 10, "AC")], []],
            "b": [[submission(2, 20, "AC")], [submission(5, 270, "WA")]],
            "c": [[submission(3, 250, "AC")], [submission(4, 260, "AC")]],
        },
        240,
    )
    awards = [Award("gold-medal", "", ("c",)), Award("first-to-solve-problem-b", "", ("c",)), Award("x", "", ("b",))]
    steps = _ceremony("icpc", public, jury, awards)
    short = [(type(step).__name__, step.participant_id, *(_detail(step))) for step in steps]
    assert short == [
        ("RevealStep", "c", 0),  # 1 solved, 250 min: still behind b
        ("RevealStep", "c", 1),  # 2 solved
        ("MoveStep", "c", 2, 0),
        ("RevealStep", "b", 1),
        ("AwardStep", "b", 3, ("x",)),
        ("AwardStep", "c", 1, ("gold-medal", "first-to-solve-problem-b")),
    ]


def _detail(step: RevealStep | MoveStep | AwardStep) -> tuple[object, ...]:
    match step:
        case RevealStep():
            return (step.problem_index,)
        case MoveStep():
            return step.from_position, step.to_position
        case AwardStep():
            return step.rank, step.award_ids


def test_nothing_frozen_needs_no_steps() -> None:
    public, jury = _boards("icpc", {"a": [[submission(1, 10, "AC")]], "b": [[submission(2, 20, "WA")]]}, 240)
    assert _ceremony("icpc", public, jury) == []


def test_row_that_falls_is_continued_where_it_is() -> None:
    """In the last-submission format a frozen submission can cost points."""
    public, jury = _boards(
        "last",
        {
            "a": [[submission(1, 10, "AC", 100), submission(3, 250, "WA")], [submission(4, 260, "PA", 10)]],
            "b": [[submission(2, 20, "PA", 50)], []],
        },
        240,
    )
    steps = _ceremony("last", public, jury)
    assert [(type(step).__name__, step.participant_id) for step in steps] == [
        ("RevealStep", "a"),
        ("MoveStep", "a"),
        ("RevealStep", "a"),
    ]


def test_json_form_has_rows_in_listing_order_and_all_steps() -> None:
    public, jury = _boards("icpc", {"z": [[submission(1, 250, "AC")]], "a": [[submission(2, 20, "AC")]]}, 240)
    steps = _ceremony("icpc", public, jury, [Award("winner", "", ("a",))])
    document = json.loads(json.dumps(resolver_document(public, steps)))
    assert [item["participant_id"] for item in document["rows"]] == ["a", "z"]
    assert [item["kind"] for item in document["steps"]] == ["reveal", "award"]
    assert document["steps"][0]["problem_id"] == "problem-a"
    assert document["steps"][0]["before"]["pending"] == 1
    assert document["steps"][0]["after"]["solved_us"] == 250 * 60_000_000
    assert document["steps"][0]["keys_after"] == [1, -250 * 60, -250 * 60]


_verdicts = st.sampled_from(["AC", "WA", "CE", None, "PA"])


@st.composite
def _histories(draw: st.DrawFn) -> Histories:
    histories: Histories = {}
    number = 0
    for participant in "abcde"[: draw(st.integers(1, 5))]:
        problems = []
        for _ in range(3):
            minutes = sorted(draw(st.lists(st.integers(0, 9), max_size=3)))
            items = []
            for minute in minutes:
                number += 1
                verdict = draw(_verdicts)
                points = {"AC": 100, "PA": draw(st.integers(0, 99))}.get(verdict or "", 0)
                items.append(submission(number, minute, verdict, points))
            problems.append(items)
        histories[participant] = problems
    return histories


@pytest.mark.parametrize("name", ["icpc", "ioi", "last", "atcoder"])
def test_steps_lead_from_the_public_to_the_jury_board_and_back(name: str) -> None:
    @given(_histories(), st.integers(0, 9), st.dictionaries(st.sampled_from("abcde"), st.integers(-60, 60)))
    def check(histories: Histories, freeze_min: int, adjust: dict[str, int]) -> None:
        public, jury = _boards(name, histories, freeze_min, adjust)
        awards = [Award("prize", "", tuple(histories))]
        steps = _ceremony(name, public, jury, awards, adjust)
        states = [first_state(public)]
        for step in steps:
            states.append(apply_step(states[-1], step))
        assert list(states[-1].rows) == [item.row for item in rank_board(jury)]
        assert {step.participant_id for step in states[-1].announced} == set(histories)
        state = states.pop()
        for step in reversed(steps):
            state = undo_step(state, step)
            assert state == states.pop()

    check()
