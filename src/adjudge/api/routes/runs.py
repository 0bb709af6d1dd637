"""Runs of chains: read, watched, stopped, repeated; their nodes retried, completed, approved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Query
from fastapi.responses import Response, StreamingResponse

from adjudge.api.actions import chains
from adjudge.api.actions.events import Sent
from adjudge.api.asking import needs
from adjudge.api.audience import EventStream
from adjudge.api.paging import DEFAULT_LIMIT, MAX_LIMIT, cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.routes.chains import Controller, IdempotencyKey
from adjudge.api.routes.events import encode
from adjudge.api.viewer import Viewer
from adjudge.api.wire.runs import (
    ChangeInfo,
    ChangeList,
    Decision,
    LineInfo,
    LineList,
    NodeAction,
    NodeInfo,
    NodeList,
    RerunBody,
    RunDag,
    RunInfo,
    RunPage,
    RunStarted,
    RunState,
    StopBody,
)
from adjudge.domain.access import Permission
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import RunStatus

Reader = Annotated[Viewer, needs(Permission.RUN_READ)]
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Events `run` and `node`.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


def router(parts: Parts) -> APIRouter:
    """``/runs``."""
    routes = APIRouter(tags=["runs"])
    _add_reading(routes, parts)
    _add_nodes(routes, parts)
    _add_control(routes, parts)
    return routes


def _add_reading(routes: APIRouter, parts: Parts) -> None:
    @routes.get(
        "/runs",
        summary="List runs, newest first",
        description="Runs that you started or that await your approval; all runs with `run:read_all`.",
    )
    async def page(
        viewer: Reader,
        *,
        chain: Annotated[str | None, Query(max_length=128, description="Chain ID or name.")] = None,
        status: RunStatus | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> RunPage:
        place = place_of(cursor, [str])
        before = str(place[0]) if place else None
        found = await chains.runs(parts, viewer, chain=chain, status=status, before=before, at_most=limit + 1)
        more = cursor_of([found[limit - 1].id]) if len(found) > limit else None
        return RunPage(items=[RunInfo.of(item) for item in found[:limit]], next=more)

    @routes.get("/runs/{run_id}", summary="Get a run")
    async def find(run_id: str, viewer: Reader) -> RunInfo:
        return RunInfo.of(await chains.run(parts, viewer, run_id))

    @routes.get(
        "/runs/{run_id}/dag",
        summary="The DAG that a run began with",
        description="The snapshot that the run goes by, whatever has become of its chain since.",
    )
    async def dag(run_id: str, viewer: Reader) -> RunDag:
        return RunDag(run_id=run_id, dag=dict(await chains.snapshot(parts, viewer, run_id)))

    @routes.get("/runs/{run_id}/log", summary="List the status changes of a run and its nodes, oldest first")
    async def log(
        run_id: str,
        viewer: Reader,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 500,
    ) -> ChangeList:
        found = await chains.changes(parts, viewer, run_id, after=after, at_most=limit)
        return ChangeList(items=[ChangeInfo.of(item) for item in found])

    @routes.get(
        "/runs/{run_id}/events",
        summary="Stream the events of a run",
        description="Each connection starts with the current state, so reconnecting misses nothing.",
        responses=_STREAM,
        response_class=StreamingResponse,
    )
    async def events(run_id: str, viewer: Reader) -> StreamingResponse:
        await chains.run(parts, viewer, run_id)
        return EventStream(parts.audience, viewer, _watched(parts, viewer, run_id))


async def _watched(parts: Parts, viewer: Viewer, run_id: str) -> AsyncIterator[str]:
    async with aclosing(chains.watch_run(parts, viewer, run_id)) as happening:
        async for found in happening:
            if found is None:
                yield encode(Sent())
                continue
            run, changed = found
            for node in changed:
                yield encode(Sent("node", NodeInfo.of(node).model_dump(mode="json")))
            yield encode(Sent("run", RunInfo.of(run).model_dump(mode="json")))
    yield encode(Sent("end", {"run_id": run_id}))


def _add_nodes(routes: APIRouter, parts: Parts) -> None:
    @routes.get("/runs/{run_id}/nodes", summary="List the nodes of a run")
    async def nodes(run_id: str, viewer: Reader) -> NodeList:
        return NodeList(items=[NodeInfo.of(item) for item in await chains.nodes(parts, viewer, run_id)])

    @routes.get("/runs/{run_id}/nodes/{node_id}", summary="Get a node of a run")
    async def node(run_id: str, node_id: str, viewer: Reader) -> NodeInfo:
        return NodeInfo.of(await chains.node(parts, viewer, run_id, node_id))

    @routes.get(
        "/runs/{run_id}/nodes/{node_id}/artifact",
        summary="Get the artifact of a node",
        description="For a mapped node: the list of its instances' artifacts.",
        responses={200: {"content": {"application/json": {"schema": {}}}}},
        response_class=Response,
    )
    async def artifact(run_id: str, node_id: str, viewer: Reader) -> Response:
        found = await chains.artifact(parts, viewer, run_id, node_id)
        return Response(found, media_type="application/json")

    @routes.get("/runs/{run_id}/nodes/{node_id}/log", summary="Get the log of a node")
    async def lines(
        run_id: str,
        node_id: str,
        viewer: Reader,
        after: Annotated[int, Query(ge=0, le=2**53, description="ID of the last line received.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    ) -> LineList:
        found = await chains.log_lines(parts, viewer, run_id, node_id, after=after, at_most=limit)
        return LineList(items=[LineInfo.of(line) for line in found])


def _add_control(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/runs/{run_id}:stop", summary="Stop a run")
    async def stop(run_id: str, viewer: Controller, body: Annotated[StopBody | None, Body()] = None) -> RunState:
        reason = body.reason if body else ""
        return RunState(run_id=run_id, status=await chains.stop(parts, viewer, run_id, reason))

    @routes.post("/runs/{run_id}:rerun", status_code=202, summary="Rerun a run from the start or from a node")
    async def rerun(
        run_id: str,
        viewer: Controller,
        body: Annotated[RerunBody | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> RunStarted:
        asked = body or RerunBody()
        started = await chains.rerun(parts, viewer, run_id, from_node=asked.from_node, reason=asked.reason, key=key)
        return RunStarted(run_id=started.run_id, is_new=started.is_new)

    @routes.post("/runs/{run_id}/nodes/{node_id}:retry", summary="Retry a failed or stopped node")
    async def retry(
        run_id: str, node_id: str, viewer: Controller, body: Annotated[NodeAction | None, Body()] = None
    ) -> NodeInfo:
        asked = body or NodeAction()
        if "artifact" in asked.model_fields_set:
            raise InvalidInput(
                "artifact: a retried node leaves its own; to give one by hand, use :complete.", field="artifact"
            )
        return NodeInfo.of(await chains.retry(parts, viewer, run_id, node_id, asked.reason))

    @routes.post("/runs/{run_id}/nodes/{node_id}:complete", summary="Mark a node as success")
    async def complete(
        run_id: str, node_id: str, viewer: Controller, body: Annotated[NodeAction | None, Body()] = None
    ) -> NodeInfo:
        asked = body or NodeAction()
        return NodeInfo.of(
            await chains.complete(parts, viewer, run_id, node_id, artifact=asked.artifact, reason=asked.reason)
        )

    @routes.post(
        "/runs/{run_id}/nodes/{node_id}:decide",
        summary="Approve a node",
        description=(
            "Allowed for the node's approvers with `run:approve`; without approvers, for users who may control the run."
        ),
    )
    async def decide(run_id: str, node_id: str, body: Decision, viewer: Reader) -> NodeInfo:
        await chains.approve(parts, viewer, run_id, node_id, approved=body.approved, reason=body.reason)
        return NodeInfo.of(await chains.node(parts, viewer, run_id, node_id))
