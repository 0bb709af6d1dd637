"""Pages: chains, runs and nodes with their actions."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.graph_layout import count_vertices
from adjudge.domain.ids import parse_number
from adjudge.domain.permissions import Permission
from adjudge.domain.states import CHAIN_RUN, NODE, ChainRunStatus, NodeStatus
from adjudge.services.chain_run_access import can_approve, can_control, may_complete
from adjudge.services.chain_run_files import list_artifact_files
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.chain_triggers import ChainTriggerService
from adjudge.services.chains import ChainService
from adjudge.services.viewer import Viewer
from adjudge.store.chains.models import ChainNodeRow, ChainRunRow
from adjudge.web import forms
from adjudge.web.dag_svg import render_dag
from adjudge.web.i18n import Translations
from adjudge.web.plots import GanttSpan, gantt
from adjudge.web.render import PageRenderer, page_router, redirect, request_translations
from adjudge.web.status_style import status_class

Reader = Annotated[Viewer, require_permission(Permission.CHAIN_READ)]
RunReader = Annotated[Viewer, require_permission(Permission.RUN_READ)]
Controller = Annotated[Viewer, require_permission(Permission.RUN_CONTROL)]
_PAGE: Final = 30
_LINES: Final = 500
_DRAWN: Final = 300
_DRAWN_PLACES: Final = 3_000
"""Larger DAGs are listed, not drawn."""
_SECOND_US: Final = 1_000_000


def router(
    pages: PageRenderer, chains: ChainService, chain_runs: ChainRunService, chain_triggers: ChainTriggerService
) -> APIRouter:
    routes = page_router(pages)
    _add_chain_routes(routes, pages, chains, chain_runs, chain_triggers)
    _add_run_routes(routes, pages, chain_runs)
    _add_action_routes(routes, chain_runs)
    return routes


def _add_chain_routes(
    routes: APIRouter,
    pages: PageRenderer,
    chains: ChainService,
    chain_runs: ChainRunService,
    chain_triggers: ChainTriggerService,
) -> None:
    @routes.get("/chains")
    async def listed(
        request: Request,
        viewer: Reader,
        keyword: Annotated[str, Query(max_length=100)] = "",
        page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    ) -> Response:
        found = await chains.list_chains(page=page, size=_PAGE, keyword=keyword, enabled=None)
        recent = await _listed(chain_runs, viewer, limit=10)
        more = urlencode({"keyword": keyword, "page": page + 1}) if page * _PAGE < found.total else ""
        return await pages.render(request, "chains.html", chains=found.items, runs=recent, keyword=keyword, more=more)

    @routes.get("/chains/{chain}")
    async def one(request: Request, viewer: Reader, chain: str, cursor: str | None = None) -> Response:
        found = await chains.find_chain(chain)
        place = decode_cursor(cursor, [str])
        before = str(place[0]) if place else None
        runs = await _listed(chain_runs, viewer, chain=found.id, before=before, limit=_PAGE + 1)
        nodes = (found.dag or {}).get("nodes", [])
        return await pages.render(
            request,
            "chain.html",
            chain=found,
            drawing=_draw_definition(found.name, nodes),
            triggers=await chain_triggers.list_triggers(found.id),
            runs=runs[:_PAGE],
            more=urlencode({"cursor": encode_cursor([runs[_PAGE - 1].id])}) if len(runs) > _PAGE else "",
        )


async def _listed(
    chain_runs: ChainRunService, viewer: Viewer, *, chain: str | None = None, before: str | None = None, limit: int
) -> list[ChainRunRow]:
    """Runs visible to the viewer."""
    if not viewer.can(Permission.RUN_READ):
        return []
    return await chain_runs.list_runs(viewer, chain=chain, status=None, before=before, limit=limit)


def _draw_definition(name: str, nodes: Sequence[Mapping[str, Any]]) -> str:
    types = {node["id"]: node["type"] for node in nodes}
    dependencies = {node["id"]: list(node.get("deps") or ()) for node in nodes}
    if not _is_small_enough(dependencies):
        return ""
    return render_dag(name, dependencies, meaning=lambda _: "", caption=lambda node: types[node])


def _add_run_routes(routes: APIRouter, pages: PageRenderer, chain_runs: ChainRunService) -> None:
    @routes.get("/chains/{chain}/runs/{number}")
    async def run_by_number(viewer: RunReader, chain: str, number: str) -> Response:
        wanted = parse_number(number)
        if wanted is None:
            raise NotFound("run", f"{chain}#{number[:64]}")
        return redirect(f"/runs/{(await chain_runs.get_run_by_number(viewer, chain, wanted)).id}")

    @routes.get("/runs/{run_id}")
    async def run(request: Request, viewer: RunReader, run_id: str) -> Response:
        changes = await chain_runs.list_status_changes(viewer, run_id, limit=_LINES)
        shown = await _run_state(chain_runs, viewer, request, run_id)
        return await pages.render(request, "chain_run.html", changes=changes, **shown)

    @routes.get("/runs/{run_id}/state")
    async def run_state(request: Request, viewer: RunReader, run_id: str) -> Response:
        """The live region of the page of a run."""
        return await pages.render(
            request, "chain_run_state.html", **await _run_state(chain_runs, viewer, request, run_id)
        )

    @routes.get("/runs/{run_id}/nodes/{node_id}")
    async def node(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        return await pages.render(request, "node.html", **await _node_state(chain_runs, viewer, run_id, node_id))

    @routes.get("/runs/{run_id}/nodes/{node_id}/state")
    async def node_state(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        return await pages.render(request, "node_state.html", **await _node_state(chain_runs, viewer, run_id, node_id))


async def _run_state(chain_runs: ChainRunService, viewer: Viewer, request: Request, run_id: str) -> dict[str, Any]:
    run, nodes = await chain_runs.get_run(viewer, run_id), await chain_runs.list_nodes(viewer, run_id)
    spoken = request_translations(request)
    return {
        "run": run,
        "nodes": nodes,
        "drawing": await _draw_run(chain_runs, spoken, run, nodes),
        "gantt": _gantt(spoken, nodes),
        "over": run.status in CHAIN_RUN.terminal,
        "may_control": can_control(viewer, run),
        "may_stop": run.status in (ChainRunStatus.PENDING, ChainRunStatus.RUNNING),
    }


async def _draw_run(
    chain_runs: ChainRunService, spoken: Translations, run: ChainRunRow, nodes: Sequence[ChainNodeRow]
) -> str:
    dependencies = await chain_runs.get_dag(run)
    if not _is_small_enough(dependencies):
        return ""
    node_by_id = {node.node_id: node for node in nodes}

    def caption(node_id: str) -> str:
        node, waits_for = node_by_id[node_id], _waiting_for(node_by_id[node_id])
        return spoken.label("waiting_for", waits_for) if waits_for else spoken.label("node_status", node.status)

    def colour(node_id: str) -> str:
        return "warn" if _waiting_for(node_by_id[node_id]) else status_class(node_by_id[node_id].status)

    return render_dag(
        run.chain_name,
        dependencies,
        meaning=colour,
        caption=caption,
        link=lambda node_id: f"/runs/{run.id}/nodes/{quote(node_id, safe='')}",
    )


def _is_small_enough(dependencies: Mapping[str, Sequence[str]]) -> bool:
    return len(dependencies) <= _DRAWN and count_vertices(dependencies) <= _DRAWN_PLACES


def _waiting_for(node: ChainNodeRow) -> str | None:
    """What a node waits for, if anything."""
    return node.wait_on or ("slot" if node.slot == "wanted" else None)


def _gantt(spoken: Translations, nodes: Sequence[ChainNodeRow]) -> str:
    now = time.time()
    spans = [
        GanttSpan(
            node.node_id,
            node.started_at / _SECOND_US,
            max(node.started_at / _SECOND_US, node.ended_at / _SECOND_US if node.ended_at else now),
            status_class(node.status) or "idle",
        )
        for node in nodes
        if node.started_at is not None
    ]
    return gantt(spoken("run.timeline"), spans[:100]) if spans else ""


async def _node_state(chain_runs: ChainRunService, viewer: Viewer, run_id: str, node_id: str) -> dict[str, Any]:
    node, run = await chain_runs.get_node(viewer, run_id, node_id), await chain_runs.get_run(viewer, run_id)
    lines = await chain_runs.tail_log_lines(viewer, run_id, node_id, limit=_LINES + 1)
    return {
        "run": run,
        "node": node,
        "lines": lines[-_LINES:],
        "is_cut": len(lines) > _LINES,
        "artifact": json.dumps(node.artifact, indent=2, ensure_ascii=False) if node.artifact is not None else "",
        "files": list(list_artifact_files(node.artifact)),
        "over": node.status in NODE.terminal and run.status in CHAIN_RUN.terminal,
        "may_control": can_control(viewer, run),
        "may_retry": node.status in (NodeStatus.FAILED, NodeStatus.STOPPED),
        "may_complete": node.status in (NodeStatus.FAILED, NodeStatus.STOPPED, NodeStatus.RUNNING)
        and may_complete(viewer, node),
        "asks": can_approve(viewer, run, node),
    }


def _add_action_routes(routes: APIRouter, chain_runs: ChainRunService) -> None:
    @routes.post("/chains/{chain}/start")
    async def start(request: Request, viewer: Controller, chain: str) -> Response:
        given = (await forms.text(request, "parameters")).strip()
        started = await chain_runs.start_run(
            viewer, chain, parameters=_parameters(given), reason=await _reason(request, required=False)
        )
        return redirect(f"/runs/{started.run_id}")

    @routes.post("/runs/{run_id}/stop")
    async def stop(request: Request, viewer: Controller, run_id: str) -> Response:
        await chain_runs.stop_run(viewer, run_id, await _reason(request))
        return redirect(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/rerun")
    async def rerun(request: Request, viewer: Controller, run_id: str) -> Response:
        from_node = await forms.text(request, "from_node", limit=200) or None
        started = await chain_runs.rerun(viewer, run_id, from_node=from_node, reason=await _reason(request), key=None)
        return redirect(f"/runs/{started.run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/retry")
    async def retry(request: Request, viewer: Controller, run_id: str, node_id: str) -> Response:
        await chain_runs.retry_node(viewer, run_id, node_id, await _reason(request))
        return redirect(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/complete")
    async def complete(request: Request, viewer: Controller, run_id: str, node_id: str) -> Response:
        await chain_runs.complete_node(viewer, run_id, node_id, artifact=None, reason=await _reason(request))
        return redirect(f"/runs/{run_id}")

    @routes.post("/runs/{run_id}/nodes/{node_id}/decide")
    async def decide(request: Request, viewer: RunReader, run_id: str, node_id: str) -> Response:
        decision = await forms.text(request, "decision", limit=10)
        if decision not in ("approve", "reject"):
            raise InvalidInput("decision: expected approve or reject.", field="decision")
        reason = await _reason(request)
        await chain_runs.decide_node(viewer, run_id, node_id, approved=decision == "approve", reason=reason)
        return redirect(f"/runs/{run_id}")


async def _reason(request: Request, *, required: bool = True) -> str:
    reason = (await forms.text(request, "reason", limit=500)).strip()
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
