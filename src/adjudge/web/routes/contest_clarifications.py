"""Pages: clarifications of a contest, for participants and for the jury."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ContestState
from adjudge.services.clarifications import MAX_BODY, ClarificationList, ClarificationService, Recipients
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
TAB: Final = "/clarifications"
_SHOWN: Final = 200
"""A page shows the latest ones."""


def router(page: ContestPageRenderer, contests: ContestService, clarifications: ClarificationService) -> APIRouter:
    routes = page_router(page.pages)
    _add_list_routes(routes, page, contests, clarifications)
    _add_question_routes(routes, page, clarifications)
    _add_canned_routes(routes, clarifications)
    return routes


def _path(slug: str) -> str:
    return f"/contests/{slug}{TAB}"


def _listed(found: ClarificationList) -> dict[str, Any]:
    """The clarifications, and up to which number the page marks them as read."""
    is_unread = any(item.is_unread for item in found.items)
    return {"items": found.items, "unread_to": found.items[0].row.number if is_unread else None}


def _add_list_routes(
    routes: APIRouter, page: ContestPageRenderer, contests: ContestService, clarifications: ClarificationService
) -> None:
    async def render(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        found = await clarifications.list_clarifications(viewer, slug, limit=_SHOWN)
        view, shown = found.view, {"error": None, "body": "", **shown}
        may_ask = view.participant is not None and view.phase is not ContestPhase.BEFORE and not view.is_jury
        return await page.render(
            request,
            view,
            "clarifications.html",
            tab=TAB,
            status=shown["error"].http_status if shown["error"] else 200,
            **_listed(found),
            may_ask=may_ask and view.contest.state is ContestState.PUBLISHED,
            problems=await contests.list_problems(view),
            groups=await clarifications.list_groups(view) if view.is_jury else [],
            canned=await clarifications.list_canned(viewer, slug) if view.is_jury else [],
            **shown,
        )

    @routes.get("/contests/{slug}/clarifications")
    async def every(request: Request, viewer: Reader, slug: str) -> Response:
        return await render(request, viewer, slug)

    @routes.get("/contests/{slug}/clarifications/state")
    async def live(request: Request, viewer: Reader, slug: str) -> Response:
        """The live region of the list."""
        found = await clarifications.list_clarifications(viewer, slug, limit=_SHOWN)
        return await page.pages.render(
            request, "clarification_list.html", view=found.view, contest=found.view.contest, **_listed(found)
        )

    @routes.post("/contests/{slug}/clarifications/read")
    async def mark_read(request: Request, viewer: Member, slug: str) -> Response:
        """Mark what the page showed as read."""
        number = await forms.text(request, "number", limit=18)
        if not number.isdecimal():
            raise InvalidInput("number: expected the number of a clarification.", field="number")
        await clarifications.mark_read(viewer, slug, int(number))
        return redirect(_path(slug))

    @routes.post("/contests/{slug}/clarifications")
    async def send(request: Request, viewer: Member, slug: str) -> Response:
        """Ask as a participant; announce as the jury."""
        body, label = await forms.text(request, "body", limit=MAX_BODY), await forms.text(request, "problem")
        try:
            if await forms.text(request, "audience"):
                await clarifications.announce(viewer, slug, body, await _recipients(request), label=label)
            else:
                category = await forms.text(request, "category")
                await clarifications.ask(viewer, slug, body, label=label, category=category)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await render(request, viewer, slug, error=error, body=body)
        return redirect(_path(slug))


def _add_question_routes(routes: APIRouter, page: ContestPageRenderer, clarifications: ClarificationService) -> None:
    async def render(request: Request, viewer: Viewer, slug: str, clarification_id: str, **shown: Any) -> Response:
        found = await clarifications.find_question(viewer, slug, clarification_id)
        shown = {"error": None, "body": "", **shown}
        return await page.render(
            request,
            found.view,
            "clarification.html",
            tab=TAB,
            status=shown["error"].http_status if shown["error"] else 200,
            item=found.items[0],
            groups=await clarifications.list_groups(found.view),
            canned=await clarifications.list_canned(viewer, slug),
            **shown,
        )

    @routes.get("/contests/{slug}/clarifications/{clarification_id}")
    async def question(request: Request, viewer: Member, slug: str, clarification_id: str) -> Response:
        return await render(request, viewer, slug, clarification_id)

    @routes.post("/contests/{slug}/clarifications/{clarification_id}/answer")
    async def answer(request: Request, viewer: Member, slug: str, clarification_id: str) -> Response:
        body = await forms.text(request, "body", limit=MAX_BODY)
        try:
            await clarifications.answer(viewer, slug, clarification_id, body, await _recipients(request))
        except NotFound:
            raise
        except AdjudgeError as error:
            return await render(request, viewer, slug, clarification_id, error=error, body=body)
        return redirect(_path(slug))

    @routes.post("/contests/{slug}/clarifications/{clarification_id}/claim")
    async def claim(request: Request, viewer: Member, slug: str, clarification_id: str) -> Response:
        release = bool(await forms.text(request, "release"))
        await clarifications.claim(viewer, slug, clarification_id, release=release)
        return redirect(f"{_path(slug)}/{clarification_id}")

    @routes.post("/contests/{slug}/clarifications/{clarification_id}/close")
    async def close(viewer: Member, slug: str, clarification_id: str) -> Response:
        await clarifications.close(viewer, slug, clarification_id)
        return redirect(_path(slug))


def _add_canned_routes(routes: APIRouter, clarifications: ClarificationService) -> None:
    @routes.post("/contests/{slug}/canned-answers")
    async def add(request: Request, viewer: Member, slug: str) -> Response:
        title, body = await forms.text(request, "title"), await forms.text(request, "body", limit=MAX_BODY)
        await clarifications.add_canned(viewer, slug, title, body)
        return redirect(_path(slug))

    @routes.post("/contests/{slug}/canned-answers/{answer_id}/delete")
    async def delete(viewer: Member, slug: str, answer_id: str) -> Response:
        await clarifications.delete_canned(viewer, slug, answer_id)
        return redirect(_path(slug))


async def _recipients(request: Request) -> Recipients:
    return Recipients(
        await forms.text(request, "audience"),
        await forms.checked_values(request, "group"),
        await forms.text(request, "participant"),
    )
