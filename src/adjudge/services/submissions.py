"""Submissions: read, wait for, cancel, change manually. Decides which parts of them a viewer may see."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from adjudge.judge.result_document import author_view, coarse_case, coarse_mem_kb
from adjudge.services.event_feed import EventFeed
from adjudge.services.problems import user_list_cache_key
from adjudge.services.submit import SubmissionRulesCache
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
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
    is_jury: bool
    document: Mapping[str, Any] | None
    runs: list[JudgeRunRow]
    log: list[SubmissionStatusChange]
    made: JobProgressRow | None
    """The progress of judging, while it is running."""
    run_id: str | None = None
    """The judge run whose result is shown, if it is not the one that determines the verdict."""


def is_jury(viewer: Viewer, row: SubmissionRow) -> bool:
    """Whether the viewer may see everything of a submission: staff, and the setter of its problem."""
    owns_problem = row.problem_owner_id == viewer.user_id and viewer.can(Permission.PROBLEM_WRITE)
    return viewer.can(Permission.SUBMISSION_READ_ALL) or owns_problem


def _may_see(viewer: Viewer, row: SubmissionRow) -> bool:
    return row.user_id == viewer.user_id or is_jury(viewer, row)


def _visible(viewer: Viewer, row: SubmissionRow) -> SubmissionRow:
    """The row for the viewer: exact for the jury, with rounded memory for the author, not found for others."""
    if is_jury(viewer, row):
        return row
    if not _may_see(viewer, row):
        raise NotFound("submission", row.id)
    return row if row.mem_kb is None else replace(row, mem_kb=coarse_mem_kb(row.mem_kb))


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
            if found is None or not _may_see(viewer, await submission_queries.find_submission(tx, found)):
                return None
            return found

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
            self._invalidate_user_lists(row)
            return json.dumps(asdict(row)).encode()

        found = await self.cache.get(CacheEntity.SUBMISSION_STATUS, submission_id, load)
        if found is None:
            raise NotFound("submission", submission_id)
        row = _visible(viewer, SubmissionRow(**json.loads(found.body)))
        if wait_sec > 0 and row.finished_at is None:
            await self.feed.wait_submission_finished(submission_id, min(wait_sec, WAIT_MOST_SEC))
            row = await self.get_submission_uncached(viewer, submission_id)
        return row

    async def get_submission_uncached(self, viewer: Viewer, submission_id: str) -> SubmissionRow:
        """The current state of a submission, read from the database."""
        self.cache.invalidate(CacheEntity.SUBMISSION_STATUS, submission_id)
        row = await self.database.read(lambda tx: submission_queries.find_submission(tx, submission_id))
        self._invalidate_user_lists(row)
        return _visible(viewer, row)

    def _invalidate_user_lists(self, row: SubmissionRow) -> None:
        """Invalidate the problem lists of the author, which show whether a problem is solved."""
        if row.verdict is not None:
            self.cache.revisions.bump_local_once(user_list_cache_key(row.user_id), cause=f"{row.id}@{row.version}")

    async def list_submissions(
        self, viewer: Viewer, wanted: SubmissionFilter, *, problem: str | None, before: str | None, limit: int
    ) -> list[SubmissionRow]:
        """A page of the visible submissions: all for staff, those to own problems for setters, else the own ones."""
        owns = False
        if problem is not None:
            found = await self._problem(viewer, problem)
            wanted = replace(wanted, problem_id=found.id)
            owns = _owns(viewer, found)
        if not viewer.can(Permission.SUBMISSION_READ_ALL) and not owns:
            if wanted.user_id not in (None, viewer.user_id):
                raise Forbidden("user: you can only list your own submissions.")
            wanted = replace(wanted, user_id=viewer.id)
        if wanted.since_us is not None:
            wanted = replace(wanted, from_id=_id_at(wanted.since_us // _MILLISECOND - _MAX_SKEW_MS))
        until_id = MAX_ID if wanted.until_us is None else _id_at(wanted.until_us // _MILLISECOND + _MAX_SKEW_MS)
        start = min(before or MAX_ID, until_id)
        rows = await self.database.read(lambda tx: submission_queries.page(tx, wanted, before=start, limit=limit))
        return [_visible(viewer, row) for row in rows]

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
        row = await self.get_submission_uncached(viewer, submission_id)
        document = None
        if row.finished_at is not None and row.job_id is not None:
            job_id = row.job_id
            document = await self.database.read(lambda tx: submission_queries.find_result(tx, job_id))
        return SubmissionResult(row, is_jury(viewer, row), _document_for(viewer, row, document))

    async def get_detail(self, viewer: Viewer, submission_id: str, run_id: str = "") -> SubmissionDetail:
        """Everything about a submission, read in one snapshot.

        With ``run_id``, the result of that judge run replaces the one that determines the verdict.
        """
        self.cache.invalidate(CacheEntity.SUBMISSION_STATUS, submission_id)

        async def read(tx: Tx) -> SubmissionDetail:
            row = _visible(viewer, await submission_queries.find_submission(tx, submission_id))
            has_ended = row.finished_at is not None
            found = await submission_queries.list_judge_runs(tx, submission_id)
            under_way = [run.id for run in found if run.finished_at is None][:1]
            made = {} if has_ended else await progress.find_by_jobs(tx, under_way)
            return SubmissionDetail(
                row,
                is_jury(viewer, row),
                await submission_queries.find_result(tx, row.job_id) if has_ended and row.job_id is not None else None,
                _runs_for(viewer, row, found),
                _log_for(viewer, row, await submission_queries.list_submission_status_log(tx, submission_id)),
                _progress_for(viewer, row, next(iter(made.values()), None)),
            )

        found = await self.database.read(read)
        self._invalidate_user_lists(found.row)
        if run_id and run_id != found.row.job_id:
            return await self._run_detail(viewer, found, run_id)
        return replace(found, document=_document_for(viewer, found.row, found.document))

    async def _run_detail(self, viewer: Viewer, found: SubmissionDetail, run_id: str) -> SubmissionDetail:
        run = next((run for run in found.runs if run.id == run_id), None)
        if run is None:
            raise NotFound("judge_run", run_id)
        result = await self.database.read(lambda tx: submission_queries.find_result(tx, run_id))
        document = _document_for(viewer, found.row, result)
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
        row = await self.get_submission_uncached(viewer, submission_id)
        return _log_for(
            viewer,
            row,
            await self.database.read(lambda tx: submission_queries.list_submission_status_log(tx, submission_id)),
        )

    async def cancel_submission(self, viewer: Viewer, submission_id: str, reason: str) -> SubmissionRow:
        """Cancel a submission that has no verdict yet: the viewer's own, or any for staff."""
        row = await self.get_submission_uncached(viewer, submission_id)
        if row.user_id != viewer.user_id:
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
        row = await self.get_submission_uncached(viewer, submission_id)
        return _runs_for(
            viewer, row, await self.database.read(lambda tx: submission_queries.list_judge_runs(tx, submission_id))
        )

    async def get_judge_run(self, viewer: Viewer, job_id: str) -> JudgeRunRow:
        """One judge run, if the viewer may see its submission."""
        return (await self._run_and_submission(viewer, job_id))[0]

    async def run_results(self, viewer: Viewer, job_id: str) -> RunFound:
        """The result of one judge run, reduced to what the viewer may see."""
        run, row = await self._run_and_submission(viewer, job_id)
        document = None
        if run.finished_at is not None:
            document = await self.database.read(lambda tx: submission_queries.find_result(tx, job_id))
        return RunFound(run, is_jury(viewer, row), _document_for(viewer, row, document))

    async def _run_and_submission(self, viewer: Viewer, job_id: str) -> tuple[JudgeRunRow, SubmissionRow]:
        run = await self.database.read(lambda tx: submission_queries.find_judge_run(tx, job_id))
        row = await self._submission_of(viewer, run)
        visible = _runs_for(viewer, row, [run])
        if not visible:
            raise NotFound("judge_run", job_id)
        return visible[0], row

    async def _submission_of(self, viewer: Viewer, run: JudgeRunRow) -> SubmissionRow:
        try:
            return await self.get_submission_uncached(viewer, run.submission_id or "")
        except NotFound:
            raise NotFound("judge_run", run.id) from None

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


