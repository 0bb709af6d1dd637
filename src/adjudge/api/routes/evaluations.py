"""Evaluations: programs with tests in bulk, JSON Lines in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.submissions import request_context
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.evaluation.shapes import RecordShape
from adjudge.schema.evaluations import EvaluationPage, EvaluationRead, EvaluationRecordsAdded, EvaluationSummary
from adjudge.services.evaluations import (
    NAME_CHARS,
    RESULTS_MOST,
    WAIT_MOST_SEC,
    EvaluationAdded,
    EvaluationService,
)
from adjudge.services.viewer import Viewer
from adjudge.store.judging.evaluation_models import EvaluationResultRow, EvaluationRow

MEDIA_TYPE: Final = "application/x-ndjson"
Runner = Annotated[Viewer, require_permission(Permission.EXECUTION_CREATE)]
Shape = Annotated[RecordShape | None, Query(description="Shape of the records. Default: by their fields.")]
_LINES: Final = {"type": "string", "format": "binary"}
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {MEDIA_TYPE: {"schema": {**_LINES, "description": "One record per line, at most 1,000."}}},
    }
}
_RESULTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "One result per line, with `sequence`, `id` and `verdict`.",
        "content": {MEDIA_TYPE: {"schema": _LINES}},
    }
}
_SEQUENCE_MAX: Final = 2**53


def router(evaluations: EvaluationService) -> APIRouter:
    routes = api_router("evaluations")

    @routes.post(
        "/evaluations",
        status_code=202,
        summary="Evaluate programs in bulk",
        description=(
            "Creates the evaluation `name`, or continues it, and adds the records of the body, all or none. A record "
            "that it has already is ignored, or evaluated again if it failed or was canceled; one with the same id and "
            "other content is refused (409). A record has tests, or the slug of a problem that you may submit to."
        ),
        openapi_extra=_BODY,
    )
    async def evaluate(
        request: Request,
        viewer: Runner,
        name: Annotated[str, Query(min_length=1, max_length=NAME_CHARS, examples=["model-7"])],
        shape: Shape = None,
    ) -> EvaluationRecordsAdded:
        return _added(
            await evaluations.create_evaluation(viewer, name, request.stream(), request_context(request), shape=shape)
        )

    @routes.post(
        "/evaluations/{evaluation_id}/records",
        status_code=202,
        summary="Add records to an evaluation",
        openapi_extra=_BODY,
    )
    async def add_records(
        evaluation_id: str, request: Request, viewer: Runner, shape: Shape = None
    ) -> EvaluationRecordsAdded:
        return _added(
            await evaluations.add_records(
                viewer, evaluation_id, request.stream(), request_context(request), shape=shape
            )
        )

    @routes.get("/evaluations", summary="List your evaluations, newest first")
    async def page(
        viewer: Runner,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> EvaluationPage:
        place = decode_cursor(cursor, [str])
        rows = await evaluations.list_evaluations(viewer, before=str(place[0]) if place else None, limit=limit + 1)
        more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
        return EvaluationPage(items=[EvaluationSummary.of(row) for row in rows[:limit]], next=more)

    @routes.get("/evaluations/{evaluation_id}", summary="Get an evaluation and its counts by verdict")
    async def read(evaluation_id: str, viewer: Runner) -> EvaluationRead:
        return _read(await evaluations.get_evaluation(viewer, evaluation_id))

    @routes.get(
        "/evaluations/{evaluation_id}/results",
        summary="Get results in completion order",
        description=(
            "Results with a `sequence` greater than `after`. With `wait`, an empty response is delayed up to that many "
            "seconds while records are pending."
        ),
        responses=_RESULTS,
        response_class=Response,
    )
    async def results(
        evaluation_id: str,
        viewer: Runner,
        after: Annotated[int, Query(ge=0, le=_SEQUENCE_MAX)] = 0,
        limit: Annotated[int, Query(ge=1, le=RESULTS_MOST)] = RESULTS_MOST,
        wait: Annotated[float, Query(ge=0, le=WAIT_MOST_SEC, description="Seconds to wait for a result.")] = 0,
    ) -> Response:
        rows = await evaluations.list_results(viewer, evaluation_id, after=after, limit=limit, wait_sec=wait)
        return Response("".join(map(_result_line, rows)), media_type=MEDIA_TYPE)

    @routes.post("/evaluations/{evaluation_id}:cancel", summary="Cancel the pending records of an evaluation")
    async def cancel(evaluation_id: str, viewer: Runner) -> EvaluationRead:
        return _read(await evaluations.cancel_evaluation(viewer, evaluation_id))

    return routes


def _added(found: EvaluationAdded) -> EvaluationRecordsAdded:
    return EvaluationRecordsAdded.of(found.evaluation, added=found.added, known=found.known, retried=found.retried)


def _read(found: tuple[EvaluationRow, Mapping[str, int]]) -> EvaluationRead:
    row, verdicts = found
    return EvaluationRead.of(row, verdicts=verdicts)


def _result_line(row: EvaluationResultRow) -> str:
    """The stored result, which is a JSON object, with its number as the first field."""
    return f'{{"sequence": {row.sequence}, {row.result[1:]}\n'
