"""Ratings over contests."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.ratings import read_history, read_ranked
from adjudge.domain.permissions import Permission
from adjudge.schema.ratings import RatingHistoryRead, RatingPage
from adjudge.services.ratings import RatingService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]


def router(ratings: RatingService) -> APIRouter:
    routes = api_router("ratings")

    @routes.get("/ratings", summary="List users by rating, best first")
    async def ranking(
        _viewer: Reader,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> RatingPage:
        position = decode_cursor(cursor, [int, str])
        after = (int(str(position[0])), str(position[1])) if position else None
        found = await ratings.list_ranking(after=after, limit=limit + 1)
        last = found[limit - 1] if len(found) > limit else None
        more = encode_cursor([last.rating_milli, last.user_id]) if last else None
        return RatingPage(items=[read_ranked(item) for item in found[:limit]], next=more)

    @routes.get(
        "/users/{user}/rating",
        summary="Get the rating of a user with its history",
        description="By name or id. A user without a rated contest is not found.",
    )
    async def history(user: Annotated[str, Path(max_length=64)], viewer: Reader) -> RatingHistoryRead:
        return read_history(await ratings.find_history(viewer, user))

    return routes
