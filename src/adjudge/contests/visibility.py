"""Which objects of a contest a viewer may see, in each phase: one table, and the function that applies it.

Services ask ``access`` for every route, stream and page; a hidden object must answer exactly like a missing one. The
table has no I/O and no exceptions elsewhere: a new route belongs to a class of this table, or gets one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adjudge.domain.contest import ContestFeedback, ContestPhase, ContestVisibility, ScoreboardVisibility


class RouteClass(StrEnum):
    """What kind of object a route shows."""

    CONTEST = "contest"
    """Contest page, list, times."""
    PROBLEMS = "problems"
    """Count, labels, titles, colours, statements, files, hashes, search."""
    TEAMS = "teams"
    """Teams and groups, without hidden ones and without e-mail addresses."""
    OWN_SUBMISSIONS = "own_submissions"
    """Own submissions with verdict and source."""
    OTHER_SUBMISSIONS = "other_submissions"
    """Submissions of others: id, team, problem, time."""
    OTHER_VERDICTS = "other_verdicts"
    OTHER_DETAILS = "other_details"
    """Submissions of others: language, size, times, runs, files, messages."""
    SCOREBOARD = "scoreboard"
    """Scoreboard, awards, first solves, exports."""
    OWN_ROW = "own_row"
    CLARIFICATIONS = "clarifications"
    STATISTICS = "statistics"
    """Statistics, solved marks, profiles, ratings, queue position."""
    STREAMS = "streams"
    """Event streams, feeds, webhooks, caches, ETag, Last-Modified."""
    BALLOONS = "balloons"
    PRINTS = "prints"
    EDITORIALS = "editorials"
    """Editorials, jury solutions, tests."""
    OPERATIONS = "operations"
    """Operations, queue, rejudges, audit log."""


class ViewerClass(StrEnum):
    """Who looks. A user may be several: a participant looks at others and at what is their own."""

    VISITOR = "visitor"
    PARTICIPANT = "participant"
    """A participant, at what belongs to others."""
    OWN = "own"
    """A participant, at what is their own."""
    STAFF = "staff"
    """Balloon or print staff."""
    JURY = "jury"
    API_READER = "api_reader"


class Access(StrEnum):
    """What of an object is visible."""

    NONE = "none"
    """Nothing: the route answers as if the object were missing."""
    FULL = "full"
    WITHOUT_CREDENTIALS = "without_credentials"
    """Everything but passwords; source only if the token has the scope."""
    RECEIPT = "receipt"
    """That the submission was received, and its source."""
    VERDICT_AND_SCORE = "verdict_and_score"
    """Without results of test cases."""
    ACCEPTED_OR_NOT = "accepted_or_not"
    BEFORE_FREEZE = "before_freeze"
    """As ``ACCEPTED_OR_NOT``, for submissions received before the freeze; the others are pending."""
    ZERO_ROWS = "zero_rows"
    """A scoreboard on which nobody has submitted."""
    PUBLIC_VIEW = "public_view"
    JURY_VIEW = "jury_view"
    CELLS_ONLY = "cells_only"
    """The own row with judged cells, without rank and first marks."""
    BROADCASTS_WITHOUT_PROBLEM = "broadcasts_without_problem"
    BROADCASTS = "broadcasts"
    BROADCASTS_AND_OWN = "broadcasts_and_own"
    """Broadcasts, own questions with answers, and messages to own groups."""
    SAME_AS_OBJECT = "same_as_object"
    """What the class of the transported object allows; nothing may change unless these bytes change."""
    MINIMUM_RULE = "minimum_rule"
    """Balloons of the freeze only as far as the contest's rule allows."""


class VisibilityCondition(StrEnum):
    """An entry of the table that depends on a setting of the contest."""

    BY_VISIBILITY = "by_visibility"
    BY_PROBLEM_SETTING = "by_problem_setting"
    IF_PUBLISHED = "if_published"
    IF_TESTER = "if_tester"
    BY_FEEDBACK = "by_feedback"
    OWN_ROW_BY_FEEDBACK = "own_row_by_feedback"
    OWN_CELLS_BY_FEEDBACK = "own_cells_by_feedback"
    AFTER_FINALIZED_BY_SETTING = "after_finalized_by_setting"
    BY_SCOREBOARD_VISIBILITY = "by_scoreboard_visibility"
    ACCEPTED_OR_NOT_BY_SCOREBOARD = "accepted_or_not_by_scoreboard"
    """Verdicts of others would be the scoreboard in another form: they need a scoreboard that the viewer may see."""
    BEFORE_FREEZE_BY_SCOREBOARD = "before_freeze_by_scoreboard"
    BY_EDITORIAL_SETTING = "by_editorial_setting"


