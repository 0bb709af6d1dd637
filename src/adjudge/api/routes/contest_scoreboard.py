"""The scoreboard of a contest: rows, changes, exports, awards, the unfreezing ceremony and statistics."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from adjudge.api.auth import require_permission
from adjudge.api.responses import packed_response
from adjudge.api.routes.events import STREAM, LastEventId
from adjudge.api.routing import api_router
from adjudge.api.schema.base import encode_json
from adjudge.api.schema.scoreboard import AwardEdit, AwardsUpdate, read_award, read_awards, read_statistics
from adjudge.api.sse import EventStreamResponse, SseConnections
from adjudge.cache.entry import make_entry
from adjudge.contests.awards import Award
from adjudge.contests.live_board import BoardFilter
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.permissions import Permission
from adjudge.schema.scoreboard import (
    AwardList,
    AwardRead,
    CellSubmissionList,
    CellSubmissionRead,
    ContestStatisticsRead,
    ResolverRead,
    ScoreboardFilters,
    ScoreboardRead,
)
from adjudge.services.awards import AwardService
from adjudge.services.contest_statistics import ContestStatisticsService
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_exports import ScoreboardExportService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
MAX_ROWS: Final = 1_000
_RETRY: Final = "retry: 1000\n\n"


def _file(media_type: str, kind: str = "string") -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "The file.", "content": {media_type: {"schema": {"type": kind}}}}}


class BoardView(StrEnum):
    """Which view of a scoreboard is asked for."""

    PUBLIC = "public"
    JURY = "jury"


View = Annotated[BoardView, Query(description="`jury` needs a role in the contest.")]
Group = Annotated[str | None, Query(max_length=36)]
AwardId = Annotated[str, Path(max_length=200, examples=["gold-medal"])]
Kind = Annotated[ParticipantKind | None, Query()]


def router(
    scoreboards: ScoreboardService,
    exports: ScoreboardExportService,
    awards: AwardService,
    statistics: ContestStatisticsService,
    connections: SseConnections,
) -> APIRouter:
    """All routes."""
    routes = api_router("scoreboards", "/contests/{contest}")
    _add_row_routes(routes, scoreboards, exports)
    _add_stream_route(routes, scoreboards, connections)
    _add_export_routes(routes, scoreboards, exports)
    _add_award_routes(routes, scoreboards, awards)
    _add_document_routes(routes, exports, statistics)
    return routes


def _add_row_routes(routes: APIRouter, scoreboards: ScoreboardService, exports: ScoreboardExportService) -> None:
    @routes.get(
        "/scoreboard",
        summary="List rows of the scoreboard",
        description=(
            "Ranks are computed among the rows that match the filters. Until the thaw, submissions since the freeze "
            "are pending. Your own row is always included, in a freeze with your verdicts and without a rank."
        ),
        response_model=ScoreboardRead,
    )
    async def page(
        request: Request,
        contest: str,
        viewer: Reader,
        *,
        view: View = BoardView.PUBLIC,
        group: Group = None,
        organization: Group = None,
        kind: Kind = None,
        offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
    ) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        which = BoardFilter(group, organization, kind)
        body = encode_json(await scoreboards.page(found, which, offset=offset, limit=limit))
        cached = make_entry(body, 0).value
        assert cached is not None  # noqa: S101  # it has a body
        return packed_response(request, cached)

    @routes.get("/scoreboard/filters", summary="List the groups and organisations of the scoreboard")
    async def filters(
        contest: str,
        viewer: Reader,
        *,
        view: View = BoardView.PUBLIC,
        search: Annotated[str, Query(max_length=200, description="A part of the name of an organisation.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = MAX_ROWS,
    ) -> ScoreboardFilters:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return await scoreboards.filters(found, search=search, limit=limit)

    @routes.get(
        "/scoreboard/cells/{participant}/{label}",
        summary="List the submissions of a cell",
        description="As far as you may see them.",
    )
    async def cell(contest: str, participant: str, label: str, viewer: Reader) -> CellSubmissionList:
        person, rows = await exports.list_cell(viewer, contest, participant, label)
        items = [CellSubmissionRead.of(row) for row in rows]
        return CellSubmissionList(participant=person.name, problem=label, items=items)


def _add_stream_route(routes: APIRouter, scoreboards: ScoreboardService, connections: SseConnections) -> None:
    @routes.get(
        "/scoreboard/events",
        summary="Stream the changes of the scoreboard",
        description="`row` is a row that changed, `own` your row in a freeze, `reset`: read the scoreboard again.",
        responses=STREAM,
        response_class=StreamingResponse,
    )
    async def events(
        contest: str,
        viewer: Reader,
        *,
        view: View = BoardView.PUBLIC,
        group: Group = None,
        organization: Group = None,
        kind: Kind = None,
        after: Annotated[
            str | None, Query(max_length=64, description="ID of the last change, if there is no `Last-Event-ID`.")
        ] = None,
        last_event_id: LastEventId = None,
    ) -> StreamingResponse:
        stream = await scoreboards.stream(
            viewer,
            contest,
            is_jury=view is BoardView.JURY,
            which=BoardFilter(group, organization, kind),
            last_event_id=last_event_id or after,
        )
        return EventStreamResponse(connections, viewer, _with_retry(stream))


async def _with_retry(stream: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    yield _RETRY
    async with aclosing(stream):
        async for text in stream:
            yield text


def _add_export_routes(routes: APIRouter, scoreboards: ScoreboardService, exports: ScoreboardExportService) -> None:
    def file(name: str, media_type: str, body: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-cache"}
        return Response(body, media_type=media_type, headers=headers)

    @routes.get(
        "/scoreboard.json",
        summary="Export the scoreboard (CCS)",
        responses=_file("application/json", "object"),
        response_class=Response,
    )
    async def ccs(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return file("scoreboard.json", "application/json", json.dumps(await exports.ccs_scoreboard(found)))

    @routes.get(
        "/awards.json",
        summary="Export the awards (CCS)",
        responses=_file("application/json", "array"),
        response_class=Response,
    )
    async def ccs_awards(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return file("awards.json", "application/json", json.dumps(await exports.ccs_awards(found)))

    @routes.get(
        "/results.tsv",
        summary="Export the results",
        responses=_file("text/tab-separated-values"),
        response_class=Response,
    )
    async def results(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return file("results.tsv", "text/tab-separated-values", await exports.results_tsv(found))

    @routes.get(
        "/scoreboard.csv", summary="Export the scoreboard as CSV", responses=_file("text/csv"), response_class=Response
    )
    async def csv(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return file("scoreboard.csv", "text/csv", await exports.csv(found))

    @routes.get(
        "/scoreboard.html",
        summary="Export the scoreboard as one HTML file",
        responses=_file("text/html"),
        response_class=Response,
    )
    async def html(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> Response:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return file("scoreboard.html", "text/html", await exports.html(found))


def _add_award_routes(routes: APIRouter, scoreboards: ScoreboardService, awards: AwardService) -> None:
    @routes.get("/awards", summary="List the awards", description="Until the thaw computed from the public scoreboard.")
    async def listed(contest: str, viewer: Reader, view: View = BoardView.PUBLIC) -> AwardList:
        found = await scoreboards.find(viewer, contest, is_jury=view is BoardView.JURY)
        return read_awards(await awards.list_awards(found))

    @routes.put("/awards", summary="Replace the edited awards")
    async def save(contest: str, body: AwardsUpdate, viewer: Member) -> AwardList:
        return read_awards(await awards.save(viewer, contest, body.awards()))

    @routes.put(
        "/awards/{award}", summary="Edit one award", description="It is no longer computed. Other awards do not change."
    )
    async def edit(contest: str, award: AwardId, body: AwardEdit, viewer: Member) -> AwardRead:
        edited = Award(award, body.citation, tuple(body.participant_ids))
        return read_award(await awards.edit(viewer, contest, edited))

    @routes.delete(
        "/awards/{award}",
        status_code=204,
        summary="Forget the edit of an award",
        description="It is computed again; an award that is not computed is deleted.",
    )
    async def reset(contest: str, award: AwardId, viewer: Member) -> None:
        await awards.reset(viewer, contest, award)


def _add_document_routes(
    routes: APIRouter, exports: ScoreboardExportService, statistics: ContestStatisticsService
) -> None:
    @routes.get(
        "/resolver",
        summary="Get the steps of the unfreezing ceremony",
        description="For the jury, and after the thaw for everybody who sees the scoreboard.",
    )
    async def resolver(contest: str, viewer: Reader) -> ResolverRead:
        return ResolverRead.of(await exports.resolver(viewer, contest))

    @routes.get(
        "/statistics",
        summary="Get the statistics of a contest",
        description="For the jury, and after the thaw for everybody.",
    )
    async def counts(contest: str, viewer: Reader) -> ContestStatisticsRead:
        _, board, found = await statistics.get(viewer, contest)
        return read_statistics(board, found)
