"""Named secrets of chains: set, listed, deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.schema.chains import SecretBody
from adjudge.domain.permissions import Permission
from adjudge.schema.chains import SecretInfo, SecretList
from adjudge.services.secrets import SecretService
from adjudge.services.viewer import Viewer

Writer = Annotated[Viewer, require_permission(Permission.SECRET_WRITE)]


def router(secrets: SecretService) -> APIRouter:
    routes = api_router("secrets")

    @routes.get("/secrets", summary="The names of secrets that chains may use")
    async def listed(_viewer: Writer) -> SecretList:
        return SecretList(items=[SecretInfo.of(item) for item in await secrets.names()])

    @routes.put("/secrets/{name}", status_code=204, summary="Set a secret, or give it another value")
    async def put(name: str, body: SecretBody, viewer: Writer) -> None:
        await secrets.put(viewer, name, body.value.get_secret_value())

    @routes.delete("/secrets/{name}", status_code=204, summary="Delete a secret")
    async def delete(name: str, viewer: Writer) -> None:
        await secrets.delete(viewer, name)

    return routes
