"""Pages: the state and the clock of a contest, and copies of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.domain.contest import ContestPhase, ContestRole
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.states import ContestState
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_lifecycle import ContestLifecycleService
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer
from adjudge.web import contest_form, forms
from adjudge.web.contest_durations import parse_us
from adjudge.web.contest_header import ContestPageRenderer, is_paused
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_settings import TAB, Creator, Member

_VALUES: Final = (
    "reason",
    "starts_at",
    "extra",
    "from_at",
    "to_at",
    "zone",
    "interval",
    "sure",
    "direction",
    "slug",
    "title",
)
_FINAL: Final = frozenset({"cancel", "close-updates"})
"""Actions that cannot be undone; the form must say that one is sure."""

Values = Mapping[str, str]
Action = Callable[[ContestLifecycleService, Viewer, str, Values], Awaitable[object]]


def router(page: ContestPageRenderer, contests: ContestService, lifecycle: ContestLifecycleService) -> APIRouter:
    routes = page_router(page.pages)

    async def render(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await contests.access.find_as(viewer, slug, ContestRole.ORGANISER)
        given = {"error": "", "failed": "", "values": dict.fromkeys(_VALUES, "") | {"zone": "UTC"}, **shown}
        return await page.render(
            request,
            view,
            "contest_lifecycle.html",
            tab=TAB,
            actions=available_actions(view),
            blockers=await lifecycle.list_blockers(viewer, slug) if _may_end(view) else [],
            intervals=await lifecycle.list_intervals(viewer, slug),
            log=await lifecycle.list_state_changes(viewer, slug),
            zones=contest_form.zones(),
            **given,
        )

    @routes.get("/contests/{slug}/settings/lifecycle")
    async def shown(request: Request, viewer: Member, slug: str) -> Response:
        return await render(request, viewer, slug)

    @routes.post("/contests/{slug}/settings/lifecycle/{action}")
    async def change(request: Request, viewer: Member, slug: str, action: str) -> Response:
        if action not in _ACTIONS:
            raise NotFound("page", request.url.path)
        values = {name: (await forms.text(request, name, limit=500)).strip() for name in _VALUES}
        try:
            if action in _FINAL and not values["sure"]:
                raise InvalidInput("sure: confirm that this cannot be undone.", field="sure")
            await _ACTIONS[action](lifecycle, viewer, slug, values)
        except (InvalidInput, Conflict) as error:
            message = contest_form.without_name(error) if isinstance(error, InvalidInput) else error.message
            wrong = {"error": message, "failed": action, "values": values}
            return await render(request, viewer, slug, status=error.http_status, **wrong)
        came_from = await forms.text(request, "from", limit=20)
        path = "jury" if came_from == "jury" else "settings/lifecycle"
        return redirect(f"/contests/{slug}/{path}", done="saved")

    @routes.post("/contests/{slug}/settings/clone")
    async def clone(request: Request, viewer: Creator, slug: str) -> Response:
        values = {name: (await forms.text(request, name, limit=500)).strip() for name in _VALUES}
        try:
            made = await contests.clone(viewer, slug, slug=values["slug"], title=values["title"])
        except (InvalidInput, Conflict) as error:
            wrong = {"error": error.message, "failed": "clone", "values": values | {"zone": "UTC"}}
            return await render(request, viewer, slug, status=error.http_status, **wrong)
        return redirect(f"/contests/{made.contest.slug}/settings", done="contest_created")

    return routes


def _start_at(values: Values) -> int:
    at = contest_form.parse_time(values["starts_at"], values["zone"], "starts_at")
    if at is None:
        raise InvalidInput("starts_at: enter a date and a time.", field="starts_at")
    return at


def _extra_us(values: Values) -> int:
    extra_us = parse_us(values["extra"], "extra")
    if not extra_us:
        raise InvalidInput("extra: enter hours, minutes and seconds such as 0:10:00.", field="extra")
    return -extra_us if values["direction"] == "shorter" else extra_us


async def _remove_interval(service: ContestLifecycleService, viewer: Viewer, name: str, values: Values) -> None:
    from_at = contest_form.parse_time(values["from_at"], values["zone"], "from_at")
    to_at = contest_form.parse_time(values["to_at"], values["zone"], "to_at")
    if from_at is None or to_at is None:
        raise InvalidInput("from_at: enter the begin and the end of the interval.", field="from_at")
    await service.remove_interval(viewer, name, from_at, to_at, values["reason"])


_ACTIONS: Final[Mapping[str, Action]] = {
    "publish": lambda service, viewer, name, _: service.publish(viewer, name),
    "unpublish": lambda service, viewer, name, values: service.unpublish(viewer, name, values["reason"]),
    "cancel": lambda service, viewer, name, values: service.cancel(viewer, name, values["reason"]),
    "start-now": lambda service, viewer, name, _: service.set_start(viewer, name, None),
    "start-at": lambda service, viewer, name, values: service.set_start(viewer, name, _start_at(values)),
    "pause-countdown": lambda service, viewer, name, _: service.pause_countdown(viewer, name),
    "resume-countdown": lambda service, viewer, name, _: service.resume_countdown(viewer, name),
    "pause": lambda service, viewer, name, values: service.pause(viewer, name, values["reason"]),
    "resume": lambda service, viewer, name, _: service.resume(viewer, name),
    "extend": lambda service, viewer, name, values: service.extend(viewer, name, _extra_us(values), values["reason"]),
    "remove-interval": _remove_interval,
    "undo-interval": lambda service, viewer, name, values: service.undo_interval(
        viewer, name, values["interval"], values["reason"]
    ),
    "freeze": lambda service, viewer, name, _: service.freeze_now(viewer, name),
    "end": lambda service, viewer, name, values: service.end_now(viewer, name, values["reason"]),
    "thaw": lambda service, viewer, name, _: service.thaw(viewer, name),
    "finalize": lambda service, viewer, name, _: service.finalize(viewer, name),
    "reopen": lambda service, viewer, name, values: service.reopen(viewer, name, values["reason"]),
    "close-updates": lambda service, viewer, name, _: service.close_updates(viewer, name),
}


def _may_end(view: ContestView) -> bool:
    return view.contest.state is ContestState.PUBLISHED and view.public_phase is not ContestPhase.BEFORE


def available_actions(view: ContestView) -> set[str]:
    """The actions that the state and the clock allow now."""
    state, phase = view.contest.state, view.public_phase
    if state is ContestState.CANCELED or view.contest.end_of_updates_at is not None:
        return set()
    if state is ContestState.FINALIZED:
        return {"reopen", "close-updates"} | _thaw(view)
    found = {"publish"} if state is ContestState.DRAFT else {"cancel"}
    if phase is ContestPhase.BEFORE:
        return found | _before_start(view)
    if state is ContestState.PUBLISHED:
        found |= ({"finalize"} if view.times.has_ended_for_all else set()) | _thaw(view)
    return found | {"extend", "remove-interval"} | _clock(view)


def _before_start(view: ContestView) -> set[str]:
    found = {"start-now", "start-at"}
    if view.contest.state is ContestState.PUBLISHED:
        found.add("unpublish")
    if view.contest.settings.countdown_pause_us is not None:
        return found | {"resume-countdown"}
    return found | ({"pause-countdown"} if view.contest.settings.starts_at is not None else set())


def _clock(view: ContestView) -> set[str]:
    if is_paused(view):
        return {"resume"}
    if view.public_phase not in (ContestPhase.RUNNING, ContestPhase.FROZEN):
        return set()
    can_freeze = view.public_phase is ContestPhase.RUNNING and view.contest.settings.window_us is None
    return {"pause", "end"} | ({"freeze"} if can_freeze else set())


def _thaw(view: ContestView) -> set[str]:
    is_frozen = view.times.timeline.has_freeze and view.contest.thaw_at is None
    return {"thaw"} if is_frozen and view.times.has_ended_for_all else set()
