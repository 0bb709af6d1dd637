"""What clients of DOMjudge ask for beyond the Contest API: accounts, new contests, printing and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.contests.ccs.verdicts import TYPES
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, Object
from adjudge.domain.errors import Conflict, Forbidden, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.judge.sources import ProgramSource
from adjudge.services.ccs import CcsService
from adjudge.services.contest_access import ContestView, find_view, make_views
from adjudge.services.contests import ContestService
from adjudge.services.domjudge_files import ContestFile
from adjudge.services.prints import PrintService, may_print
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.accounts.users import UserRow
from adjudge.store.contests import hidden, participants
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import PrintRow
from adjudge.store.contests.models import ContestSettings, ParticipantRow

VERSION: Final = CcsVersion.V2023_06
_TYPE: Final = "judgement_type_id"


@dataclass(frozen=True, slots=True)
class OwnAccount:
    """The account of the viewer, with the participant of the contest that was registered last."""

    user: UserRow
    participant: ParticipantRow | None
    has_jury_rights: bool


@dataclass(frozen=True, slots=True)
class PrintedFile:
    """A print job and its contest."""

    contest: str
    row: PrintRow


@dataclass(frozen=True, slots=True)
class DomjudgeService:
    """Operations of DOMjudge's own endpoints."""

    database: Database
    contests: ContestService
    prints: PrintService
    sources: SubmissionSourceService
    ccs: CcsService

    async def list_problems(self, viewer: Viewer, contest: str, filters: Mapping[str, str]) -> list[Object]:
        """The problems of the Contest API, with the slug as ``externalid``."""
        found = await self.ccs.load(viewer, contest, with_teams=False)
        slugs = {row.problem.label: row.slug for row in found.snapshot.problems}
        problems = await self.ccs.list_objects(viewer, contest, CcsCollection.PROBLEMS, VERSION, filters)
        return [{**item, "short_name": item["label"], **_external_id(item, slugs)} for item in problems]

    async def list_judgements(
        self, viewer: Viewer, contest: str, filters: Mapping[str, str], *, own_types: bool
    ) -> list[Object]:
        """The judgements of the Contest API; superseded ones are not listed, so all are valid.

        With ``own_types`` they have types that DOMjudge has: tools for it stop at others.
        """
        judgements = await self.ccs.list_objects(viewer, contest, CcsCollection.JUDGEMENTS, VERSION, filters)
        return [{**(_own_type(item) if own_types else item), "valid": True} for item in judgements]

    async def get_account(self, viewer: Viewer) -> OwnAccount:
        """The account of the viewer."""

        async def read(tx: Tx) -> OwnAccount:
            own = [view.participant for view in await _own_views(tx, viewer) if view.participant is not None]
            has_rights = viewer.can(Permission.PROBLEM_WRITE) or viewer.can(Permission.CONTEST_CREATE)
            return OwnAccount(await users.find(tx, viewer.id), own[-1] if own else None, has_rights)

        return await self.database.read(read)

    async def create_contest(self, viewer: Viewer, file: ContestFile) -> ContestView:
        """Create a contest of the ICPC format, as a draft."""
        viewer.require(Permission.CONTEST_CREATE)
        freeze_ct_us = None if file.freeze_us is None else file.duration_us - file.freeze_us
        settings = ContestSettings(
            file.title,
            file.duration_us,
            format_cfg={} if file.penalty_min is None else {"penalty_minutes": file.penalty_min},
            starts_at=file.starts_at,
            freeze_ct_us=freeze_ct_us,
        )
        return await self.contests.create(viewer, file.slug, settings)

    async def print_file(self, viewer: Viewer, file_name: str, data: bytes) -> PrintedFile:
        """Send a file to the printer of the contest in which the viewer may print now."""
        views = await self.database.read(lambda tx: _own_views(tx, viewer))
        if not views:
            raise Forbidden("You take part in no contest.")
        open_views = [view for view in views if may_print(view)]
        if len(open_views) > 1:
            names = ", ".join(view.contest.slug for view in open_views)
            raise Conflict(f"You can print in several contests ({names}); use the page of the contest.")
        contest = (open_views or views)[-1].contest.slug  # the last one tells the reason
        row = await self.prints.submit(viewer, contest, file_name, data.decode("utf-8", "replace"))
        return PrintedFile(contest, row)

    async def get_source(self, viewer: Viewer, contest: str, number: int) -> ProgramSource:
        """The files of a submission of a contest, for those who may see it."""

        async def read(tx: Tx) -> str:
            view = await find_view(tx, viewer, contest)
            return (await contest_submissions.find_by_number(tx, view.contest.id, number)).submission_id

        submission_id = await self.database.read(read)
        try:
            return await self.sources.get_files(viewer, submission_id)
        except NotFound:
            raise NotFound("submission", str(number)) from None  # not the id of one that the viewer may not know of


def _own_type(judgement: Object) -> Object:
    """A memory limit is a run-time error there, and a judging error is pending."""
    kind = judgement.get(_TYPE)
    if kind == TYPES[Verdict.MLE]:
        return {**judgement, _TYPE: TYPES[Verdict.RE]}
    if kind == TYPES[Verdict.SE]:
        return {name: value for name, value in judgement.items() if name != _TYPE}
    return judgement


def _external_id(problem: Object, slugs: Mapping[str, str]) -> Object:
    """The slug of a problem that the viewer may see; of others only the label is known."""
    return {"externalid": slugs[problem["id"]]} if "uuid" in problem else {}


async def _own_views(tx: Tx, viewer: Viewer) -> list[ContestView]:
    """The contests in which the viewer takes part, oldest first."""
    ids = sorted(await participants.contests_of_user(tx, viewer.id))
    rows = {row.id: row for row in await hidden.find_contests(tx, ids)}
    return await make_views(tx, viewer, [rows[contest_id] for contest_id in ids])
