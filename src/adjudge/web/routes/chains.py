"""Chains drawn: what they are, and their runs as they go, with the buttons that steer them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.actions import chains, run_files
from adjudge.api.actions.run_access import controls, may_answer, may_complete
from adjudge.api.asking import needs
from adjudge.api.paging import cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.domain.access import Permission
from adjudge.domain.errors import InvalidInput
from adjudge.domain.layering import places_of
from adjudge.domain.states import CHAIN_RUN, NODE, NodeStatus, RunStatus
from adjudge.store.chain_values import NodeView, Run
from adjudge.web import forms
from adjudge.web.drawing import draw_dag
from adjudge.web.meanings import meaning
from adjudge.web.plots import Span, gantt
from adjudge.web.render import Pages, see_other, words_of
from adjudge.web.routes.router import page_router
from adjudge.web.words import Words

Reader = Annotated[Viewer, needs(Permission.CHAIN_READ)]
RunReader = Annotated[Viewer, needs(Permission.RUN_READ)]
Controller = Annotated[Viewer, needs(Permission.RUN_CONTROL)]
_PAGE: Final = 30
_LINES: Final = 500
_DRAWN: Final = 300
_DRAWN_PLACES: Final = 3_000
"""Nodes, or nodes and bends of edges, beyond this are listed, not drawn: nobody can read such a picture."""
_SECOND_US: Final = 1_000_000


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of chains."""
    routes = page_router(pages)
    _definitions(routes, pages, parts)
    _runs(routes, pages, parts)
    _control(routes, parts)
    return routes


