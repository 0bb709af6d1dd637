"""The balloon queue of a contest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.schema.balloons import BalloonPage, BalloonRead
from adjudge.services.balloons import BalloonDetail, BalloonFilter, BalloonService
from adjudge.services.viewer import Viewer

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""The staff are ordinary users with a role in the contest; the service checks it."""


def router(balloons: BalloonService) -> APIRouter:
    """All routes."""
    routes = api_router("contests", "/contests/{contest}/balloons")

    @routes.get(
        "",
        summary="List balloons, oldest first",
        description="For balloon staff, the jury and API readers. In the freeze, by the rule of the contest.",
    )
    async def page(
        contest: str,
        viewer: Member,
        *,
        state: Annotated[BalloonFilter, Query()] = BalloonFilter.ALL,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> BalloonPage:
        position = decode_cursor(cursor, [int])
        after = int(str(position[0])) if position else 0
        found = await balloons.list_balloons(viewer, contest, which=state, after=after, limit=limit + 1)
        more = encode_cursor([found.items[limit - 1].row.number]) if len(found.items) > limit else None
        return BalloonPage(items=[_read(item) for item in found.items[:limit]], next=more)

    @routes.post("/{participant}/{label}:deliver", summary="Mark a balloon as delivered")
    async def deliver(contest: str, participant: str, label: str, viewer: Member) -> BalloonRead:
        return _read(await balloons.deliver(viewer, contest, participant, label))

    @routes.post("/{participant}/{label}:undo", summary="Put a delivered balloon back into the queue")
    async def undo(contest: str, participant: str, label: str, viewer: Member) -> BalloonRead:
        return _read(await balloons.undo(viewer, contest, participant, label))

    @routes.post(
        "/{participant}/{label}:collect",
        status_code=204,
        summary="Remove a balloon that was collected",
        description="For a problem that is no longer solved, after a rejudge or a decision of the jury.",
    )
    async def collect(contest: str, participant: str, label: str, viewer: Member) -> Response:
        await balloons.collect(viewer, contest, participant, label)
        return Response(status_code=204)

    return routes


def _read(item: BalloonDetail) -> BalloonRead:
    return BalloonRead.of(
        item.row,
        participant=item.row.participant_code,
        name=item.row.participant_name,
        problem=item.row.label,
        is_first_of_problem=item.is_first_of_problem,
        is_first_of_contest=item.is_first_of_contest,
    )
