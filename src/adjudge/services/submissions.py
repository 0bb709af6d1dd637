"""Submissions: read, wait for, cancel, change manually. Decides which parts of them a viewer may see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from adjudge.cache.policies import POLICIES, CacheEntity
from adjudge.cache.two_tier import TwoTierCache
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.errors import Forbidden, NotFound, VersionConflict
from adjudge.domain.ids import parse_number, uuid7
from adjudge.domain.permissions import Permission
from adjudge.domain.states import JOB, SUBMISSION, JobStatus, SubmissionStatus
from adjudge.judge.result_document import coarse_case
from adjudge.services.event_feed import EventFeed
from adjudge.services.problems import user_list_cache_key
from adjudge.services.submission_access import (
    SubmissionRights,
    find_hidden_contests,
    find_rights,
    rights_outside_contests,
)
from adjudge.services.submit import SubmissionRulesCache
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import hidden
from adjudge.store.jobs import dead_letters, progress
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.dead_letters import JobAttemptRow
from adjudge.store.jobs.progress import JobProgressRow
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import (
    JobStatusChange,
    JudgeRunRow,
    ProblemRef,
    SubmissionFilter,
    SubmissionRow,
    SubmissionStatusChange,
)
from adjudge.store.judging.queries import MAX_ID
from adjudge.store.ops import audit_log

WAIT_MOST_SEC = 60
_REPORT_SEC = POLICIES[CacheEntity.SUBMISSION_STATUS].ttl_sec + 1
"""Changes are reported for as long as a status that is read now can stay in the cache."""
_MILLISECOND = 1_000
_MAX_SKEW_MS = 60_000
"""Allowed clock difference: ids contain the time of a server, timestamps are the database's."""


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """The judgement of a submission, reduced to what the viewer may see."""

    row: SubmissionRow
    is_jury: bool
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class RunFound:
    """The judgement of one judge run, reduced to what the viewer may see."""

    run: JudgeRunRow
    is_jury: bool
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class SubmissionDetail:
    """Everything a page shows about a submission, read in one snapshot and reduced to what the viewer may see."""

    row: SubmissionRow
    rights: SubmissionRights
    document: Mapping[str, Any] | None
    runs: list[JudgeRunRow]
    log: list[SubmissionStatusChange]
    made: JobProgressRow | None
    """The progress of judging, while it is running."""
    run_id: str | None = None
    """The judge run whose result is shown, if it is not the one that determines the verdict."""


