"""Who may see and do what in a contest.

Everything about a contest is read through ``ContestAccess.find``. A contest that the viewer must not know of raises the
same error as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.contests import clock, visibility
from adjudge.contests.board import BoardProblem
from adjudge.contests.times import ContestTimes, load_times_of, participant_clock
from adjudge.contests.visibility import Access, ContestFacts, RouteClass, ViewerClass
from adjudge.domain.contest import ContestPhase, ContestRole, ContestVisibility, ParticipantKind
from adjudge.domain.errors import Forbidden, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ContestState
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import participants, queries
from adjudge.store.contests.models import ContestProblem, ContestRow, ParticipantRow

_ALL_ROLES = frozenset(ContestRole)
_JURY = frozenset({ContestRole.ORGANISER, ContestRole.JUDGE})


@dataclass(frozen=True, slots=True)
class ContestView:
    """A contest as one viewer sees it at one time of the database clock."""

    contest: ContestRow
    times: ContestTimes
    viewer: Viewer
    roles: frozenset[ContestRole]
    participants: Sequence[ParticipantRow]
    """Those for whom the viewer submits, the last run first."""
    published_problems: frozenset[str] = frozenset()
    """After the thaw, the ids of the problems that are public outside of the contest."""

    @property
    def participant(self) -> ParticipantRow | None:
        """The participant for whom the viewer submits now: one that runs, else the one of the contest itself."""
        running = (item for item in self.participants if self.times.phase(item) in _OPEN)
        return next(running, self.participants[-1] if self.participants else None)

    @property
    def phase(self) -> ContestPhase:
        """The phase for the viewer."""
        return self.times.phase(self.participant)

    @property
    def virtual_time_us(self) -> int | None:
        """The time of the viewer's virtual run; None if none runs."""
        own = self.participant
        if own is None or own.kind is not ParticipantKind.VIRTUAL or self.times.phase(own) not in _OPEN:
            return None
        return clock.participant_time(self.times.timeline, participant_clock(own), self.times.now_us)

    @property
    def public_phase(self) -> ContestPhase:
        """The phase for everybody who does not take part."""
        return self.times.phase()

    @property
    def is_jury(self) -> bool:
        """Whether the viewer sees everything."""
        return bool(self.roles & _JURY)

    @property
    def is_organiser(self) -> bool:
        return ContestRole.ORGANISER in self.roles

    @property
    def is_tester(self) -> bool:
        return any(item.kind is ParticipantKind.TEST for item in self.participants)

    @property
    def sees_all(self) -> bool:
        """Whether nothing is hidden from the viewer: the jury, and programs with the role ``api_reader``."""
        return self.is_jury or ContestRole.API_READER in self.roles

    @property
    def viewer_class(self) -> ViewerClass:
        """Who looks at what belongs to others."""
        if self.is_jury:
            return ViewerClass.JURY
        if ContestRole.API_READER in self.roles:
            return ViewerClass.API_READER
        if self.roles:
            return ViewerClass.STAFF
        return ViewerClass.PARTICIPANT if self.participants else ViewerClass.VISITOR

    def access(
        self,
        route: RouteClass,
        *,
        is_own: bool = False,
        is_problem_published: bool = False,
        participant: ParticipantRow | None = None,
    ) -> Access:
        """What the viewer may see now, by the table of ``contests.visibility``.

        ``participant`` is that of an own object, if it is not the one for whom the viewer submits now.
        """
        viewer = self.viewer_class
        if is_own and viewer in (ViewerClass.PARTICIPANT, ViewerClass.STAFF):
            viewer = ViewerClass.OWN
        phase = self.phase if participant is None else self.times.phase(participant)
        if viewer is ViewerClass.STAFF:
            phase = self.public_phase  # the own clock of staff who also take part changes nothing for them as staff
        return visibility.access(route, viewer, phase, self._facts(is_problem_published=is_problem_published))

    def participant_access(self, route: RouteClass) -> Access:
        """What participants with the clock of the contest see now of what belongs to others."""
        return visibility.access(route, ViewerClass.PARTICIPANT, self.public_phase, self._facts())

    def _facts(self, *, is_problem_published: bool = False) -> ContestFacts:
        settings = self.contest.settings
        return ContestFacts(
            visibility=settings.visibility,
            scoreboard_visibility=settings.scoreboard_visibility,
            feedback=settings.feedback,
            is_draft=self.contest.state is ContestState.DRAFT,
            is_finalized=self.contest.state is ContestState.FINALIZED,
            visitors_see_problems=settings.problems_public,
            is_problem_published=is_problem_published,
            shows_details_of_others=settings.submissions_public,
            shows_editorials=settings.materials_public,
            is_tester=self.is_tester,
        )

    @property
    def sees_problems(self) -> bool:
        """Whether the viewer sees problems and their statements, at least one of them after the thaw."""
        return self._sees_problems(is_published=bool(self.published_problems))

    @property
    def sees_unpublished_problems(self) -> bool:
        """Whether the viewer sees problems also if they are not public outside of the contest."""
        return self._sees_problems(is_published=False)

    def _sees_problems(self, *, is_published: bool) -> bool:
        """Whether the viewer sees problems that are public outside of the contest, or that are not.

        After the thaw these are for participants, and for all if visitors saw them during the contest.
        """
        if self.is_tester:
            return True
        if self.contest.state is ContestState.CANCELED and not self.sees_all:
            return False
        is_known = is_published or self.contest.settings.problems_public
        return self._sees_problems_as_staff(is_known) or self._sees_problems_as_participant

    @property
    def _sees_problems_as_participant(self) -> bool:
        facts = self._facts(is_problem_published=True)
        found = visibility.access(RouteClass.PROBLEMS, ViewerClass.PARTICIPANT, self.phase, facts)
        return bool(self.participants) and found is not Access.NONE

    def _sees_problems_as_staff(self, is_known: bool) -> bool:
        """Whether the viewer sees problems without taking part: staff, and visitors by setting."""
        if self.viewer_class is ViewerClass.PARTICIPANT:
            return False
        return self.access(RouteClass.PROBLEMS, is_problem_published=is_known) is not Access.NONE

    def sees_problem(self, problem: ContestProblem | BoardProblem) -> bool:
        """Whether the viewer sees one problem: all at once, or from its opening by the own clock."""
        problem_id = problem.problem_id if isinstance(problem, ContestProblem) else problem.id
        if not self._sees_problems(is_published=problem_id in self.published_problems):
            return False
        opens_us = problem.opens_ct_us
        if opens_us is None or self.sees_all or self.is_tester or self.public_phase is ContestPhase.THAWED:
            return True
        timeline, own, now_us = self.times.timeline, self.participant, self.times.now_us
        if own is not None and self._sees_problems_as_participant:
            time_us = clock.participant_time(timeline, participant_clock(own), now_us)
            if time_us is not None and time_us >= opens_us:
                return True
        if not self._sees_problems_as_staff(self.contest.settings.problems_public):
            return False
        time_us = clock.contest_time(timeline, now_us)
        return time_us is not None and time_us >= opens_us

    def require(self, *roles: ContestRole) -> None:
        """Raise, unless the viewer has one of the roles."""
        if not self.roles.intersection(roles):
            needed = " or ".join(roles)
            raise Forbidden(f"Role required in this contest: {needed}.", role=needed)


