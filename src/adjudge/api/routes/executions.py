"""Running programs without a problem: for playgrounds, and for programs that score generated code."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from adjudge.api.actions import executing
from adjudge.api.actions.executing import Wish
from adjudge.api.asking import needs
from adjudge.api.paging import DEFAULT_LIMIT, MAX_LIMIT, cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.routes.submissions import IdempotencyKey, caller_of
from adjudge.api.viewer import Viewer
from adjudge.api.wire.executions import Execution, ExecutionPage, Executions, NewExecution, NewExecutions
from adjudge.domain.access import Permission

Runner = Annotated[Viewer, needs(Permission.EXECUTION_CREATE)]
Wait = Annotated[float, Query(ge=0, le=executing.WAIT_MOST_SEC, description="Seconds to wait for the result.")]


def router(parts: Parts) -> APIRouter:
    """Everything about executions."""
    routes = APIRouter(tags=["executions"])

    @routes.post(
        "/executions",
        status_code=202,
        summary="Run a program on one or more inputs",
        description="With `wait`, responds when it finishes or after that many seconds. Otherwise poll.",
    )
    async def run(
        request: Request, body: NewExecution, viewer: Runner, wait: Wait = 0, key: IdempotencyKey = None
    ) -> Execution:
        (found,) = await executing.run(parts, viewer, [_wish(body)], caller_of(request, key), wait_sec=wait)
        return Execution.of(found)

    @routes.post("/executions:batch", status_code=202, summary="Run a batch of programs")
    async def run_batch(
        request: Request, body: NewExecutions, viewer: Runner, wait: Wait = 0, key: IdempotencyKey = None
    ) -> Executions:
        wishes = [_wish(item) for item in body.items]
        found = await executing.run(parts, viewer, wishes, caller_of(request, key), wait_sec=wait, is_batch=True)
        return Executions(items=[Execution.of(item) for item in found])

    @routes.get("/executions", summary="List your executions, newest first")
    async def page(
        viewer: Runner,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ExecutionPage:
        place = place_of(cursor, [str])
        rows = await executing.page(parts, viewer, before=str(place[0]) if place else None, at_most=limit + 1)
        more = cursor_of([rows[limit - 1].id]) if len(rows) > limit else None
        return ExecutionPage(items=[Execution.of(row) for row in rows[:limit]], next=more)

    @routes.get("/executions/{execution_id}", summary="Get an execution and its output")
    async def read(execution_id: str, viewer: Runner, wait: Wait = 0) -> Execution:
        return Execution.of(await executing.read(parts, viewer, execution_id, wait_sec=wait))

    @routes.post("/executions/{execution_id}:cancel", summary="Cancel an execution")
    async def cancel(execution_id: str, viewer: Runner) -> Execution:
        return Execution.of(await executing.cancel(parts, viewer, execution_id))

    return routes


def _wish(body: NewExecution) -> Wish:
    limits = body.limits
    stdins = tuple(body.stdins) if body.stdins is not None else (body.stdin,)
    wall_ms = limits.wall_ms if limits.wall_ms is not None else 3 * limits.cpu_ms
    return Wish(body.language, body.source, stdins, limits.cpu_ms, wall_ms, limits.memory_mib)
