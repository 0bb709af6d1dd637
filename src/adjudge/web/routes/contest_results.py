"""Pages: statistics of a contest, and its awards as the jury edits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.schema.scoreboard import read_statistics
from adjudge.contests.awards import Award
from adjudge.contests.board import collation_key
from adjudge.contests.live_board import LiveBoard
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.schema.scoreboard import TimelineBucketRead
from adjudge.services.awards import AwardService, award_rules
from adjudge.services.contest_statistics import ContestStatisticsService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_settings import Member

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
_SUGGESTED: Final = 300
"""Participants that the form suggests; others are entered by their whole name."""
_CHART_HEIGHT: Final = 120
_BAR_WIDTH: Final = 10


def router(page: ContestPageRenderer, awards: AwardService, statistics: ContestStatisticsService) -> APIRouter:
    routes = page_router(page.pages)
    _add_statistics_route(routes, page, statistics)
    _add_award_routes(routes, page, awards)
    return routes


@dataclass(frozen=True, slots=True)
class ChartBar:
    """The submissions of one stretch of time as heights of a bar."""

    x: int
    submitted_height: int
    accepted_height: int
    bucket: TimelineBucketRead


def chart_bars(timeline: Sequence[TimelineBucketRead]) -> list[ChartBar]:
    """The bars of a chart; the highest fills it."""
    most = max((item.submissions for item in timeline), default=0) or 1
    return [
        ChartBar(
            index * _BAR_WIDTH,
            round(item.submissions * _CHART_HEIGHT / most),
            round(item.accepted * _CHART_HEIGHT / most),
            item,
        )
        for index, item in enumerate(timeline)
    ]


def _add_statistics_route(routes: APIRouter, page: ContestPageRenderer, statistics: ContestStatisticsService) -> None:
    @routes.get("/contests/{slug}/statistics")
    async def show(request: Request, viewer: Reader, slug: str) -> Response:
        view, board, found = await statistics.get(viewer, slug)
        counts = read_statistics(board, found)
        return await page.render(
            request,
            view,
            "contest_statistics.html",
            tab="/scoreboard",
            statistics=counts,
            titles={item.label: item.name for item in board.problems},
            bars=chart_bars(counts.timeline),
            bars_by_problem={item.label: chart_bars(item.timeline) for item in counts.problems},
            chart_height=_CHART_HEIGHT,
            bar_width=_BAR_WIDTH,
        )


def _add_award_routes(routes: APIRouter, page: ContestPageRenderer, awards: AwardService) -> None:
    path = "/contests/{slug}/awards"

    async def show(
        request: Request, viewer: Viewer, slug: str, error: AdjudgeError | None = None, wrong: str = ""
    ) -> Response:
        found, board = await awards.find_board(viewer, slug)
        names = {row.participant.id: row.participant.name for row in board.rows()}
        return await page.render(
            request,
            found.contest,
            "contest_awards.html",
            tab="/scoreboard",
            status=error.http_status if error else 200,
            awards=await awards.list_awards(found),
            rules=award_rules(found.contest.contest),
            names=names,
            suggested=[item.row.participant.name for item in board.ranking().page(0, _SUGGESTED)],
            error=error,
            wrong=wrong,
        )

    @routes.get(path)
    async def listed(request: Request, viewer: Member, slug: str) -> Response:
        return await show(request, viewer, slug)

    @routes.post(path)
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        award_id = (await forms.text(request, "award", limit=200)).strip()
        citation = (await forms.text(request, "citation", limit=200)).strip()
        kept = await forms.checked_values(request, "participant")
        added = (await forms.text(request, "added", limit=200)).strip()
        try:
            _, board = await awards.find_board(viewer, slug)
            ids = dict.fromkeys([*kept, *([find_by_name(board, added)] if added else [])])
            await awards.edit(viewer, slug, Award(award_id, citation, tuple(ids)))
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error, award_id)
        return redirect(path.format(slug=slug), done="saved")

    @routes.post(path + "/reset")
    async def reset(request: Request, viewer: Member, slug: str) -> Response:
        await awards.reset(viewer, slug, await forms.text(request, "award", limit=200))
        return redirect(path.format(slug=slug), done="saved")


def find_by_name(board: LiveBoard, text: str) -> str:
    """The participant with an id or a name; raises InvalidInput if there is none or more than one."""
    if text in board:
        return text
    wanted = collation_key(text)
    ids = [row.participant.id for row in board.rows() if collation_key(row.participant.name) == wanted]
    if len(ids) != 1:
        count = f"{len(ids)} participants are" if ids else "no participant on the public scoreboard is"
        raise InvalidInput(f"added: {count} called {text!r}; give the ID instead.", field="added")
    return ids[0]
