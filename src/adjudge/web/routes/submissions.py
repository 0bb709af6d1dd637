"""Handing in by form, and watching the verdict arrive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.actions import submissions, submitting
from adjudge.api.actions.submitting import Handed
from adjudge.api.paging import cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.routes.submissions import caller_of
from adjudge.api.viewer import Viewer, needs
from adjudge.domain.access import Permission
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store import progress
from adjudge.store.reads import Filter, SubmissionRow
from adjudge.web import forms
from adjudge.web.meanings import meaning
from adjudge.web.plots import Bar, bars
from adjudge.web.render import Pages, see_other, words_of
from adjudge.web.routes.router import page_router

Reader = Annotated[Viewer, needs(Permission.SUBMISSION_READ)]
Creator = Annotated[Viewer, needs(Permission.SUBMISSION_CREATE)]
Canceler = Annotated[Viewer, needs(Permission.SUBMISSION_CANCEL)]
_SOURCE_MOST: Final = 1024 * 1024
_PAGE: Final = 50
_YEAR_SEC: Final = 365 * 24 * 3600


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of submissions."""
    routes = page_router(pages)
    _handing_in(routes, parts)
    _watching(routes, pages, parts)
    return routes


def _handing_in(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/problems/{name}/submit")
    async def submit(request: Request, viewer: Creator, name: str) -> Response:
        language = await forms.text(request, "language", at_most=64)
        handed = Handed(name, language, await _source(request))
        accepted = await submitting.submit(parts, viewer, handed, caller_of(request, None))
        answer = see_other(f"/submissions/{accepted.response['submission_id']}")
        answer.set_cookie("adjudge_language", language, max_age=_YEAR_SEC, httponly=True, samesite="lax")
        return answer

    @routes.post("/submissions/{submission_id}/cancel")
    async def cancel(viewer: Canceler, request: Request, submission_id: str) -> Response:
        await submissions.cancel(parts, viewer, submission_id, await forms.text(request, "reason", at_most=500))
        return see_other(f"/submissions/{submission_id}")


async def _source(request: Request) -> str:
    """What was typed, or the file that was chosen; both at once is a question we cannot answer."""
    typed, chosen = await forms.text(request, "source", at_most=_SOURCE_MOST), await forms.upload(request, "file")
    if chosen is None:
        return typed.replace("\r\n", "\n")
    data = await chosen.read(_SOURCE_MOST + 1)
    if len(data) > _SOURCE_MOST:
        raise InvalidInput(f"file: longer than {_SOURCE_MOST} bytes.", field="file")
    return submitting.decode_source(data, "file")


def _watching(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/submissions")
    async def listed(
        request: Request,
        viewer: Reader,
        *,
        problem: Annotated[str, Query(max_length=200)] = "",
        language: Annotated[str, Query(max_length=64)] = "",
        verdict: str = "",
        status: str = "",
        everybody: str = "",
        cursor: str | None = None,
    ) -> Response:
        sees_all = bool(everybody) and viewer.may(Permission.SUBMISSION_READ_ALL)
        wanted = Filter(
            user_id=None if sees_all else viewer.id,
            language=parts.languages.get(language).id if language else None,
            verdict=Verdict(verdict) if verdict in set(Verdict) else None,
            status=SubmissionStatus(status) if status in set(SubmissionStatus) else None,
        )
        place = place_of(cursor, [str])
        rows = await submissions.page(
            parts,
            viewer,
            wanted,
            problem=problem or None,
            before=str(place[0]) if place else None,
            at_most=_PAGE + 1,
        )
        asked = {"problem": problem, "language": language, "verdict": verdict, "everybody": everybody}
        more = urlencode({**asked, "cursor": cursor_of([rows[_PAGE - 1].id])}) if len(rows) > _PAGE else ""
        return await pages.show(
            request, "submissions.html", rows=rows[:_PAGE], asked=asked, verdicts=list(Verdict), more=more
        )

    @routes.get("/submissions/{submission_id}")
    async def one(request: Request, viewer: Reader, submission_id: str) -> Response:
        row, source = await submissions.source(parts, viewer, submission_id)
        shown = await _state(parts, viewer, request, row)
        return await pages.show(
            request,
            "submission.html",
            source=source.decode("utf-8", "replace"),
            **shown,
        )

    @routes.get("/submissions/{submission_id}/state")
    async def state(request: Request, viewer: Reader, submission_id: str) -> Response:
        """The part of the page that changes while judging goes on."""
        row = await submissions.fresh(parts, viewer, submission_id)
        return await pages.show(request, "submission_state.html", **await _state(parts, viewer, request, row))


async def _state(parts: Parts, viewer: Viewer, request: Request, row: SubmissionRow) -> dict[str, Any]:
    found = await submissions.results(parts, viewer, row.id)
    document = found.document or {}
    rows = list(document.get("cases", ()))
    made, runs = None, await submissions.runs(parts, viewer, row.id)
    job_id = next((run.id for run in runs if run.finished_at is None), None)
    if row.finished_at is None and job_id is not None:
        made = (await parts.database.read(lambda tx: progress.of_jobs(tx, [job_id]))).get(job_id)
        if made is not None:
            rows = [case for case in made.cases if found.is_jury or case.get("shown")]
    return {
        "row": row,
        "document": document,
        "cases": rows,
        "made": made,
        "is_jury": found.is_jury,
        "plot": _plot(request, rows, document),
        "may_cancel": row.finished_at is None,
        "log": await submissions.log(parts, viewer, row.id),
        "runs": runs,
    }


def _plot(request: Request, rows: list[dict[str, Any]], document: Mapping[str, Any]) -> str:
    spoken = words_of(request)
    timed = [case for case in rows if case.get("verdict") and case.get("time_ms") is not None]
    if len(timed) < 2:
        return ""
    limit = document.get("provenance", {}).get("limits", {}).get("cpu_ms")
    items = [
        Bar(
            case["name"],
            case["time_ms"],
            meaning(case["verdict"]),
            f"{case['name']}: {case['verdict']}, {case['time_ms']} ms, {case.get('mem_kb', 0)} KiB",
        )
        for case in timed
    ]
    return bars(spoken("submission.times"), items, limit=limit, unit="ms")
