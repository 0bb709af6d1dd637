"""The objects of an event feed: those of the Contest API in the view of visitors, of participants, or of the jury."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cachetools import LRUCache, TTLCache

from adjudge.contests.awards import Award
from adjudge.contests.ccs import configuration, live
from adjudge.contests.ccs.access import properties
from adjudge.contests.ccs.feed import FeedObject, FeedScope, FeedView, feed_object
from adjudge.contests.ccs.live import VisibleClarification
from adjudge.contests.ccs.snapshot import ContestSnapshot, ImageInfo
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, Object
from adjudge.contests.load_board import load_board
from adjudge.domain.contest import ContestPhase, ContestRole, ParticipantKind
from adjudge.domain.problem import Problem
from adjudge.judge.languages import Languages
from adjudge.packages.problem_json import problem_from_json
from adjudge.services.awards import with_stored
from adjudge.services.ccs_loading import allowed_languages, image_digests, read_contest, read_submissions
from adjudge.services.clarifications import read_visible
from adjudge.services.contest_access import ContestView
from adjudge.services.image_info import ImageInfoCache
from adjudge.services.scoreboard_access import board_access
from adjudge.services.scoreboard_exports import state_times
from adjudge.services.viewer import OUTSIDER
from adjudge.store import Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestRow, ParticipantRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.judging import submit_batch

_MAX_REVISIONS: Final = 1_000
_MAX_IMAGES: Final = 10_000
_UNREADABLE_SEC: Final = 60.0
"""How long a picture that could not be read is left out before it is tried again."""
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
"""In an order in which objects refer to earlier ones only."""


class CcsFeedSource:
    """Loads the objects of a view in the caller's transaction."""

    data_parts: Sequence[str] = (CcsCollection.CONTEST, *_CONFIGURED, CcsCollection.CLARIFICATIONS)

    def __init__(self, languages: Languages, images: ImageInfoCache) -> None:
        self._languages = languages
        self._images = images
        self._definitions: LRUCache[str, Problem] = LRUCache(_MAX_REVISIONS)
        self._known_images: LRUCache[str, ImageInfo] = LRUCache(_MAX_IMAGES)
        self._unreadable_images: TTLCache[str, bool] = TTLCache(_MAX_IMAGES, _UNREADABLE_SEC)
        self._missing_images: set[str] = set()

    async def load_data(self, tx: Tx, scope: FeedScope) -> list[FeedObject]:
        """Everything but submissions, awards and the state."""
        view = await make_feed_view(tx, scope)
        snapshot = await self._snapshot(tx, view)
        found = [_single(CcsCollection.CONTEST, configuration.contest_object(snapshot))]
        for collection, make in _CONFIGURED.items():
            if properties(snapshot, collection, CcsVersion.V2026_01):
                found += _objects(collection, make(snapshot))
        rows = [VisibleClarification(row, groups) for row, groups in await read_visible(tx, view)]
        return found + _objects(CcsCollection.CLARIFICATIONS, live.clarifications(snapshot, rows))

    async def load_awards(self, tx: Tx, scope: FeedScope) -> list[FeedObject]:
        """The awards of the scoreboard that the view shows."""
        view = await make_feed_view(tx, scope)
        awards = await _read_awards(tx, view)
        return _objects(CcsCollection.AWARDS, live.awards(await read_contest(tx, view), awards))

    async def load_submissions(self, tx: Tx, scope: FeedScope, ids: Sequence[str]) -> list[FeedObject]:
        """Submissions in number order, each followed by its judgements and their runs."""
        snapshot = await self._snapshot(tx, await make_feed_view(tx, scope))
        rows = await read_submissions(tx, snapshot, ids, with_tests=True)
        runs, judgements = _grouped(live.runs(rows), "judgement_id"), _grouped(live.judgements(rows), "submission_id")
        parts = {str(row.number): row.submission_id for row in rows.rows}
        found = []
        for submission in live.submissions(rows):
            part = parts[submission["id"]]
            found.append(feed_object(part, CcsCollection.SUBMISSIONS, submission["id"], submission))
            for judgement in judgements.get(submission["id"], ()):
                found.append(feed_object(part, CcsCollection.JUDGEMENTS, judgement["id"], judgement))
                found += _objects(CcsCollection.RUNS, runs.get(judgement["id"], ()), part)
        return found

    async def load_state(self, tx: Tx, scope: FeedScope) -> FeedObject:
        """When the contest entered each state."""
        return _single(CcsCollection.STATE, live.state_object(state_times(await make_feed_view(tx, scope))))

    async def load_missing(self) -> bool:
        """Read the pictures that the objects lacked, which are not in the database; return whether one was read."""
        missing, self._missing_images = self._missing_images, set()
        found = await self._images.find(missing)
        self._known_images.update(found)
        self._unreadable_images.update(dict.fromkeys(missing - found.keys(), True))  # the feed goes on without them
        return bool(found)

    def _pictures(self, snapshot: ContestSnapshot) -> dict[str, ImageInfo]:
        wanted = image_digests(snapshot)
        found = {item: self._known_images[item] for item in wanted if item in self._known_images}
        self._missing_images |= {item for item in wanted - found.keys() if item not in self._unreadable_images}
        return found

    async def _snapshot(self, tx: Tx, view: ContestView) -> ContestSnapshot:
        snapshot = await read_contest(tx, view)
        revisions = [row.problem.revision_id for row in snapshot.problems]
        missing = [item for item in revisions if item not in self._definitions]  # revisions never change
        if missing:
            found = await submit_batch.find_definitions(tx, missing)
            self._definitions.update({item: problem_from_json(document) for item, document in found.items()})
        definitions = {item: self._definitions[item] for item in revisions}
        languages = allowed_languages(self._languages, snapshot.contest.settings.allowed_languages)
        return replace(snapshot, definitions=definitions, languages=languages, images=self._pictures(snapshot))


