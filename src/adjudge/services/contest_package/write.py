"""Writes a contest package as a new contest, in the transaction of the caller: all of it, or nothing.

Results are inserted as they are and never judged again; only submissions without a result get a judge job. The state of
the contest follows its state machine, and the scoreboard is computed from the submissions at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.contests import lifecycle, scoreboard
from adjudge.contests.formats import get_format
from adjudge.contests.times import load_times
from adjudge.contests.transitions import find_transitions
from adjudge.domain.contest import MINUTE_US, ContestFormat
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.ids import IdFactory
from adjudge.domain.permissions import Role
from adjudge.domain.states import ContestState
from adjudge.judge.languages import Languages
from adjudge.packages.contest_package.model import (
    ContestObject,
    ContestPackage,
    ContestSettingsExtension,
    Extension,
    ProblemExtension,
)
from adjudge.packages.storing import new_revision
from adjudge.services.contest_package.files import OpenedPackage
from adjudge.services.contest_package.load import EXTENSION_SETTINGS
from adjudge.services.contest_package.submissions import SubmissionWriter
from adjudge.services.contest_package.write_people import REASON, PeopleWriter
from adjudge.services.contest_problem_specs import ContestProblemSpec, resolve_specs
from adjudge.services.package_import import PackageMetadata, new_problem
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import (
    awards,
    clarifications,
    commands,
    materials,
    package_import,
    queries,
)
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.activity_models import AwardRow, CannedAnswerRow, MaterialRow
from adjudge.store.contests.models import (
    ContestProblem,
    ContestSettings,
)
from adjudge.store.contests.package_import import RestoredClarification, RestoredInterval
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.ops import audit_log
from adjudge.store.problems import imports
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.imports import ImportResult
from adjudge.store.problems.models import ManifestFile


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files of a package after they were stored as blobs."""

    problems: Mapping[str, tuple[ManifestFile, ...]] = field(default_factory=dict)
    photos: Mapping[str, str] = field(default_factory=dict)
    """Team → digest."""
    materials: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Name → digest and size."""


@dataclass(slots=True)
class WrittenContest:
    """What was written."""

    contest_id: str
    created_users: set[str] = field(default_factory=set)
    """Names."""
    revisions: dict[str, int] = field(default_factory=dict)
    """Problems that got a new revision, by slug."""


def contest_settings(package: ContestPackage) -> ContestSettings:
    """The settings of the contest; without an extension, the defaults of its type of scoreboard."""
    item, extension = package.contest, package.extension
    given = ContestSettingsExtension() if extension is None else extension.contest
    kind = given.format
    if extension is None and not item.is_pass_fail:
        kind = ContestFormat.IOI
    values: dict[str, Any] = {name: getattr(given, name) for name in EXTENSION_SETTINGS}
    values |= {"format": kind, "format_cfg": _with_penalty(kind, given.format_cfg, item)}
    return ContestSettings(
        title=item.name,
        duration_us=item.duration_us,
        starts_at=item.start_at,
        countdown_pause_us=item.countdown_pause_us,
        freeze_ct_us=None if item.freeze_us is None else item.duration_us - item.freeze_us,
        **values,
    )


def _with_penalty(kind: ContestFormat, document: Mapping[str, Any], item: ContestObject) -> Mapping[str, Any]:
    scoring = get_format(kind)
    minutes = getattr(scoring.parse_config(document), "penalty_minutes", None)
    if item.penalty_us is None or minutes is None or minutes * MINUTE_US == item.penalty_us:
        return document
    if item.penalty_us % MINUTE_US:
        raise InvalidInput("penalty_time: must be whole minutes.", field="penalty_time")
    return {**document, "penalty_minutes": item.penalty_us // MINUTE_US}


class ContestWriter:
    """Writes one package in one transaction."""

    def __init__(
        self,
        tx: Tx,
        viewer: Viewer,
        opened: OpenedPackage,
        stored: StoredFiles,
        *,
        languages: Languages,
        jobs: JobCommands,
        hashes: Mapping[str, str],
        new_id: IdFactory,
    ) -> None:
        self._tx, self._viewer, self._opened, self._stored = tx, viewer, opened, stored
        self._languages, self._jobs, self._hashes, self._new_id = languages, jobs, hashes, new_id
        self._package = opened.package
        self._extension = opened.package.extension or Extension(1)
        self._written = WrittenContest(new_id())
        self._people = PeopleWriter(tx, viewer, self._package, self._written.contest_id, new_id=new_id)
        self._problems: dict[str, ContestProblem] = {}

    @property
    def _contest_id(self) -> str:
        return self._written.contest_id

    async def write(self, slug: str, settings: ContestSettings, *, with_submissions: bool) -> WrittenContest:
        """Write everything; without the submissions for a preview, which is rolled back."""
        tx, viewer = self._tx, self._viewer
        await commands.insert(tx, self._contest_id, slug, settings, created_by=viewer.id)
        self._written.created_users = await self._people.write_users(self._hashes)
        await self._people.write_groups()
        await self._write_problems()
        await self._people.write_participants(self._stored.photos)
        await self._write_intervals()
        await self._people.bind_accounts()
        await self._people.write_roles()
        await self._write_clarifications()
        await self._write_documents()
        if with_submissions:
            await self._write_submissions()
        await package_import.set_counters(tx, self._contest_id)
        await package_import.mark_read(tx, self._contest_id)
        await self._write_times()
        await self._write_state()
        await self._finish(slug)
        return self._written

    async def _write_problems(self) -> None:
        known = {item.id: item for item in self._extension.problems}
        specs = []
        for item in self._package.problems:
            extension = known.get(item.id)
            number = await self._find_revision(item.id, item.name, extension or ProblemExtension(item.id))
            specs.append(
                ContestProblemSpec(
                    problem=item.id,
                    label=item.label,
                    revision=number,
                    alias=await self._alias(item.id, item.name) if extension is None else extension.alias,
                    rgb=item.rgb,
                    color=item.color,
                    **_problem_values(extension or ProblemExtension(item.id)),
                )
            )
        problems = await resolve_specs(self._tx, self._viewer, self._contest_id, specs, self._languages)
        self._problems = {item.id: row for item, row in zip(self._package.problems, problems, strict=True)}
        await lifecycle.set_problems(self._tx, self._contest_id, problems, actor=self._viewer.id, reason=REASON)

    async def _find_revision(self, slug: str, title: str, extension: ProblemExtension) -> int | None:
        """The number of the revision with the tests of the package, which is added if there is none."""
        packaged, problem = self._opened.problems.get(slug), await problem_queries.find(self._tx, slug)
        digest = extension.digest if packaged is None else packaged.digest
        if problem is not None and digest:
            found = await problem_queries.find_revision_by_digest(self._tx, problem.id, digest)
            if found is not None:
                return found.number
        if packaged is None:
            return None
        metadata = PackageMetadata(slug, title or None, extension.tags or None)
        new = new_problem(packaged.package, self._viewer.id, metadata, self._new_id)
        files = self._stored.problems.get(slug, ())
        revision = new_revision(
            packaged.package, files, problem_id=new.id, created_by=self._viewer.id, new_id=self._new_id
        )
        rights = ImportResult(may_edit_others_problems=self._viewer.role is Role.ADMIN)
        added = await imports.add_imported_revision(self._tx, new, revision, rights)
        if added is None:
            raise Conflict(f"problems: the problem {slug!r} belongs to another user and has other tests.")
        self._written.revisions[slug] = added.number
        return added.number

    async def _alias(self, slug: str, name: str) -> str | None:
        problem = await problem_queries.find(self._tx, slug)
        return None if problem is None or not name or problem.title == name else name

    async def _write_intervals(self) -> None:
        rows = [
            RestoredInterval(
                self._new_id(), self._contest_id, item.from_at, item.to_at, item.undone_at, item.reason, self._viewer.id
            )
            for item in self._extension.removed_intervals
        ]
        await package_import.insert_intervals(self._tx, rows)

    async def _write_clarifications(self) -> None:
        items = self._extension.clarifications
        ids = {item.number: self._new_id() for item in items}
        rows = [
            RestoredClarification(
                id=ids[item.number],
                contest_id=self._contest_id,
                number=item.number,
                from_participant_id=None if item.from_team is None else self._people.participants[item.from_team],
                audience=item.audience,
                to_participant_id=None if item.to_team is None else self._people.participants[item.to_team],
                reply_to_id=None if item.reply_to is None else ids[item.reply_to],
                problem_id=None if item.problem is None else self._problems[item.problem].problem_id,
                category=item.category,
                body=item.body,
                created_by=self._people.users[item.created_by],
                created_at=item.created_at,
                claimed_by=None if item.claimed_by is None else self._people.users[item.claimed_by],
                answered_at=item.answered_at,
            )
            for item in items
        ]
        groups = [(ids[item.number], self._people.groups[code]) for item in items for code in item.to_groups]
        await package_import.insert_clarifications(self._tx, rows, groups)

    async def _write_documents(self) -> None:
        """Canned answers, awards and materials."""
        canned = [
            CannedAnswerRow(self._new_id(), self._contest_id, index, item.title, item.body)
            for index, item in enumerate(self._extension.canned_answers)
        ]
        await clarifications.insert_canned(self._tx, canned)
        found = [
            AwardRow(
                self._contest_id,
                item.id,
                item.citation,
                tuple(self._people.participants[code] for code in item.teams),
                item.managed,
                index,
            )
            for index, item in enumerate(self._extension.awards)
        ]
        await awards.upsert_awards(self._tx, found)
        files = [
            MaterialRow(
                self._new_id(), self._contest_id, item.name, item.title, item.visible,
                *self._stored.materials[item.name], self._viewer.id,
            )
            for item in self._extension.materials
            if item.name in self._stored.materials
        ]  # fmt: skip
        await materials.upsert(self._tx, files)

    async def _write_submissions(self) -> None:
        writer = SubmissionWriter(
            self._tx,
            self._jobs,
            contest_id=self._contest_id,
            actor=self._viewer.id,
            problems=self._problems,
            people=self._people.participants,
            users=self._people.users,
            source_bytes=self._opened.source_bytes,
            new_id=self._new_id,
        )
        await writer.write_sources(self._opened)
        await writer.write_all(self._opened.records())

    async def _write_times(self) -> None:
        """The freeze and the thaw, and the scoreboard that follows from them."""
        await scoreboard_store.lock_exclusive(self._tx, self._contest_id)
        contest = await commands.lock(self._tx, self._contest_id)
        frozen_at, thaw_at = self._extension.contest.frozen_at, self._package.contest.thaw_at
        if frozen_at is not None or thaw_at is not None:
            await commands.set_times(
                self._tx, contest, actor=self._viewer.id, reason=REASON, frozen_at=frozen_at, thaw_at=thaw_at
            )
        await scoreboard.refold_all(self._tx, self._contest_id)

    async def _write_state(self) -> None:
        """Follow the edges of the state machine to the state of the package."""
        tx, item, actor = self._tx, self._extension.contest, self._viewer.id
        if item.state is ContestState.DRAFT:
            return
        await lifecycle.publish(tx, self._contest_id, actor=actor, reason=REASON)
        if item.state is ContestState.CANCELED:
            await lifecycle.cancel(tx, self._contest_id, actor=actor, reason=REASON)
        if item.state is ContestState.FINALIZED:
            await lifecycle.finalize(tx, self._contest_id, actor=actor, reason=REASON)
            if item.finalized_at is None:
                raise InvalidInput("contest.finalized_at: is missing.", field="contest.finalized_at")
            await package_import.set_finalized(
                tx,
                self._contest_id,
                finalized_at=item.finalized_at,
                end_of_updates_at=item.end_of_updates_at,
            )

    async def _finish(self, slug: str) -> None:
        """Record the past transitions as announced, so that nobody is notified of them; write the audit log."""
        contest = await queries.find_contest(self._tx, self._contest_id)
        if contest.state in (ContestState.PUBLISHED, ContestState.FINALIZED):
            past = find_transitions(contest, await load_times(self._tx, contest))
            await commands.announce(self._tx, [(self._contest_id, name, at) for name, at in sorted(past.items())])
        details = {
            "slug": slug,
            "problems": len(self._package.problems),
            "teams": len(self._package.people.teams),
            "accounts": len(self._written.created_users),
            "submissions": self._opened.submission_count,
        }
        await audit_log.record(
            self._tx,
            actor=self._viewer.id,
            action="contest.import",
            object_kind="contest",
            objects={self._contest_id: details},
            reason="",
        )


def _problem_values(item: ProblemExtension) -> dict[str, Any]:
    names = ("points_micro", "opens_ct_us", "closes_ct_us", "accepts", "judging_paused", "allowed_languages")
    return {name: getattr(item, name) for name in names}
