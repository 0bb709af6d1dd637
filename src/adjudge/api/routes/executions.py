"""Executions: programs run without a problem, for playgrounds and for evaluating generated code."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.submissions import IdempotencyKey, request_context
from adjudge.api.routing import api_router
from adjudge.api.schema.executions import ExecutionBatchCreate, ExecutionCreate
from adjudge.domain.permissions import Permission
from adjudge.schema.executions import ExecutionList, ExecutionPage, ExecutionRead, ExecutionRunRead
from adjudge.services.executions import WAIT_MOST_SEC, ExecutionRequest, ExecutionService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.execution_models import ExecutionRow

Runner = Annotated[Viewer, require_permission(Permission.EXECUTION_CREATE)]
Wait = Annotated[float, Query(ge=0, le=WAIT_MOST_SEC, description="Seconds to wait for the result.")]


def router(executions: ExecutionService) -> APIRouter:
    routes = api_router("executions")

    @routes.post(
        "/executions",
        status_code=202,
        summary="Run a program on one or more inputs",
        description="With `wait`, responds when it finishes or after that many seconds. Otherwise poll.",
    )
    async def run(
        request: Request, body: ExecutionCreate, viewer: Runner, wait: Wait = 0, key: IdempotencyKey = None
    ) -> ExecutionRead:
        (found,) = await executions.create_executions(
            viewer, [_execution_request(body)], request_context(request, key), wait_sec=wait
        )
        return _execution_read(found)

    @routes.post("/executions:batch", status_code=202, summary="Run a batch of programs")
    async def run_batch(
        request: Request, body: ExecutionBatchCreate, viewer: Runner, wait: Wait = 0, key: IdempotencyKey = None
    ) -> ExecutionList:
        requests = [_execution_request(item) for item in body.items]
        found = await executions.create_executions(
            viewer, requests, request_context(request, key), wait_sec=wait, is_batch=True
        )
        return ExecutionList(items=[_execution_read(item) for item in found])

    @routes.get("/executions", summary="List your executions, newest first")
    async def page(
        viewer: Runner,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ExecutionPage:
        place = decode_cursor(cursor, [str])
        rows = await executions.list_executions(viewer, before=str(place[0]) if place else None, limit=limit + 1)
        more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
        return ExecutionPage(items=[_execution_read(row) for row in rows[:limit]], next=more)

    @routes.get("/executions/{execution_id}", summary="Get an execution and its output")
    async def read(execution_id: str, viewer: Runner, wait: Wait = 0) -> ExecutionRead:
        return _execution_read(await executions.get_execution(viewer, execution_id, wait_sec=wait))

    @routes.post("/executions/{execution_id}:cancel", summary="Cancel an execution")
    async def cancel(execution_id: str, viewer: Runner) -> ExecutionRead:
        return _execution_read(await executions.cancel_execution(viewer, execution_id))

    return routes


def _execution_request(body: ExecutionCreate) -> ExecutionRequest:
    limits = body.limits
    stdins = tuple(body.stdins) if body.stdins is not None else (body.stdin,)
    wall_ms = limits.wall_ms if limits.wall_ms is not None else 3 * limits.cpu_ms
    return ExecutionRequest(body.language, body.source, stdins, limits.cpu_ms, wall_ms, limits.memory_mib)


def _execution_read(found: ExecutionRow) -> ExecutionRead:
    runs = [ExecutionRunRead.of(run, encoding="base64" if run.is_base64 else "utf-8") for run in found.runs]
    return ExecutionRead.of(found, runs=runs)
