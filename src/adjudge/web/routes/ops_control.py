"""The page of operators that pauses judging and controls workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.services.judging_control import JudgingControlService, WorkerAction
from adjudge.services.ops import OpsService
from adjudge.services.viewer import Viewer
from adjudge.store.ops.judging_pauses import PauseScope
from adjudge.web import forms
from adjudge.web.render import PageRenderer, page_router, redirect

Operator = Annotated[Viewer, require_permission(Permission.OPS_CONTROL)]
_SCOPES = ("all", "language", "problem")
_ACTIONS = ("pause", "resume", "drain")
_FIELDS = ("scope", "language", "problem", "reason", "do", "worker", "action", "worker_reason")


def router(pages: PageRenderer, ops: OpsService, control: JudgingControlService) -> APIRouter:
    routes = page_router(pages)

    async def show(
        request: Request, typed: Mapping[str, str] | None = None, error: AdjudgeError | None = None
    ) -> Response:
        pauses = await control.list_pauses()
        return await pages.render(
            request,
            "ops_control.html",
            status=error.http_status if error else 200,
            typed={**dict.fromkeys(_FIELDS, ""), **(typed or {})},
            error=error,
            pauses=pauses,
            names=await ops.user_names([pause.row.actor for pause in pauses]),
            workers=await ops.list_workers(),
            controls=await control.list_worker_controls(),
            judged_languages=sorted(control.languages, key=lambda language: language.name),
        )

    @routes.get("/ops/control")
    async def overview(request: Request, viewer: Operator) -> Response:  # noqa: ARG001  # checks the permission
        return await show(request)

    @routes.post("/ops/control/judging")
    async def judging(request: Request, viewer: Operator) -> Response:
        typed = {name: (await forms.text(request, name, limit=500)).strip() for name in _FIELDS[:5]}
        subject = typed.get(typed["scope"], "")
        try:
            if typed["scope"] not in _SCOPES:
                raise InvalidInput("scope: choose what to pause.", field="scope")
            change = control.resume if typed["do"] == "resume" else control.pause
            await change(viewer.id, cast("PauseScope", typed["scope"]), subject, reason=typed["reason"])
        except AdjudgeError as error:
            return await show(request, typed, error)
        return redirect("/ops/control", done="resumed" if typed["do"] == "resume" else "paused")

    @routes.post("/ops/control/workers")
    async def worker(request: Request, viewer: Operator) -> Response:
        typed = {name: (await forms.text(request, name, limit=500)).strip() for name in _FIELDS[5:]}
        try:
            if typed["action"] not in _ACTIONS:
                raise InvalidInput("action: choose pause, resume or drain.", field="action")
            action = cast("WorkerAction", typed["action"])
            await control.control_worker(viewer.id, typed["worker"], action, reason=typed["worker_reason"])
        except AdjudgeError as error:
            return await show(request, typed, error)
        return redirect("/ops/control", done="ordered")

    return routes