@dataclass(frozen=True, slots=True)
class ContestFacts:
    """What the conditions depend on."""

    visibility: ContestVisibility = ContestVisibility.PUBLIC
    scoreboard_visibility: ScoreboardVisibility = ScoreboardVisibility.PUBLIC
    feedback: ContestFeedback = ContestFeedback.FULL
    is_draft: bool = False
    is_finalized: bool = False
    visitors_see_problems: bool = False
    """Setting: visitors read the problems while the contest runs."""
    is_problem_published: bool = False
    """Whether the problem in question is public outside of the contest."""
    shows_details_of_others: bool = False
    """Setting: after the contest is finalized, all see all submissions."""
    shows_editorials: bool = False
    """Setting: editorials are public after the thaw."""
    is_tester: bool = False
    """Whether the viewer is a participant of kind ``test``."""


_V, _P, _O, _S = ViewerClass.VISITOR, ViewerClass.PARTICIPANT, ViewerClass.OWN, ViewerClass.STAFF
_Entry = Access | VisibilityCondition
_Column = dict[ViewerClass, _Entry]


def _all(entry: _Entry) -> _Column:
    return {_V: entry, _P: entry, _O: entry, _S: entry}


def _others(entry: _Entry) -> _Column:
    """For visitors (staff among them) and participants, about others."""
    return {_V: entry, _P: entry, _S: entry}


_NONE: Final[_Column] = {}
_STAFF: Final[_Column] = {_S: Access.FULL}
_OWN_AND_STAFF: Final[_Column] = {_O: Access.FULL, _S: Access.FULL}
_RUNNING_PROBLEMS: Final[_Column] = {
    _P: Access.FULL,
    _O: Access.FULL,
    _V: VisibilityCondition.BY_PROBLEM_SETTING,
    _S: VisibilityCondition.BY_PROBLEM_SETTING,
}
_RUNNING_CLARIFICATIONS: Final[_Column] = {**_others(Access.BROADCASTS), _O: Access.BROADCASTS_AND_OWN}

TABLE: Final[dict[RouteClass, tuple[_Column, _Column, _Column, _Column]]] = {
    RouteClass.CONTEST: (_all(VisibilityCondition.BY_VISIBILITY),) * 4,
    RouteClass.PROBLEMS: (_NONE, _RUNNING_PROBLEMS, _RUNNING_PROBLEMS, _all(VisibilityCondition.IF_PUBLISHED)),
    RouteClass.TEAMS: (_all(Access.FULL),) * 4,
    RouteClass.OWN_SUBMISSIONS: (
        {_O: VisibilityCondition.IF_TESTER},
        {_O: VisibilityCondition.BY_FEEDBACK},
        {_O: VisibilityCondition.BY_FEEDBACK},
        {_O: Access.FULL},
    ),
    RouteClass.OTHER_SUBMISSIONS: (_NONE, _others(Access.FULL), _others(Access.FULL), _others(Access.FULL)),
    RouteClass.OTHER_VERDICTS: (
        _NONE,
        _others(VisibilityCondition.ACCEPTED_OR_NOT_BY_SCOREBOARD),
        _others(VisibilityCondition.BEFORE_FREEZE_BY_SCOREBOARD),
        _others(Access.FULL),
    ),
    RouteClass.OTHER_DETAILS: (_NONE, _NONE, _NONE, _others(VisibilityCondition.AFTER_FINALIZED_BY_SETTING)),
    RouteClass.SCOREBOARD: (
        _all(Access.ZERO_ROWS),
        _all(VisibilityCondition.BY_SCOREBOARD_VISIBILITY),
        _all(VisibilityCondition.BY_SCOREBOARD_VISIBILITY),
        _all(Access.JURY_VIEW),
    ),
    RouteClass.OWN_ROW: (
        _NONE,
        {_O: VisibilityCondition.OWN_ROW_BY_FEEDBACK},
        {_O: VisibilityCondition.OWN_CELLS_BY_FEEDBACK},
        {_O: Access.FULL},
    ),
    RouteClass.CLARIFICATIONS: (
        _all(Access.BROADCASTS_WITHOUT_PROBLEM),
        _RUNNING_CLARIFICATIONS,
        _RUNNING_CLARIFICATIONS,
        _RUNNING_CLARIFICATIONS,
    ),
    RouteClass.STATISTICS: (_NONE, _NONE, _NONE, _all(Access.FULL)),
    RouteClass.STREAMS: (_all(Access.SAME_AS_OBJECT),) * 4,
    RouteClass.BALLOONS: (_NONE, _STAFF, {_S: Access.MINIMUM_RULE}, _STAFF),
    RouteClass.PRINTS: (_OWN_AND_STAFF,) * 4,
    RouteClass.EDITORIALS: (_NONE, _NONE, _NONE, _all(VisibilityCondition.BY_EDITORIAL_SETTING)),
    RouteClass.OPERATIONS: (_NONE, _NONE, _NONE, _NONE),
}
"""Columns: before, running, frozen until thaw, thawed. The jury and API readers are not listed: they see everything."""

