"""Pages: printing in a contest, and its print queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import MAX_PRINT_BYTES
from adjudge.domain.errors import AdjudgeError, Conflict, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.prints import PrintFilter, PrintService, is_staff, may_print, sees_queue
from adjudge.services.submitted_files import decode_source
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
Filter = Annotated[PrintFilter, Query()]
Number = Annotated[int, Path(ge=1, le=2**53)]
TAB: Final = "/prints"
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class _QueuePage:
    page: ContestPageRenderer
    prints: PrintService

    async def find(self, viewer: Viewer, slug: str, state: PrintFilter) -> dict[str, Any]:
        """What the list shows."""
        is_all = state is PrintFilter.ALL
        found = await self.prints.list_prints(viewer, slug, which=state, limit=_SHOWN, newest_first=is_all)
        return {
            "view": found.view,
            "items": found.items,
            "state": state,
            "is_staff": is_staff(found.view),
            "sees_queue": sees_queue(found.view),
        }

    async def render(
        self,
        request: Request,
        viewer: Viewer,
        slug: str,
        state: PrintFilter,
        *,
        error: AdjudgeError | None = None,
        content: str = "",
    ) -> Response:
        """The page with the form and the list."""
        found = await self.find(viewer, slug, state)
        view = found.pop("view")
        return await self.page.render(
            request,
            view,
            "prints.html",
            tab=TAB,
            status=error.http_status if error else 200,
            may_print=may_print(view),
            error=error,
            content=content,
            **found,
        )


def router(page: ContestPageRenderer, prints: PrintService) -> APIRouter:
    routes, queue = page_router(page.pages), _QueuePage(page, prints)
    _add_queue_routes(routes, queue)
    _add_job_routes(routes, queue)
    return routes


def _add_queue_routes(routes: APIRouter, queue: _QueuePage) -> None:
    @routes.get("/contests/{slug}/prints")
    async def listed(request: Request, viewer: Member, slug: str, state: Filter = PrintFilter.OPEN) -> Response:
        return await queue.render(request, viewer, slug, state)

    @routes.get("/contests/{slug}/prints/state")
    async def live(request: Request, viewer: Member, slug: str, state: Filter = PrintFilter.OPEN) -> Response:
        """The live region of the queue."""
        found = await queue.find(viewer, slug, state)
        return await queue.page.pages.render(request, "print_rows.html", contest=found["view"].contest, **found)

    @routes.post("/contests/{slug}/prints")
    async def send(request: Request, viewer: Member, slug: str) -> Response:
        """Print an uploaded file, or the text of the form."""
        content = ""
        try:
            content = await forms.text(request, "content", limit=MAX_PRINT_BYTES)
            file_name = await forms.text(request, "file_name")
            upload = await forms.upload(request, "file")
            if upload is not None:
                content, file_name = decode_source(await upload.read(), "file"), upload.filename or ""
            await queue.prints.submit(viewer, slug, file_name, content)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await queue.render(request, viewer, slug, PrintFilter.OPEN, error=error, content=content)
        return redirect(f"/contests/{slug}{TAB}", done="print_sent")


def _add_job_routes(routes: APIRouter, queue: _QueuePage) -> None:
    prints = queue.prints

    @routes.get("/contests/{slug}/prints/{number}")
    async def shown(request: Request, viewer: Member, slug: str, number: Number) -> Response:
        """The printable page of one job."""
        found = await prints.find(viewer, slug, number)
        return await queue.page.pages.render(
            request,
            "print.html",
            contest=found.view.contest,
            row=found.row,
            sheets=found.pages,
            is_staff=is_staff(found.view),
        )

    @routes.post("/contests/{slug}/prints/{number}")
    async def change(
        request: Request, viewer: Member, slug: str, number: Number, state: Filter = PrintFilter.OPEN
    ) -> Response:
        """Claim a job and show it, mark it as printed, or put it back."""
        actions = {"claim": prints.claim, "finish": prints.finish, "requeue": prints.requeue}
        wanted = await forms.text(request, "action")
        if wanted not in actions:
            raise InvalidInput("action: expected claim, finish or requeue.", field="action")
        try:
            await actions[wanted](viewer, slug, number)
        except Conflict as error:
            return await queue.render(request, viewer, slug, state, error=error)
        path = f"/contests/{slug}{TAB}"
        return redirect(f"{path}/{number}" if wanted == "claim" else f"{path}?state={state}")
