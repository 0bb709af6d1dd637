"""Chain runs: read, watch, stop, rerun; retry, complete and approve their nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Query
from fastapi.responses import Response, StreamingResponse

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.chains import Controller, IdempotencyKey
from adjudge.api.routes.events import encode_event
from adjudge.api.routing import api_router
from adjudge.api.schema.chain_runs import DecisionRequest, NodeActionRequest, ReasonRequired, RerunRequest, StopBody
from adjudge.api.sse import EventStreamResponse, SseConnections
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ChainRunStatus
from adjudge.schema.chain_runs import (
    ChainRunPage,
    ChainRunRead,
    ChainRunStarted,
    ChainRunStatusRead,
    ChainStatusChangeList,
    ChainStatusChangeRead,
    NodeList,
    NodeLogLineList,
    NodeLogLineRead,
    NodeRead,
    RunDag,
)
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.submission_events import StreamEvent
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.RUN_READ)]
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Events `run` and `node`.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


_APPROVERS: Final = (
    "Allowed for the node's approvers with `run:approve`; without approvers, for users who may control the run."
)


def router(chain_runs: ChainRunService, connections: SseConnections) -> APIRouter:
    routes = api_router("runs")
    _add_reading(routes, chain_runs, connections)
    _add_nodes(routes, chain_runs)
    _add_control(routes, chain_runs)
    return routes


def _add_reading(routes: APIRouter, chain_runs: ChainRunService, connections: SseConnections) -> None:
    @routes.get(
        "/runs",
        summary="List runs, newest first",
        description="Runs that you started or that await your approval; all runs with `run:read_all`.",
    )
    async def page(
        viewer: Reader,
        *,
        chain: Annotated[str | None, Query(max_length=128, description="Chain ID or name.")] = None,
        status: ChainRunStatus | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ChainRunPage:
        position = decode_cursor(cursor, [str])
        before = str(position[0]) if position else None
        runs = await chain_runs.list_runs(viewer, chain=chain, status=status, before=before, limit=limit + 1)
        more = encode_cursor([runs[limit - 1].id]) if len(runs) > limit else None
        return ChainRunPage(items=[ChainRunRead.of(item) for item in runs[:limit]], next=more)

    @routes.get("/chains/{chain}/runs/{number}", summary="Get a run by the number it has in its chain")
    async def read_by_number(chain: str, number: Annotated[int, Path(ge=1, lt=10**18)], viewer: Reader) -> ChainRunRead:
        return ChainRunRead.of(await chain_runs.get_run_by_number(viewer, chain, number))

    @routes.get("/runs/{run_id}", summary="Get a run")
    async def find(run_id: str, viewer: Reader) -> ChainRunRead:
        return ChainRunRead.of(await chain_runs.get_run(viewer, run_id))

    @routes.get(
        "/runs/{run_id}/dag",
        summary="Get the DAG of a run",
        description="The snapshot that the run uses, even if its chain was changed since.",
    )
    async def dag(run_id: str, viewer: Reader) -> RunDag:
        return RunDag(run_id=run_id, dag=dict(await chain_runs.snapshot(viewer, run_id)))

    @routes.get("/runs/{run_id}/log", summary="List the status changes of a run and its nodes, oldest first")
    async def log(
        run_id: str,
        viewer: Reader,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 500,
    ) -> ChainStatusChangeList:
        changes = await chain_runs.list_status_changes(viewer, run_id, after=after, limit=limit)
        return ChainStatusChangeList(items=[ChainStatusChangeRead.of(item) for item in changes])

    @routes.get(
        "/runs/{run_id}/events",
        summary="Stream the events of a run",
        description="Each connection starts with the current state, so reconnecting misses nothing.",
        responses=_STREAM,
        response_class=StreamingResponse,
    )
    async def events(run_id: str, viewer: Reader) -> StreamingResponse:
        await chain_runs.get_run(viewer, run_id)
        return EventStreamResponse(connections, viewer, _run_events(chain_runs, viewer, run_id))


async def _run_events(chain_runs: ChainRunService, viewer: Viewer, run_id: str) -> AsyncIterator[str]:
    async with aclosing(chain_runs.watch_run(viewer, run_id)) as updates:
        async for update in updates:
            if update is None:
                yield encode_event(StreamEvent())
                continue
            run, changed = update
            for node in changed:
                yield encode_event(StreamEvent("node", asdict(NodeRead.of(node))))
            yield encode_event(StreamEvent("run", asdict(ChainRunRead.of(run))))
    yield encode_event(StreamEvent("end", {"run_id": run_id}))


def _add_nodes(routes: APIRouter, chain_runs: ChainRunService) -> None:
    @routes.get("/runs/{run_id}/nodes", summary="List the nodes of a run")
    async def nodes(run_id: str, viewer: Reader) -> NodeList:
        return NodeList(items=[NodeRead.of(item) for item in await chain_runs.list_nodes(viewer, run_id)])

    @routes.get("/runs/{run_id}/nodes/{node_id}", summary="Get a node of a run")
    async def node(run_id: str, node_id: str, viewer: Reader) -> NodeRead:
        return NodeRead.of(await chain_runs.get_node(viewer, run_id, node_id))

    @routes.get(
        "/runs/{run_id}/nodes/{node_id}/artifact",
        summary="Get the artifact of a node",
        description="For a mapped node: the list of its instances' artifacts.",
        responses={200: {"content": {"application/json": {"schema": {}}}}},
        response_class=Response,
    )
    async def artifact(run_id: str, node_id: str, viewer: Reader) -> Response:
        body = await chain_runs.get_artifact(viewer, run_id, node_id)
        return Response(body, media_type="application/json")

    @routes.get("/runs/{run_id}/nodes/{node_id}/log", summary="Get the log of a node")
    async def lines(
        run_id: str,
        node_id: str,
        viewer: Reader,
        after: Annotated[int, Query(ge=0, le=2**53, description="ID of the last line received.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    ) -> NodeLogLineList:
        log_lines = await chain_runs.list_log_lines(viewer, run_id, node_id, after=after, limit=limit)
        return NodeLogLineList(items=[NodeLogLineRead.of(line) for line in log_lines])


def _add_control(routes: APIRouter, chain_runs: ChainRunService) -> None:
    @routes.post("/runs/{run_id}:stop", summary="Stop a run")
    async def stop(
        run_id: str, viewer: Controller, body: Annotated[StopBody | None, Body()] = None
    ) -> ChainRunStatusRead:
        reason = body.reason if body else ""
        return ChainRunStatusRead(run_id=run_id, status=await chain_runs.stop_run(viewer, run_id, reason))

    @routes.post("/runs/{run_id}:rerun", status_code=202, summary="Rerun a run from the start or from a node")
    async def rerun(
        run_id: str,
        viewer: Controller,
        body: Annotated[RerunRequest | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> ChainRunStarted:
        request = body or RerunRequest()
        started = await chain_runs.rerun(viewer, run_id, from_node=request.from_node, reason=request.reason, key=key)
        return ChainRunStarted(run_id=started.run_id, number=started.number, is_new=started.is_new)

    @routes.post("/runs/{run_id}/nodes/{node_id}:retry", summary="Retry a failed or stopped node")
    async def retry(
        run_id: str, node_id: str, viewer: Controller, body: Annotated[NodeActionRequest | None, Body()] = None
    ) -> NodeRead:
        request = body or NodeActionRequest()
        if "artifact" in request.model_fields_set:
            raise InvalidInput(
                "artifact: not accepted here, because the node writes its own; use :complete to set one.",
                field="artifact",
            )
        return NodeRead.of(await chain_runs.retry_node(viewer, run_id, node_id, request.reason))

    @routes.post("/runs/{run_id}/nodes/{node_id}:complete", summary="Mark a node as success")
    async def complete(
        run_id: str, node_id: str, viewer: Controller, body: Annotated[NodeActionRequest | None, Body()] = None
    ) -> NodeRead:
        request = body or NodeActionRequest()
        return NodeRead.of(
            await chain_runs.complete_node(viewer, run_id, node_id, artifact=request.artifact, reason=request.reason)
        )

    @routes.post("/runs/{run_id}/nodes/{node_id}:approve", summary="Approve a node", description=_APPROVERS)
    async def approve(run_id: str, node_id: str, body: ReasonRequired, viewer: Reader) -> NodeRead:
        return await _decide(chain_runs, viewer, run_id, node_id, approved=True, reason=body.reason)

    @routes.post("/runs/{run_id}/nodes/{node_id}:reject", summary="Reject a node", description=_APPROVERS)
    async def reject(run_id: str, node_id: str, body: ReasonRequired, viewer: Reader) -> NodeRead:
        return await _decide(chain_runs, viewer, run_id, node_id, approved=False, reason=body.reason)

    @routes.post("/runs/{run_id}/nodes/{node_id}:decide", include_in_schema=False)
    async def decide(run_id: str, node_id: str, body: DecisionRequest, viewer: Reader) -> NodeRead:
        """The former form of ``:approve`` and ``:reject``."""
        return await _decide(chain_runs, viewer, run_id, node_id, approved=body.approved, reason=body.reason)


async def _decide(
    chain_runs: ChainRunService, viewer: Viewer, run_id: str, node_id: str, *, approved: bool, reason: str
) -> NodeRead:
    await chain_runs.decide_node(viewer, run_id, node_id, approved=approved, reason=reason)
    return NodeRead.of(await chain_runs.get_node(viewer, run_id, node_id))
