"""What setters do: upload a package, watch it being checked and verified, compare revisions, publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from adjudge.api.actions import catalogue, imports, revisions
from adjudge.api.actions.imports import Order
from adjudge.api.asking import needs
from adjudge.api.parts import Parts
from adjudge.api.uploads import pieces_of
from adjudge.api.viewer import Viewer
from adjudge.api.wire.problems import ProblemPage, ProblemPatch
from adjudge.domain.access import Permission
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.store.problem_reads import Wanted
from adjudge.web import forms
from adjudge.web.plots import Bar, rows
from adjudge.web.render import Pages, see_other, words_of
from adjudge.web.routes.router import page_router

Writer = Annotated[Viewer, needs(Permission.PROBLEM_WRITE)]
Publisher = Annotated[Viewer, needs(Permission.PROBLEM_PUBLISH)]
Number = Annotated[int, Field(ge=1, le=2**53)]


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of setters."""
    routes = page_router(pages)
    _uploads(routes, pages, parts)
    _problem(routes, pages, parts)
    _changes(routes, parts)
    return routes


def _uploads(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    async def desk(request: Request, viewer: Viewer, error: AdjudgeError | None = None) -> Response:
        wanted = catalogue.with_owner(Wanted(), viewer)
        found = await catalogue.page(parts, viewer, wanted, cursor=None, limit=100)
        return await pages.show(
            request,
            "problem_admin.html",
            status=error.http_status if error else 200,
            problems=ProblemPage.model_validate_json(found.body).items,
            imports=(await imports.page(parts, viewer, cursor=None, limit=10)).items,
            error=error,
        )

    @routes.get("/setting")
    async def setting(request: Request, viewer: Writer) -> Response:
        return await desk(request, viewer)

    @routes.post("/setting/import")
    async def take(request: Request, viewer: Writer) -> Response:
        try:
            file = await forms.upload(request, "package")
            if file is None:
                raise InvalidInput("package: select a ZIP archive.", field="package")
            asked = await forms.choices(request, "do")
            order = Order(
                slug=(await forms.text(request, "slug", at_most=64)).strip() or None,
                tags=_tags(await forms.text(request, "tags", at_most=500)),
                verify=True if "verify" in asked else None,
                publish="publish" in asked,
            )
            accepted = await imports.start(parts, viewer, order, pieces_of(file), file.filename or "")
        except AdjudgeError as error:
            return await desk(request, viewer, error)
        return see_other(f"/setting/imports/{accepted.id}")

    @routes.get("/setting/imports/{import_id}")
    async def imported(request: Request, viewer: Writer, import_id: str) -> Response:
        return await pages.show(request, "import.html", **await _import(parts, viewer, request, import_id))

    @routes.get("/setting/imports/{import_id}/state")
    async def import_state(request: Request, viewer: Writer, import_id: str) -> Response:
        return await pages.show(request, "import_state.html", **await _import(parts, viewer, request, import_id))

    @routes.post("/setting/imports/{import_id}/cancel")
    async def cancel(viewer: Writer, import_id: str) -> Response:
        await imports.cancel(parts, viewer, import_id)
        return see_other(f"/setting/imports/{import_id}")


async def _import(parts: Parts, viewer: Viewer, request: Request, import_id: str) -> dict[str, Any]:
    found = await imports.find(parts, viewer, import_id)
    return {"found": found, "jury": found.jury, "plot": _jury_plot(request, found.jury)}


def _problem(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/setting/problems/{name}")
    async def manage(request: Request, viewer: Writer, name: str) -> Response:
        return await pages.show(
            request,
            "setting_problem.html",
            problem=await revisions.state(parts, viewer, name),
            revisions=(await revisions.revisions(parts, viewer, name, cursor=None, limit=100)).items,
        )

    @routes.get("/setting/problems/{name}/revisions/{number}")
    async def revision(request: Request, viewer: Writer, name: str, number: Number) -> Response:
        found = await revisions.revision(parts, viewer, name, number)
        return await pages.show(
            request,
            "revision.html",
            name=name,
            found=found,
            jury=found.jury,
            plot=_jury_plot(request, found.jury),
            tests=(await revisions.tests(parts, viewer, name, number)).items,
        )

    @routes.get("/setting/problems/{name}/diff")
    async def diff(request: Request, viewer: Writer, name: str, old: Number, new: Number) -> Response:
        found = await revisions.diff(parts, viewer, name, old=old, new=new)
        return await pages.show(request, "revision_diff.html", name=name, found=found)


def _changes(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/setting/problems/{name}")
    async def edit(request: Request, viewer: Writer, name: str) -> Response:
        difficulty = (await forms.text(request, "difficulty", at_most=20)).strip()
        patch = ProblemPatch(
            version=await _number(request, "version"),
            title=(await forms.text(request, "title", at_most=300)).strip() or None,
            tags=list(_tags(await forms.text(request, "tags", at_most=500)) or ()),
            difficulty=_as_float(difficulty),
        )
        await revisions.edit(parts, viewer, name, patch)
        return see_other(f"/setting/problems/{name}", done="saved")

    @routes.post("/setting/problems/{name}/publish")
    async def publish(request: Request, viewer: Publisher, name: str) -> Response:
        version, number = await _number(request, "version"), await _number(request, "revision")
        reason = await forms.text(request, "reason", at_most=500)
        await revisions.publish(parts, viewer, name, version=version, number=number, reason=reason)
        return see_other(f"/setting/problems/{name}", done="published")

    @routes.post("/setting/problems/{name}/withdraw")
    async def withdraw(request: Request, viewer: Publisher, name: str) -> Response:
        version, reason = await _number(request, "version"), await forms.text(request, "reason", at_most=500)
        await revisions.withdraw(parts, viewer, name, version=version, reason=reason)
        return see_other(f"/setting/problems/{name}", done="withdrawn")

    @routes.post("/setting/problems/{name}/revisions/{number}/verify")
    async def verify(viewer: Writer, name: str, number: Number) -> Response:
        accepted = await imports.verify(parts, viewer, name, number)
        return see_other(f"/setting/imports/{accepted.id}")


def _tags(text: str) -> tuple[str, ...] | None:
    tags = tuple(tag.strip() for tag in text.replace(";", ",").split(",") if tag.strip())
    return tags or None


async def _number(request: Request, name: str) -> int:
    text = await forms.text(request, name, at_most=20)
    if not text.isdecimal():
        raise InvalidInput(f"{name}: expected a number, got {text!r}.", field=name)
    return int(text)


def _as_float(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidInput(f"difficulty: expected a number, got {text!r}.", field="difficulty") from None


def _jury_plot(request: Request, jury: Mapping[str, Any] | None) -> str:
    """The jury's times against the limit."""
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
    return rows(words_of(request)("problem_admin.jury_times"), items, limit=limit, unit="ms")
