"""Pages of operators: queue, processes, trends, dead letters, jobs and audit log."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.registry.driver import ProcessRole
from adjudge.services.ops import OpsService
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.web import forms, time_series
from adjudge.web.i18n import Translations
from adjudge.web.plots import TimeWindow, format_duration, lines
from adjudge.web.render import PageRenderer, page_router, redirect, request_translations

Reader = Annotated[Viewer, require_permission(Permission.OPS_READ)]
Operator = Annotated[Viewer, require_permission(Permission.OPS_CONTROL)]
_PAGE: Final = 50
_HOURS: Final = (1, 6, 24)
_JOINED: Final = 3
"""Number of missing intervals that a line still spans."""


def router(pages: PageRenderer, submissions: SubmissionService, ops: OpsService) -> APIRouter:
    routes = page_router(pages)
    _add_status_routes(routes, pages, ops)
    _add_dead_letter_routes(routes, pages, ops)
    _add_audit_and_job_routes(routes, pages, submissions, ops)
    return routes


def _add_status_routes(routes: APIRouter, pages: PageRenderer, ops: OpsService) -> None:
    @routes.get("/ops")
    async def operations(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # checks the permission
        hours: Annotated[int, Query(ge=1, le=24)] = 1,
    ) -> Response:
        return await pages.render(request, "ops.html", hours=hours, choices=_HOURS, **await _state(ops, request, hours))

    @routes.get("/ops/state")
    async def state(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # checks the permission
        hours: Annotated[int, Query(ge=1, le=24)] = 1,
    ) -> Response:
        return await pages.render(request, "ops_state.html", **await _state(ops, request, hours))


async def _state(ops: OpsService, request: Request, hours: int) -> dict[str, Any]:
    found = await ops.list_metric_samples(window_ms=hours * 3_600_000)
    processes = await ops.list_processes()
    return {
        "state": await ops.get_system_status(),
        "processes": processes,
        "has_workers": any(process.info.role is ProcessRole.WORKER for process in processes),
        "plots": _plots(request_translations(request), time_series.time_buckets(found, back_sec=hours * 3_600)),
    }


def _plots(t: Translations, found: list[time_series.TimeBucket]) -> list[tuple[str, str]]:
    def is_refused(label: str) -> bool:
        return "decision=refused" in label

    drawn = {
        "ops.depth": (
            [
                time_series.gauge_series(found, t("ops.waiting"), "queue_depth"),
                time_series.gauge_series(found, t("ops.running"), "jobs_running"),
            ],
            "",
        ),
        "ops.throughput": (
            [
                time_series.rate_series(found, t("ops.enqueued"), "jobs_enqueued"),
                time_series.rate_series(found, t("ops.started"), "jobs_started"),
                time_series.rate_series(found, t("ops.finished"), "worker_finalize"),
            ],
            "/s",
        ),
        "ops.queue_latency": (time_series.quantile_series(found, "queue_wait_seconds"), "ms"),
        "ops.runtime": (time_series.quantile_series(found, "judge_run_duration_seconds"), "ms"),
        "ops.admission": (
            [
                time_series.rate_series(found, t("ops.admitted"), "admission", lambda label: not is_refused(label)),
                time_series.rate_series(found, t("ops.rejected"), "admission", is_refused),
            ],
            "/s",
        ),
        "ops.cache": (
            [time_series.cache_hit_series(found, t(f"ops.hits_{tier}"), tier=tier) for tier in ("l1", "l2")],
            "%",
        ),
        "ops.outbox": ([time_series.gauge_series(found, t("ops.pending"), "api_outbox_pending")], ""),
        "ops.dead_letters": ([time_series.gauge_series(found, t("ops.open"), "dead_letters")], ""),
    }
    window = _window(t, found)
    return [(t(key), lines(t(key), series, unit=unit, window=window)) for key, (series, unit) in drawn.items()]


def _window(t: Translations, found: list[time_series.TimeBucket]) -> TimeWindow | None:
    """The common time range of all plots."""
    if len(found) < 2:
        return None
    first, last = found[0].at, found[-1].at
    return TimeWindow(
        first, last, t("ops.ago", span=format_duration(last - first)), t("ops.now"), _JOINED * found[0].length_sec
    )


def _add_dead_letter_routes(routes: APIRouter, pages: PageRenderer, ops: OpsService) -> None:
    @routes.get("/ops/dead-letters")
    async def letters(
        request: Request,
        viewer: Reader,  # noqa: ARG001  # checks the permission
        state: Annotated[str, Query(pattern="^(open|replayed|discarded)$")] = "open",
        cursor: str | None = None,
    ) -> Response:
        place = decode_cursor(cursor, [str])
        found = await ops.list_dead_letters(state=state, after=str(place[0]) if place else "", limit=_PAGE + 1)
        more = urlencode({"state": state, "cursor": encode_cursor([found[_PAGE - 1].id])}) if len(found) > _PAGE else ""
        return await pages.render(request, "dead_letters.html", letters=found[:_PAGE], state=state, more=more)

    @routes.post("/ops/dead-letters")
    async def settle(request: Request, viewer: Operator) -> Response:
        chosen = await forms.checked_values(request, "letter")
        reason = (await forms.text(request, "reason", limit=500)).strip()
        if not chosen:
            raise InvalidInput("letter: select at least one dead letter.", field="letter")
        if not reason:
            raise InvalidInput("reason: required.", field="reason")
        if await forms.text(request, "do", limit=20) == "discard":
            await ops.discard_dead_letters(viewer, chosen, reason=reason)
            return redirect("/ops/dead-letters", done="discarded")
        await ops.replay_dead_letters(viewer, chosen, reason=reason)
        return redirect("/ops/dead-letters", done="replayed")


def _add_audit_and_job_routes(
    routes: APIRouter, pages: PageRenderer, submissions: SubmissionService, ops: OpsService
) -> None:
    @routes.get("/ops/jobs/{job_id}")
    async def job(request: Request, viewer: Reader, job_id: str) -> Response:  # noqa: ARG001  # checks the permission
        history = await ops.get_job_history(job_id)
        names = await ops.user_names([change.actor for change in history.log])
        return await pages.render(request, "job.html", history=history, names=names)

    @routes.get("/ops/find")
    async def find(viewer: Reader, job: Annotated[str, Query(max_length=64)]) -> Response:
        wanted = job.strip()
        try:
            history = await ops.get_job_history(wanted)
        except NotFound:
            return redirect(f"/submissions/{(await submissions.get_submission_uncached(viewer, wanted)).id}")
        return redirect(f"/ops/jobs/{history.job['id']}")

    @routes.get("/ops/audit")
    async def audit(
        request: Request,
        viewer: Operator,  # noqa: ARG001  # checks the permission
        actor: Annotated[str, Query(max_length=64)] = "",
        cursor: str | None = None,
    ) -> Response:
        place = decode_cursor(cursor, [int])
        before = int(place[0] or 0) if place else None
        found = await ops.list_audit_entries(actor=actor, of=None, before=before, limit=_PAGE + 1)
        more = urlencode({"actor": actor, "cursor": encode_cursor([found[_PAGE - 1].id])}) if len(found) > _PAGE else ""
        return await pages.render(request, "audit_log.html", entries=found[:_PAGE], actor=actor, more=more)
