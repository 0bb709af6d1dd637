"""Pages of setters: imports, metadata, revisions, diffs and publication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from adjudge.api.auth import require_permission
from adjudge.api.schema.base import decode_json
from adjudge.api.schema.problems import import_read
from adjudge.api.uploads import iter_file
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.schema.problems import ProblemAdminRead, ProblemPage, RevisionRead, RevisionSummary
from adjudge.services.problem_imports import ImportRequest, ProblemImportService
from adjudge.services.problem_revisions import MetadataUpdate, ProblemRevisionService
from adjudge.services.problems import ProblemService, filter_own
from adjudge.services.viewer import Viewer
from adjudge.store.problems.models import ProblemFilter
from adjudge.web import forms
from adjudge.web.plots import Bar, rows
from adjudge.web.render import PageRenderer, page_router, redirect, request_translations

Writer = Annotated[Viewer, require_permission(Permission.PROBLEM_WRITE)]
Publisher = Annotated[Viewer, require_permission(Permission.PROBLEM_PUBLISH)]
Number = Annotated[int, Field(ge=1, le=2**53)]


def router(
    pages: PageRenderer, problems: ProblemService, revisions: ProblemRevisionService, imports: ProblemImportService
) -> APIRouter:
    routes = page_router(pages)
    _add_import_routes(routes, pages, problems, imports)
    _add_problem_routes(routes, pages, revisions)
    _add_action_routes(routes, revisions, imports)
    return routes


def _add_import_routes(
    routes: APIRouter, pages: PageRenderer, problems: ProblemService, imports: ProblemImportService
) -> None:
    async def overview(request: Request, viewer: Viewer, error: AdjudgeError | None = None) -> Response:
        wanted = filter_own(ProblemFilter(), viewer)
        found = await problems.list_problems(viewer, wanted, after=None, limit=100)
        return await pages.render(
            request,
            "problem_admin.html",
            status=error.http_status if error else 200,
            problems=decode_json(ProblemPage, found.body).items,
            imports=[import_read(item) for item in await imports.list_imports(viewer, before=None, limit=10)],
            error=error,
        )

    @routes.get("/manage")
    async def setting(request: Request, viewer: Writer) -> Response:
        return await overview(request, viewer)

    @routes.post("/manage/import")
    async def take(request: Request, viewer: Writer) -> Response:
        try:
            file = await forms.upload(request, "package")
            if file is None:
                raise InvalidInput("package: select a ZIP archive.", field="package")
            asked = await forms.checked_values(request, "do")
            order = ImportRequest(
                slug=(await forms.text(request, "slug", limit=64)).strip() or None,
                tags=_tags(await forms.text(request, "tags", limit=500)),
                verify=True if "verify" in asked else None,
                publish="publish" in asked,
            )
            accepted = await imports.start_import(viewer, order, iter_file(file), file.filename or "")
        except AdjudgeError as error:
            return await overview(request, viewer, error)
        return redirect(f"/manage/imports/{accepted.id}")

    @routes.get("/manage/imports/{import_id}")
    async def imported(request: Request, viewer: Writer, import_id: str) -> Response:
        return await pages.render(request, "import.html", **await _import(imports, viewer, request, import_id))

    @routes.get("/manage/imports/{import_id}/state")
    async def import_state(request: Request, viewer: Writer, import_id: str) -> Response:
        return await pages.render(request, "import_state.html", **await _import(imports, viewer, request, import_id))

    @routes.post("/manage/imports/{import_id}/cancel")
    async def cancel(viewer: Writer, import_id: str) -> Response:
        await imports.cancel_import(viewer, import_id)
        return redirect(f"/manage/imports/{import_id}")


async def _import(imports: ProblemImportService, viewer: Viewer, request: Request, import_id: str) -> dict[str, Any]:
    found = import_read(await imports.get_import(viewer, import_id))
    return {"problem_import": found, "jury": found.jury, "plot": _jury_plot(request, found.jury)}


def _add_problem_routes(routes: APIRouter, pages: PageRenderer, revisions: ProblemRevisionService) -> None:
    @routes.get("/manage/problems/{name}")
    async def manage(request: Request, viewer: Writer, name: str) -> Response:
        return await pages.render(
            request,
            "problem_admin_detail.html",
            problem=ProblemAdminRead.of(await revisions.get_problem_admin(viewer, name)),
            revisions=[
                RevisionSummary.of(item)
                for item in await revisions.list_revisions(viewer, name, before=None, limit=100)
            ],
        )

    @routes.get("/manage/problems/{name}/revisions/{number}")
    async def revision(request: Request, viewer: Writer, name: str, number: Number) -> Response:
        found = RevisionRead.of(await revisions.get_revision(viewer, name, number))
        return await pages.render(
            request,
            "revision.html",
            name=name,
            found=found,
            jury=found.jury,
            plot=_jury_plot(request, found.jury),
            tests=await revisions.tests(viewer, name, number),
        )

    @routes.get("/manage/problems/{name}/diff")
    async def diff(request: Request, viewer: Writer, name: str, old: Number, new: Number) -> Response:
        found = await revisions.diff_revisions(viewer, name, old=old, new=new)
        return await pages.render(request, "revision_diff.html", name=name, found=found)


def _add_action_routes(routes: APIRouter, revisions: ProblemRevisionService, imports: ProblemImportService) -> None:
    @routes.post("/manage/problems/{name}")
    async def edit(request: Request, viewer: Writer, name: str) -> Response:
        difficulty = (await forms.text(request, "difficulty", limit=20)).strip()
        update = MetadataUpdate(
            version=await forms.number(request, "version"),
            title=(await forms.text(request, "title", limit=300)).strip() or None,
            tags=list(_tags(await forms.text(request, "tags", limit=500)) or ()),
            difficulty=_as_float(difficulty),
            sets_difficulty=True,
        )
        await revisions.update_metadata(viewer, name, update)
        return redirect(f"/manage/problems/{name}", done="saved")

    @routes.post("/manage/problems/{name}/publish")
    async def publish(request: Request, viewer: Publisher, name: str) -> Response:
        version, number = await forms.number(request, "version"), await forms.number(request, "revision")
        reason = await forms.text(request, "reason", limit=500)
        await revisions.publish_revision(viewer, name, version=version, number=number, reason=reason)
        return redirect(f"/manage/problems/{name}", done="published")

    @routes.post("/manage/problems/{name}/withdraw")
    async def withdraw(request: Request, viewer: Publisher, name: str) -> Response:
        version, reason = await forms.number(request, "version"), await forms.text(request, "reason", limit=500)
        await revisions.withdraw_problem(viewer, name, version=version, reason=reason)
        return redirect(f"/manage/problems/{name}", done="withdrawn")

    @routes.post("/manage/problems/{name}/revisions/{number}/verify")
    async def verify(viewer: Writer, name: str, number: Number) -> Response:
        accepted = await imports.start_verification(viewer, name, number)
        return redirect(f"/manage/imports/{accepted.id}")


def _tags(text: str) -> tuple[str, ...] | None:
    tags = tuple(tag.strip() for tag in text.replace(";", ",").split(",") if tag.strip())
    return tags or None


def _as_float(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidInput(f"difficulty: expected a number, got {text!r}.", field="difficulty") from None


def _jury_plot(request: Request, jury: Mapping[str, Any] | None) -> str:
    """Plot of the times of the jury solutions and the time limit."""
    tried = jury["submissions"] if jury else []
    if not tried:
        return ""
    items = [
        Bar(
            row["path"],
            row["time_ms"],
            "good" if row["ok"] else "bad",
            f"{row['path']}: {row['verdict']}, {row['time_ms']} ms",
        )
        for row in tried
    ]
    limits = jury["time_limit"] if jury else {}
    limit = limits.get("stated_ms") or limits.get("suggested_ms")
    return rows(request_translations(request)("problem_admin.jury_times"), items, limit=limit, unit="ms")
