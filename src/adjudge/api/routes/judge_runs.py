"""Judge runs: the jobs that judge submissions, their attempts and their logs.

Only the claim of a worker starts a judge run, and only a write with the fence of that claim finishes it. The API can
only cancel a judge run.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.schema.submissions import ReasonRequest
from adjudge.domain.permissions import Permission
from adjudge.schema.submissions import (
    AttemptList,
    AttemptRead,
    JobStatusChangeList,
    JobStatusChangeRead,
    JudgeRunList,
    JudgeRunRead,
    RunResults,
)
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)]
Staff = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ_ALL)]


def router(submissions: SubmissionService) -> APIRouter:
    routes = api_router("judge-runs")

    @routes.get("/submissions/{submission_id}/judge-runs", summary="List the judge runs of a submission")
    async def of_submission(submission_id: str, viewer: Reader) -> JudgeRunList:
        return JudgeRunList(
            items=[JudgeRunRead.of(row) for row in await submissions.list_judge_runs(viewer, submission_id)]
        )

    @routes.get("/judge-runs/{job_id}", summary="Get a judge run")
    async def read(job_id: str, viewer: Reader) -> JudgeRunRead:
        return JudgeRunRead.of(await submissions.get_judge_run(viewer, job_id))

    @routes.get(
        "/judge-runs/{job_id}/results",
        summary="Read what a judge run found",
        description="Of older runs and of those of a rejudge too; for whom is as with the run itself.",
    )
    async def results(job_id: str, viewer: Reader) -> RunResults:
        found = await submissions.run_results(viewer, job_id)
        return RunResults(
            job_id=job_id,
            submission_id=found.run.submission_id,
            status=found.run.status,
            attempt_id=found.run.attempt_id,
            view="jury" if found.is_jury else "author",
            document=None if found.document is None else dict(found.document),
        )

    @routes.get("/judge-runs/{job_id}/attempts", summary="List the attempts of a judge run")
    async def attempts(job_id: str, viewer: Staff) -> AttemptList:  # noqa: ARG001  # checks the permission
        return AttemptList(items=[AttemptRead.of(row) for row in await submissions.list_attempts(job_id)])

    @routes.get("/judge-runs/{job_id}/log", summary="List the status changes of a judge run")
    async def log(job_id: str, viewer: Staff) -> JobStatusChangeList:  # noqa: ARG001  # checks the permission
        return JobStatusChangeList(
            items=[JobStatusChangeRead.of(row) for row in await submissions.list_job_status_changes(job_id)]
        )

    @routes.post(
        "/judge-runs/{job_id}:cancel",
        summary="Cancel a judge run",
        description="Also cancels the submission, unless it has a verdict or the run belongs to a rejudge.",
    )
    async def cancel(
        job_id: str,
        body: ReasonRequest,
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_CANCEL_ALL)],
    ) -> JudgeRunRead:
        return JudgeRunRead.of(await submissions.cancel_judge_run(viewer, job_id, body.reason or "canceled"))

    return routes
