"""Pages: submit form, submission list and live results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.api.routes.submission_files import read_uploads
from adjudge.api.routes.submissions import request_context
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.ids import parse_number
from adjudge.domain.permissions import Permission
from adjudge.domain.programs import SourceFormat
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.source_archive import is_archive
from adjudge.services.ops import OpsService
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.submissions import SubmissionDetail, SubmissionService
from adjudge.services.submit import SubmitRequest, SubmitService
from adjudge.services.submitted_files import ENTRY_POINT_MOST, decode_source
from adjudge.services.users import UserService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import SubmissionFilter, SubmissionRow
from adjudge.web import forms
from adjudge.web.render import PageRenderer, page_router, redirect, request_translations
from adjudge.web.routes.problems import ProblemPageRenderer, SubmitForm
from adjudge.web.submission_result import OWN_WORDS, build_result_view

Reader = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)]
Creator = Annotated[Viewer, require_permission(Permission.SUBMISSION_CREATE)]
Canceler = Annotated[Viewer, require_permission(Permission.SUBMISSION_CANCEL)]
_SOURCE_MOST: Final = 1024 * 1024
_SHOWN_MOST: Final = 256 * 1024
"""Maximum size of one of several files to be shown on the page."""
_PAGE: Final = 50
_ELSEWHERE: Final = (401, 403, 404)
"""Shown as an error page, because the form is not available."""
_YEAR_SEC: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A submitted file on the page."""

    name: str
    size_bytes: int
    text: str | None
    """None: it is not text, or too long to be shown among others."""

    @classmethod
    def of(cls, file: SourceFile, *, is_only: bool) -> ShownFile:
        """From a stored file; the only file is always shown."""
        text: str | None = file.data.decode("utf-8", "replace")
        if not is_only and (len(file.data) > _SHOWN_MOST or b"\0" in file.data):
            text = None
        return cls(file.name, len(file.data), text)


def router(
    pages: PageRenderer,
    problem_page: ProblemPageRenderer,
    submissions: SubmissionService,
    submitter: SubmitService,
    *,
    sources: SubmissionSourceService,
    languages: Languages,
    users: UserService,
    ops: OpsService,
) -> APIRouter:
    routes = page_router(pages)
    _add_submit_routes(routes, problem_page, submissions, submitter)
    _add_list_routes(routes, pages, submissions, languages, users)
    _add_read_routes(routes, pages, submissions, sources, languages=languages, ops=ops)
    return routes


def _add_submit_routes(
    routes: APIRouter, problem_page: ProblemPageRenderer, submissions: SubmissionService, submitter: SubmitService
) -> None:
    @routes.post("/problems/{name}/submit")
    async def submit(request: Request, viewer: Creator, name: str) -> Response:
        language = await forms.text(request, "language", limit=64)
        entry_point = await forms.text(request, "entry_point", limit=ENTRY_POINT_MOST)
        source = ""
        try:
            source, files = await read_form_source(request)
            accepted = await submitter.submit(
                viewer, SubmitRequest(name, language, source, files, entry_point), request_context(request, None)
            )
        except AdjudgeError as error:
            if error.http_status in _ELSEWHERE:
                raise
            return await problem_page.render(request, viewer, name, SubmitForm(language, source, entry_point, error))
        answer = redirect(f"/submissions/{accepted.response['submission_id']}")
        answer.set_cookie("adjudge_language", language, max_age=_YEAR_SEC, httponly=True, samesite="lax")
        return answer

    @routes.post("/submissions/{submission_id}/cancel")
    async def cancel(viewer: Canceler, request: Request, submission_id: str) -> Response:
        await submissions.cancel_submission(viewer, submission_id, await forms.text(request, "reason", limit=500))
        return redirect(f"/submissions/{submission_id}")


async def read_form_source(request: Request) -> tuple[str, tuple[SourceFile, ...]]:
    """The source, or the uploaded files if there are several, an archive, or output files."""
    typed = await forms.text(request, "source", limit=_SOURCE_MOST)
    form = await request.form()
    outputs, chosen = await read_uploads(form.getlist("files")), await read_uploads(form.getlist("file"))
    if outputs or len(chosen) > 1 or any(is_archive(file.name) for file in chosen):
        return "", outputs or chosen
    if not chosen:
        return typed.replace("\r\n", "\n"), ()
    if len(chosen[0].data) > _SOURCE_MOST:
        raise InvalidInput(f"file: exceeds {_SOURCE_MOST} bytes.", field="file")
    return decode_source(chosen[0].data, "file"), ()


