"""Pages of a contest: the problem set, a problem with its submit form, and the own submissions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.api.routes.submissions import request_context
from adjudge.api.schema.base import decode_json
from adjudge.contests.formats import get_format
from adjudge.domain.contest import MICRO_POINTS
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.schema.problems import LanguageLimits, ProblemRead
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_own import OwnContestService
from adjudge.services.contest_problems import ContestProblemService
from adjudge.services.contest_submit import choose_participant
from adjudge.services.submit import SubmitRequest, SubmitService
from adjudge.services.submitted_files import ENTRY_POINT_MOST
from adjudge.services.viewer import Viewer
from adjudge.store.contests.models import ContestProblemRow
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.problems import ProblemPageRenderer, SubmitForm
from adjudge.web.routes.submissions import read_form_source

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
Creator = Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]
Cursor = Annotated[str | None, Query(max_length=2048)]
_PAGE: Final = 50
_RECENT: Final = 5
_ELSEWHERE: Final = (401, 404)
_POLL_PENDING_MS: Final = 2_000
_POLL_MS: Final = 15_000
_YEAR_SEC: Final = 365 * 24 * 3600


def router(
    page: ContestPageRenderer,
    problem_page: ProblemPageRenderer,
    problems: ContestProblemService,
    own: OwnContestService,
    submitter: SubmitService,
) -> APIRouter:
    routes = page_router(page.pages)
    _add_problem_routes(routes, page, problem_page, problems, own=own, submitter=submitter)
    _add_submission_routes(routes, page, problems, own)
    return routes


def _add_problem_routes(
    routes: APIRouter,
    page: ContestPageRenderer,
    problem_page: ProblemPageRenderer,
    problems: ContestProblemService,
    *,
    own: OwnContestService,
    submitter: SubmitService,
) -> None:
    async def show(request: Request, view: ContestView, label: str, entered: SubmitForm) -> Response:
        row = await problems.find(view, label)
        languages = statement_languages(entered.lang, request.headers.get("Accept-Language", ""))
        found = await problems.get_statement(view, row, languages)
        problem = _with_allowed_languages(decode_json(ProblemRead, found.body), view, row, submitter)
        slug = view.contest.slug
        recent = await own.list_submissions(view, problem_id=row.problem.problem_id, limit=_RECENT)
        return await page.render(
            request,
            view,
            "contest_problem.html",
            tab="/problems",
            status=entered.error.http_status if entered.error else 200,
            submit_path=f"/contests/{slug}/problems/{row.problem.label}/submit",
            draft_name=f"{slug}/{row.problem.label}",
            row=row,
            points=_points(view, row),
            refusal=_refusal(view),
            recent=recent,
            labels={row.problem.problem_id: row.problem.label},
            **await problem_page.shown_problem(view.viewer, problem, entered),
        )

    @routes.get("/contests/{slug}/problems")
    async def problem_set(request: Request, viewer: Reader, slug: str) -> Response:
        view = await problems.contests.access.find(viewer, slug)
        rows = await problems.contests.list_problems(view)
        return await page.render(
            request,
            view,
            "contest_problems.html",
            tab="/problems",
            rows=rows,
            cells=await own.get_cells(view),
            points={row.problem.label: _points(view, row) for row in rows},
            is_pass_fail=get_format(view.contest.settings.format).is_pass_fail,
        )

    @routes.get("/contests/{slug}/problems/{label}")
    async def problem(request: Request, viewer: Reader, slug: str, label: str, lang: str = "") -> Response:
        chosen = request.cookies.get("adjudge_language", "")
        view = await problems.contests.access.find(viewer, slug)
        return await show(request, view, label, SubmitForm(chosen, lang=lang))

    @routes.post("/contests/{slug}/problems/{label}/submit")
    async def submit(request: Request, viewer: Creator, slug: str, label: str) -> Response:
        language = await forms.text(request, "language", limit=64)
        entry_point = await forms.text(request, "entry_point", limit=ENTRY_POINT_MOST)
        source = ""
        try:
            source, files = await read_form_source(request)
            await submitter.submit(
                viewer,
                SubmitRequest(label, language, source, files, entry_point, slug),
                request_context(request, None),
            )
        except AdjudgeError as error:
            if error.http_status in _ELSEWHERE:
                raise
            view = await problems.contests.access.find(viewer, slug)
            return await show(request, view, label, SubmitForm(language, source, entry_point, error))
        answer = redirect(f"/contests/{slug}/submissions", done="submitted")
        answer.set_cookie("adjudge_language", language, max_age=_YEAR_SEC, httponly=True, samesite="lax")
        return answer


def _add_submission_routes(
    routes: APIRouter, page: ContestPageRenderer, problems: ContestProblemService, own: OwnContestService
) -> None:
    async def shown(view: ContestView, cursor: str | None) -> dict[str, Any]:
        position = decode_cursor(cursor or None, [int])
        before = int(str(position[0])) if position else None
        unread = await own.count_unread(view)  # before the list, which then shows at least these
        items = await own.list_submissions(view, before=before, limit=_PAGE + 1)
        rows = await problems.contests.list_problems(view)
        more = f"cursor={encode_cursor([items[_PAGE - 1].row.number])}" if len(items) > _PAGE else ""
        return {
            "items": items[:_PAGE],
            "labels": {row.problem.problem_id: row.problem.label for row in rows},
            "paused": {row.problem.problem_id for row in rows if row.problem.judging_paused},
            "more": more,
            "cursor": cursor or "",
            "unread_until": unread.until,
            "poll_ms": _POLL_PENDING_MS if any(item.is_pending for item in items) else _POLL_MS,
        }

    async def find(viewer: Viewer, slug: str) -> ContestView:
        view = await problems.contests.access.find(viewer, slug)
        if not view.participants:
            raise NotFound("page", f"/contests/{slug}/submissions")
        return view

    @routes.get("/contests/{slug}/submissions")
    async def submissions(request: Request, viewer: Reader, slug: str, cursor: Cursor = None) -> Response:
        view = await find(viewer, slug)
        return await page.render(
            request, view, "contest_submissions.html", tab="/submissions", **await shown(view, cursor)
        )

    @routes.get("/contests/{slug}/submissions/state")
    async def state(request: Request, viewer: Reader, slug: str, cursor: Cursor = None) -> Response:
        """The live region of the own submissions."""
        view = await find(viewer, slug)
        return await page.pages.render(
            request, "contest_submission_rows.html", contest=view.contest, **await shown(view, cursor)
        )

    @routes.post("/contests/{slug}/submissions/read")
    async def mark_read(request: Request, viewer: Member, slug: str) -> Response:
        """Mark the verdicts that the page showed as read."""
        until = await forms.text(request, "until", limit=18)
        if not until.isdecimal():
            raise InvalidInput("until: expected the time of a verdict in microseconds.", field="until")
        await own.mark_read(viewer, slug, int(until))
        return redirect(f"/contests/{slug}/submissions")


def _points(view: ContestView, row: ContestProblemRow) -> str:
    """The points of a problem; empty in formats that count solved problems."""
    if get_format(view.contest.settings.format).is_pass_fail:
        return ""
    return f"{row.problem.points_micro / MICRO_POINTS:g}"


def _refusal(view: ContestView) -> AdjudgeError | None:
    """Why the viewer cannot submit now."""
    try:
        choose_participant(view)
    except AdjudgeError as error:
        return error
    return None


def _with_allowed_languages(
    problem: ProblemRead, view: ContestView, row: ContestProblemRow, submitter: SubmitService
) -> ProblemRead:
    """The problem with the languages that the contest allows."""
    allowed = row.problem.allowed_languages or view.contest.settings.allowed_languages
    if allowed is None:
        return problem
    ids = {submitter.languages.get(name).id for name in allowed}

    def is_allowed(item: LanguageLimits) -> bool:
        return item.id in ids or submitter.languages.get(item.id).code in allowed

    return replace(problem, languages=[item for item in problem.languages if is_allowed(item)])
