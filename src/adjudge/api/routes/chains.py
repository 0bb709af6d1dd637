"""Chains: definitions, triggers and node types."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.schema.chain_runs import ChainRunCreate
from adjudge.api.schema.chains import ChainApplyRequest, ChainCreate, ChainUpdate, TriggerCreate, TriggerUpdate
from adjudge.chains.definition_file import ChainDefinition as ChainFile
from adjudge.chains.definition_file import TriggerDefinition
from adjudge.chains.executor_registry import installed_executors
from adjudge.domain.permissions import Permission
from adjudge.schema.chain_runs import ChainRunStarted
from adjudge.schema.chains import (
    ChainApplyRead,
    ChainNumberedPage,
    ChainRead,
    ChainSummary,
    ChainVersionList,
    ChainVersionRead,
    ExecutorList,
    ExecutorRead,
    TriggerCallAccepted,
    TriggerCreated,
    TriggerList,
    TriggerRead,
)
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.chain_triggers import ChainTriggerService
from adjudge.services.chains import ChainDraft, ChainService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CHAIN_READ)]
Writer = Annotated[Viewer, require_permission(Permission.CHAIN_WRITE)]
Controller = Annotated[Viewer, require_permission(Permission.RUN_CONTROL)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key returns the same run.",
    ),
]


def router(chains: ChainService, chain_runs: ChainRunService, chain_triggers: ChainTriggerService) -> APIRouter:
    routes = api_router("chains")
    _add_definitions(routes, chains)
    _add_actions(routes, chains, chain_runs)
    _add_triggers(routes, chain_triggers)
    return routes


def _add_definitions(routes: APIRouter, chains: ChainService) -> None:
    @routes.post("/chains", status_code=201, summary="Create a chain")
    async def create(body: ChainCreate, viewer: Writer) -> ChainRead:
        wanted = ChainDraft(body.name, body.dag, body.description)
        return ChainRead.of(await chains.create_chain(viewer, wanted, enabled=body.enabled))

    @routes.get("/chains", summary="List chains")
    async def listed(
        viewer: Reader,  # noqa: ARG001  # checks the permission
        *,
        page: Annotated[int, Query(ge=1, le=100_000)] = 1,
        size: Annotated[int, Query(ge=1, le=100)] = 20,
        keyword: Annotated[str, Query(max_length=100, description="Filter by name or description.")] = "",
        enabled: bool | None = None,
    ) -> ChainNumberedPage:
        found = await chains.list_chains(page=page, size=size, keyword=keyword, enabled=enabled)
        items = [ChainSummary.of(chain) for chain in found.items]
        return ChainNumberedPage(items=items, page=page, size=size, total=found.total)

    @routes.get("/chains/{chain}", summary="Get a chain by ID or name")
    async def find(chain: str, viewer: Reader) -> ChainRead:  # noqa: ARG001  # checks the permission
        return ChainRead.of(await chains.find_chain(chain))

    @routes.put("/chains/{chain}", summary="Update a chain; existing runs keep their DAG")
    async def update(chain: str, body: ChainUpdate, viewer: Writer) -> ChainRead:
        chain_id = (await chains.find_chain(chain)).id
        wanted = ChainDraft(body.name, body.dag, body.description)
        return ChainRead.of(await chains.update_chain(viewer, chain_id, wanted, version=body.version))

    @routes.get("/chains/{chain}/versions", summary="List the versions of a chain, newest first")
    async def history(
        chain: str,
        viewer: Reader,  # noqa: ARG001  # checks the permission
        before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> ChainVersionList:
        found = await chains.list_versions(chain, before=before, limit=limit)
        return ChainVersionList(items=[ChainVersionRead.of(item) for item in found])

    @routes.get("/executors", summary="List node types and their configuration schemas")
    async def executors(viewer: Reader) -> ExecutorList:  # noqa: ARG001  # checks the permission
        known = [installed_executors().describe(name) for name in installed_executors().types()]
        return ExecutorList(
            items=[
                ExecutorRead(
                    type=item.type, summary=item.summary, cfg_schema=dict(item.cfg_schema), package=item.distribution
                )
                for item in known
            ]
        )


def _add_actions(routes: APIRouter, chains: ChainService, chain_runs: ChainRunService) -> None:
    @routes.post(
        "/chains:apply",
        summary="Create or update a chain and its triggers",
        description=(
            "Applied in one transaction. The chain is matched by name; triggers that are not listed are deleted."
        ),
    )
    async def apply(body: ChainApplyRequest, viewer: Writer) -> ChainApplyRead:
        triggers = tuple(TriggerDefinition(item.name, item.kind, item.spec, item.enabled) for item in body.triggers)
        wanted = ChainFile(body.name, body.dag, body.description, body.enabled, triggers)
        done, chain = await chains.apply_chain(viewer, wanted)
        return ChainApplyRead(
            chain=ChainRead.of(chain),
            outcome=done.outcome,
            triggers=dict(done.triggers),
            secrets=dict(done.secrets),
        )

    @routes.post("/chains/{chain}:enable", summary="Enable a chain")
    async def enable(chain: str, viewer: Writer) -> ChainRead:
        chain_id = (await chains.find_chain(chain)).id
        return ChainRead.of(await chains.set_chain_enabled(viewer, chain_id, enabled=True))

    @routes.post("/chains/{chain}:disable", summary="Disable a chain; current runs continue")
    async def disable(chain: str, viewer: Writer) -> ChainRead:
        chain_id = (await chains.find_chain(chain)).id
        return ChainRead.of(await chains.set_chain_enabled(viewer, chain_id, enabled=False))

    @routes.post("/chains/{chain}:start", status_code=202, summary="Start a run of a chain")
    async def start(
        chain: str,
        request: Request,
        viewer: Controller,
        body: Annotated[ChainRunCreate | None, Body()] = None,
        key: IdempotencyKey = None,
    ) -> ChainRunStarted:
        asked = body or ChainRunCreate()
        trace_id: str = request.state.trace_id
        started = await chain_runs.start_run(
            viewer, chain, parameters=asked.parameters, key=key, reason=asked.reason, trace_id=trace_id
        )
        return ChainRunStarted(run_id=started.run_id, number=started.number, is_new=started.is_new)


def _add_triggers(routes: APIRouter, chain_triggers: ChainTriggerService) -> None:
    @routes.get("/chains/{chain}/triggers", summary="List the triggers of a chain")
    async def listed(chain: str, viewer: Reader) -> TriggerList:  # noqa: ARG001  # checks the permission
        return TriggerList(items=[TriggerRead.of(item) for item in await chain_triggers.list_triggers(chain)])

    @routes.post("/chains/{chain}/triggers", status_code=201, summary="Create a trigger")
    async def create(chain: str, body: TriggerCreate, viewer: Writer) -> TriggerCreated:
        trigger, secret = await chain_triggers.create_trigger(
            viewer, chain, name=body.name, kind=body.kind, spec=body.spec, enabled=body.enabled
        )
        return TriggerCreated.of(trigger, secret=secret)

    @routes.patch("/triggers/{trigger_id}", summary="Update a trigger")
    async def change(trigger_id: str, body: TriggerUpdate, viewer: Writer) -> TriggerRead:
        changed = await chain_triggers.update_trigger(
            viewer, trigger_id, version=body.version, spec=body.spec, enabled=body.enabled
        )
        return TriggerRead.of(changed)

    @routes.delete("/triggers/{trigger_id}", status_code=204, summary="Delete a trigger")
    async def remove(trigger_id: str, viewer: Writer) -> None:
        await chain_triggers.delete_trigger(viewer, trigger_id)

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
    ) -> TriggerCallAccepted:
        return TriggerCallAccepted(
            tick=await chain_triggers.call_trigger(trigger_id, secret=secret, key=key, payload=payload or {})
        )