def _add_list_routes(
    routes: APIRouter, pages: PageRenderer, submissions: SubmissionService, languages: Languages, users: UserService
) -> None:
    @routes.get("/submissions")
    async def listed(
        request: Request,
        viewer: Reader,
        *,
        problem: Annotated[str, Query(max_length=200)] = "",
        number: Annotated[str, Query(max_length=64)] = "",
        user: Annotated[str, Query(max_length=64)] = "",
        language: Annotated[str, Query(max_length=64)] = "",
        verdict: str = "",
        every: Annotated[str, Query(alias="all")] = "",
        everybody: str = "",  # the former name of `all`
        cursor: str | None = None,
    ) -> Response:
        asked = {"problem": problem, "user": user, "language": language, "verdict": verdict, "all": every or everybody}
        rows: list[SubmissionRow] = []
        error = None
        try:
            if number.strip():
                return redirect(f"/submissions/{await _id_of_number(submissions, viewer, number)}")
            place = decode_cursor(cursor, [str])
            rows = await submissions.list_submissions(
                viewer,
                await _filter(languages, users, viewer, asked),
                problem=problem.strip() or None,
                before=str(place[0]) if place else None,
                limit=_PAGE + 1,
            )
        except AdjudgeError as raised:
            error = raised
        query = urlencode({name: value for name, value in asked.items() if value})
        more = urlencode({**asked, "cursor": encode_cursor([rows[_PAGE - 1].id])}) if len(rows) > _PAGE else ""
        return await pages.render(
            request,
            "submissions.html",
            status=error.http_status if error else 200,
            error=error,
            rows=rows[:_PAGE],
            asked={**asked, "number": number},
            query=query,
            verdicts=list(Verdict),
            names=language_names(languages),
            sees_all=_may_see_all(viewer, asked),
            is_live=not asked["all"] and not cursor,
            more=more,
        )


def _add_read_routes(
    routes: APIRouter,
    pages: PageRenderer,
    submissions: SubmissionService,
    sources: SubmissionSourceService,
    *,
    languages: Languages,
    ops: OpsService,
) -> None:
    @routes.get("/submissions/{submission_id}")
    async def one(
        request: Request, viewer: Reader, submission_id: str, run: Annotated[str, Query(max_length=64)] = ""
    ) -> Response:
        if (found := await submissions.resolve_id(viewer, submission_id)) != submission_id:
            return redirect(f"/submissions/{found}")
        detail = await submissions.get_detail(viewer, submission_id, run)
        source = await sources.load_files(detail.row)
        files = [ShownFile.of(file, is_only=len(source.files) == 1) for file in source.files]
        shown = await _state(languages, sources, ops, request, detail=detail, source=source)
        return await pages.render(request, "submission.html", files=files, entry_point=source.entry_point, **shown)

    @routes.get("/submissions/{submission_id}/state")
    async def state(request: Request, viewer: Reader, submission_id: str) -> Response:
        """The live region of the page of a submission."""
        detail = await submissions.get_detail(viewer, submission_id)
        return await pages.render(
            request, "submission_state.html", **await _state(languages, sources, ops, request, detail=detail)
        )


async def _id_of_number(submissions: SubmissionService, viewer: Viewer, number: str) -> str:
    if parse_number(number) is None:
        raise InvalidInput("number: expected digits, such as 1234.", field="number")
    return await submissions.resolve_id(viewer, number.strip())


def _may_see_all(viewer: Viewer, asked: Mapping[str, str]) -> bool:
    """Staff see all submissions; setters those to their problems, which the service checks."""
    return viewer.can(Permission.SUBMISSION_READ_ALL) or (
        bool(asked["problem"]) and viewer.can(Permission.PROBLEM_WRITE)
    )


async def _filter(
    languages: Languages, users: UserService, viewer: Viewer, asked: Mapping[str, str]
) -> SubmissionFilter:
    language, verdict = asked["language"], asked["verdict"]
    return SubmissionFilter(
        user_id=await _owner_filter(users, viewer, asked),
        language=languages.get(language).id if language else None,
        verdict=Verdict(verdict) if verdict in set(Verdict) else None,
    )


async def _owner_filter(users: UserService, viewer: Viewer, asked: Mapping[str, str]) -> str | None:
    if not asked["all"] or not _may_see_all(viewer, asked):
        return viewer.id
    name = asked["user"].strip()
    if not name:
        return None
    known = await users.find_by_name(name)
    return known.id if known else ""  # do not reveal which names exist


async def _state(
    languages: Languages,
    sources: SubmissionSourceService,
    ops: OpsService,
    request: Request,
    *,
    detail: SubmissionDetail,
    source: ProgramSource | None = None,
) -> dict[str, Any]:
    row, document = detail.row, detail.document or {}
    language = language_names(languages).get(row.language, row.language)
    again = (
        detail.run_id is None
        and row.finished_at is not None
        and any(run.finished_at is None for run in detail.runs if run.rejudge_batch_id is None)
    )
    cases = list(document.get("cases", ()))
    if detail.made is not None:
        cases = list(detail.made.cases)
    return {
        "row": row,
        "document": document,
        "made": detail.made,
        "is_jury": detail.rights.is_jury,
        "again": again,
        "result": build_result_view(request_translations(request), document, cases, language),
        "language": language,
        "file_names": await _file_names(languages, sources, row, source),
        "own_words": OWN_WORDS,
        "may_cancel": row.finished_at is None
        and detail.run_id is None
        and (row.contest_id is None or detail.rights.is_jury),
        "log": detail.log,
        "names": await ops.user_names([change.actor for change in detail.log]),
        "runs": detail.runs,
        "shown_run": detail.run_id,
    }


async def _file_names(
    languages: Languages, sources: SubmissionSourceService, row: SubmissionRow, source: ProgramSource | None
) -> list[str]:
    """The names of the files in compiler messages; none for a removed language."""
    language = next((known for known in languages if known.id == row.language), None)
    if language is None:
        return []
    if source is None:
        if row.source_format == SourceFormat.TEXT and language.names != "java":
            return [language.source]
        if row.finished_at is None:  # avoid reading the source for each test
            return []
        source = await sources.load_files(row)
    return [file.name for file in source.files]


def language_names(languages: Languages) -> dict[str, str]:
    """Language ID → name."""
    return {language.id: language.name for language in languages}
