"""Pages: the secrets of chains. Values are never shown."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.chains.secrets import VALUE_MAX
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission
from adjudge.services.secrets import SecretService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.render import PageRenderer, page_router, redirect

Writer = Annotated[Viewer, require_permission(Permission.SECRET_WRITE)]
ROOT: Final = "/ops/secrets"


def router(pages: PageRenderer, secrets: SecretService) -> APIRouter:
    routes = page_router(pages)

    async def page(request: Request, *, name: str = "", error: AdjudgeError | None = None) -> Response:
        """The list and the form; after an error the form keeps the name, but not the value."""
        status = error.http_status if error else 200
        listed = await secrets.names()
        return await pages.render(request, "ops_secrets.html", status=status, secrets=listed, name=name, error=error)

    @routes.get(ROOT)
    async def every(request: Request, _viewer: Writer) -> Response:
        return await page(request)

    @routes.post(ROOT)
    async def put(request: Request, viewer: Writer) -> Response:
        name = ""
        try:
            name = (await forms.text(request, "name")).strip()
            await secrets.put(viewer, name, await forms.text(request, "value", limit=VALUE_MAX))
        except AdjudgeError as error:
            return await page(request, name=name, error=error)
        return redirect(ROOT, done="saved")

    @routes.post(ROOT + "/{name}/delete")
    async def delete(viewer: Writer, name: str) -> Response:
        await secrets.delete(viewer, name)
        return redirect(ROOT, done="deleted")

    return routes
