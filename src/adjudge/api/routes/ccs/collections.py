"""Reading the Contest API: information about it, contests, collections and single objects."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from adjudge import __version__
from adjudge.api.auth import require_permission
from adjudge.api.routes.ccs.routing import answer, ccs_router
from adjudge.contests.ccs.version import CcsCollection, CcsVersion
from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.ccs import CcsService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
ContestId = Annotated[str, Path(max_length=64, description="The slug of the contest.")]
Collection = Annotated[str, Path(max_length=36, description="For example `teams`.", examples=["teams"])]
ObjectId = Annotated[str, Path(max_length=64)]
_COLLECTIONS: Final = {
    str(item): item for item in CcsCollection if item not in (CcsCollection.CONTEST, CcsCollection.STATE)
}


def collection_router(prefix: str, version: CcsVersion, service: CcsService) -> APIRouter:
    """The routes that read, under one prefix."""
    routes = ccs_router(prefix)
    _add_information(routes, version)
    _add_contests(routes, version, service)
    _add_singletons(routes, version, service)
    _add_collections(routes, version, service)
    return routes


def _add_information(routes: APIRouter, version: CcsVersion) -> None:
    @routes.get("/", summary="Read which version of the Contest API this is", include_in_schema=False)
    @routes.get("", summary="Read which version of the Contest API this is", responses=answer("object"))
    async def information() -> JSONResponse:
        provider = {"name": "Adjudge", "version": __version__}
        return JSONResponse({"version": str(version), "version_url": version.url, "provider": provider})


def _add_contests(routes: APIRouter, version: CcsVersion, service: CcsService) -> None:
    @routes.get("/contests", summary="List the contests", responses=answer("array"))
    async def contests(viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.list_contests(viewer, version))

    @routes.get("/contests/{contest}", summary="Read a contest", responses=answer("object"))
    async def contest_object(contest: ContestId, viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.get_contest(viewer, contest, version))


def _add_singletons(routes: APIRouter, version: CcsVersion, service: CcsService) -> None:
    @routes.get("/contests/{contest}/access", summary="Read what you may see and do", responses=answer("object"))
    async def access(contest: ContestId, viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.get_access(viewer, contest, version))

    @routes.get("/contests/{contest}/account", summary="Read your account", responses=answer("object"))
    async def account(contest: ContestId, viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.get_account(viewer, contest))

    @routes.get("/contests/{contest}/state", summary="Read the state of a contest", responses=answer("object"))
    async def state(contest: ContestId, viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.get_state(viewer, contest))

    @routes.get("/contests/{contest}/scoreboard", summary="Read the scoreboard", responses=answer("object"))
    async def scoreboard(
        contest: ContestId,
        viewer: Reader,
        group_id: Annotated[str | None, Query(max_length=64, description="Only the teams of this group.")] = None,
    ) -> JSONResponse:
        return JSONResponse(await service.get_scoreboard(viewer, contest, version, group=group_id))


def _add_collections(routes: APIRouter, version: CcsVersion, service: CcsService) -> None:
    @routes.get(
        "/contests/{contest}/{collection}",
        summary="List the objects of a collection",
        description="Properties that are ids of other objects are filters, for example `team_id=42`; an empty value "
        "finds objects without one.",
        responses=answer("array"),
    )
    async def objects(request: Request, contest: ContestId, collection: Collection, viewer: Reader) -> JSONResponse:
        filters = dict(request.query_params)
        found = await service.list_objects(viewer, contest, _parse(collection), version, filters)
        return await asyncio.to_thread(JSONResponse, found)  # it may be several megabytes

    @routes.get("/contests/{contest}/{collection}/{object_id}", summary="Read one object", responses=answer("object"))
    async def one(contest: ContestId, collection: Collection, object_id: ObjectId, viewer: Reader) -> JSONResponse:
        return JSONResponse(await service.get_object(viewer, contest, _parse(collection), object_id, version))


def _parse(collection: str) -> CcsCollection:
    found = _COLLECTIONS.get(collection)
    if found is None:
        raise NotFound("collection", collection)
    return found
