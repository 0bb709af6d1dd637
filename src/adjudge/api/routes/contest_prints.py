"""The print queue of a contest."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import Field

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.base import ApiModel
from adjudge.domain.contest import MAX_PRINT_BYTES
from adjudge.domain.permissions import Permission
from adjudge.schema.prints import PrintPage, PrintRead
from adjudge.services.prints import MAX_NAME, PrintFilter, PrintService, sees_queue
from adjudge.services.viewer import Viewer
from adjudge.store.contests.activity_models import PrintRow

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""The staff are ordinary users with a role in the contest; the service checks it."""
Number = Annotated[int, Path(ge=1, le=2**53)]
_TEXT: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
_HEADERS: Final = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}


class PrintCreate(ApiModel):
    """A text to be printed."""

    file_name: str = Field("", max_length=4 * MAX_NAME, examples=["main.cpp"])
    content: str = Field(max_length=MAX_PRINT_BYTES, examples=["int main() {}"])


def router(prints: PrintService) -> APIRouter:
    """All routes."""
    routes = api_router("contests", "/contests/{contest}/prints")
    _add_routes(routes, prints)
    _add_staff_routes(routes, prints)
    return routes


def _add_routes(routes: APIRouter, prints: PrintService) -> None:
    @routes.get(
        "",
        summary="List print jobs",
        description="For print staff, the jury and API readers all, oldest first; else the own ones, newest first.",
    )
    async def page(
        contest: str,
        viewer: Member,
        *,
        state: Annotated[PrintFilter, Query()] = PrintFilter.ALL,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> PrintPage:
        position = decode_cursor(cursor, [int])
        after = int(str(position[0])) if position else 0
        found = await prints.list_prints(viewer, contest, which=state, after=after, limit=limit + 1)
        more = encode_cursor([found.items[limit - 1].number]) if len(found.items) > limit else None
        is_staff = sees_queue(found.view)
        return PrintPage(items=[_read(row, is_staff=is_staff) for row in found.items[:limit]], next=more)

    @routes.post("", status_code=201, summary="Print a text")
    async def submit(contest: str, body: PrintCreate, viewer: Member) -> PrintRead:
        return _read(await prints.submit(viewer, contest, body.file_name, body.content), is_staff=False)

    @routes.get("/{print_number}/text", summary="Get the text of a print job", response_class=Response, responses=_TEXT)
    async def text(contest: str, print_number: Number, viewer: Member) -> Response:
        found = await prints.find(viewer, contest, print_number)
        return _attachment(found.body, found.row.file_name)

    @routes.get(
        "/{print_number}/pages",
        summary="Get a print job in pages, for a printer",
        description="Each page has a title (number, participant, location, file, page) and ends with a form feed.",
        response_class=Response,
        responses=_TEXT,
    )
    async def pages(contest: str, print_number: Number, viewer: Member) -> Response:
        found = await prints.find(viewer, contest, print_number)
        return _attachment(found.format(), f"{print_number}.txt")


def _add_staff_routes(routes: APIRouter, prints: PrintService) -> None:
    @routes.post(
        "/{print_number}:claim",
        summary="Claim a print job",
        description="A job that is claimed or printed already is a conflict, so it is printed once.",
    )
    async def claim(contest: str, print_number: Number, viewer: Member) -> PrintRead:
        return _read(await prints.claim(viewer, contest, print_number))

    @routes.post("/{print_number}:finish", summary="Mark a print job as printed")
    async def finish(contest: str, print_number: Number, viewer: Member) -> PrintRead:
        return _read(await prints.finish(viewer, contest, print_number))

    @routes.post("/{print_number}:requeue", summary="Put a print job back into the queue")
    async def requeue(contest: str, print_number: Number, viewer: Member) -> PrintRead:
        return _read(await prints.requeue(viewer, contest, print_number))


def _attachment(text: str, name: str) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    headers = {"Content-Disposition": disposition, **_HEADERS}
    return Response(text.encode(), media_type="text/plain; charset=utf-8", headers=headers)


def _read(row: PrintRow, *, is_staff: bool = True) -> PrintRead:
    return PrintRead.of(
        row, participant=row.participant_code, name=row.owner, claimed_by=row.claimed_by if is_staff else None
    )
