"""Submissions: submit, read, cancel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError

from adjudge.api.auth import client_address, current_viewer, require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.submission_files import FORM, decode_files, form_submit_request
from adjudge.api.schema.submissions import (
    ReasonRequest,
    SubmissionBatchCreate,
    SubmissionCreate,
    SubmissionStatusUpdate,
)
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.timestamps import parse_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.schema.submissions import (
    SubmissionBatchCreated,
    SubmissionCreated,
    SubmissionPage,
    SubmissionRead,
    SubmissionResultsRead,
    SubmissionStatusChangeList,
    SubmissionStatusChangeRead,
)
from adjudge.services.submissions import WAIT_MOST_SEC, SubmissionService
from adjudge.services.submit import RequestContext, SubmitReply, SubmitRequest, SubmitService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import SubmissionFilter

Creator = Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]
Reader = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
_KEY: Final = "Idempotency-Key"
_KEY_DESCRIPTION: Final = "Repeating a request with the same key returns the original response."
IdempotencyKey = Annotated[str | None, Header(alias=_KEY, description=_KEY_DESCRIPTION)]

_SUBMIT_REQUEST: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": _KEY,
            "in": "header",
            "required": False,
            "description": _KEY_DESCRIPTION,
            "schema": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": _KEY, "description": _KEY_DESCRIPTION},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": SubmissionCreate.model_json_schema()},
            "multipart/form-data": {"schema": FORM},
        },
    },
}


def router(languages: Languages, submissions: SubmissionService, submitter: SubmitService) -> APIRouter:
    routes = APIRouter(tags=["submissions"])

    routes.include_router(_submit_router(submitter))

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
        wanted = SubmissionFilter(
            user_id=user,
            contest_id=contest,
            language=languages.get(language).id if language else None,
            status=status,
            verdict=verdict,
            since_us=parse_timestamp(since, "since") if since else None,
            until_us=parse_timestamp(until, "until") if until else None,
        )
        place = decode_cursor(cursor, [str])
        rows = await submissions.list_submissions(
            viewer, wanted, problem=problem, before=str(place[0]) if place else None, limit=limit + 1
        )
        more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
        return SubmissionPage(items=[SubmissionRead.of(row) for row in rows[:limit]], next=more)

    @routes.get(
        "/submissions/{submission_id}",
        summary="Get a submission by ID or number",
        description="With `wait`, responds when there is a verdict or after that many seconds.",
    )
    async def read(
        submission_id: str,
        viewer: Reader,
        wait: Annotated[float, Query(ge=0, le=WAIT_MOST_SEC, description="Seconds.")] = 0,
    ) -> SubmissionRead:
        found = await submissions.resolve_id(viewer, submission_id)
        return SubmissionRead.of(await submissions.get_submission(viewer, found, wait_sec=wait))

    @routes.get(
        "/submissions/{submission_id}/results",
        summary="Get the results by test",
        description=(
            "For secret tests, authors see name, verdict, time and memory if the problem allows it. "
            "Messages are shown for samples and the compiler. Staff and the problem's setter see "
            "everything."
        ),
    )
    async def results(submission_id: str, viewer: Reader) -> SubmissionResultsRead:
        found = await submissions.get_results(viewer, submission_id)
        view: Literal["jury", "author"] = "jury" if found.is_jury else "author"
        document = dict(found.document) if found.document is not None else None
        return SubmissionResultsRead(submission_id=found.row.id, job_id=found.row.job_id, view=view, document=document)

    @routes.get("/submissions/{submission_id}/log", summary="List the status changes of a submission")
    async def log(submission_id: str, viewer: Reader) -> SubmissionStatusChangeList:
        rows = await submissions.list_status_changes(viewer, submission_id)
        return SubmissionStatusChangeList(items=[SubmissionStatusChangeRead.of(row) for row in rows])

    @routes.post("/submissions/{submission_id}:cancel", summary="Cancel a submission that has no verdict yet")
    async def cancel(
        submission_id: str,
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_CANCEL)],
        body: ReasonRequest | None = None,
    ) -> SubmissionRead:
        reason = body.reason if body else ""
        return SubmissionRead.of(await submissions.cancel_submission(viewer, submission_id, reason))

    @routes.post(
        "/submissions/{submission_id}:change-status",
        summary="Change the status manually",
        description=(
            "Fails with INVALID_STATUS, INVALID_TRANSITION, SUBMISSION_NOT_FOUND, or CONFLICT if the "
            "version is outdated."
        ),
    )
    async def change_status(
        submission_id: str,
        body: SubmissionStatusUpdate,
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_CHANGE)],
    ) -> SubmissionRead:
        row = await submissions.change_status(
            viewer,
            submission_id,
            version=body.version,
            status=body.status,
            verdict=body.verdict,
            reason=body.reason,
        )
        return SubmissionRead.of(row)

    return routes


class _DirectRoute(APIRoute):
    """A route whose endpoint reads the request itself.

    FastAPI describes it in OpenAPI but does not parse its parameters, which takes 40 % of the CPU time of a submission.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check the declared permissions, then call the endpoint."""
        checks = [depends.dependency for depends in self.dependencies if depends.dependency is not None]

        async def handle(request: Request) -> Response:
            for check in checks:
                await check(request)
            response: Response = await self.endpoint(request)
            return response

        return handle


def _submit_router(submitter: SubmitService) -> APIRouter:
    routes = APIRouter()
    direct = APIRouter(route_class=_DirectRoute)

    @direct.post(
        "/submissions",
        dependencies=[require_permission(Permission.SUBMISSION_CREATE)],
        status_code=202,
        response_model=SubmissionCreated,
        summary="Submit a solution",
        description=(
            "JSON, or a multipart form with one or several files. Judging is asynchronous: poll with `wait`, or "
            "subscribe to events."
        ),
        openapi_extra=_SUBMIT_REQUEST,
    )
    async def submit(request: Request) -> Response:
        viewer = await current_viewer(request)
        context = request_context(request, request.headers.get(_KEY))
        return _accepted_response(await submitter.submit(viewer, await _parse_body(request), context))

    routes.include_router(direct)

    @routes.post(
        "/submissions:batch",
        status_code=202,
        response_model=SubmissionBatchCreated,
        summary="Submit a batch of solutions",
        description="Up to 1,000 in one transaction: all are accepted, or none.",
    )
    async def submit_batch(
        request: Request, body: SubmissionBatchCreate, viewer: Creator, key: IdempotencyKey = None
    ) -> Response:
        requests = [_submit_request(item, f"items[{index}].") for index, item in enumerate(body.items)]
        return _accepted_response(await submitter.submit_batch(viewer, requests, request_context(request, key)))

    return routes


def request_context(request: Request, key: str | None = None) -> RequestContext:
    """The idempotency key, address and other context of a request."""
    return RequestContext(client_address(request), key, request.state.trace_id, request.state.request_id)


def _submit_request(body: SubmissionCreate, name: str = "") -> SubmitRequest:
    """A submission from its JSON document; ``name`` is the prefix of its fields."""
    if (body.source is None) == (body.files is None):
        raise InvalidInput(f"{name}source: expected either `source` or `files`.", field=f"{name}source")
    files = decode_files(body.files, f"{name}files") if body.files else ()
    return SubmitRequest(body.problem, body.language, body.source or "", files, body.entry_point, body.contest)


async def _parse_body(request: Request) -> SubmitRequest:
    """Parse a submission from JSON or from a form."""
    if request.headers.get("Content-Type", "").lower().startswith("multipart/form-data"):
        return await form_submit_request(request)
    try:
        body = SubmissionCreate.model_validate_json(await request.body())
    except ValidationError as error:
        wrong = [item | {"loc": ("body", *item["loc"])} for item in error.errors(include_context=False)]
        raise RequestValidationError(wrong) from None
    return _submit_request(body)


def _accepted_response(answer: SubmitReply) -> Response:
    headers = {"Retry-After": str(answer.retry_after_sec)} if answer.retry_after_sec else {}
    return JSONResponse(answer.response, 202, headers)
