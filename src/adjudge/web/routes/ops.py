"""For operators: what waits and for how long, who works, what was given up, and the story of any job."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.actions import ops, submissions
from adjudge.api.asking import needs
from adjudge.api.paging import cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.domain.access import Permission
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.store import figures
from adjudge.web import forms, trends
from adjudge.web.plots import Window, lasted, lines
from adjudge.web.render import Pages, see_other, words_of
from adjudge.web.routes.router import page_router
from adjudge.web.words import Words

Reader = Annotated[Viewer, needs(Permission.OPS_READ)]
Operator = Annotated[Viewer, needs(Permission.OPS_CONTROL)]
_PAGE: Final = 50
_HOURS: Final = (1, 6, 24)
_JOINED: Final = 3
"""Stretches without a figure that a line still goes across."""


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of operators."""
    routes = page_router(pages)
    _house(routes, pages, parts)
    _letters(routes, pages, parts)
    _history(routes, pages, parts)
    return routes


def _house(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/ops")
    async def house(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        hours: Annotated[int, Query(ge=1, le=24)] = 1,
    ) -> Response:
        return await pages.show(request, "ops.html", hours=hours, choices=_HOURS, **await _state(parts, request, hours))

    @routes.get("/ops/state")
    async def state(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        hours: Annotated[int, Query(ge=1, le=24)] = 1,
    ) -> Response:
        return await pages.show(request, "ops_state.html", **await _state(parts, request, hours))


async def _state(parts: Parts, request: Request, hours: int) -> dict[str, Any]:
    found = await parts.database.read(lambda tx: figures.since(tx, back_ms=hours * 3_600_000))
    return {
        "state": await ops.state(parts),
        "workers": await ops.workers(parts),
        "plots": _plots(words_of(request), trends.moments(found, back_sec=hours * 3_600)),
    }


def _plots(t: Words, found: list[trends.Moment]) -> list[tuple[str, str]]:
    """Every plot with its title."""

    def is_hit(label: str) -> bool:
        return "result=hit" in label

    def is_refused(label: str) -> bool:
        return "decision=refused" in label

    drawn = {
        "ops.depth": ([trends.level(found, t("ops.waiting"), "queue_depth")], ""),
        "ops.throughput": (
            [
                trends.rate(found, t("ops.enqueued"), "jobs_enqueued"),
                trends.rate(found, t("ops.started"), "jobs_started"),
                trends.rate(found, t("ops.finished"), "worker_finalize"),
            ],
            "/s",
        ),
        "ops.queue_latency": (trends.quantiles(found, "queue_wait_seconds"), "ms"),
        "ops.runtime": (trends.quantiles(found, "judge_run_duration_seconds"), "ms"),
        "ops.admission": (
            [
                trends.rate(found, t("ops.admitted"), "admission", lambda label: not is_refused(label)),
                trends.rate(found, t("ops.rejected"), "admission", is_refused),
            ],
            "/s",
        ),
        "ops.cache": ([trends.share(found, t("ops.hits"), "cache_requests", is_hit)], "%"),
        "ops.outbox": ([trends.level(found, t("ops.pending"), "api_outbox_pending")], ""),
        "ops.dead_letters": ([trends.level(found, t("ops.open"), "dead_letters")], ""),
    }
    window = _window(t, found)
    return [(t(key), lines(t(key), series, unit=unit, window=window)) for key, (series, unit) in drawn.items()]


def _window(t: Words, found: list[trends.Moment]) -> Window | None:
    """From the first figure to the last: one scale of time for all plots."""
    if len(found) < 2:
        return None
    first, last = found[0].at, found[-1].at
    return Window(first, last, t("ops.ago", span=lasted(last - first)), t("ops.now"), _JOINED * found[0].length_sec)


def _letters(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/ops/dead-letters")
    async def letters(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        state: Annotated[str, Query(pattern="^(open|replayed|discarded)$")] = "open",
        cursor: str | None = None,
    ) -> Response:
        place = place_of(cursor, [str])
        found = await ops.letters(parts, state=state, after=str(place[0]) if place else "", at_most=_PAGE + 1)
        more = urlencode({"state": state, "cursor": cursor_of([found[_PAGE - 1].id])}) if len(found) > _PAGE else ""
        return await pages.show(request, "ops_letters.html", letters=found[:_PAGE], state=state, more=more)

    @routes.post("/ops/dead-letters")
    async def settle(request: Request, viewer: Operator) -> Response:
        chosen = await forms.choices(request, "letter")
        reason = (await forms.text(request, "reason", at_most=500)).strip()
        if not chosen:
            raise InvalidInput("letter: select at least one dead letter.", field="letter")
        if not reason:
            raise InvalidInput("reason: required.", field="reason")
        if await forms.text(request, "do", at_most=20) == "discard":
            await ops.discard(parts, viewer, chosen, reason=reason)
            return see_other("/ops/dead-letters", done="discarded")
        await ops.replay(parts, viewer, chosen, reason=reason)
        return see_other("/ops/dead-letters", done="replayed")


def _history(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/ops/jobs/{job_id}")
    async def job(request: Request, viewer: Reader, job_id: str) -> Response:  # noqa: ARG001  # asked for by its point
        story = await ops.job_story(parts, job_id)
        names = await ops.names_of(parts, [change.actor for change in story.log])
        return await pages.show(request, "ops_job.html", story=story, names=names)

    @routes.get("/ops/find")
    async def find(viewer: Reader, job: Annotated[str, Query(max_length=64)]) -> Response:
        wanted = job.strip()
        try:
            story = await ops.job_story(parts, wanted)
        except NotFound:
            return see_other(f"/submissions/{(await submissions.fresh(parts, viewer, wanted)).id}")
        return see_other(f"/ops/jobs/{story.job['id']}")

    @routes.get("/ops/audit")
    async def audit(
        request: Request,
        viewer: Operator,  # noqa: ARG001  # asked for by its point
        actor: Annotated[str, Query(max_length=64)] = "",
        cursor: str | None = None,
    ) -> Response:
        place = place_of(cursor, [int])
        before = int(place[0] or 0) if place else None
        found = await ops.audit_page(parts, actor=actor, of=None, before=before, at_most=_PAGE + 1)
        more = urlencode({"actor": actor, "cursor": cursor_of([found[_PAGE - 1].id])}) if len(found) > _PAGE else ""
        return await pages.show(request, "ops_audit.html", entries=found[:_PAGE], actor=actor, more=more)
