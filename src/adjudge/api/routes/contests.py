"""Contests: settings, problems, roles and the lifecycle."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.contests import (
    ContestCloneRequest,
    ContestCreate,
    ContestExtension,
    ContestProblemsUpdate,
    ContestReason,
    ContestRoleBody,
    ContestStart,
    ContestUpdate,
    RemovedIntervalCreate,
    changed_settings,
    new_settings,
    read_contest,
    read_contest_detail,
    read_problem,
    to_us,
)
from adjudge.domain.contest import ContestRole
from adjudge.domain.permissions import Permission
from adjudge.domain.timestamps import parse_timestamp
from adjudge.schema.contests import (
    ContestDetail,
    ContestLog,
    ContestPage,
    ContestProblemList,
    ContestRoleList,
    ContestRoleRead,
    ContestStateChangeRead,
    FinalizeCheck,
    RemovedIntervalList,
    RemovedIntervalRead,
)
from adjudge.services.contest_lifecycle import ContestLifecycleService
from adjudge.services.contests import ContestService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
"""Organisers and judges are ordinary users with a role in the contest; the service checks it."""
Creator = Annotated[Viewer, require_permission(Permission.CONTEST_CREATE)]
Admin = Annotated[Viewer, require_permission(Permission.CONTEST_ADMIN)]


def router(contests: ContestService, lifecycle: ContestLifecycleService) -> APIRouter:
    """All routes of the settings and the lifecycle of contests."""
    routes = api_router("contests", "/contests")
    _add_settings_routes(routes, contests)
    _add_role_routes(routes, contests)
    _add_state_routes(routes, lifecycle)
    _add_clock_routes(routes, lifecycle)
    _add_interval_routes(routes, lifecycle)
    return routes


def _add_settings_routes(routes: APIRouter, contests: ContestService) -> None:
    @routes.get("", summary="List contests, newest first")
    async def page(
        viewer: Reader,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ContestPage:
        position = decode_cursor(cursor, [str])
        before = str(position[0]) if position else None
        views, after = await contests.list_contests(viewer, before=before, limit=limit)
        return ContestPage(items=[read_contest(view) for view in views], next=encode_cursor([after]) if after else None)

    @routes.post("", status_code=201, summary="Create a contest", description="It is a draft; you are its organiser.")
    async def create(body: ContestCreate, viewer: Creator) -> ContestDetail:
        return read_contest_detail(await contests.create(viewer, body.slug, new_settings(body)))

    @routes.get("/{contest}", summary="Get a contest")
    async def read(contest: str, viewer: Reader) -> ContestDetail:
        return read_contest_detail(await contests.access.find(viewer, contest))

    @routes.patch("/{contest}", summary="Change settings of a contest")
    async def update(contest: str, body: ContestUpdate, viewer: Member) -> ContestDetail:
        changed = await contests.update(
            viewer, contest, lambda before: changed_settings(before, body), slug=body.slug, version=body.version
        )
        return read_contest_detail(changed)

    @routes.post("/{contest}:clone", status_code=201, summary="Copy a contest into a new draft")
    async def clone(contest: str, body: ContestCloneRequest, viewer: Creator) -> ContestDetail:
        return read_contest_detail(await contests.clone(viewer, contest, slug=body.slug, title=body.title))

    @routes.get(
        "/{contest}/problems",
        summary="List the problems of a contest",
        description="Empty before the start, and for visitors unless the contest shows its problems to everybody.",
    )
    async def problems(contest: str, viewer: Reader) -> ContestProblemList:
        rows = await contests.list_problems(await contests.access.find(viewer, contest))
        return ContestProblemList(items=[read_problem(row) for row in rows])

    @routes.put("/{contest}/problems", summary="Replace the problems of a contest")
    async def save_problems(contest: str, body: ContestProblemsUpdate, viewer: Member) -> ContestProblemList:
        specs = [item.spec() for item in body.problems]
        saved = await contests.save_problems(viewer, contest, specs, version=body.version)
        return ContestProblemList(items=[read_problem(row) for row in saved.problems], warnings=saved.warnings)


def _add_role_routes(routes: APIRouter, contests: ContestService) -> None:
    @routes.get("/{contest}/roles", summary="List the roles in a contest")
    async def roles(contest: str, viewer: Member) -> ContestRoleList:
        return ContestRoleList(items=[ContestRoleRead.of(row) for row in await contests.list_roles(viewer, contest)])

    @routes.post("/{contest}/roles", status_code=204, summary="Grant a role", response_class=Response)
    async def grant(contest: str, body: ContestRoleBody, viewer: Member) -> Response:
        await contests.grant_role(viewer, contest, body.user, body.role)
        return Response(status_code=204)

    @routes.delete("/{contest}/roles/{user}/{role}", status_code=204, summary="Revoke a role", response_class=Response)
    async def revoke(contest: str, user: str, role: ContestRole, viewer: Member) -> Response:
        await contests.revoke_role(viewer, contest, user, role)
        return Response(status_code=204)


def _add_state_routes(routes: APIRouter, lifecycle: ContestLifecycleService) -> None:
    @routes.post("/{contest}:publish", summary="Publish a draft", description="It needs a problem and a start.")
    async def publish(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.publish(viewer, contest))

    @routes.post(
        "/{contest}:unpublish",
        summary="Turn a published contest into a draft",
        description="Possible until 30 seconds before the start.",
    )
    async def unpublish(contest: str, body: ContestReason, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.unpublish(viewer, contest, body.reason))

    @routes.post("/{contest}:cancel", summary="Cancel a contest", description="This is final.")
    async def cancel(contest: str, body: ContestReason, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.cancel(viewer, contest, body.reason))

    @routes.get("/{contest}/blockers", summary="List what prevents finalization")
    async def blockers(contest: str, viewer: Member) -> FinalizeCheck:
        return FinalizeCheck(blockers=await lifecycle.list_blockers(viewer, contest))

    @routes.post(
        "/{contest}:finalize",
        summary="Make the results official",
        description="Fails with 409 and the list of what is unjudged, failed or open.",
    )
    async def finalize(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.finalize(viewer, contest))

    @routes.post("/{contest}:reopen", summary="Take back the finalization")
    async def reopen(contest: str, body: ContestReason, viewer: Admin) -> ContestDetail:
        return read_contest_detail(await lifecycle.reopen(viewer, contest, body.reason))

    @routes.post(
        "/{contest}:close-updates",
        summary="Declare that nothing changes any more",
        description="The contest must be finalized and thawed. Afterwards the database refuses every change of it.",
    )
    async def close_updates(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.close_updates(viewer, contest))

    @routes.get("/{contest}/log", summary="List the changes of the state")
    async def log(contest: str, viewer: Member) -> ContestLog:
        changes = await lifecycle.list_state_changes(viewer, contest)
        return ContestLog(items=[ContestStateChangeRead.of(change) for change in changes])


def _add_clock_routes(routes: APIRouter, lifecycle: ContestLifecycleService) -> None:
    @routes.post("/{contest}:start", summary="Set the start, or start now")
    async def start(contest: str, body: ContestStart, viewer: Member) -> ContestDetail:
        starts_at = None if body.starts_at is None else parse_timestamp(body.starts_at, "starts_at")
        return read_contest_detail(await lifecycle.set_start(viewer, contest, starts_at))

    @routes.post("/{contest}:pause-countdown", summary="Pause the countdown before the start")
    async def pause_countdown(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.pause_countdown(viewer, contest))

    @routes.post("/{contest}:resume-countdown", summary="Continue the countdown")
    async def resume_countdown(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.resume_countdown(viewer, contest))

    @routes.post("/{contest}:extend", summary="Change the duration")
    async def extend(contest: str, body: ContestExtension, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.extend(viewer, contest, to_us(body.extra_sec) or 0, body.reason))

    @routes.post("/{contest}:end", summary="End a running contest now")
    async def end(contest: str, body: ContestReason, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.end_now(viewer, contest, body.reason))

    @routes.post("/{contest}:pause", summary="Pause a running contest", description="Its clock stops.")
    async def pause(contest: str, body: ContestReason, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.pause(viewer, contest, body.reason))

    @routes.post("/{contest}:resume", summary="Resume a paused contest")
    async def resume(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.resume(viewer, contest))

    @routes.post("/{contest}:freeze", summary="Freeze the public scoreboard now")
    async def freeze(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.freeze_now(viewer, contest))

    @routes.post("/{contest}:thaw", summary="Thaw the scoreboard")
    async def thaw(contest: str, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.thaw(viewer, contest))


def _add_interval_routes(routes: APIRouter, lifecycle: ContestLifecycleService) -> None:
    @routes.get("/{contest}/intervals", summary="List removed intervals")
    async def intervals(contest: str, viewer: Member) -> RemovedIntervalList:
        rows = await lifecycle.list_intervals(viewer, contest)
        return RemovedIntervalList(items=[RemovedIntervalRead.of(row) for row in rows])

    @routes.post("/{contest}/intervals", status_code=201, summary="Remove an interval from the contest clock")
    async def remove_interval(contest: str, body: RemovedIntervalCreate, viewer: Member) -> ContestDetail:
        from_at = parse_timestamp(body.from_at, "from_at")
        to_at = None if body.to_at is None else parse_timestamp(body.to_at, "to_at")
        return read_contest_detail(await lifecycle.remove_interval(viewer, contest, from_at, to_at, body.reason))

    @routes.post("/{contest}/intervals/{interval_id}:undo", summary="Let the time of an interval count again")
    async def undo_interval(contest: str, interval_id: str, body: ContestReason, viewer: Member) -> ContestDetail:
        return read_contest_detail(await lifecycle.undo_interval(viewer, contest, interval_id, body.reason))
