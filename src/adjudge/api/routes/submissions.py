"""Submissions: submit, read, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from adjudge.api.auth import client_address, require_permission
from adjudge.api.json_values import SMALL_BYTES
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.submission_files import FORM, decode_files, form_submit_request
from adjudge.api.routing import api_router
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

_FORM_REQUEST: Final = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


def router(languages: Languages, submissions: SubmissionService, submitter: SubmitService) -> APIRouter:
    routes = api_router("submissions")
    _add_submit_routes(routes, submitter)

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
    """A route that passes ``request``, ``viewer``, ``key`` and ``body`` to its endpoint; ``body`` is None for a form.

    FastAPI documents these parameters but does not read them: that takes 40 % of the CPU time of a submission.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Response]], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        (viewer,), (body,) = self.dependant.dependencies, self.dependant.body_params
        self._viewer = cast("Callable[[Request], Awaitable[Viewer]]", viewer.call)
        self._needs_body = body.field_info.is_required()
        self._body: TypeAdapter[object] = TypeAdapter(cast("Any", body.field_info.annotation))
        self.app = self._respond

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        viewer = await self._viewer(request)
        body = await self._parse_body(request)
        response: Response = await self.endpoint(
            request=request, viewer=viewer, key=request.headers.get(_KEY), body=body
        )
        await response(scope, receive, send)

    async def _parse_body(self, request: Request) -> object:
        is_form = request.headers.get("Content-Type", "").lower().startswith("multipart/form-data")
        if is_form and not self._needs_body:
            return None
        data = await request.body()
        require_json_type(request, data)
        try:
            return self._body.validate_json(data)
        except ValidationError as error:
            wrong = [item | {"loc": ("body", *item["loc"])} for item in error.errors(include_context=False)]
            raise RequestValidationError(wrong) from None


def _add_submit_routes(routes: APIRouter, submitter: SubmitService) -> None:
    async def submit(
        request: Request, viewer: Creator, key: IdempotencyKey = None, body: SubmissionCreate | None = None
    ) -> Response:
        item = await form_submit_request(request) if body is None else _submit_request(body)
        return _accepted_response(await submitter.submit(viewer, item, request_context(request, key)))

    async def submit_batch(
        request: Request, viewer: Creator, body: SubmissionBatchCreate, key: IdempotencyKey = None
    ) -> Response:
        items = [_submit_request(item, f"items[{index}].") for index, item in enumerate(body.items)]
        return _accepted_response(await submitter.submit_batch(viewer, items, request_context(request, key)))

    routes.add_api_route(
        "/submissions",
        submit,
        methods=["POST"],
        route_class_override=_DirectRoute,
        status_code=202,
        response_model=SubmissionCreated,
        summary="Submit a solution",
        description=(
            "JSON, or a multipart form with one or several files. Judging is asynchronous: poll with `wait`, or "
            "subscribe to events."
        ),
        openapi_extra=_FORM_REQUEST,
    )
    routes.add_api_route(
        "/submissions:batch",
        submit_batch,
        methods=["POST"],
        route_class_override=_DirectRoute,
        status_code=202,
        response_model=SubmissionBatchCreated,
        summary="Submit a batch of solutions",
        description="Up to 1,000 in one transaction: all are accepted, or none.",
    )


def require_json_type(request: Request, body: bytes) -> None:
    """Refuse a large body that does not say that it is JSON: ``check_json_values`` did not count its values."""
    if len(body) > SMALL_BYTES and "json" not in request.headers.get("Content-Type", "").lower():
        raise HTTPException(415, "Large bodies need the Content-Type application/json.")


def request_context(request: Request, key: str | None = None) -> RequestContext:
    """The idempotency key, address and other context of a request."""
    state = request.scope["state"]
    return RequestContext(client_address(request), key, state["trace_id"], state["request_id"])


def _submit_request(body: SubmissionCreate, name: str = "") -> SubmitRequest:
    """A submission from its JSON document; ``name`` is the prefix of its fields."""
    if (body.source is None) == (body.files is None):
        raise InvalidInput(f"{name}source: expected either `source` or `files`.", field=f"{name}source")
    files = decode_files(body.files, f"{name}files") if body.files else ()
    return SubmitRequest(body.problem, body.language, body.source or "", files, body.entry_point, body.contest)


def _accepted_response(answer: SubmitReply) -> Response:
    headers = {"Retry-After": str(answer.retry_after_sec)} if answer.retry_after_sec else {}
    return JSONResponse(answer.response, 202, headers)
