"""Uploads of contests and problems as BAPCtools and DOMjudge's own tools send them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response

from adjudge.api.auth import require_permission
from adjudge.api.routes.domjudge import PREFIXES, Contest, Member, domjudge_router
from adjudge.api.uploads import Upload, form_file, form_text, open_form
from adjudge.domain.contest import ContestRole, MaterialVisibility
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.contest_materials import MAX_BYTES as MATERIAL_BYTES_MAX
from adjudge.services.contest_materials import ContestMaterialService, MaterialChange
from adjudge.services.domjudge import DomjudgeService
from adjudge.services.domjudge_files import FILE_BYTES_MAX, read_contest_file, read_problem_list
from adjudge.services.domjudge_problems import DomjudgeProblemService
from adjudge.services.viewer import Viewer

Creator = Annotated[Viewer, require_permission(Permission.CONTEST_CREATE)]
Writer = Annotated[Viewer, require_permission(Permission.PROBLEM_WRITE)]
PROBLEM_SET: Final = "problemset.pdf"
_PDF: Final = b"%PDF-"
_FILE: Final = {"type": "string", "format": "binary"}


def _form(*files: str, **texts: str) -> dict[str, Any]:
    """The description of a form with one of the files."""
    properties = dict.fromkeys(files, _FILE) | {
        name: {"type": "string", "description": text} for name, text in texts.items()
    }
    schema = {"type": "object", "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def routers(
    domjudge: DomjudgeService, problems: DomjudgeProblemService, materials: ContestMaterialService
) -> list[APIRouter]:
    """The routes under each prefix."""
    return [_router(prefix, domjudge, problems, materials) for prefix in PREFIXES]


def _router(
    prefix: str, domjudge: DomjudgeService, problems: DomjudgeProblemService, materials: ContestMaterialService
) -> APIRouter:
    routes = domjudge_router(prefix)

    @routes.post("/contests", summary="Create a contest from contest.yaml", openapi_extra=_form("yaml", "json"))
    async def create(request: Request, viewer: Creator) -> str:
        async with open_form(request, FILE_BYTES_MAX, "yaml") as form:
            file = form_file(form, "yaml", "json")
            contest = read_contest_file(await _content(file), file.file_name or "contest.yaml")
        return (await domjudge.create_contest(viewer, contest)).contest.slug

    @routes.post(
        "/contests/{contest}/problems/add-data",
        summary="Add the problems of problems.yaml to a contest",
        openapi_extra=_form("data"),
    )
    async def add_data(contest: Contest, request: Request, viewer: Member) -> list[str]:
        await materials.access.find_as(viewer, contest, ContestRole.ORGANISER)
        async with open_form(request, FILE_BYTES_MAX, "data") as form:
            file = form_file(form, "data")
            listed = read_problem_list(await _content(file), file.file_name or "problems.yaml")
        return await problems.add_listed(viewer, contest, listed)

    @routes.post(
        "/contests/{contest}/problems",
        summary="Upload the package of a problem to a contest",
        openapi_extra=_form("zip", problem="The id of a problem of the contest that the package replaces."),
    )
    async def upload(contest: Contest, request: Request, viewer: Writer) -> dict[str, Any]:
        await materials.access.find_as(viewer, contest, ContestRole.ORGANISER)
        async with open_form(request, problems.imports.upload_limit_bytes, "zip") as form:
            file = form_file(form, "zip")
            done = await problems.upload(
                viewer, contest, file.pieces, file.file_name, problem=form_text(form, "problem")
            )
        return {"problem_id": done.label, "messages": done.messages}

    @routes.post(
        "/contests/{contest}/problemset",
        status_code=204,
        summary="Upload the problem set of a contest",
        openapi_extra=_form("problemset"),
    )
    async def problem_set(contest: Contest, request: Request, viewer: Member) -> Response:
        await materials.access.find_as(viewer, contest, ContestRole.ORGANISER)  # before the file is read
        async with open_form(request, MATERIAL_BYTES_MAX, "problemset") as form:
            file = form_file(form, "problemset")
            change = MaterialChange("Problem set", MaterialVisibility.START)
            await materials.save(viewer, contest, PROBLEM_SET, _checked_pdf(file), change)
        return Response(status_code=204)

    return routes


async def _content(file: Upload) -> bytes:
    return b"".join([piece async for piece in file.pieces])


async def _checked_pdf(file: Upload) -> Any:
    head = b""
    async for piece in file.pieces:
        if len(head) < len(_PDF):
            head += piece[: len(_PDF) - len(head)]
            if not _PDF.startswith(head):
                raise InvalidInput("problemset: expected a PDF file.", field="problemset")
        yield piece
