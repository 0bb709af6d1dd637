"""Page: the import of a contest package, with a preview."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.uploads import iter_file
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.contest_package.importer import ContestPackageImporter, PackageOptions
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.render import PageRenderer, page_router, redirect

Creator = Annotated[Viewer, require_permission(Permission.CONTEST_CREATE)]


def router(pages: PageRenderer, imports: ContestPackageImporter) -> APIRouter:
    """The page of imports."""
    routes = page_router(pages)

    async def show(request: Request, **shown: Any) -> Response:
        shown = {"error": None, "report": None, "options": PackageOptions(), **shown}
        status = shown["error"].http_status if shown["error"] else 200
        return await pages.render(request, "contest_package.html", status=status, **shown)

    @routes.get("/contests/import")
    async def form(request: Request, viewer: Creator) -> Response:  # noqa: ARG001  # the permission is checked
        return await show(request)

    @routes.post("/contests/import")
    async def run(request: Request, viewer: Creator) -> Response:
        """Preview an uploaded package, or import the one that was previewed."""
        options = PackageOptions()
        try:
            digest = await forms.text(request, "digest", limit=64)
            file = await forms.upload(request, "package")
            options = await _options(request, "" if file is None else file.filename or "")
            if not digest:
                if file is None:
                    raise InvalidInput("package: select a ZIP archive.", field="package")
                digest = await imports.upload(viewer, iter_file(file))
                return await show(request, report=await imports.preview(viewer, digest, options), options=options)
            report = await imports.apply(viewer, digest, options)
        except AdjudgeError as error:
            return await show(request, error=error, options=options)
        done = "contest_unchanged" if report.is_unchanged else "contest_imported"
        return redirect(f"/contests/{report.slug}", done=done)

    return routes


async def _options(request: Request, file_name: str) -> PackageOptions:
    return PackageOptions(
        slug=(await forms.text(request, "slug", limit=36)).strip() or None,
        file_name=file_name or await forms.text(request, "file_name", limit=200),
        verify=bool(await forms.text(request, "verify", limit=10)),
    )