@dataclass(frozen=True, slots=True)
class SubmissionService:
    """Reading, waiting for and changing submissions and their judge runs."""

    database: Database
    jobs: JobCommands
    cache: TwoTierCache
    rules: SubmissionRulesCache
    feed: EventFeed

    async def resolve_id(self, viewer: Viewer, reference: str) -> str:
        """The id of a submission that is given by id or number; one that the viewer may not see is not found."""
        number = parse_number(reference)
        if number is None:
            return reference

        async def read(tx: Tx) -> str | None:
            found = await submission_queries.find_id(tx, number)
            if found is None:
                return None
            row = await submission_queries.find_submission(tx, found)
            return found if (await find_rights(tx, viewer, [row]))[found].is_visible else None

        submission_id = await self.database.read(read)
        if submission_id is None:
            raise NotFound("submission", reference)
        return submission_id

    async def get_submission(self, viewer: Viewer, submission_id: str, *, wait_sec: float = 0) -> SubmissionRow:
        """A submission; with ``wait_sec``, wait up to that time until it is finished."""

        async def load() -> bytes | None:
            await self.feed.report_changes(partial(self.cache.invalidate, CacheEntity.SUBMISSION_STATUS), _REPORT_SEC)
            try:
                row = await self.database.read(lambda tx: submission_queries.find_submission(tx, submission_id))
            except NotFound:
                return None
            return json.dumps(asdict(row)).encode()

        found = await self.cache.get(CacheEntity.SUBMISSION_STATUS, submission_id, load)
        if found is None:
            raise NotFound("submission", submission_id)
        stored = SubmissionRow(**json.loads(found.body))
        rights = await self._rights(viewer, stored)
        row = rights.reduce(stored)
        self._invalidate_user_lists(row)
        if wait_sec > 0 and row.finished_at is None and rights.shows_verdict:  # an early reply would tell of a verdict
            await self.feed.wait_submission_finished(submission_id, min(wait_sec, WAIT_MOST_SEC))
            row = await self.get_submission_uncached(viewer, submission_id)
        return row

    async def _rights(self, viewer: Viewer, row: SubmissionRow) -> SubmissionRights:
        if row.contest_id is None:
            return rights_outside_contests(viewer, row)
        return (await self.database.read(lambda tx: find_rights(tx, viewer, [row])))[row.id]

    async def get_submission_uncached(self, viewer: Viewer, submission_id: str) -> SubmissionRow:
        """The current state of a submission, read from the database."""
        return (await self.find_with_rights(viewer, submission_id))[0]

    async def find_with_rights(self, viewer: Viewer, submission_id: str) -> tuple[SubmissionRow, SubmissionRights]:
        """The current state of a submission, reduced to what the viewer may see, and what that is."""
        self.cache.invalidate(CacheEntity.SUBMISSION_STATUS, submission_id)

        async def read(tx: Tx) -> tuple[SubmissionRow, SubmissionRights]:
            row = await submission_queries.find_submission(tx, submission_id)
            return row, (await find_rights(tx, viewer, [row]))[row.id]

        stored, rights = await self.database.read(read)
        row = rights.reduce(stored)
        self._invalidate_user_lists(row)
        return row, rights

    async def find_rights(self, viewer: Viewer, submission_ids: Sequence[str]) -> dict[str, SubmissionRights]:
        """What the viewer may see of submissions, by id."""

        async def read(tx: Tx) -> dict[str, SubmissionRights]:
            return await find_rights(tx, viewer, await submission_queries.find_submissions(tx, submission_ids))

        return await self.database.read(read)

    def _invalidate_user_lists(self, row: SubmissionRow) -> None:
        """Invalidate the problem lists of the author, which show whether a problem is solved."""
        if row.verdict is not None:
            self.cache.revisions.bump_local_once(user_list_cache_key(row.user_id), cause=f"{row.id}@{row.version}")

    async def list_submissions(
        self, viewer: Viewer, wanted: SubmissionFilter, *, problem: str | None, before: str | None, limit: int
    ) -> list[SubmissionRow]:
        """A page of the visible submissions: all for staff, those to own problems for setters, else the own ones."""
        owned_problem_id = None
        if problem is not None:
            found = await self._problem(viewer, problem)
            wanted = replace(wanted, problem_id=found.id)
            owned_problem_id = found.id if _owns(viewer, found) else None
        if not viewer.can(Permission.SUBMISSION_READ_ALL) and owned_problem_id is None:
            if wanted.user_id not in (None, viewer.user_id):
                raise Forbidden("user: you can only list your own submissions.")
            wanted = replace(wanted, user_id=viewer.id)
        if viewer.only_contest_id is not None:
            if wanted.contest_id not in (None, viewer.only_contest_id):
                return []
            wanted = replace(wanted, contest_id=viewer.only_contest_id)
        if wanted.since_us is not None:
            wanted = replace(wanted, from_id=_id_at(wanted.since_us // _MILLISECOND - _MAX_SKEW_MS))
        until_id = MAX_ID if wanted.until_us is None else _id_at(wanted.until_us // _MILLISECOND + _MAX_SKEW_MS)
        start = min(before or MAX_ID, until_id)
        by_result = wanted.status is not None or wanted.verdict is not None

        async def read(tx: Tx) -> list[SubmissionRow]:
            left_out = await find_hidden_contests(tx, viewer, owned_problem_id=owned_problem_id, by_result=by_result)
            shown = replace(wanted, hidden_contests=hidden.join_ids(left_out))
            rows = await submission_queries.page(tx, shown, before=start, limit=limit)
            rights = await find_rights(tx, viewer, rows)
            return [rights[row.id].reduce(row) for row in rows if rights[row.id].is_visible]

        return await self.database.read(read)

    async def _problem(self, viewer: Viewer, name: str) -> ProblemRef:
        """The problem to filter by; the draft of another user is not found.

        A withdrawn problem is still found by users who submitted to it.
        """
        found = await self.rules.find_problem(name)
        if found is None:
            raise NotFound("problem", name)
        if found.published_revision_id is not None or viewer.can(Permission.PROBLEM_READ_DRAFT) or _owns(viewer, found):
            return found
        own = SubmissionFilter(user_id=viewer.id, problem_id=found.id)
        if not await self.database.read(lambda tx: submission_queries.page(tx, own, before=MAX_ID, limit=1)):
            raise NotFound("problem", name)
        return found

    async def get_results(self, viewer: Viewer, submission_id: str) -> SubmissionResult:
        """The results by test, reduced to what the viewer may see."""
        row, rights = await self.find_with_rights(viewer, submission_id)
        document = None
        if row.finished_at is not None and row.job_id is not None:
            job_id = row.job_id
            document = await self.database.read(lambda tx: submission_queries.find_result(tx, job_id))
        return SubmissionResult(row, rights.is_jury, rights.document(document))

    async def get_detail(self, viewer: Viewer, submission_id: str, run_id: str = "") -> SubmissionDetail:
        """Everything about a submission, read in one snapshot.

        With ``run_id``, the result of that judge run replaces the one that determines the verdict.
        """
        self.cache.invalidate(CacheEntity.SUBMISSION_STATUS, submission_id)

        async def read(tx: Tx) -> SubmissionDetail:
            stored = await submission_queries.find_submission(tx, submission_id)
            rights = (await find_rights(tx, viewer, [stored]))[stored.id]
            row = rights.reduce(stored)
            has_ended = row.finished_at is not None
            found = await submission_queries.list_judge_runs(tx, submission_id)
            under_way = [run.id for run in found if run.finished_at is None][:1]
            made = {} if has_ended else await progress.find_by_jobs(tx, under_way)
            return SubmissionDetail(
                row,
                rights,
                await submission_queries.find_result(tx, row.job_id) if has_ended and row.job_id is not None else None,
                rights.runs(row, found),
                rights.log(await submission_queries.list_submission_status_log(tx, submission_id)),
                _progress_for(rights, next(iter(made.values()), None)),
            )

        found = await self.database.read(read)
        self._invalidate_user_lists(found.row)
        if run_id and run_id != found.row.job_id:
            return await self._run_detail(found, run_id)
        return replace(found, document=found.rights.document(found.document))

    async def _run_detail(self, found: SubmissionDetail, run_id: str) -> SubmissionDetail:
        run = next((run for run in found.runs if run.id == run_id), None)
        if run is None:
            raise NotFound("judge_run", run_id)
        result = await self.database.read(lambda tx: submission_queries.find_result(tx, run_id))
        document = found.rights.document(result)
        shown = document or {}
        row = replace(
            found.row,
            verdict=shown.get("verdict"),
            score=shown.get("score"),
            time_ms=shown.get("time_ms"),
            mem_kb=shown.get("mem_kb"),
            finished_at=run.finished_at,
        )
        return replace(found, row=row, document=document, made=None, run_id=run_id)

    async def list_status_changes(self, viewer: Viewer, submission_id: str) -> list[SubmissionStatusChange]:
        """All status changes of a submission; only staff see the actor."""
        _, rights = await self.find_with_rights(viewer, submission_id)
        return rights.log(
            await self.database.read(lambda tx: submission_queries.list_submission_status_log(tx, submission_id))
        )

    async def cancel_submission(self, viewer: Viewer, submission_id: str, reason: str) -> SubmissionRow:
        """Cancel a submission that has no verdict yet: the viewer's own, or any for staff."""
        row, rights = await self.find_with_rights(viewer, submission_id)
        if row.contest_id is not None and not rights.is_jury:
            raise Forbidden("Submissions of a contest cannot be canceled by their authors.")
        if row.contest_id is None and row.user_id != viewer.user_id:
            viewer.require(Permission.SUBMISSION_CANCEL_ALL)

        async def operation(tx: Tx) -> None:
            await SubmissionCommands(self.jobs).cancel(tx, submission_id, actor=viewer.id, reason=reason or "canceled")
            if row.user_id != viewer.user_id:
                await audit_log.record(
                    tx,
                    actor=viewer.id,
                    action="cancel",
                    object_kind="submission",
                    objects=[submission_id],
                    reason=reason,
                )

        await self.database.transact(operation)
        return await self.get_submission_uncached(viewer, submission_id)

    async def change_status(
        self, viewer: Viewer, submission_id: str, *, version: int, status: str, verdict: str | None, reason: str
    ) -> SubmissionRow:
        """Change a status manually; it is guarded by the version and recorded in the audit log."""

        async def operation(tx: Tx) -> None:
            await SubmissionCommands(self.jobs, listener=CONTEST_LISTENER).change_status(
                tx, submission_id, version=version, status=status, actor=viewer.id, reason=reason, verdict=verdict
            )
            details = {submission_id: {"status": status, "verdict": verdict, "version": version}}
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="change_status",
                object_kind="submission",
                objects=details,
                reason=reason,
            )

        await self.database.transact(operation)
        return await self.get_submission_uncached(viewer, submission_id)

    async def list_judge_runs(self, viewer: Viewer, submission_id: str) -> list[JudgeRunRow]:
        """The judge runs of a submission; only staff see those of a rejudge batch that is not applied."""
        row, rights = await self.find_with_rights(viewer, submission_id)
        return rights.runs(
            row, await self.database.read(lambda tx: submission_queries.list_judge_runs(tx, submission_id))
        )

    async def get_judge_run(self, viewer: Viewer, job_id: str) -> JudgeRunRow:
        """One judge run, if the viewer may see its submission."""
        return (await self._run_and_rights(viewer, job_id))[0]

    async def run_results(self, viewer: Viewer, job_id: str) -> RunFound:
        """The result of one judge run, reduced to what the viewer may see."""
        run, rights = await self._run_and_rights(viewer, job_id)
        document = None
        if run.finished_at is not None:
            document = await self.database.read(lambda tx: submission_queries.find_result(tx, job_id))
        return RunFound(run, rights.is_jury, rights.document(document))

    async def _run_and_rights(self, viewer: Viewer, job_id: str) -> tuple[JudgeRunRow, SubmissionRights]:
        run = await self.database.read(lambda tx: submission_queries.find_judge_run(tx, job_id))
        try:
            row, rights = await self.find_with_rights(viewer, run.submission_id or "")
        except NotFound:
            raise NotFound("judge_run", run.id) from None
        visible = rights.runs(row, [run])
        if not visible:
            raise NotFound("judge_run", job_id)
        return visible[0], rights

    async def list_attempts(self, job_id: str) -> list[JobAttemptRow]:
        """The finished attempts of a judge run."""
        await self.database.read(lambda tx: submission_queries.find_judge_run(tx, job_id))
        return await self.database.read(lambda tx: dead_letters.attempts(tx, job_id))

    async def list_job_status_changes(self, job_id: str) -> list[JobStatusChange]:
        """All status changes of a judge run."""
        await self.database.read(lambda tx: submission_queries.find_judge_run(tx, job_id))
        return await self.database.read(lambda tx: submission_queries.list_job_status_log(tx, job_id))

    async def cancel_judge_run(self, viewer: Viewer, job_id: str, reason: str) -> JudgeRunRow:
        """Cancel a judge run; its submission is canceled too."""

        async def operation(tx: Tx) -> None:
            run = await submission_queries.find_judge_run(tx, job_id)
            JOB.check(JobStatus(run.status), JobStatus.CANCELED)
            outcome = await self.jobs.cancel(tx, [job_id], actor=viewer.id, reason=reason)
            if outcome.refused:
                raise VersionConflict(
                    "The judge run was changed in the meantime: reload it and try again.", job_id=job_id
                )
            await audit_log.record(
                tx, actor=viewer.id, action="cancel", object_kind="judge_run", objects=[job_id], reason=reason
            )

        await self.database.transact(operation)
        return await self.database.read(lambda tx: submission_queries.find_judge_run(tx, job_id))


def _owns(viewer: Viewer, problem: ProblemRef) -> bool:
    return problem.owner_id == viewer.user_id and viewer.can(Permission.PROBLEM_WRITE)


def _id_at(unix_ms: int) -> str:
    return uuid7(max(0, unix_ms), 0)


def _progress_for(rights: SubmissionRights, made: JobProgressRow | None) -> JobProgressRow | None:
    if made is None or rights.is_jury:
        return made
    if not rights.shows_details:
        return None
    return replace(made, cases=[coarse_case(case) for case in made.cases if case.get("shown")])


def is_finished(status: str) -> bool:
    """Whether a submission's status is final."""
    return SubmissionStatus(status) in SUBMISSION.terminal