def _document_for(viewer: Viewer, row: SubmissionRow, document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return document if document is None or is_jury(viewer, row) else author_view(dict(document))


def _progress_for(viewer: Viewer, row: SubmissionRow, made: JobProgressRow | None) -> JobProgressRow | None:
    if made is None or is_jury(viewer, row):
        return made
    return replace(made, cases=[coarse_case(case) for case in made.cases if case.get("shown")])


def _log_for(viewer: Viewer, row: SubmissionRow, changes: list[SubmissionStatusChange]) -> list[SubmissionStatusChange]:
    if is_jury(viewer, row):
        return changes
    return [replace(change, actor=None, reason=None, job_id=None) for change in changes]


def _runs_for(viewer: Viewer, row: SubmissionRow, found: list[JudgeRunRow]) -> list[JudgeRunRow]:
    if is_jury(viewer, row):
        return found
    return [_redact_for_author(run) for run in found if run.rejudge_batch_id is None or run.id == row.job_id]


def _redact_for_author(run: JudgeRunRow) -> JudgeRunRow:
    """Remove what only operators need: the worker, its error and the trace."""
    return replace(run, lease_owner=None, error=None, trace_id=None)


def is_finished(status: str) -> bool:
    """Whether a submission's status is final."""
    return SubmissionStatus(status) in SUBMISSION.terminal