def _definitions(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/chains")
    async def listed(
        request: Request,
        viewer: Reader,
        keyword: Annotated[str, Query(max_length=100)] = "",
        page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    ) -> Response:
        found = await chains.listed(parts, page=page, size=_PAGE, keyword=keyword, enabled=None)
        recent = await _listed(parts, viewer, at_most=10)
        more = urlencode({"keyword": keyword, "page": page + 1}) if page * _PAGE < found.total else ""
        return await pages.show(request, "chains.html", chains=found.items, runs=recent, keyword=keyword, more=more)

    @routes.get("/chains/{chain}")
    async def one(request: Request, viewer: Reader, chain: str, cursor: str | None = None) -> Response:
        found = await chains.find(parts, chain)
        place = place_of(cursor, [str])
        before = str(place[0]) if place else None
        runs = await _listed(parts, viewer, chain=found.id, before=before, at_most=_PAGE + 1)
        nodes = (found.dag or {}).get("nodes", [])
        return await pages.show(
            request,
            "chain.html",
            chain=found,
            drawing=_draw_definition(found.name, nodes),
            triggers=await chains.triggers(parts, found.id),
            runs=runs[:_PAGE],
            more=urlencode({"cursor": cursor_of([runs[_PAGE - 1].id])}) if len(runs) > _PAGE else "",
        )


async def _listed(
    parts: Parts, viewer: Viewer, *, chain: str | None = None, before: str | None = None, at_most: int
) -> list[Run]:
    """The runs that somebody who looks at chains may know of."""
    if not viewer.may(Permission.RUN_READ):
        return []
    return await chains.runs(parts, viewer, chain=chain, status=None, before=before, at_most=at_most)


def _draw_definition(name: str, nodes: Sequence[Mapping[str, Any]]) -> str:
    types = {node["id"]: node["type"] for node in nodes}
    dependencies = {node["id"]: list(node.get("deps") or ()) for node in nodes}
    if not _can_be_read(dependencies):
        return ""
    return draw_dag(name, dependencies, meaning=lambda _: "", caption=lambda node: types[node])


def _runs(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/runs/{run_id}")
    async def run(request: Request, viewer: RunReader, run_id: str) -> Response:
        changes = await chains.changes(parts, viewer, run_id, at_most=_LINES)
        shown = await _run_state(parts, viewer, request, run_id)
        return await pages.show(request, "run.html", changes=changes, **shown)

    @routes.get("/runs/{run_id}/state")
    async def run_state(request: Request, viewer: RunReader, run_id: str) -> Response:
        """The part of the page that changes while the run goes on."""
        return await pages.show(request, "run_state.html", **await _run_state(parts, viewer, request, run_id))

    @routes.get("/runs/{run_id}/nodes/{node_id}")
    async def node(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        return await pages.show(request, "node.html", **await _node_state(parts, viewer, run_id, node_id))

    @routes.get("/runs/{run_id}/nodes/{node_id}/state")
    async def node_state(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        return await pages.show(request, "node_state.html", **await _node_state(parts, viewer, run_id, node_id))


async def _run_state(parts: Parts, viewer: Viewer, request: Request, run_id: str) -> dict[str, Any]:
    run, nodes = await chains.run(parts, viewer, run_id), await chains.nodes(parts, viewer, run_id)
    spoken = words_of(request)
    return {
        "run": run,
        "nodes": nodes,
        "drawing": await _draw_run(parts, spoken, run, nodes),
        "gantt": _gantt(spoken, nodes),
        "over": run.status in CHAIN_RUN.terminal,
        "may_control": controls(viewer, run),
        "may_stop": run.status in (RunStatus.PENDING, RunStatus.RUNNING),
    }


async def _draw_run(parts: Parts, spoken: Words, run: Run, nodes: Sequence[NodeView]) -> str:
    dependencies = await chains.dag_of(parts, run)
    if not _can_be_read(dependencies):
        return ""
    standing = {node.node_id: node for node in nodes}

    def caption(node_id: str) -> str:
        node, waits_for = standing[node_id], _waits_for(standing[node_id])
        return spoken.named("wait", waits_for) if waits_for else spoken.named("node_status", node.status)

    def colour(node_id: str) -> str:
        return "warn" if _waits_for(standing[node_id]) else meaning(standing[node_id].status)

    return draw_dag(
        run.chain_name,
        dependencies,
        meaning=colour,
        caption=caption,
        link=lambda node_id: f"/runs/{run.id}/nodes/{quote(node_id, safe='')}",
    )


def _can_be_read(dependencies: Mapping[str, Sequence[str]]) -> bool:
    return len(dependencies) <= _DRAWN and places_of(dependencies) <= _DRAWN_PLACES


def _waits_for(node: NodeView) -> str | None:
    """What keeps a node that could go on."""
    return node.wait_on or ("place" if node.place == "wanted" else None)


def _gantt(spoken: Words, nodes: Sequence[NodeView]) -> str:
    now = time.time()
    spans = [
        Span(
            node.node_id,
            node.started_at / _SECOND_US,
            max(node.started_at / _SECOND_US, node.ended_at / _SECOND_US if node.ended_at else now),
            meaning(node.status) or "idle",
        )
        for node in nodes
        if node.started_at is not None
    ]
    return gantt(spoken("run.timeline"), spans[:100]) if spans else ""


async def _node_state(parts: Parts, viewer: Viewer, run_id: str, node_id: str) -> dict[str, Any]:
    node, run = await chains.node(parts, viewer, run_id, node_id), await chains.run(parts, viewer, run_id)
    lines = await chains.last_lines(parts, viewer, run_id, node_id, at_most=_LINES + 1)
    return {
        "run": run,
        "node": node,
        "lines": lines[-_LINES:],
        "is_cut": len(lines) > _LINES,
        "artifact": json.dumps(node.artifact, indent=2, ensure_ascii=False) if node.artifact is not None else "",
        "files": list(run_files.described(node.artifact)),
        "over": node.status in NODE.terminal and run.status in CHAIN_RUN.terminal,
        "may_control": controls(viewer, run),
        "may_retry": node.status in (NodeStatus.FAILED, NodeStatus.STOPPED),
        "may_complete": node.status in (NodeStatus.FAILED, NodeStatus.STOPPED, NodeStatus.RUNNING)
        and may_complete(viewer, node),
        "asks": may_answer(viewer, run, node),
    }


def _control(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/chains/{chain}/start")
    async def start(request: Request, viewer: Controller, chain: str) -> Response:
        given = (await forms.text(request, "parameters")).strip()
        started = await chains.start(
            parts, viewer, chain, parameters=_parameters(given), reason=await _reason(request, required=False)
        )
        return see_other(f"/runs/{started.run_id}")

    @routes.post("/runs/{run_id}/stop")
    async def stop(request: Request, viewer: Controller, run_id: str) -> Response:
        await chains.stop(parts, viewer, run_id, await _reason(request))
        return see_other(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/rerun")
    async def rerun(request: Request, viewer: Controller, run_id: str) -> Response:
        from_node = await forms.text(request, "from_node", at_most=200) or None
        started = await chains.rerun(
            parts, viewer, run_id, from_node=from_node, reason=await _reason(request), key=None
        )
        return see_other(f"/runs/{started.run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/retry")
    async def retry(request: Request, viewer: Controller, run_id: str, node_id: str) -> Response:
        await chains.retry(parts, viewer, run_id, node_id, await _reason(request))
        return see_other(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/complete")
    async def complete(request: Request, viewer: Controller, run_id: str, node_id: str) -> Response:
        await chains.complete(parts, viewer, run_id, node_id, artifact=None, reason=await _reason(request))
        return see_other(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/decide")
    async def decide(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        answer = await forms.text(request, "answer", at_most=10)
        if answer not in ("yes", "no"):
            raise InvalidInput("(deleted)", field="answer")
        reason = await _reason(request)
        await chains.approve(parts, viewer, run_id, node_id, approved=answer == "yes", reason=reason)
        return see_other(f"/runs/{run_id}")


async def _reason(request: Request, *, required: bool = True) -> str:
    reason = (await forms.text(request, "reason", at_most=500)).strip()
    if required and not reason:
        raise InvalidInput("reason: required.", field="reason")
    return reason


def _parameters(text: str) -> Mapping[str, Any]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"parameters: invalid JSON: {error}.", field="parameters") from None
    if not isinstance(found, dict):
        raise InvalidInput("parameters: expected a JSON object.", field="parameters")
    return found
