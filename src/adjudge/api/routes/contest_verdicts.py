"""Unread verdicts of own submissions in a contest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.schema.base import ApiModel
from adjudge.domain.permissions import Permission
from adjudge.schema.contest_verdicts import VerdictUnread
from adjudge.services.contest_own import OwnContestService
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]


class VerdictsRead(ApiModel):
    """Up to where verdicts are read."""

    until_us: int = Field(
        ge=0, le=2**53, examples=[1_769_860_800_000_000], description="Microseconds since the Unix epoch."
    )


def router(contests: ContestService, own: OwnContestService) -> APIRouter:
    routes = api_router("contests", "/contests/{contest}")

    @routes.get("/verdicts/unread", summary="Count unread verdicts of your submissions")
    async def unread(contest: str, viewer: Member) -> VerdictUnread:
        found = await own.count_unread(await contests.access.find(viewer, contest))
        return VerdictUnread(count=found.count, until_us=found.until)

    @routes.post("/verdicts:mark-read", status_code=204, summary="Mark verdicts as read up to a time")
    async def mark_read(contest: str, body: VerdictsRead, viewer: Member) -> Response:
        await own.mark_read(viewer, contest, body.until_us)
        return Response(status_code=204)

    return routes