async def make_feed_view(tx: Tx, scope: FeedScope) -> ContestView:
    """The contest as somebody sees it who has nothing of their own in it."""
    contest, times = scope.contest, scope.times
    is_thawed = times.phase() is ContestPhase.THAWED
    published = await queries.published_problems(tx, [contest.id]) if is_thawed else {}
    roles = frozenset({ContestRole.API_READER}) if scope.view is FeedView.JURY else frozenset[ContestRole]()
    participants = [_nobody(contest)] if scope.view is FeedView.PARTICIPANT else []
    return ContestView(contest, times, OUTSIDER, roles, participants, published.get(contest.id, frozenset()))


def _nobody(contest: ContestRow) -> ParticipantRow:
    """A participant without submissions and clarifications, and with the clock of the contest."""
    return ParticipantRow(
        id="",
        contest_id=contest.id,
        code="",
        name="",
        kind=ParticipantKind.OFFICIAL,
        team_id=None,
        user_id=None,
        run_no=0,
        organization_id=None,
        label=None,
        location=None,
        hidden=False,
        disqualified_at=None,
        started_at=None,
        delay_us=0,
        extra_us=0,
        penalty_adjust_sec=0,
        version=1,
    )


async def _read_awards(tx: Tx, view: ContestView) -> list[Award]:
    key = board_access(view, is_jury=view.sees_all).key
    if key is None:
        return []
    board = (await load_board(tx, view.contest, key.view)).board
    stored = await award_store.awards(tx, view.contest.id) if key.view == JURY else []
    return with_stored(board, view.contest, stored)


def _single(collection: CcsCollection, item: Object) -> FeedObject:
    return feed_object(collection, collection, "", item)


def _objects(collection: CcsCollection, items: Iterable[Object], part: str | None = None) -> list[FeedObject]:
    return [feed_object(part or collection, collection, item["id"], item) for item in items]


def _grouped(items: Iterable[Object], key: str) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for item in items:
        found.setdefault(item[key], []).append(item)
    return found
