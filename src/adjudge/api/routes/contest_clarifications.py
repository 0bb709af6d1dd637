"""Clarifications of contests."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.clarifications import (
    Announcement,
    CannedAnswerCreate,
    ClarificationAnswer,
    ClarificationAsk,
    ClarificationsRead,
    read_clarification,
)
from adjudge.domain.permissions import Permission
from adjudge.schema.clarifications import (
    CannedAnswerList,
    CannedAnswerRead,
    ClarificationPage,
    ClarificationRead,
    ClarificationUnread,
)
from adjudge.services.clarifications import ClarificationService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]


def router(clarifications: ClarificationService) -> APIRouter:
    """Questions, answers, announcements and canned answers."""
    routes = api_router("contests", "/contests/{contest}")
    _add_reading_routes(routes, clarifications)
    _add_jury_routes(routes, clarifications)
    _add_canned_routes(routes, clarifications)
    return routes


def _add_reading_routes(routes: APIRouter, clarifications: ClarificationService) -> None:
    @routes.get(
        "/clarifications",
        summary="List clarifications, newest first",
        description="Messages to all; for participants also their own questions, answers and messages to their groups.",
    )
    async def page(
        contest: str,
        viewer: Reader,
        *,
        open: Annotated[bool, Query(description="Only questions without an answer, for the jury.")] = False,  # noqa: A002  # the name of the parameter
        category: Annotated[str | None, Query(max_length=100, description="For the jury.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ClarificationPage:
        place = decode_cursor(cursor, [int])
        found = await clarifications.list_clarifications(
            viewer,
            contest,
            before=int(str(place[0])) if place else None,
            limit=limit + 1,
            only_open=open,
            category=category,
        )
        more = encode_cursor([found.items[limit - 1].row.number]) if len(found.items) > limit else None
        return ClarificationPage(items=[read_clarification(item) for item in found.items[:limit]], next=more)

    @routes.post("/clarifications", status_code=201, summary="Ask the jury")
    async def ask(contest: str, body: ClarificationAsk, viewer: Member) -> ClarificationRead:
        made = await clarifications.ask(viewer, contest, body.body, label=body.problem, category=body.category)
        return read_clarification(made)

    @routes.get("/clarifications/unread", summary="Count unread clarifications")
    async def unread(contest: str, viewer: Member) -> ClarificationUnread:
        view = await clarifications.access.find(viewer, contest)
        return ClarificationUnread(count=await clarifications.count_unread(view))

    @routes.post("/clarifications:mark-read", status_code=204, summary="Mark clarifications as read up to a number")
    async def mark_read(contest: str, body: ClarificationsRead, viewer: Member) -> Response:
        await clarifications.mark_read(viewer, contest, body.number)
        return Response(status_code=204)


def _add_jury_routes(routes: APIRouter, clarifications: ClarificationService) -> None:
    @routes.post(
        "/announcements",
        status_code=201,
        summary="Send an announcement",
        description="To all, to groups or to one participant.",
    )
    async def announce(contest: str, body: Announcement, viewer: Member) -> ClarificationRead:
        recipients = body.recipients(body.participant)
        return read_clarification(
            await clarifications.announce(viewer, contest, body.body, recipients, label=body.problem)
        )

    @routes.post(
        "/clarifications/{clarification_id}:answer",
        status_code=201,
        summary="Answer a question",
        description="To who asked, to groups or to all. A question that another judge has claimed is a conflict.",
    )
    async def answer(
        contest: str, clarification_id: str, body: ClarificationAnswer, viewer: Member
    ) -> ClarificationRead:
        made = await clarifications.answer(viewer, contest, clarification_id, body.body, body.recipients())
        return read_clarification(made)

    @routes.post("/clarifications/{clarification_id}:claim", summary="Claim a question")
    async def claim(contest: str, clarification_id: str, viewer: Member) -> ClarificationRead:
        return read_clarification(await clarifications.claim(viewer, contest, clarification_id, release=False))

    @routes.post("/clarifications/{clarification_id}:release", summary="Release a claimed question")
    async def release(contest: str, clarification_id: str, viewer: Member) -> ClarificationRead:
        return read_clarification(await clarifications.claim(viewer, contest, clarification_id, release=True))

    @routes.post("/clarifications/{clarification_id}:close", summary="Mark a question as answered without a reply")
    async def close(contest: str, clarification_id: str, viewer: Member) -> ClarificationRead:
        return read_clarification(await clarifications.close(viewer, contest, clarification_id))


def _add_canned_routes(routes: APIRouter, clarifications: ClarificationService) -> None:
    @routes.get("/canned-answers", summary="List the canned answers")
    async def canned(contest: str, viewer: Member) -> CannedAnswerList:
        rows = await clarifications.list_canned(viewer, contest)
        return CannedAnswerList(items=[CannedAnswerRead.of(row) for row in rows])

    @routes.post("/canned-answers", status_code=201, summary="Add a canned answer")
    async def add_canned(contest: str, body: CannedAnswerCreate, viewer: Member) -> CannedAnswerRead:
        return CannedAnswerRead.of(await clarifications.add_canned(viewer, contest, body.title, body.body))

    @routes.delete("/canned-answers/{answer_id}", status_code=204, summary="Delete a canned answer")
    async def delete_canned(contest: str, answer_id: str, viewer: Member) -> Response:
        await clarifications.delete_canned(viewer, contest, answer_id)
        return Response(status_code=204)
