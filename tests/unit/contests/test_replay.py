"""Replays: the board at a time equals a fold of the submissions received before it, for every format."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from adjudge.contests import clock
from adjudge.contests.board import Board, BoardParticipant, BoardProblem, BoardRow
from adjudge.contests.clock import RemovedInterval
from adjudge.contests.folding import Rules, Submissions, fold_cell, group_by_cell
from adjudge.contests.formats import get_format
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.live_board import LiveBoard
from adjudge.contests.load_board import LoadedBoard
from adjudge.contests.ranking import first_solves, rank_board
from adjudge.contests.replay import ReplayHistory, make_history, own_replay_row, replay_board
from adjudge.contests.times import make_timeline, participant_clock
from adjudge.domain.contest import MICRO_POINTS, MINUTE_US, ContestFormat, ParticipantKind
from adjudge.domain.states import ContestState, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ContestProblem, ContestRow, ContestSettings, ParticipantRow
from adjudge.store.contests.scoreboard import JURY, CellSubmission
from adjudge.store.judging.events import START

START_US = 1_000 * MINUTE_US
DURATION_US = 100 * MINUTE_US
VERDICTS = [Verdict.AC, Verdict.WA, Verdict.PA, Verdict.CE, Verdict.SE, None]
PROBLEMS = tuple(BoardProblem(f"p-{label}", label) for label in "AB")


@dataclass
class Past:
    """A contest that is over, drawn at random."""

    rules: Rules
    people: dict[str, ParticipantRow]
    submissions: Submissions
    board: Board

    @property
    def history(self) -> ReplayHistory:
        return make_history(self.rules, self.board, self.people, self.submissions)


def draw(chosen: random.Random, scoring: ContestFormat) -> Past:
    has_windows = chosen.random() < 0.3
    settings = ContestSettings(
        "Past",
        DURATION_US,
        format=scoring,
        starts_at=START_US,
        freeze_ct_us=None if has_windows else 60 * MINUTE_US,
        window_us=50 * MINUTE_US if has_windows else None,
        verify_required=chosen.random() < 0.2,
    )
    contest = ContestRow("c", "c", ContestState.FINALIZED, settings, None, None, 1, None, 1, None, 0, 0)
    removed = RemovedInterval(START_US + 30 * MINUTE_US, START_US + 40 * MINUTE_US)
    timeline = replace(make_timeline(contest, []), removed=(removed,) if chosen.random() < 0.5 else ())
    form = get_format(scoring)
    problems = {item.id: ContestProblem("c", item.id, "r", item.label, 0) for item in PROBLEMS}
    rules = Rules(contest, timeline, form, form.parse_config({}), problems)
    people = {
        f"t{index}": ParticipantRow(
            id=f"t{index}",
            contest_id="c",
            code=f"t{index}",
            name=f"Team {index}",
            kind=chosen.choice([ParticipantKind.OFFICIAL, ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL]),
            team_id=None,
            user_id=None,
            run_no=0,
            organization_id=None,
            label=None,
            location=None,
            hidden=False,
            disqualified_at=chosen.choice([None, None, None, 1]),
            started_at=START_US + chosen.randrange(40) * MINUTE_US if has_windows else None,
            delay_us=0 if has_windows else chosen.choice([0, 0, 5 * MINUTE_US]),
            extra_us=chosen.choice([0, 0, 10 * MINUTE_US]),
            penalty_adjust_sec=chosen.choice([0, 0, -60, 600]),
            version=1,
        )
        for index in range(4)
    }
    rows = [
        BoardRow(
            BoardParticipant(item.id, item.name, item.kind, is_disqualified=item.disqualified_at is not None),
            RowKeys(0),
            (Cell(), Cell()),
        )
        for item in people.values()
    ]
    times = sorted(START_US + chosen.randrange(130) * MINUTE_US for _ in range(chosen.randrange(30)))
    submitted = [_submission(chosen, number, at) for number, at in enumerate(times, 1)]
    return Past(rules, people, group_by_cell(submitted), Board(PROBLEMS, tuple(rows)))


def _submission(chosen: random.Random, number: int, at: int) -> CellSubmission:
    verdict = chosen.choice(VERDICTS)
    parts = [chosen.choice([0, 30, 50]) * MICRO_POINTS for _ in range(2)]
    return CellSubmission(
        submission_id=f"s{number}",
        participant_id=f"t{chosen.randrange(4)}",
        problem_id=chosen.choice(PROBLEMS).id,
        number=number,
        received_at=at,
        official=chosen.random() < 0.1,
        score_micro=sum(parts),
        max_score_micro=100 * MICRO_POINTS,
        subtasks={"one": parts[0], "two": parts[1]},
        ignored_at=chosen.choice([None, None, None, 1]),
        verified_at=chosen.choice([None, 1]),
        override_verdict=chosen.choice([None, None, None, Verdict.AC, Verdict.WA]),
        override_score_micro=None,
        status=SubmissionStatus.PENDING if verdict is None else SubmissionStatus.ERROR,
        verdict=verdict,
    )


def naive_rows(past: Past, time_us: int) -> dict[str, tuple[RowKeys, tuple[Cell, ...]]]:
    """All cells folded from the submissions received before a time."""
    found = {}
    for participant in past.people.values():
        own = participant_clock(participant)
        cells = []
        for problem in PROBLEMS:
            rows = [
                row
                for row in past.submissions.get((participant.id, problem.id), ())
                if max(0, clock.participant_time(past.rules.timeline, own, row.received_at) or 0) < time_us
            ]
            cells.append(fold_cell(past.rules, participant, past.rules.problems[problem.id], rows)[0])
        found[participant.id] = (
            past.rules.format.combine(past.rules.config, cells, participant.penalty_adjust_sec),
            tuple(cells),
        )
    return found


def shown(rows: list[BoardRow]) -> dict[str, tuple[RowKeys, tuple[Cell, ...]]]:
    return {row.participant.id: (row.keys, row.cells) for row in rows}


def final(past: Past) -> LiveBoard:
    return LiveBoard(LoadedBoard(past.board, START, {}, {}), view=JURY, is_complete=True, last=START)


OWN = BoardRow(BoardParticipant("own", "Own", ParticipantKind.VIRTUAL), RowKeys(1, -1_200, -1_200), (Cell(), Cell()))


@given(seed=st.integers(0, 2**32), scoring=st.sampled_from(list(ContestFormat)), minute=st.integers(0, 130))
def test_board_at_a_time_equals_a_fold_of_the_submissions_before_it(
    seed: int, scoring: ContestFormat, minute: int
) -> None:
    past, time_us = draw(random.Random(seed), scoring), minute * MINUTE_US
    assert shown(past.history.rows_at(time_us)) == naive_rows(past, time_us)


@given(
    seed=st.integers(0, 2**32),
    scoring=st.sampled_from(list(ContestFormat)),
    minutes=st.lists(st.integers(0, 130), min_size=2, max_size=6).map(sorted),
)
def test_events_change_the_board_of_one_time_into_that_of_another(
    seed: int, scoring: ContestFormat, minutes: list[int]
) -> None:
    past = draw(random.Random(seed), scoring)
    history, own = past.history, own_replay_row(OWN)
    board = replay_board(final(past), history, own, minutes[0] * MINUTE_US)
    for before, after in pairwise(minutes):
        for event in history.between(before * MINUTE_US, after * MINUTE_US):
            board.replace_row(event.row)
        assert shown(list(board.rows())) == naive_rows(past, after * MINUTE_US) | shown([own])
        value = board.board()
        assert [(item.row.participant.id, item.rank) for item in board.ranking().page(0, 9)] == [
            (item.row.participant.id, item.rank) for item in rank_board(value)
        ]
        firsts = {PROBLEMS[index].id: who for index in range(2) if (who := board.first_solver(index))}
        assert firsts == first_solves(value)
        next_us = history.next_time(after * MINUTE_US)
        assert next_us is None or naive_rows(past, next_us) == naive_rows(past, after * MINUTE_US)


def test_own_run_is_ranked_but_never_first() -> None:
    past = draw(random.Random(1), ContestFormat.ICPC)
    solved = Cell(attempts=1, solved_us=0, first_accepted_number=1)
    own = own_replay_row(replace(OWN, keys=RowKeys(9), cells=(solved, Cell(pending=1, earliest_pending_number=0))))
    board = replay_board(final(past), past.history, own, DURATION_US)
    assert board.ranking().rank_of("own") == 1
    assert "own" not in {board.first_solver(0), board.first_solver(1)}
    assert board.first_solver(1) == replay_board(final(past), past.history, None, DURATION_US).first_solver(1)
    assert "own" not in {row.participant.id for row in board.board().without_own_replay().rows}
