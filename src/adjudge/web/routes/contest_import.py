"""Page: the import of teams, groups, organisations and accounts into a contest."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.participants import ParticipantService
from adjudge.services.team_import import TeamImportService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import no_store, page_router

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_MAX_FILE_CHARS: Final = 4_000_000
_MAX_FILES: Final = 20


def router(page: ContestPageRenderer, participants: ParticipantService, imports: TeamImportService) -> APIRouter:
    """The page of imports."""
    routes = page_router(page.pages)

    async def show(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await participants.access.find_as(viewer, slug, ContestRole.ORGANISER)
        shown = {"error": None, "report": None, "files": [], "is_done": False, **shown}
        status = shown["error"].http_status if shown["error"] else 200
        answer = await page.render(request, view, "contest_import.html", tab="/participants", status=status, **shown)
        return no_store(answer) if shown["is_done"] else answer

    @routes.get("/contests/{slug}/import")
    async def form(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post("/contests/{slug}/import")
    async def run(request: Request, viewer: Member, slug: str) -> Response:
        files: list[tuple[str, str]] = []
        try:
            files = await _given_files(request)
            if await forms.text(request, "do", limit=20) != "import":
                return await show(request, viewer, slug, report=await imports.preview(viewer, slug, files), files=files)
            report = await imports.apply(viewer, slug, files)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, files=files)
        return await show(request, viewer, slug, report=report, is_done=True)

    return routes


async def _given_files(request: Request) -> list[tuple[str, str]]:
    """The uploaded files, or those of the preview, which its form sends again."""
    form = await request.form()
    uploaded = [item for item in form.getlist("files") if not isinstance(item, str) and item.filename]
    if len(uploaded) > _MAX_FILES:
        raise InvalidInput(f"files: at most {_MAX_FILES}.", field="files")
    files = []
    for item in uploaded:
        data = await item.read(_MAX_FILE_CHARS + 1)
        if len(data) > _MAX_FILE_CHARS:
            raise InvalidInput(f"files: {item.filename} has more than {_MAX_FILE_CHARS} bytes.", field="files")
        try:
            files.append((item.filename or "", data.decode()))
        except UnicodeDecodeError:
            raise InvalidInput(f"files: {item.filename} is not UTF-8 text.", field="files") from None
    names, texts = await forms.checked_values(request, "file_name"), await forms.checked_values(request, "file_text")
    files = files or list(zip(names, texts, strict=False))
    if not files:
        raise InvalidInput("files: select at least one file.", field="files")
    return files
