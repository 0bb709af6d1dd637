"""Pages: submissions of a contest for its jury, decisions about them, and added penalties."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.contest import to_micro_points
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.judge.sources import ProgramSource
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_submissions import ContestSubmissionService
from adjudge.services.contests import ContestService
from adjudge.services.jury_submissions import JuryQuery, JurySubmissionDetail, JurySubmissionService
from adjudge.services.passwords import LONGEST
from adjudge.services.reauthentication import Confirmation, ReauthenticationService
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.submissions import ShownFile, language_names
from adjudge.web.source_diff import SourceFileDiff, diff_sources

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JURY)]
TAB: Final = "/jury"
_PAGE: Final = 50
_POLL_WAITING_MS: Final = 2_000
_POLL_MS: Final = 5_000
_ELSEWHERE: Final = (404,)
"""Shown as an error page, because the form is not available."""
_FLAGS: Final = ("unverified", "waiting", "ignored", "late")


@dataclass(frozen=True, slots=True)
class JuryPages:
    """What the pages of the jury are made of."""

    page: ContestPageRenderer
    contests: ContestService
    reader: JurySubmissionService
    decisions: ContestSubmissionService
    sources: SubmissionSourceService
    reauthentication: ReauthenticationService
    languages: Languages


def router(pages: JuryPages) -> APIRouter:
    routes = page_router(pages.page.pages)
    _add_list_routes(routes, pages)
    _add_detail_routes(routes, pages)
    return routes


def _path(slug: str, number: int | None = None) -> str:
    return f"/contests/{slug}/jury/submissions" + ("" if number is None else f"/{number}")


@dataclass(frozen=True, slots=True)
class ListAsked:
    """The query of the list, as it was entered."""

    problem: Annotated[str, Query(max_length=64)] = ""
    participant: Annotated[str, Query(max_length=64)] = ""
    language: Annotated[str, Query(max_length=64)] = ""
    verdict: Annotated[str, Query(max_length=64)] = ""
    unverified: Annotated[str, Query(max_length=8)] = ""
    waiting: Annotated[str, Query(max_length=8)] = ""
    ignored: Annotated[str, Query(max_length=8)] = ""
    late: Annotated[str, Query(max_length=8)] = ""

    def as_query(self) -> JuryQuery:
        """The filter; an unknown verdict is none."""
        return JuryQuery(
            self.problem,
            self.participant.strip(),
            self.language,
            Verdict(self.verdict) if self.verdict in set(Verdict) else None,
            bool(self.unverified),
            bool(self.waiting),
            bool(self.ignored),
            bool(self.late),
        )


Asked = Annotated[ListAsked, Depends()]
Cursor = Annotated[str, Query(max_length=2048)]


def _add_list_routes(routes: APIRouter, pages: JuryPages) -> None:
    async def shown(viewer: Viewer, slug: str, asked: ListAsked, cursor: str) -> tuple[ContestView, dict[str, Any]]:
        position = decode_cursor(cursor or None, [int])
        before = int(str(position[0])) if position else None
        view, items = await pages.reader.list_submissions(
            viewer, slug, asked.as_query(), before=before, limit=_PAGE + 1
        )
        query = urlencode({name: value for name, value in asdict(asked).items() if value})
        more = encode_cursor([items[_PAGE - 1].row.number]) if len(items) > _PAGE else ""
        return view, {
            "items": items[:_PAGE],
            "asked": asdict(asked),
            "query": query,
            "cursor": cursor,
            "more": f"{query}&cursor={more}" if more else "",
            "names": language_names(pages.languages),
            "poll_ms": _POLL_WAITING_MS if any(item.is_waiting for item in items) else _POLL_MS,
        }

    @routes.get("/contests/{slug}/jury/submissions")
    async def every(request: Request, viewer: Member, slug: str, asked: Asked, cursor: Cursor = "") -> Response:
        view, given = await shown(viewer, slug, asked, cursor)
        problems = await pages.contests.list_problems(view)
        return await pages.page.render(
            request,
            view,
            "jury_submissions.html",
            tab=TAB,
            problems=problems,
            verdicts=list(Verdict),
            flags=_FLAGS,
            **given,
        )

    @routes.get("/contests/{slug}/jury/submissions/state")
    async def live(request: Request, viewer: Member, slug: str, asked: Asked, cursor: Cursor = "") -> Response:
        """The live region of the list."""
        view, given = await shown(viewer, slug, asked, cursor)
        return await pages.page.pages.render(request, "jury_submission_rows.html", contest=view.contest, **given)


def _add_detail_routes(routes: APIRouter, pages: JuryPages) -> None:
    async def render(request: Request, viewer: Viewer, slug: str, number: int, **shown: Any) -> Response:
        found = await pages.reader.get(viewer, slug, number)
        source = await pages.sources.load_files(found.submission.row)
        files = [ShownFile.of(file, is_only=len(source.files) == 1) for file in source.files]
        given = {"error": None, "failed": "", "entered": {}, **shown}
        return await pages.page.render(
            request,
            found.view,
            "jury_submission.html",
            tab=TAB,
            status=given["error"].http_status if given["error"] else 200,
            found=found,
            files=files,
            entry_point=source.entry_point,
            diffs=await _diffs(pages, viewer, found, source),
            names=language_names(pages.languages),
            verdicts=list(Verdict),
            needs_password=not await pages.reauthentication.is_recent(viewer),
            **given,
        )

    @routes.get("/contests/{slug}/jury/submissions/{number}")
    async def one(request: Request, viewer: Member, slug: str, number: int) -> Response:
        return await render(request, viewer, slug, number)

    @routes.get("/contests/{slug}/jury/submissions/{number}/state")
    async def live(request: Request, viewer: Member, slug: str, number: int) -> Response:
        """The live region: verdict, judge runs and decisions."""
        found = await pages.reader.get(viewer, slug, number)
        return await pages.page.pages.render(
            request, "jury_submission_state.html", contest=found.view.contest, view=found.view, found=found
        )

    @routes.post("/contests/{slug}/jury/submissions/{number}/{action}")
    async def decide(request: Request, viewer: Member, slug: str, number: int, action: str) -> Response:
        if action not in _ACTIONS:
            raise NotFound("page", request.url.path)
        entered = {name: (await forms.text(request, name, limit=500)).strip() for name in _FIELDS}
        entered["password"] = await forms.text(request, "password", limit=LONGEST)
        try:
            await _ACTIONS[action](pages.decisions, viewer, slug, number, entered)
        except AdjudgeError as error:
            if error.http_status in _ELSEWHERE:
                raise
            return await render(request, viewer, slug, number, error=error, failed=action, entered=entered)
        return redirect(_path(slug, number), done="saved")


Entered = Mapping[str, str]
Action = Callable[[ContestSubmissionService, Viewer, str, int, Entered], Awaitable[object]]
_FIELDS: Final = ("reason", "verdict", "score", "undo", "batch")


async def _override(
    service: ContestSubmissionService, viewer: Viewer, slug: str, number: int, entered: Entered
) -> None:
    verdict = entered["verdict"]
    await service.override(
        viewer,
        slug,
        number,
        verdict=_verdict(verdict) if verdict else None,
        score_micro=_score_micro(entered["score"]),
        reason=entered["reason"],
        confirmation=Confirmation(entered["password"]),
    )


def _verdict(text: str) -> Verdict:
    if text not in set(Verdict):
        raise InvalidInput("verdict: choose one of the list.", field="verdict")
    return Verdict(text)


def _score_micro(text: str) -> int | None:
    if not text:
        return None
    try:
        return to_micro_points(float(text))
    except (ValueError, OverflowError):
        raise InvalidInput("score: expected a number.", field="score") from None


_ACTIONS: Final[Mapping[str, Action]] = {
    "verify": lambda service, viewer, slug, number, entered: service.verify(
        viewer, slug, number, verdict=None if entered["undo"] else _verdict(entered["verdict"])
    ),
    "ignore": lambda service, viewer, slug, number, entered: service.ignore(
        viewer, slug, number, is_ignored=not entered["undo"], reason=entered["reason"]
    ),
    "official": lambda service, viewer, slug, number, entered: service.make_official(
        viewer, slug, number, is_official=not entered["undo"], reason=entered["reason"]
    ),
    "override": _override,
    "rejudge": lambda service, viewer, slug, number, entered: service.rejudge(
        viewer, slug, number, reason=entered["reason"]
    ),
    "apply-rejudge": lambda service, viewer, slug, number, entered: service.apply_rejudge(
        viewer, slug, number, entered["batch"]
    ),
    "discard-rejudge": lambda service, viewer, slug, number, entered: service.discard_rejudge(
        viewer, slug, number, entered["batch"]
    ),
}


async def _diffs(
    pages: JuryPages, viewer: Viewer, found: JurySubmissionDetail, source: ProgramSource
) -> Sequence[SourceFileDiff]:
    """The files that differ from those of the participant's previous submission."""
    if found.previous is None:
        return []
    before = await pages.sources.get_files(viewer, found.previous.submission_id)
    return await asyncio.to_thread(diff_sources, before, source)