_OPEN = frozenset({ContestPhase.RUNNING, ContestPhase.FROZEN})


@dataclass(frozen=True, slots=True)
class ContestAccess:
    """Finds contests for viewers."""

    database: Database

    async def find(self, viewer: Viewer, name: str) -> ContestView:
        """The contest with this slug or id."""
        return await self.database.read(lambda tx: find_view(tx, viewer, name))

    async def find_as(self, viewer: Viewer, name: str, *roles: ContestRole) -> ContestView:
        """The contest, if the viewer has one of the roles in it."""
        view = await self.find(viewer, name)
        view.require(*roles)
        return view


async def find_view(tx: Tx, viewer: Viewer, name: str) -> ContestView:
    """The contest with this slug or id, as the viewer sees it, in a transaction."""
    views = await make_views(tx, viewer, [await queries.find_contest(tx, name)])
    if not views:
        raise NotFound("contest", name)
    return views[0]


async def make_views(tx: Tx, viewer: Viewer, contests: Sequence[ContestRow]) -> list[ContestView]:
    """The contests as the viewer sees them, without those that are hidden from the viewer."""
    return [view for view in await _make_all(tx, viewer, contests) if is_visible(view)]


async def make_view(tx: Tx, viewer: Viewer, contest: ContestRow) -> ContestView:
    """The contest for a viewer who may know of it for another reason, for example by a registration code."""
    return (await _make_all(tx, viewer, [contest]))[0]


async def _make_all(tx: Tx, viewer: Viewer, contests: Sequence[ContestRow]) -> list[ContestView]:
    ids = [contest.id for contest in contests]
    roles, own = dict[str, frozenset[ContestRole]](), list[ParticipantRow]()
    if viewer.user_id is not None:
        roles = await queries.roles_of_user(tx, ids, viewer.user_id)
        own = await participants.of_user(tx, ids, viewer.user_id)
    times = await load_times_of(tx, contests)
    thawed = [contest_id for contest_id in ids if times[contest_id].phase() is ContestPhase.THAWED]
    published = await queries.published_problems(tx, thawed)
    return [
        ContestView(
            contest,
            times[contest.id],
            viewer,
            roles.get(contest.id, frozenset()) | implied_roles(viewer),
            [item for item in own if item.contest_id == contest.id],
            published.get(contest.id, frozenset()),
        )
        for contest in contests
    ]


def implied_roles(viewer: Viewer) -> frozenset[ContestRole]:
    """The roles that a viewer has in every contest."""
    if viewer.can(Permission.CONTEST_ADMIN):
        return _ALL_ROLES
    return frozenset({ContestRole.JUDGE}) if viewer.can(Permission.SUBMISSION_READ_ALL) else frozenset()


def is_visible(view: ContestView) -> bool:
    """Whether the viewer may know that the contest exists."""
    if view.viewer.only_contest_id not in (None, view.contest.id):
        return False
    if view.roles or view.is_tester:
        return True
    if view.contest.state is ContestState.DRAFT:
        return False
    return view.contest.settings.visibility is ContestVisibility.PUBLIC or bool(view.participants)
