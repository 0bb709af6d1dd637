"""Loads the data of a contest for the Contest API, and decides what the viewer may see of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests.ccs.live import runs_with_tests
from adjudge.contests.ccs.snapshot import KINDS, Audience, ContestLanguage, ContestSnapshot, SubmissionsSnapshot
from adjudge.contests.visibility import Access, RouteClass
from adjudge.judge.languages import Languages
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.image_info import ImageInfoCache
from adjudge.services.scoreboard_access import board_access
from adjudge.services.submit import SubmissionRulesCache
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import ccs, participants, queries, teams
from adjudge.store.contests.models import ContestProblemRow
from adjudge.store.judging import queries as submission_queries

_ALL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LoadedContest:
    """A contest as a viewer sees it, and the data of its objects."""

    view: ContestView
    snapshot: ContestSnapshot


@dataclass(frozen=True, slots=True)
class CcsLoader:
    """Reads contests; one snapshot takes a fixed number of statements.

    Teams are read only where they are needed: thousands of clients ask for languages and problems when a contest
    starts. So are pictures, which are not in the database.
    """

    database: Database
    languages: Languages
    rules: SubmissionRulesCache
    images: ImageInfoCache

    async def load(
        self, viewer: Viewer, name: str, *, with_teams: bool = True, with_images: bool = False
    ) -> LoadedContest:
        """The contest with everything but its submissions; without teams, only what the viewer is."""

        async def read(tx: Tx) -> LoadedContest:
            view = await find_view(tx, viewer, name)
            return LoadedContest(view, await (read_contest(tx, view) if with_teams else _read_own(tx, view)))

        found = await self.database.read(read)
        snapshot = found.snapshot
        revisions = {row.problem.revision_id: row.problem.problem_id for row in snapshot.problems}
        definitions = await self.rules.get_problems(revisions)
        languages = allowed_languages(self.languages, snapshot.contest.settings.allowed_languages)
        images = await self.images.find(image_digests(snapshot)) if with_images else {}
        complete = replace(snapshot, definitions=definitions, languages=languages, images=images)
        return replace(found, snapshot=complete)

    async def load_submissions(
        self, snapshot: ContestSnapshot, ids: Sequence[str] | None = None, *, with_tests: bool = False
    ) -> SubmissionsSnapshot:
        """All submissions, or those with the given (internal) ids, with their judge runs; tests only if asked for."""
        return await self.database.read(lambda tx: read_submissions(tx, snapshot, ids, with_tests=with_tests))


async def read_submissions(
    tx: Tx, snapshot: ContestSnapshot, ids: Sequence[str] | None, *, with_tests: bool
) -> SubmissionsSnapshot:
    """All submissions, or those with the given (internal) ids, with their judge runs and, if asked for, tests."""
    contest_id = snapshot.contest.id
    rows = await ccs.submissions(tx, contest_id, ids)
    runs = await ccs.judge_runs(tx, contest_id, None if ids is None else [row.submission_id for row in rows])
    current = {row.judged_by_job_id for row in rows}
    earlier = [run.id for run in runs if run.id not in current and run.finished_at is not None]
    results = await submission_queries.find_results(tx, earlier) if earlier else {}
    found = SubmissionsSnapshot(snapshot, rows, runs, results)
    if not with_tests:
        return found
    return replace(found, cases=await ccs.cases(tx, [run.id for _, run in runs_with_tests(found)]))


def image_digests(snapshot: ContestSnapshot) -> set[str]:
    """The photos of teams and the logos of organisations."""
    digests = {item.photo_digest for item in snapshot.teams.values()}
    digests |= {item.logo_digest for item in snapshot.all_organizations}
    return {item for item in digests if item is not None}


async def read_contest(tx: Tx, view: ContestView) -> ContestSnapshot:
    """The contest without the packages of its problems, its languages and its images."""
    contest_id = view.contest.id
    problems = await queries.problems(tx, contest_id)
    return ContestSnapshot(
        contest=view.contest,
        times=view.times,
        audience=audience_of(view, problems),
        problems=problems,
        all_participants=await participants.page(tx, contest_id, limit=_ALL),
        groups=await participants.groups(tx, contest_id),
        memberships=await participants.group_members(tx, contest_id),
        all_organizations=await teams.organizations_of_contest(tx, contest_id),
        teams=await teams.teams_of_contest(tx, contest_id),
        people=await ccs.people(tx, contest_id),
    )


async def _read_own(tx: Tx, view: ContestView) -> ContestSnapshot:
    """The contest with the viewer's own teams and account alone."""
    problems, user_id = await queries.problems(tx, view.contest.id), view.viewer.user_id
    return ContestSnapshot(
        contest=view.contest,
        times=view.times,
        audience=audience_of(view, problems),
        problems=problems,
        all_participants=view.participants,
        people=[] if user_id is None else await ccs.people(tx, view.contest.id, user_id),
    )


def audience_of(view: ContestView, problems: Sequence[ContestProblemRow]) -> Audience:
    """What the viewer may see now."""
    rows = board_access(view, is_jury=view.sees_all).rows
    sees_scoreboard = rows in (Access.PUBLIC_VIEW, Access.JURY_VIEW)
    return Audience(
        sees_all=view.sees_all,
        lists_submissions=view.access(RouteClass.OTHER_SUBMISSIONS) is not Access.NONE,
        verdicts=view.access(RouteClass.OTHER_VERDICTS),
        shows_details=view.access(RouteClass.OTHER_DETAILS) is not Access.NONE,
        own={
            item.id: view.access(RouteClass.OWN_SUBMISSIONS, is_own=True, participant=item)
            for item in view.participants
            if item.kind in KINDS
        },
        problem_ids=frozenset(row.problem.problem_id for row in problems if view.sees_problem(row.problem)),
        shows_labels=sees_scoreboard,
        sees_scoreboard=sees_scoreboard,
        user_id=view.viewer.user_id,
    )


def allowed_languages(known: Languages, names: Sequence[str] | None) -> list[ContestLanguage]:
    """The languages that contestants may use; of those for one file extension the default one is first."""
    ids = {known.get(name).id for name in names or ()}
    allowed = [item for item in known.offered() if names is None or item.id in ids or item.code in names]
    return [
        ContestLanguage(item.id, item.name, item.extensions, item.compile, item.run)
        for item in sorted(allowed, key=lambda item: not item.is_default)
    ]