_COLUMNS: Final = {
    ContestPhase.BEFORE: 0,
    ContestPhase.RUNNING: 1,
    ContestPhase.FROZEN: 2,
    ContestPhase.ENDED: 2,
    ContestPhase.THAWED: 3,
}

_WITH_FEEDBACK: Final = {
    VisibilityCondition.OWN_ROW_BY_FEEDBACK: Access.FULL,
    VisibilityCondition.OWN_CELLS_BY_FEEDBACK: Access.CELLS_ONLY,
}
"""Visible unless the contest gives no feedback: the row would reveal the verdicts."""

_WITH_SCOREBOARD: Final = {
    VisibilityCondition.BY_SCOREBOARD_VISIBILITY: Access.PUBLIC_VIEW,
    VisibilityCondition.ACCEPTED_OR_NOT_BY_SCOREBOARD: Access.ACCEPTED_OR_NOT,
    VisibilityCondition.BEFORE_FREEZE_BY_SCOREBOARD: Access.BEFORE_FREEZE,
}
"""Visible to those who may see the scoreboard while the contest runs."""


def access(route: RouteClass, viewer: ViewerClass, phase: ContestPhase, facts: ContestFacts) -> Access:
    """Return what a viewer may see. The phase is that of the viewer: for participants that of their own clock."""
    if viewer is ViewerClass.JURY:
        return Access.JURY_VIEW if route is RouteClass.SCOREBOARD else Access.FULL
    if viewer is ViewerClass.API_READER:
        return Access.JURY_VIEW if route is RouteClass.SCOREBOARD else Access.WITHOUT_CREDENTIALS
    if facts.is_draft or (facts.visibility is ContestVisibility.PRIVATE and viewer is ViewerClass.VISITOR):
        return Access.NONE
    entry = TABLE[route][_COLUMNS[phase]].get(viewer, Access.NONE)
    return _resolve(entry, viewer, phase, facts) if isinstance(entry, VisibilityCondition) else entry


def _resolve(condition: VisibilityCondition, viewer: ViewerClass, phase: ContestPhase, facts: ContestFacts) -> Access:
    if condition is VisibilityCondition.BY_FEEDBACK:
        return _own_judgement(phase, facts)
    if condition in _WITH_FEEDBACK:
        return Access.NONE if _own_judgement(phase, facts) is Access.RECEIPT else _WITH_FEEDBACK[condition]
    if condition in _WITH_SCOREBOARD:
        return _WITH_SCOREBOARD[condition] if _may_see_scoreboard(viewer, facts) else Access.NONE
    return Access.FULL if _is_met(condition, facts) else Access.NONE


def _is_met(condition: VisibilityCondition, facts: ContestFacts) -> bool:
    return {
        VisibilityCondition.BY_VISIBILITY: True,  # private contests are refused to visitors before the table is asked
        VisibilityCondition.BY_PROBLEM_SETTING: facts.visitors_see_problems,
        VisibilityCondition.IF_PUBLISHED: facts.is_problem_published,
        VisibilityCondition.IF_TESTER: facts.is_tester,
        VisibilityCondition.AFTER_FINALIZED_BY_SETTING: facts.is_finalized and facts.shows_details_of_others,
        VisibilityCondition.BY_EDITORIAL_SETTING: facts.shows_editorials,
    }[condition]


def _own_judgement(phase: ContestPhase, facts: ContestFacts) -> Access:
    """Return what participants see of their own judgements: by feedback until their own end, then everything."""
    if phase is ContestPhase.ENDED:
        return Access.FULL
    return {
        ContestFeedback.FULL: Access.FULL,
        ContestFeedback.PARTIAL: Access.VERDICT_AND_SCORE,
        ContestFeedback.NONE: Access.RECEIPT,
    }[facts.feedback]


def _may_see_scoreboard(viewer: ViewerClass, facts: ContestFacts) -> bool:
    if facts.feedback is ContestFeedback.NONE:
        return False  # participants would read their own verdicts there
    if facts.scoreboard_visibility is ScoreboardVisibility.PARTICIPANTS:
        return viewer in (ViewerClass.PARTICIPANT, ViewerClass.OWN)
    return facts.scoreboard_visibility is ScoreboardVisibility.PUBLIC
