"""Pages: the problem list, and a problem with its submit form."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import current_viewer, require_permission
from adjudge.api.routes.problems import problem_key
from adjudge.api.schema.base import decode_json
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import parse_tags, search_words
from adjudge.schema.problems import LanguageList, LanguageTemplateRead, ProblemPage, ProblemRead
from adjudge.services.admission import AdmissionController
from adjudge.services.languages import LanguageService
from adjudge.services.problem_stats import ProblemStatsService
from adjudge.services.problems import ProblemService, can_edit
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import SubmissionFilter
from adjudge.store.problems.models import ProblemFilter, ProblemSort
from adjudge.store.problems.stats import ProblemStats
from adjudge.web.mathml import render_math
from adjudge.web.render import PageRenderer, page_router, redirect

Reader = Annotated[Viewer, require_permission(Permission.PROBLEM_READ)]
_RECENT = 5
_SOLVED: Final = {"yes": True, "no": False, "untried": False}
_TRIED: Final = {"tried": True, "untried": False}


def router(page: ProblemPageRenderer) -> APIRouter:
    pages, problems = page.pages, page.problems
    routes = page_router(pages)

    @routes.get("/")
    async def front(request: Request) -> Response:
        viewer = await current_viewer(request)
        if viewer.only_contest_id is not None:
            return redirect("/contests")
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
        found = await problems.list_problems(viewer, wanted, after=problem_key(cursor, sort), limit=50)
        shown = decode_json(ProblemPage, found.body)
        asked = {"q": q, "tag": tag, "solved": solved, "sort": sort.value}
        more = urlencode({**asked, "cursor": shown.next}) if shown.next else ""
        tags = sorted({tag for item in shown.items for tag in item.tags})
        return await pages.render(
            request, "problems.html", page=shown, asked=asked, sorts=list(ProblemSort), more=more, tags=tags
        )

    @routes.get("/problems/{name}")
    async def problem(request: Request, viewer: Reader, name: str, lang: str = "", language: str = "") -> Response:
        chosen = language or request.cookies.get("adjudge_language", "")
        return await page.render(request, viewer, name, SubmitForm(chosen, lang=lang))

    return routes


@dataclass(frozen=True, slots=True)
class SubmitForm:
    """Contents of the submit form."""

    language: str
    source: str = ""
    entry_point: str = ""
    error: AdjudgeError | None = None
    """Why the submission was rejected."""
    lang: str = ""
    """The language of the statement."""


@dataclass(frozen=True, slots=True)
class ProblemPageRenderer:
    """Renders the page of a problem: for its own route, and again when a submission to it is rejected."""

    pages: PageRenderer
    problems: ProblemService
    problem_stats: ProblemStatsService
    languages: LanguageService
    submissions: SubmissionService
    admission: AdmissionController

    async def render(self, request: Request, viewer: Viewer, name: str, entered: SubmitForm) -> Response:
        """Render the page; ``entered`` holds a rejected submission."""
        spoken = statement_languages(entered.lang, request.headers.get("Accept-Language", ""))
        found = await self.problems.get_problem(viewer, name, spoken)
        shown = decode_json(ProblemRead, found.body)
        recent = []
        if viewer.can(Permission.SUBMISSION_READ) and viewer.user_id is not None:
            recent = await self.submissions.list_submissions(
                viewer, SubmissionFilter(user_id=viewer.user_id), problem=shown.id, before=None, limit=_RECENT
            )
        return await self.pages.render(
            request,
            "problem.html",
            status=entered.error.http_status if entered.error else 200,
            submit_path=f"/problems/{shown.slug}/submit",
            draft_name=shown.slug,
            **await self.shown_problem(viewer, shown, entered),
            recent=recent,
            progress=await self.problem_stats.get_user_progress(viewer, shown.id),
            is_own=await _is_own(self.problems, viewer, name),
            stats=(await self.problem_stats.list_problem_stats()).get(shown.id, ProblemStats()),
        )

    async def shown_problem(self, viewer: Viewer, problem: ProblemRead, entered: SubmitForm) -> dict[str, Any]:
        """What the templates of statement and submit form show."""
        table = decode_json(LanguageList, (await self.languages.list_languages()).body)
        return {
            "problem": problem,
            "statement": await asyncio.to_thread(render_math, problem.statement.html) if problem.statement else "",
            "extensions": {item.id: " ".join(ending.lstrip(".") for ending in item.extensions) for item in table.items},
            "entry_points": {item.id: item.entry_point for item in table.items},
            "entered": entered,
            "templates": await _templates(self.languages, problem),
            "lacking": await _unavailable_languages(self.admission, viewer, problem),
        }


async def _is_own(problems: ProblemService, viewer: Viewer, name: str) -> bool:
    if not viewer.can(Permission.PROBLEM_WRITE):
        return False
    return can_edit(viewer, await problems.find_visible(viewer, name))


async def _unavailable_languages(
    admission: AdmissionController, viewer: Viewer, problem: ProblemRead
) -> frozenset[str]:
    """Languages without an online worker; empty if no worker is online at all."""
    if not viewer.can(Permission.SUBMISSION_CREATE):
        return frozenset()
    every = frozenset(item.id for item in problem.languages)
    lacking = await admission.unavailable_languages(every)
    return lacking if lacking != every else frozenset()


async def _templates(languages: LanguageService, problem: ProblemRead) -> dict[str, str]:
    """Language → template source."""
    table = decode_json(LanguageList, (await languages.list_languages()).body)
    allowed = {item.id for item in problem.languages}
    wanted = [item.id for item in table.items if item.has_template and item.id in allowed]
    found = [decode_json(LanguageTemplateRead, (await languages.get_template(name)).body) for name in wanted]
    return {item.language: item.source for item in found}
