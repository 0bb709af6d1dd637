"""Handing in, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from adjudge.api.actions import submissions, submitting
from adjudge.api.actions.submitting import Accepted, Caller, Handed
from adjudge.api.asking import address_of, needs
from adjudge.api.moments import parse_moment
from adjudge.api.paging import DEFAULT_LIMIT, MAX_LIMIT, cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.wire.submissions import (
    NewSubmission,
    NewSubmissions,
    Reason,
    Results,
    StatusChange,
    Submission,
    SubmissionLog,
    SubmissionLogEntry,
    SubmissionPage,
    Submitted,
    SubmittedBatch,
)
from adjudge.domain.access import Permission
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.reads import Filter

Creator = Annotated[Viewer, needs(Permission.SUBMISSION_CREATE)]
Reader = Annotated[Viewer, needs(Permission.SUBMISSION_READ)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", description=("Repeating a request with the same key returns the original response.")
    ),
]

_FORM: Final = {
    "type": "object",
    "required": ["problem", "language", "source"],
    "properties": {
        "problem": {"type": "string", "examples": ["multiples"]},
        "language": {"type": "string", "examples": ["cpp20"]},
        "source": {"type": "string", "format": "binary", "description": "Source file."},
    },
}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewSubmission.model_json_schema()},
            "multipart/form-data": {"schema": _FORM},
        },
    }
}


def router(parts: Parts) -> APIRouter:
    """Everything about submissions but their events."""
    routes = APIRouter(tags=["submissions"])

    @routes.post(
        "/submissions",
        status_code=202,
        response_model=Submitted,
        summary="Submit a solution",
        description=(
            "JSON, or a multipart form with a file. Judging is asynchronous: poll with `wait`, or subscribe to events."
        ),
        openapi_extra=_BODY,
    )
    async def submit(request: Request, viewer: Creator, key: IdempotencyKey = None) -> Response:
        handed = await _handed(request)
        return accepted(await submitting.submit(parts, viewer, handed, caller_of(request, key)))

    @routes.post(
        "/submissions:batch",
        status_code=202,
        response_model=SubmittedBatch,
        summary="Submit a batch of solutions",
        description="Up to 1,000 in one transaction: all are accepted, or none.",
    )
    async def submit_batch(
        request: Request, body: NewSubmissions, viewer: Creator, key: IdempotencyKey = None
    ) -> Response:
        handed = [Handed(item.problem, item.language, item.source) for item in body.items]
        return accepted(await submitting.submit_batch(parts, viewer, handed, caller_of(request, key)))

    @routes.get(
        "/submissions",
        summary="List submissions, newest first",
        description="Your own submissions. Staff see all; setters see those of their problems.",
    )
    async def page(
        viewer: Reader,
        *,
        user: Annotated[str | None, Query(max_length=64, description="User ID.")] = None,
        problem: Annotated[str | None, Query(max_length=200, description="Slug or ID.")] = None,
        contest: Annotated[str | None, Query(max_length=64)] = None,
        language: Annotated[str | None, Query(max_length=64)] = None,
        status: SubmissionStatus | None = None,
        verdict: Verdict | None = None,
        since: Annotated[str | None, Query(description="Created at or after this time.", max_length=64)] = None,
        until: Annotated[str | None, Query(description="Created before this time.", max_length=64)] = None,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> SubmissionPage:
        wanted = Filter(
            user_id=user,
            contest_id=contest,
            language=parts.languages.get(language).id if language else None,
            status=status,
            verdict=verdict,
            since=parse_moment(since, "since") if since else None,
            until=parse_moment(until, "until") if until else None,
        )
        place = place_of(cursor, [str])
        rows = await submissions.page(
            parts, viewer, wanted, problem=problem, before=str(place[0]) if place else None, at_most=limit + 1
        )
        more = cursor_of([rows[limit - 1].id]) if len(rows) > limit else None
        return SubmissionPage(items=[Submission.of(row) for row in rows[:limit]], next=more)

    @routes.get(
        "/submissions/{submission_id}",
        summary="Get a submission",
        description="With `wait`, responds when there is a verdict or after that many seconds.",
    )
    async def read(
        submission_id: str,
        viewer: Reader,
        wait: Annotated[float, Query(ge=0, le=submissions.WAIT_MOST_SEC, description="Seconds.")] = 0,
    ) -> Submission:
        return Submission.of(await submissions.read(parts, viewer, submission_id, wait_sec=wait))

    @routes.get(
        "/submissions/{submission_id}/source",
        summary="Get the source code",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def source(submission_id: str, viewer: Reader) -> Response:
        row, data = await submissions.source(parts, viewer, submission_id)
        headers = {"Content-Disposition": f'attachment; filename="{row.id}"', "Cache-Control": "private, no-store"}
        return Response(data, media_type="text/plain; charset=utf-8", headers=headers)

    @routes.get(
        "/submissions/{submission_id}/results",
        summary="Get the results by test",
        description=(
            "For secret tests, authors see name, verdict, time and memory if the problem allows it. "
            "Messages are shown for samples and the compiler. Staff and the problem's setter see "
            "everything."
        ),
    )
    async def results(submission_id: str, viewer: Reader) -> Results:
        found = await submissions.results(parts, viewer, submission_id)
        view: Literal["jury", "author"] = "jury" if found.is_jury else "author"
        document = dict(found.document) if found.document is not None else None
        return Results(submission_id=found.row.id, job_id=found.row.job_id, view=view, document=document)

    @routes.get("/submissions/{submission_id}/log", summary="List the status changes of a submission")
    async def log(submission_id: str, viewer: Reader) -> SubmissionLog:
        rows = await submissions.log(parts, viewer, submission_id)
        return SubmissionLog(items=[SubmissionLogEntry.of(row) for row in rows])

    @routes.post("/submissions/{submission_id}:cancel", summary="Cancel a submission that has no verdict yet")
    async def cancel(
        submission_id: str,
        viewer: Annotated[Viewer, needs(Permission.SUBMISSION_CANCEL)],
        body: Reason | None = None,
    ) -> Submission:
        reason = body.reason if body else ""
        return Submission.of(await submissions.cancel(parts, viewer, submission_id, reason))

    @routes.post(
        "/submissions/{submission_id}:change-status",
        summary="Change the status manually",
        description=(
            "Fails with INVALID_STATUS, INVALID_TRANSITION, SUBMISSION_NOT_FOUND, or CONFLICT if the "
            "version is outdated."
        ),
    )
    async def change_status(
        submission_id: str, body: StatusChange, viewer: Annotated[Viewer, needs(Permission.SUBMISSION_CHANGE)]
    ) -> Submission:
        row = await submissions.change_status(
            parts,
            viewer,
            submission_id,
            version=body.version,
            status=body.status,
            verdict=body.verdict,
            reason=body.reason,
        )
        return Submission.of(row)

    return routes


def caller_of(request: Request, key: str | None = None) -> Caller:
    """Where a request came from."""
    return Caller(address_of(request), key, request.state.trace_id, request.state.request_id)


async def _handed(request: Request) -> Handed:
    """A program from JSON or from a form."""
    if request.headers.get("Content-Type", "").lower().startswith("multipart/form-data"):
        return await _from_form(request)
    try:
        body = NewSubmission.model_validate_json(await request.body())
    except ValidationError as error:
        wrong = [item | {"loc": ("body", *item["loc"])} for item in error.errors(include_context=False)]
        raise RequestValidationError(wrong) from None
    return Handed(body.problem, body.language, body.source)


async def _from_form(request: Request) -> Handed:
    async with request.form(max_files=1, max_fields=8) as form:
        words = {name: form.get(name) for name in ("problem", "language")}
        for name, value in words.items():
            if not isinstance(value, str) or not value:
                raise InvalidInput(f"{name}: missing form field.", field=name)
        given = form.get("source")
        if not isinstance(given, UploadFile):
            raise InvalidInput("source: expected a file upload in this field.", field="source")
        text = submitting.decode_source(await given.read(), "source")
    return Handed(str(words["problem"]), str(words["language"]), text)


def accepted(answer: Accepted) -> Response:
    """The answer to whoever handed in."""
    headers = {"Retry-After": str(answer.retry_after_sec)} if answer.retry_after_sec else {}
    return JSONResponse(answer.response, 202, headers)
