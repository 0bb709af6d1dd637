"""Submitting in a contest: for which participant, to which revision, and whether it is allowed now.

Limits of submissions per minute and per problem are checked in the transaction that stores them
(``contests.listener``), because two requests at the same time must not both take the last place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge.contests import clock
from adjudge.contests.times import participant_clock
from adjudge.domain.contest import OWN_CLOCK, ContestPhase, ContestRole, ParticipantKind
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from adjudge.domain.states import ContestState
from adjudge.judge.languages import Language, Languages
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.contest_addresses import require_address
from adjudge.services.participants import find_participant
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestProblemRow, ParticipantRow

_OPEN = frozenset({ContestPhase.RUNNING, ContestPhase.FROZEN})
_OVER = frozenset({ContestPhase.ENDED, ContestPhase.THAWED})


@dataclass(frozen=True, slots=True)
class ContestSubmission:
    """Where a submission counts."""

    contest_id: str
    participant_id: str
    problem_id: str
    revision_id: str
    allowed_languages: tuple[str, ...] | None
    is_judging_paused: bool

    def check_language(self, language: Language, known: Languages, field: str) -> None:
        """Reject a language that the contest does not allow, by id, alias or code."""
        allowed = self.allowed_languages
        if allowed is None or language.code in allowed:
            return
        if language.id not in {known.get(name).id for name in allowed}:
            raise InvalidInput(
                f"{field}: {language.name} is not allowed in this contest; allowed: {', '.join(allowed)}.", field=field
            )


@dataclass(frozen=True, slots=True)
class ContestSubmitCheck:
    """Decides whether a viewer may submit in a contest now."""

    database: Database

    async def check(
        self, viewer: Viewer, contest: str, problem: str, *, participant: str = "", address: str, field: str
    ) -> ContestSubmission:
        """Check one submission; ``problem`` is a label, slug or id, ``field`` the name of that field.

        With ``participant``, the code of one, an organiser submits for it, from any address.
        """

        async def look(tx: Tx) -> ContestSubmission:
            view = await find_view(tx, viewer, contest)
            if participant:
                view = await act_for(tx, view, participant)
            chosen = choose_participant(view)
            row = await _find_problem(tx, view, chosen, problem, field)
            if chosen.kind not in OWN_CLOCK and not participant:
                # virtual runs and practice come after the contest, from anywhere
                require_address(view.contest.settings.address_ranges, address)
            return ContestSubmission(
                view.contest.id,
                chosen.id,
                row.problem.problem_id,
                row.problem.revision_id,
                row.problem.allowed_languages or view.contest.settings.allowed_languages,
                row.problem.judging_paused,
            )

        return await self.database.read(look)


async def act_for(tx: Tx, view: ContestView, code: str) -> ContestView:
    """The contest as an organiser sees it who acts for a participant."""
    view.require(ContestRole.ORGANISER)
    return replace(view, participants=[await find_participant(tx, view.contest.id, code)])


def choose_participant(view: ContestView) -> ParticipantRow:
    """The participant for whom the viewer submits now; raises if there is none."""
    if view.contest.state is ContestState.CANCELED:
        raise Conflict("The contest was canceled.")
    if not view.participants:
        raise Forbidden("You do not take part in this contest; register first.")
    found = _allowed(view)
    if found is None:
        raise Conflict(_reason(view))
    if found.disqualified_at is not None:
        raise Forbidden("This participant is disqualified.")
    return found


def _allowed(view: ContestView) -> ParticipantRow | None:
    """One whose time runs, else a tester, else one for practice, else one whose late submissions are accepted."""
    phases = [(item, view.times.phase(item)) for item in view.participants]
    is_published = view.contest.state is ContestState.PUBLISHED
    is_over = view.times.has_ended_for_all
    for item, phase in phases:
        if phase in _OPEN and item.kind is not ParticipantKind.PRACTICE:
            return item
    for kind, is_open in ((ParticipantKind.TEST, not is_over), (ParticipantKind.PRACTICE, is_over)):
        for item, _ in phases:
            if item.kind is kind and is_open:
                return item
    for item, phase in phases:
        if is_published and phase in _OVER and view.contest.settings.late_policy == "unofficial":
            return item
    return None


def _reason(view: ContestView) -> str:
    if view.phase is not ContestPhase.BEFORE:
        return "The contest has ended."
    if view.contest.settings.window_us is not None and view.public_phase in _OPEN:
        return "You have not started; start your time on the page of the contest."
    return "The contest has not started."


async def _find_problem(
    tx: Tx, view: ContestView, participant: ParticipantRow, name: str, field: str
) -> ContestProblemRow:
    """The problem with this label, slug or id, if it accepts submissions."""
    rows = await queries.problems(tx, view.contest.id)
    found = next((row for row in rows if name in (row.problem.label, row.slug, row.problem.problem_id)), None)
    if found is None or not view.sees_problem(found.problem):
        raise NotFound("contest_problem", name)
    problem = found.problem
    if not problem.accepts:
        raise Conflict(f"{field}: problem {problem.label} does not accept submissions now.")
    if problem.closes_ct_us is not None and participant.kind in _TIMED:
        time_us = clock.participant_time(view.times.timeline, participant_clock(participant), view.times.now_us)
        if time_us is not None and time_us >= problem.closes_ct_us:
            raise Conflict(f"{field}: problem {problem.label} is closed.")
    return found


_TIMED = frozenset({ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL, ParticipantKind.VIRTUAL})
"""Testers and those who practise may also submit to problems that are closed."""
