"""The catalogue: a list to search, a problem to read and to submit to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.actions import catalogue, languages, submissions
from adjudge.api.actions.tallies import all_tallies, standing
from adjudge.api.asking import needs
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.wire.problems import LanguageList, ProblemDetail, ProblemPage, TemplateView
from adjudge.domain.access import Permission
from adjudge.domain.catalogue import parse_tags, words_of
from adjudge.domain.errors import AdjudgeError
from adjudge.store.problem_reads import Sort, Wanted
from adjudge.store.problem_tallies import Tally
from adjudge.store.reads import Filter
from adjudge.web.maths import with_maths
from adjudge.web.render import Pages, see_other
from adjudge.web.routes.router import page_router

Reader = Annotated[Viewer, needs(Permission.PROBLEM_READ)]
_RECENT = 5
_SOLVED: Final = {"yes": True, "no": False, "untried": False}
_TRIED: Final = {"tried": True, "untried": False}


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of the catalogue."""
    routes = page_router(pages)

    @routes.get("/")
    async def front() -> Response:
        return see_other("/problems")

    @routes.get("/problems")
    async def listed(
        request: Request,
        viewer: Reader,
        *,
        q: Annotated[str, Query(max_length=200)] = "",
        tag: Annotated[str, Query(max_length=60)] = "",
        solved: str = "",
        sort: Sort = Sort.NEWEST,
        cursor: str | None = None,
    ) -> Response:
        wanted = Wanted(
            words=words_of(q),
            tags=parse_tags([tag]) if tag else (),
            is_solved=_SOLVED.get(solved) if viewer.user_id else None,
            is_tried=_TRIED.get(solved) if viewer.user_id else None,
            sort=sort,
        )
        found = await catalogue.page(parts, viewer, wanted, cursor=cursor, limit=50)
        page = ProblemPage.model_validate_json(found.body)
        asked = {"q": q, "tag": tag, "solved": solved, "sort": sort.value}
        more = urlencode({**asked, "cursor": page.next}) if page.next else ""
        tags = sorted({tag for item in page.items for tag in item.tags})
        return await pages.show(
            request, "problems.html", page=page, asked=asked, sorts=list(Sort), more=more, tags=tags
        )

    @routes.get("/problems/{name}")
    async def problem(request: Request, viewer: Reader, name: str, lang: str = "", language: str = "") -> Response:
        chosen = language or request.cookies.get("adjudge_language", "")
        return await show_problem(pages, parts, request, viewer, name, entered=Entered(chosen, lang=lang))

    return routes


@dataclass(frozen=True, slots=True)
class Entered:
    """What somebody has entered so far on a problem's page."""

    language: str
    source: str = ""
    error: AdjudgeError | None = None
    """Why it was not taken."""
    lang: str = ""
    """The language of the statement."""


async def show_problem(
    pages: Pages, parts: Parts, request: Request, viewer: Viewer, name: str, *, entered: Entered
) -> Response:
    """The page of a problem, with whatever was entered there and not taken."""
    spoken = catalogue.preferred(entered.lang, request.headers.get("Accept-Language", ""))
    found = await catalogue.detail(parts, viewer, name, spoken)
    shown = ProblemDetail.model_validate_json(found.body)
    recent = []
    if viewer.may(Permission.SUBMISSION_READ) and viewer.user_id is not None:
        recent = await submissions.page(
            parts, viewer, Filter(user_id=viewer.user_id), problem=shown.id, before=None, at_most=_RECENT
        )
    return await pages.show(
        request,
        "problem.html",
        status=entered.error.http_status if entered.error else 200,
        problem=shown,
        statement=await asyncio.to_thread(with_maths, shown.statement.html) if shown.statement else "",
        extensions=await _extensions(parts),
        entered=entered,
        templates=await _templates(parts, shown),
        lacking=await _lacking(parts, viewer, shown),
        recent=recent,
        standing=await standing(parts, viewer, shown.id),
        is_own=await _is_own(parts, viewer, name),
        tally=(await all_tallies(parts)).get(shown.id, Tally()),
    )


async def _is_own(parts: Parts, viewer: Viewer, name: str) -> bool:
    """Whether the viewer may manage it."""
    if not viewer.may(Permission.PROBLEM_WRITE):
        return False
    return catalogue.is_own(viewer, await catalogue.find_visible(parts, viewer, name))


async def _lacking(parts: Parts, viewer: Viewer, problem: ProblemDetail) -> frozenset[str]:
    """Languages not worth choosing; while no worker is up at all, that says nothing about any of them."""
    if not viewer.may(Permission.SUBMISSION_CREATE):
        return frozenset()
    every = frozenset(item.id for item in problem.languages)
    lacking = await parts.gate.lacking(every)
    return lacking if lacking != every else frozenset()


async def _extensions(parts: Parts) -> dict[str, str]:
    """Language → the endings of its files, so that a dropped file chooses its language."""
    table = LanguageList.model_validate_json((await languages.every(parts)).body)
    return {item.id: " ".join(ending.lstrip(".") for ending in item.extensions) for item in table.items}


async def _templates(parts: Parts, problem: ProblemDetail) -> dict[str, str]:
    """Language → where to begin in it."""
    table = LanguageList.model_validate_json((await languages.every(parts)).body)
    allowed = {item.id for item in problem.languages}
    wanted = [item.id for item in table.items if item.has_template and item.id in allowed]
    found = [TemplateView.model_validate_json((await languages.template(parts, name)).body) for name in wanted]
    return {item.language: item.source for item in found}
