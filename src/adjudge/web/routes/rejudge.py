"""Pages: rejudge batches with preview, apply and discard."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.services.rejudge import RejudgeService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.web import forms
from adjudge.web.render import PageRenderer, page_router, redirect

Reader = Annotated[Viewer, require_permission(Permission.REJUDGE_READ)]
Writer = Annotated[Viewer, require_permission(Permission.REJUDGE_WRITE)]
Applier = Annotated[Viewer, require_permission(Permission.REJUDGE_APPLY)]
_SHOWN: Final = 500


def router(pages: PageRenderer, languages: Languages, rejudges: RejudgeService) -> APIRouter:
    routes = page_router(pages)
    _add_read_routes(routes, pages, languages, rejudges)
    _add_action_routes(routes, rejudges)

    @routes.post("/rejudge")
    async def create(request: Request, viewer: Writer) -> Response:
        try:
            batch = await _created(languages, rejudges, viewer, request)
        except AdjudgeError as error:
            return await _listed(pages, languages, rejudges, request, viewer, error=error)
        return redirect(f"/rejudge/{batch}")

    return routes


async def _created(languages: Languages, rejudges: RejudgeService, viewer: Viewer, request: Request) -> str:
    given = {name: (await forms.text(request, name, limit=500)).strip() for name in ("problem", "language", "reason")}
    verdict, policy = await forms.text(request, "verdict", limit=10), await forms.text(request, "policy", limit=40)
    revision = await forms.text(request, "revision", limit=20)
    if not given["reason"]:
        raise InvalidInput("reason: required.", field="reason")
    wanted = RejudgeSelection(
        language=languages.get(given["language"]).id if given["language"] else None,
        verdict=Verdict(verdict) if verdict in set(Verdict) else None,
    )
    batch = await rejudges.create_batch(
        viewer,
        wanted,
        problem=given["problem"] or None,
        policy=VerdictPolicy(policy) if policy in set(VerdictPolicy) else VerdictPolicy.LATEST,
        revision=RevisionChoice(revision) if revision in set(RevisionChoice) else RevisionChoice.CURRENT,
        reason=given["reason"],
    )
    return batch.id


async def _listed(
    pages: PageRenderer,
    languages: Languages,
    rejudges: RejudgeService,
    request: Request,
    viewer: Viewer,
    *,
    error: AdjudgeError | None = None,
) -> Response:
    return await pages.render(
        request,
        "rejudge_batches.html",
        status=error.http_status if error else 200,
        batches=await rejudges.list_batches(viewer, before=None, limit=50),
        verdicts=list(Verdict),
        names={language.id: language.name for language in languages},
        policies=list(VerdictPolicy),
        revisions=list(RevisionChoice),
        error=error,
    )


def _add_read_routes(routes: APIRouter, pages: PageRenderer, languages: Languages, rejudges: RejudgeService) -> None:
    @routes.get("/rejudge")
    async def listed(request: Request, viewer: Reader) -> Response:
        return await _listed(pages, languages, rejudges, request, viewer)

    @routes.get("/rejudge/{batch_id}")
    async def one(request: Request, viewer: Reader, batch_id: str) -> Response:
        if (found := await rejudges.resolve_id(viewer, batch_id)) != batch_id:
            return redirect(f"/rejudge/{found}")
        return await pages.render(request, "rejudge_batch.html", **await _state(rejudges, viewer, batch_id))

    @routes.get("/rejudge/{batch_id}/state")
    async def state(request: Request, viewer: Reader, batch_id: str) -> Response:
        return await pages.render(request, "rejudge_state.html", **await _state(rejudges, viewer, batch_id))


async def _state(rejudges: RejudgeService, viewer: Viewer, batch_id: str) -> dict[str, Any]:
    found = await rejudges.preview_batch(viewer, batch_id, after=None, limit=_SHOWN, only_different=True)
    return {
        "batch": found.batch,
        "differences": found.differences,
        "items": found.items,
        "scoreboards": await rejudges.preview_scoreboards(viewer, batch_id) if found.batch.state == "ready" else [],
        "may_apply": viewer.can(Permission.REJUDGE_APPLY) and found.batch.state == "ready",
        "may_cancel": viewer.can(Permission.REJUDGE_WRITE) and found.batch.state == "running",
    }


def _add_action_routes(routes: APIRouter, rejudges: RejudgeService) -> None:
    @routes.post("/rejudge/{batch_id}/apply")
    async def apply(request: Request, viewer: Applier, batch_id: str) -> Response:
        skip = "yes" in await forms.checked_values(request, "skip_changed")
        await rejudges.apply_batch(viewer, batch_id, skip_changed=skip)
        return redirect(f"/rejudge/{batch_id}", done="applied")

    @routes.post("/rejudge/{batch_id}/discard")
    async def discard(request: Request, viewer: Applier, batch_id: str) -> Response:
        await rejudges.discard_batch(viewer, batch_id, await forms.text(request, "reason", limit=500))
        return redirect(f"/rejudge/{batch_id}", done="discarded")

    @routes.post("/rejudge/{batch_id}/cancel")
    async def cancel(request: Request, viewer: Writer, batch_id: str) -> Response:
        await rejudges.cancel_batch(viewer, batch_id, await forms.text(request, "reason", limit=500))
        return redirect(f"/rejudge/{batch_id}", done="canceled")
