"""The visibility table, compared with a literal copy, and the settings that its entries depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adjudge.contests.visibility import TABLE, Access, ContestFacts, RouteClass, ViewerClass, access
from adjudge.domain.contest import ContestFeedback, ContestPhase, ContestVisibility, ScoreboardVisibility

LITERAL = """
contest | by visibility | = | = | =
problems | none | P; V by setting | = | all if published
teams | all | all | all | all
own_submissions | testers | O by feedback | O | O
other_submissions | none | V P | V P | V P
other_verdicts | none | accepted or not | if before freeze | V P
other_details | none | none | none | after finalized, by setting
scoreboard | zero rows | by scoreboard_visibility | public view | jury view
own_row | none | O | O cells; no rank, firsts | O
clarifications | broadcasts naming no problem | V broadcast; O own, own groups | = | =
statistics | excluded | excluded | excluded | included
streams | filter of the object | = | = | =
balloons | none | S | S by minimum rule | S
prints | O S | O S | O S | O S
editorials | none | none | none | by setting
operations | none | none | none | none
"""
"""The table of the design, its rows under the names of ``RouteClass``; ``=`` repeats the column to the left."""

V, P, OWN, S = ViewerClass.VISITOR, ViewerClass.PARTICIPANT, ViewerClass.OWN, ViewerClass.STAFF
FULL, NONE = Access.FULL, Access.NONE
EVERYONE = (V, P, OWN, S)
NEVER: dict[ViewerClass, Access] = {}
OPEN = ContestFacts(
    is_finalized=True,
    visitors_see_problems=True,
    is_problem_published=True,
    shows_details_of_others=True,
    shows_editorials=True,
    is_tester=True,
)
"""Every setting as open as possible; V includes staff, who have no other right outside of their queues."""


def _same(value: Access, *viewers: ViewerClass) -> dict[ViewerClass, Access]:
    return dict.fromkeys(viewers, value)


MEANING: dict[str, dict[ViewerClass, Access]] = {
    "none": NEVER,
    "excluded": NEVER,
    "all": _same(FULL, *EVERYONE),
    "included": _same(FULL, *EVERYONE),
    "by visibility": _same(FULL, *EVERYONE),
    "P; V by setting": _same(FULL, *EVERYONE),
    "all if published": _same(FULL, *EVERYONE),
    "by setting": _same(FULL, *EVERYONE),
    "testers": _same(FULL, OWN),
    "O by feedback": _same(FULL, OWN),
    "O": _same(FULL, OWN),
    "V P": _same(FULL, V, P, S),
    "accepted or not": _same(Access.ACCEPTED_OR_NOT, V, P, S),
    "if before freeze": _same(Access.BEFORE_FREEZE, V, P, S),
    "after finalized, by setting": _same(FULL, V, P, S),
    "zero rows": _same(Access.ZERO_ROWS, *EVERYONE),
    "by scoreboard_visibility": _same(Access.PUBLIC_VIEW, *EVERYONE),
    "public view": _same(Access.PUBLIC_VIEW, *EVERYONE),
    "jury view": _same(Access.JURY_VIEW, *EVERYONE),
    "O cells; no rank, firsts": _same(Access.CELLS_ONLY, OWN),
    "broadcasts naming no problem": _same(Access.BROADCASTS_WITHOUT_PROBLEM, *EVERYONE),
    "V broadcast; O own, own groups": {**_same(Access.BROADCASTS, V, P, S), OWN: Access.BROADCASTS_AND_OWN},
    "filter of the object": _same(Access.SAME_AS_OBJECT, *EVERYONE),
    "S": _same(FULL, S),
    "S by minimum rule": _same(Access.MINIMUM_RULE, S),
    "O S": _same(FULL, OWN, S),
}
COLUMNS = [
    [ContestPhase.BEFORE],
    [ContestPhase.RUNNING],
    [ContestPhase.FROZEN, ContestPhase.ENDED],
    [ContestPhase.THAWED],
]


def _literal() -> dict[str, list[str]]:
    rows = {}
    for line in LITERAL.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        for index, cell in enumerate(cells):
            cells[index] = cells[index - 1] if cell == "=" else cell
        rows[name] = cells
    return rows


def test_every_route_class_has_a_row() -> None:
    assert set(_literal()) == set(RouteClass) == set(TABLE)


def test_reference_page_has_the_same_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "contest-visibility.md").read_text()
    lines = [line.strip("| ") for line in page.splitlines() if line.startswith("| `") and line.count("|") == 6]
    assert [line.replace("`", "", 2) for line in lines] == LITERAL.strip().splitlines()


@pytest.mark.parametrize("route", list(RouteClass))
def test_table_equals_its_literal_copy(route: RouteClass) -> None:
    for cell, phases in zip(_literal()[route], COLUMNS, strict=True):
        for phase in phases:
            found = {viewer: access(route, viewer, phase, OPEN) for viewer in EVERYONE}
            assert found == {viewer: MEANING[cell].get(viewer, NONE) for viewer in EVERYONE}, (phase, cell)


@pytest.mark.parametrize("phase", list(ContestPhase))
@pytest.mark.parametrize("route", list(RouteClass))
def test_jury_and_api_readers_see_everything_always(route: RouteClass, phase: ContestPhase) -> None:
    draft = ContestFacts(is_draft=True, visibility=ContestVisibility.PRIVATE)
    is_board = route is RouteClass.SCOREBOARD
    assert access(route, ViewerClass.JURY, phase, draft) is (Access.JURY_VIEW if is_board else FULL)
    reader = access(route, ViewerClass.API_READER, phase, draft)
    assert reader is (Access.JURY_VIEW if is_board else Access.WITHOUT_CREDENTIALS)


@pytest.mark.parametrize("phase", list(ContestPhase))
def test_drafts_and_private_contests_are_missing(phase: ContestPhase) -> None:
    draft, private = ContestFacts(is_draft=True), ContestFacts(visibility=ContestVisibility.PRIVATE)
    for route in RouteClass:
        assert {access(route, viewer, phase, draft) for viewer in EVERYONE} == {NONE}
        assert access(route, V, phase, private) is NONE
    assert access(RouteClass.CONTEST, P, phase, private) is FULL


@pytest.mark.parametrize(
    ("route", "viewer", "phase", "changes", "expected"),
    [
        ("problems", V, "running", {}, NONE),
        ("problems", V, "running", {"visitors_see_problems": True}, FULL),
        ("problems", P, "running", {}, FULL),
        ("problems", P, "thawed", {"is_problem_published": False}, NONE),
        ("own_submissions", OWN, "before", {}, NONE),
        ("own_submissions", OWN, "before", {"is_tester": True}, FULL),
        ("own_submissions", OWN, "running", {"feedback": ContestFeedback.PARTIAL}, Access.VERDICT_AND_SCORE),
        ("own_submissions", OWN, "running", {"feedback": ContestFeedback.NONE}, Access.RECEIPT),
        ("own_submissions", OWN, "frozen", {"feedback": ContestFeedback.NONE}, Access.RECEIPT),
        ("own_submissions", OWN, "ended", {"feedback": ContestFeedback.NONE}, FULL),
        ("own_submissions", OWN, "thawed", {"feedback": ContestFeedback.NONE}, FULL),
        *(
            (route, viewer, phase, {"feedback": ContestFeedback.NONE}, NONE)
            for route in ("scoreboard", "other_verdicts")
            for viewer in (ViewerClass.VISITOR, ViewerClass.PARTICIPANT)
            for phase in ("running", "frozen", "ended")
        ),
        ("own_row", OWN, "running", {"feedback": ContestFeedback.NONE}, NONE),
        ("own_row", OWN, "frozen", {"feedback": ContestFeedback.NONE}, NONE),
        ("scoreboard", V, "running", {"scoreboard_visibility": ScoreboardVisibility.PARTICIPANTS}, NONE),
        ("scoreboard", S, "running", {"scoreboard_visibility": ScoreboardVisibility.PARTICIPANTS}, NONE),
        ("scoreboard", P, "running", {"scoreboard_visibility": ScoreboardVisibility.PARTICIPANTS}, Access.PUBLIC_VIEW),
        ("scoreboard", P, "frozen", {"scoreboard_visibility": ScoreboardVisibility.HIDDEN}, NONE),
        ("scoreboard", V, "thawed", {"scoreboard_visibility": ScoreboardVisibility.HIDDEN}, Access.JURY_VIEW),
        ("other_verdicts", P, "running", {"scoreboard_visibility": ScoreboardVisibility.HIDDEN}, NONE),
        ("other_verdicts", P, "ended", {"scoreboard_visibility": ScoreboardVisibility.HIDDEN}, NONE),
        ("other_details", P, "thawed", {"shows_details_of_others": True}, NONE),
        ("other_details", P, "thawed", {"shows_details_of_others": True, "is_finalized": True}, FULL),
        ("other_details", P, "thawed", {"is_finalized": True}, NONE),
        ("editorials", V, "thawed", {}, NONE),
    ],
)
def test_settings_decide(
    route: str, viewer: ViewerClass, phase: str, changes: dict[str, Any], expected: Access
) -> None:
    assert access(RouteClass(route), viewer, ContestPhase(phase), ContestFacts(**changes)) is expected
