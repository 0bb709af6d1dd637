"""The Contest API: collections and single objects of a contest, as far as the viewer may see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests.ccs import configuration, live
from adjudge.contests.ccs.access import access_object, properties
from adjudge.contests.ccs.ids import judgement_of_run, parse_number
from adjudge.contests.ccs.live import VisibleClarification
from adjudge.contests.ccs.snapshot import ContestSnapshot, SubmissionsSnapshot
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, Object, convert
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import is_id
from adjudge.domain.states import ContestState
from adjudge.services.awards import AwardService
from adjudge.services.ccs_loading import CcsLoader, LoadedContest, audience_of
from adjudge.services.clarifications import ClarificationService
from adjudge.services.contest_access import ContestView
from adjudge.services.contests import ContestService
from adjudge.services.scoreboard_access import board_access
from adjudge.services.scoreboard_exports import ScoreboardExportService, state_times
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import ccs

_ALL: Final = 1_000_000
_MAX_CONTESTS: Final = 1_000
_WITHOUT_TEAMS: Final = frozenset(
    {
        CcsCollection.CONTEST,
        CcsCollection.STATE,
        CcsCollection.JUDGEMENT_TYPES,
        CcsCollection.LANGUAGES,
        CcsCollection.PROBLEMS,
        CcsCollection.COMMENTARY,
    }
)
"""Objects that do not depend on teams."""
_WITH_IMAGES: Final = frozenset({CcsCollection.TEAMS, CcsCollection.ORGANIZATIONS})
_OF_SUBMISSIONS: Final[Mapping[CcsCollection, Callable[[SubmissionsSnapshot], list[Object]]]] = {
    CcsCollection.SUBMISSIONS: live.submissions,
    CcsCollection.JUDGEMENTS: live.judgements,
    CcsCollection.RUNS: live.runs,
}
_CONFIGURED: Final[Mapping[CcsCollection, Callable[[ContestSnapshot], list[Object]]]] = {
    CcsCollection.JUDGEMENT_TYPES: configuration.judgement_types,
    CcsCollection.LANGUAGES: configuration.languages,
    CcsCollection.PROBLEMS: configuration.problems,
    CcsCollection.GROUPS: configuration.groups,
    CcsCollection.ORGANIZATIONS: configuration.organizations,
    CcsCollection.TEAMS: configuration.teams,
    CcsCollection.PERSONS: configuration.persons,
    CcsCollection.ACCOUNTS: configuration.accounts,
}


@dataclass(frozen=True, slots=True)
class CcsService:
    """Reads the objects of the Contest API."""

    loader: CcsLoader
    contests: ContestService
    clarifications: ClarificationService
    awards: AwardService
    exports: ScoreboardExportService

    async def list_contests(self, viewer: Viewer, version: CcsVersion) -> list[Object]:
        """The contests that the viewer may know of, newest first; canceled ones are left out."""
        views, _ = await self.contests.list_contests(viewer, before=None, limit=_MAX_CONTESTS)
        shown = [view for view in views if view.contest.state is not ContestState.CANCELED]
        snapshots = [ContestSnapshot(view.contest, view.times, audience_of(view, ())) for view in shown]
        objects = (convert(CcsCollection.CONTEST, configuration.contest_object(item), version) for item in snapshots)
        return [item for item in objects if item is not None]

    async def get_contest(self, viewer: Viewer, contest: str, version: CcsVersion) -> Object:
        """One contest."""
        found = await self.load(viewer, contest, with_teams=False)
        item = convert(CcsCollection.CONTEST, configuration.contest_object(found.snapshot), version)
        if item is None:
            raise NotFound("contest", contest)
        return item

    async def get_state(self, viewer: Viewer, contest: str) -> Object:
        """When the contest entered each state."""
        return live.state_object(state_times((await self.load(viewer, contest, with_teams=False)).view))

    async def get_access(self, viewer: Viewer, contest: str, version: CcsVersion) -> Object:
        """What the viewer may see and do."""
        found = await self.load(viewer, contest, with_teams=False)
        return access_object(found.snapshot, version, capabilities(found.view, version))

    async def get_account(self, viewer: Viewer, contest: str) -> Object:
        """The account of the viewer; visitors have none."""
        found = await self.load(viewer, contest, with_teams=False)
        if viewer.user_id is None:
            raise NotFound("account", contest)
        known = configuration.accounts(found.snapshot)
        own = next((item for item in known if item["id"] == viewer.user_id), None)
        return own or {"id": viewer.user_id, "username": viewer.name, "type": _implied_type(found.view)}

    async def list_objects(
        self,
        viewer: Viewer,
        contest: str,
        collection: CcsCollection,
        version: CcsVersion,
        filters: Mapping[str, str] | None = None,
    ) -> list[Object]:
        """A collection; ``filters`` are values of properties that are ids, an empty one for no value."""
        found = await self._load_for(viewer, contest, collection)
        served = properties(found.snapshot, collection, version)
        if not served:
            return []
        wanted = {name: value for name, value in (filters or {}).items() if is_filter(name) and name in served}
        ids = await self._submission_ids(found, collection, wanted)
        objects = await self.collect(found, collection, version, ids)
        if not wanted:
            return objects
        return [item for item in objects if all(item.get(name, "") == value for name, value in wanted.items())]

    async def get_object(
        self, viewer: Viewer, contest: str, collection: CcsCollection, object_id: str, version: CcsVersion
    ) -> Object:
        """One object of a collection; one that the viewer may not see is not found."""
        found = await self._load_for(viewer, contest, collection)
        ids = await self._submission_ids(found, collection, {"id": object_id})
        for item in await self.collect(found, collection, version, ids):
            if item["id"] == object_id:
                return item
        raise NotFound(str(collection).replace("-", "_").removesuffix("s"), object_id)

    async def load(
        self, viewer: Viewer, contest: str, *, with_teams: bool = True, with_images: bool = False
    ) -> LoadedContest:
        """The contest and its data; it is known by its slug only, and a canceled one is not found."""
        found = await self.loader.load(viewer, contest, with_teams=with_teams, with_images=with_images)
        if found.view.contest.slug != contest or found.view.contest.state is ContestState.CANCELED:
            raise NotFound("contest", contest)
        return found

    async def _load_for(self, viewer: Viewer, contest: str, collection: CcsCollection) -> LoadedContest:
        return await self.load(
            viewer,
            contest,
            with_teams=collection not in _WITHOUT_TEAMS,
            with_images=collection in _WITH_IMAGES,
        )

    async def collect(
        self,
        found: LoadedContest,
        collection: CcsCollection,
        version: CcsVersion,
        submission_ids: Sequence[str] | None = None,
    ) -> list[Object]:
        """The objects of a collection that the viewer may see, of some submissions (by internal id) or of all."""
        make = _OF_SUBMISSIONS.get(collection)
        if make is None:
            return _convert_all(collection, await self._canonical(found, collection), version)
        with_tests = collection is CcsCollection.RUNS
        rows = await self.loader.load_submissions(found.snapshot, submission_ids, with_tests=with_tests)
        # In a thread: tens of thousands of objects take seconds.
        return await asyncio.to_thread(lambda: _convert_all(collection, make(rows), version))

    async def _canonical(self, found: LoadedContest, collection: CcsCollection) -> list[Object]:
        if collection in _CONFIGURED:
            return _CONFIGURED[collection](found.snapshot)
        if collection is CcsCollection.CLARIFICATIONS:
            return await self._clarifications(found)
        if collection is CcsCollection.AWARDS:
            return await self._awards(found)
        return []

    async def _clarifications(self, found: LoadedContest) -> list[Object]:
        listed = await self.clarifications.list_clarifications(found.view.viewer, found.view.contest.id, limit=_ALL)
        rows = [VisibleClarification(item.row, item.groups) for item in listed.items]
        return live.clarifications(found.snapshot, rows)

    async def _awards(self, found: LoadedContest) -> list[Object]:
        access = board_access(found.view, is_jury=found.view.sees_all)
        return live.awards(found.snapshot, await self.awards.list_awards(access))

    async def get_scoreboard(
        self, viewer: Viewer, contest: str, version: CcsVersion, *, group: str | None = None
    ) -> Object:
        """The scoreboard that the viewer sees, of all ranked teams or of one group."""
        found = await self.load(viewer, contest, with_teams=group is not None)
        view, snapshot = found.view, found.snapshot
        group_id = None
        if group is not None:
            group_id = next((item.id for item in snapshot.shown_groups.values() if item.code == group), None)
            if group_id is None:
                raise InvalidInput(f"group_id: there is no group {group[:36]!r}.", field="group_id")
        access = board_access(view, is_jury=view.sees_all)
        return await self.exports.ccs_scoreboard(access, version, group_id=group_id)

    async def _submission_ids(
        self, found: LoadedContest, collection: CcsCollection, wanted: Mapping[str, str]
    ) -> list[str] | None:
        """The only submission that a single object or a filter can be about; None: all of them."""
        if collection not in _OF_SUBMISSIONS:
            return None
        number, job_id = wanted.get("submission_id"), wanted.get("judgement_id")
        if "id" in wanted:
            number = wanted["id"] if collection is CcsCollection.SUBMISSIONS else None
            job_id = wanted["id"] if collection is CcsCollection.JUDGEMENTS else judgement_of_run(wanted["id"])
        if number is None and job_id is None:
            return [] if "id" in wanted else None
        return await self.find_submission(found, number, job_id)

    async def find_submission(self, found: LoadedContest, number: str | None, job_id: str | None) -> list[str]:
        """The internal id of the submission with a number, or of that which a judgement is about; empty if none is."""
        contest_id = found.snapshot.contest.id

        async def read(tx: Tx) -> str | None:
            if number is not None:
                parsed = parse_number(number)
                return None if parsed is None else await ccs.find_submission_id(tx, contest_id, parsed)
            return await ccs.find_submission_of_run(tx, contest_id, job_id or "") if is_id(job_id or "") else None

        submission_id = await self.loader.database.read(read)
        return [] if submission_id is None else [submission_id]


def _convert_all(collection: CcsCollection, objects: Iterable[Object], version: CcsVersion) -> list[Object]:
    converted = (convert(collection, item, version) for item in objects)
    return [item for item in converted if item is not None]


def is_filter(name: str) -> bool:
    """Whether the property is an id of another object, by which collections can be filtered."""
    return name.endswith("_id") and name != "icpc_id"


def capabilities(view: ContestView, version: CcsVersion) -> list[str]:
    """What the viewer may do, whether or not it is possible now."""
    found: list[str] = []
    ask = "team_clar" if version is CcsVersion.V2023_06 else "post_clar"
    if view.is_organiser:
        found += ["contest_start", "contest_thaw", "proxy_submit", "proxy_clar"]
    if view.participants:
        found += ["team_submit", ask]
    elif view.is_jury and version is CcsVersion.V2026_01:
        found.append(ask)
    return found


def _implied_type(view: ContestView) -> str:
    """The type of an account without an own role: admins and judges of the installation have roles everywhere."""
    if view.is_organiser:
        return "admin"
    return "judge" if ContestRole.JUDGE in view.roles else "other"
