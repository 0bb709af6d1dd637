"""Chains: their definitions, what starts them, and which kinds of nodes there are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request

from adjudge.api.actions import chains
from adjudge.api.actions.chains import Definition
from adjudge.api.asking import needs
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.wire.chain_apply import ChainApplied, WantedChain
from adjudge.api.wire.chains import (
    ChainChange,
    ChainDetail,
    ChainList,
    ChainSummary,
    ExecutorInfo,
    ExecutorList,
    NewChain,
    NewTriggerBody,
    Ticked,
    TriggerChange,
    TriggerInfo,
    TriggerList,
    TriggerMade,
    VersionInfo,
    VersionList,
)
from adjudge.api.wire.runs import NewRunBody, RunStarted
from adjudge.chains.definition import Definition as ChainFile
from adjudge.chains.definition import TriggerDefinition
from adjudge.domain.access import Permission
from adjudge.store import chains as rows

Reader = Annotated[Viewer, needs(Permission.CHAIN_READ)]
Writer = Annotated[Viewer, needs(Permission.CHAIN_WRITE)]
Controller = Annotated[Viewer, needs(Permission.RUN_CONTROL)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key returns the same run.",
    ),
]


def router(parts: Parts) -> APIRouter:
    """``/chains``, ``/triggers`` and ``/executors``."""
    routes = APIRouter(tags=["chains"])
    _add_definitions(routes, parts)
    _add_actions(routes, parts)
    _add_triggers(routes, parts)
    return routes


def _add_definitions(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/chains", status_code=201, summary="Create a chain")
    async def create(body: NewChain, viewer: Writer) -> ChainDetail:
        wanted = Definition(body.name, body.dag, body.description)
        return ChainDetail.whole(await chains.create(parts, viewer, wanted, enabled=body.enabled))

    @routes.get("/chains", summary="List chains")
    async def listed(
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        *,
        page: Annotated[int, Query(ge=1, le=100_000)] = 1,
        size: Annotated[int, Query(ge=1, le=100)] = 20,
        keyword: Annotated[str, Query(max_length=100, description="Filter by name or description.")] = "",
        enabled: bool | None = None,
    ) -> ChainList:
        found = await chains.listed(parts, page=page, size=size, keyword=keyword, enabled=enabled)
        items = [ChainSummary.of(chain) for chain in found.items]
        return ChainList(items=items, page=page, size=size, total=found.total)

    @routes.get("/chains/{chain}", summary="Get a chain by ID or name")
    async def find(chain: str, viewer: Reader) -> ChainDetail:  # noqa: ARG001  # asked for by its point
        return ChainDetail.whole(await chains.find(parts, chain))

    @routes.put("/chains/{chain}", summary="Update a chain; existing runs keep their DAG")
    async def update(chain: str, body: ChainChange, viewer: Writer) -> ChainDetail:
        chain_id = (await chains.find(parts, chain)).id
        wanted = Definition(body.name, body.dag, body.description)
        return ChainDetail.whole(await chains.update(parts, viewer, chain_id, wanted, version=body.version))

    @routes.get("/chains/{chain}/versions", summary="List the versions of a chain, newest first")
    async def history(
        chain: str,
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> VersionList:
        chain_id = (await chains.find(parts, chain)).id
        found = await parts.database.read(lambda tx: rows.history(tx, chain_id, before=before, at_most=limit))
        return VersionList(items=[VersionInfo.of(item) for item in found])

    @routes.get("/executors", summary="List node types and their configuration schemas")
    async def executors(viewer: Reader) -> ExecutorList:  # noqa: ARG001  # asked for by its point
        known = [parts.executors.describe(name) for name in parts.executors.types()]
        return ExecutorList(
            items=[
                ExecutorInfo(
                    type=item.type, summary=item.summary, cfg_schema=dict(item.cfg_schema), package=item.distribution
                )
                for item in known
            ]
        )


def _add_actions(routes: APIRouter, parts: Parts) -> None:
    @routes.post(
        "/chains:apply",
        summary="Create or update a chain and its triggers",
        description=(
            "Applied in one transaction. The chain is matched by name; triggers that are not listed are deleted."
        ),
    )
    async def apply(body: WantedChain, viewer: Writer) -> ChainApplied:
        triggers = tuple(TriggerDefinition(item.name, item.kind, item.spec, item.enabled) for item in body.triggers)
        wanted = ChainFile(body.name, body.dag, body.description, body.enabled, triggers)
        done, chain = await chains.apply(parts, viewer, wanted)
        return ChainApplied(
            chain=ChainDetail.whole(chain),
            outcome=done.outcome,
            triggers=dict(done.triggers),
            secrets=dict(done.secrets),
        )

    @routes.post("/chains/{chain}:enable", summary="Enable a chain")
    async def enable(chain: str, viewer: Writer) -> ChainDetail:
        chain_id = (await chains.find(parts, chain)).id
        return ChainDetail.whole(await chains.switch(parts, viewer, chain_id, enabled=True))

    @routes.post("/chains/{chain}:disable", summary="Disable a chain; current runs continue")
    async def disable(chain: str, viewer: Writer) -> ChainDetail:
        chain_id = (await chains.find(parts, chain)).id
        return ChainDetail.whole(await chains.switch(parts, viewer, chain_id, enabled=False))

    @routes.post("/chains/{chain}:start", status_code=202, summary="Start a run of a chain")
    async def start(
        chain: str,
        request: Request,
        viewer: Controller,
        body: Annotated[NewRunBody | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> RunStarted:
        asked = body or NewRunBody()
        trace_id: str = request.state.trace_id
        started = await chains.start(
            parts, viewer, chain, parameters=asked.parameters, key=key, reason=asked.reason, trace_id=trace_id
        )
        return RunStarted(run_id=started.run_id, is_new=started.is_new)


def _add_triggers(routes: APIRouter, parts: Parts) -> None:
    @routes.get("/chains/{chain}/triggers", summary="List the triggers of a chain")
    async def listed(chain: str, viewer: Reader) -> TriggerList:  # noqa: ARG001  # asked for by its point
        return TriggerList(items=[TriggerInfo.of(item) for item in await chains.triggers(parts, chain)])

    @routes.post("/chains/{chain}/triggers", status_code=201, summary="Create a trigger")
    async def create(chain: str, body: NewTriggerBody, viewer: Writer) -> TriggerMade:
        trigger, secret = await chains.add_trigger(
            parts, viewer, chain, name=body.name, kind=body.kind, spec=body.spec, enabled=body.enabled
        )
        return TriggerMade.made(trigger, secret)

    @routes.patch("/triggers/{trigger_id}", summary="Update a trigger")
    async def change(trigger_id: str, body: TriggerChange, viewer: Writer) -> TriggerInfo:
        changed = await chains.change_trigger(
            parts, viewer, trigger_id, version=body.version, spec=body.spec, enabled=body.enabled
        )
        return TriggerInfo.of(changed)

    @routes.delete("/triggers/{trigger_id}", status_code=204, summary="Delete a trigger")
    async def remove(trigger_id: str, viewer: Writer) -> None:
        await chains.remove_trigger(parts, viewer, trigger_id)

    @routes.post(
        "/triggers/{trigger_id}:call",
        status_code=202,
        summary="Call a webhook trigger",
        description="Authenticated by the trigger's secret. `Idempotency-Key` prevents duplicate runs.",
    )
    async def call(
        trigger_id: str,
        secret: Annotated[str, Header(alias="X-Adjudge-Trigger-Secret", max_length=200)],
        payload: Annotated[dict[str, Any] | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> Ticked:
        return Ticked(tick=await chains.call_webhook(parts, trigger_id, secret=secret, key=key, payload=payload or {}))
