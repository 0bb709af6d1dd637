"""The catalogue: a list to search, a problem to read and to submit to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.dependencies import require_permission
from adjudge.api.parts import Parts
from adjudge.api.schema.problems import LanguageList, LanguageTemplateRead, ProblemPage, ProblemRead
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import parse_tags, search_words
from adjudge.services import languages, problems, submissions
from adjudge.services.problem_stats import get_user_progress, list_problem_stats
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import SubmissionFilter
from adjudge.store.problems.models import ProblemFilter, ProblemSort
from adjudge.store.problems.stats import ProblemStats
from adjudge.web.mathml import render_math
from adjudge.web.render import PageRenderer, redirect
from adjudge.web.routes.router import page_router

Reader = Annotated[Viewer, require_permission(Permission.PROBLEM_READ)]
_RECENT = 5
_SOLVED: Final = {"yes": True, "no": False, "untried": False}
_TRIED: Final = {"tried": True, "untried": False}


def router(pages: PageRenderer, parts: Parts) -> APIRouter:
    """Routes of the catalogue."""
    routes = page_router(pages)

    @routes.get("/")
    async def front() -> Response:
        return redirect("/problems")

    @routes.get("/problems")
    async def listed(
        request: Request,
        viewer: Reader,
        *,
        q: Annotated[str, Query(max_length=200)] = "",
        tag: Annotated[str, Query(max_length=60)] = "",
        solved: str = "",
        sort: ProblemSort = ProblemSort.NEWEST,
        cursor: str | None = None,
    ) -> Response:
        wanted = ProblemFilter(
            words=search_words(q),
            tags=parse_tags([tag]) if tag else (),
            is_solved=_SOLVED.get(solved) if viewer.user_id else None,
            is_tried=_TRIED.get(solved) if viewer.user_id else None,
            sort=sort,
        )
        found = await problems.list_problems(parts, viewer, wanted, cursor=cursor, limit=50)
        page = ProblemPage.model_validate_json(found.body)
        asked = {"q": q, "tag": tag, "solved": solved, "sort": sort.value}
        more = urlencode({**asked, "cursor": page.next}) if page.next else ""
        tags = sorted({tag for item in page.items for tag in item.tags})
        return await pages.render(
            request, "problems.html", page=page, asked=asked, sorts=list(ProblemSort), more=more, tags=tags
        )

    @routes.get("/problems/{name}")
    async def problem(request: Request, viewer: Reader, name: str, lang: str = "", language: str = "") -> Response:
        chosen = language or request.cookies.get("adjudge_language", "")
        return await show_problem(pages, parts, request, viewer, name, entered=SubmitForm(chosen, lang=lang))

    return routes


@dataclass(frozen=True, slots=True)
class SubmitForm:
    """What somebody has entered so far on a problem's page."""

    language: str
    source: str = ""
    error: AdjudgeError | None = None
    """Why it was not taken."""
    lang: str = ""
    """The language of the statement."""


async def show_problem(
    pages: PageRenderer, parts: Parts, request: Request, viewer: Viewer, name: str, *, entered: SubmitForm
) -> Response:
    """The page of a problem, with whatever was entered there and not taken."""
    spoken = problems.accepted_languages(entered.lang, request.headers.get("Accept-Language", ""))
    found = await problems.get_problem(parts, viewer, name, spoken)
    shown = ProblemRead.model_validate_json(found.body)
    recent = []
    if viewer.can(Permission.SUBMISSION_READ) and viewer.user_id is not None:
        recent = await submissions.list_submissions(
            parts, viewer, SubmissionFilter(user_id=viewer.user_id), problem=shown.id, before=None, limit=_RECENT
        )
    return await pages.render(
        request,
        "problem.html",
        status=entered.error.http_status if entered.error else 200,
        problem=shown,
        statement=await asyncio.to_thread(render_math, shown.statement.html) if shown.statement else "",
        extensions=await _extensions(parts),
        entered=entered,
        templates=await _templates(parts, shown),
        lacking=await _unavailable_languages(parts, viewer, shown),
        recent=recent,
        progress=await get_user_progress(parts, viewer, shown.id),
        is_own=await _is_own(parts, viewer, name),
        stats=(await list_problem_stats(parts)).get(shown.id, ProblemStats()),
    )


async def _is_own(parts: Parts, viewer: Viewer, name: str) -> bool:
    """Whether the viewer may manage it."""
    if not viewer.can(Permission.PROBLEM_WRITE):
        return False
    return problems.can_edit(viewer, await problems.find_visible(parts, viewer, name))


async def _unavailable_languages(parts: Parts, viewer: Viewer, problem: ProblemRead) -> frozenset[str]:
    """Languages not worth choosing; while no worker is up at all, that says nothing about any of them."""
    if not viewer.can(Permission.SUBMISSION_CREATE):
        return frozenset()
    every = frozenset(item.id for item in problem.languages)
    lacking = await parts.gate.unavailable_languages(every)
    return lacking if lacking != every else frozenset()


async def _extensions(parts: Parts) -> dict[str, str]:
    """Language → the endings of its files, so that a dropped file chooses its language."""
    table = LanguageList.model_validate_json((await languages.list_languages(parts)).body)
    return {item.id: " ".join(ending.lstrip(".") for ending in item.extensions) for item in table.items}


async def _templates(parts: Parts, problem: ProblemRead) -> dict[str, str]:
    """Language → where to begin in it."""
    table = LanguageList.model_validate_json((await languages.list_languages(parts)).body)
    allowed = {item.id for item in problem.languages}
    wanted = [item.id for item in table.items if item.has_template and item.id in allowed]
    found = [
        LanguageTemplateRead.model_validate_json((await languages.get_template(parts, name)).body) for name in wanted
    ]
    return {item.language: item.source for item in found}
