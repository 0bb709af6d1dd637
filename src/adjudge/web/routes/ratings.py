"""Pages: the ranking list and the rating of a user with its graph."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.api.schema.ratings import read_history, read_ranked
from adjudge.contests.rating import MILLI
from adjudge.domain.permissions import Permission
from adjudge.domain.timestamps import format_timestamp
from adjudge.services.ratings import RatingHistory, RatingService
from adjudge.services.viewer import Viewer
from adjudge.web import plots
from adjudge.web.render import PageRenderer, page_router, request_translations

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
_PAGE: Final = 100
_DAY_US: Final = 86_400_000_000


def router(pages: PageRenderer, ratings: RatingService) -> APIRouter:
    routes = page_router(pages)

    @routes.get("/ratings")
    async def ranking(request: Request, _viewer: Reader, cursor: str | None = None) -> Response:
        position = decode_cursor(cursor, [int, str])
        after = (int(str(position[0])), str(position[1])) if position else None
        found = await ratings.list_ranking(after=after, limit=_PAGE + 1)
        last = found[_PAGE - 1] if len(found) > _PAGE else None
        more = f"cursor={encode_cursor([last.rating_milli, last.user_id])}" if last else ""
        return await pages.render(
            request, "ratings.html", users=[read_ranked(item) for item in found[:_PAGE]], more=more
        )

    @routes.get("/users/{user}/rating")
    async def history(request: Request, viewer: Reader, user: str) -> Response:
        found = await ratings.find_history(viewer, user)
        title = request_translations(request)("ratings.rating")
        shown = read_history(found)
        changes = list(zip(found.rows, shown.changes, strict=True))
        return await pages.render(request, "rating.html", history=shown, changes=changes, graph=_graph(title, found))

    return routes


def _graph(title: str, history: RatingHistory) -> str:
    """The rating after each contest; it begins with the initial rating, a day before the first."""
    first, last = history.rows[0], history.rows[-1]
    start = first.rated_at - _DAY_US
    points = [(float(start), first.before_rating_milli / MILLI)]
    points += [(float(row.rated_at), row.rating_milli / MILLI) for row in history.rows]
    days = [format_timestamp(at)[:10] for at in (start, last.rated_at)]
    window = plots.TimeWindow(start, last.rated_at, days[0], days[1], gap=float(last.rated_at - start))
    return plots.lines(title, [plots.Series(title, points)], window=window)
