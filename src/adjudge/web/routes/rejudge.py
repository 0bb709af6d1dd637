"""Rejudging with care: make a batch, look at every difference, then apply or discard it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.actions import rejudging
from adjudge.api.asking import needs
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.domain.access import Permission
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.verdict import Verdict
from adjudge.store.rejudge import Policy, Revision, Wanted
from adjudge.web import forms
from adjudge.web.render import Pages, see_other
from adjudge.web.routes.router import page_router

Reader = Annotated[Viewer, needs(Permission.REJUDGE_READ)]
Writer = Annotated[Viewer, needs(Permission.REJUDGE_WRITE)]
Applier = Annotated[Viewer, needs(Permission.REJUDGE_APPLY)]
_SHOWN: Final = 500


def router(pages: Pages, parts: Parts) -> APIRouter:
    """Routes of rejudging."""
    routes = page_router(pages)
    _reading(routes, pages, parts)
    _deciding(routes, parts)

    @routes.post("/rejudge")
    async def create(request: Request, viewer: Writer) -> Response:
        try:
            batch = await _created(parts, viewer, request)
        except AdjudgeError as error:
            return await _listed(pages, parts, request, error)
        return see_other(f"/rejudge/{batch}")

    return routes


async def _created(parts: Parts, viewer: Viewer, request: Request) -> str:
    given = {name: (await forms.text(request, name, at_most=500)).strip() for name in ("problem", "language", "reason")}
    verdict, policy = await forms.text(request, "verdict", at_most=10), await forms.text(request, "policy", at_most=40)
    revision = await forms.text(request, "revision", at_most=20)
    if not given["reason"]:
        raise InvalidInput("reason: required.", field="reason")
    wanted = Wanted(
        language=parts.languages.get(given["language"]).id if given["language"] else None,
        verdict=Verdict(verdict) if verdict in set(Verdict) else None,
    )
    batch = await rejudging.create(
        parts,
        viewer,
        wanted,
        problem=given["problem"] or None,
        policy=Policy(policy) if policy in set(Policy) else Policy.LATEST,
        revision=Revision(revision) if revision in set(Revision) else Revision.CURRENT,
        reason=given["reason"],
    )
    return batch.id


async def _listed(pages: Pages, parts: Parts, request: Request, error: AdjudgeError | None = None) -> Response:
    return await pages.show(
        request,
        "rejudge.html",
        status=error.http_status if error else 200,
        batches=await rejudging.page(parts, before=None, at_most=50),
        verdicts=list(Verdict),
        names={language.id: language.name for language in parts.languages},
        policies=list(Policy),
        revisions=list(Revision),
        error=error,
    )


def _reading(routes: APIRouter, pages: Pages, parts: Parts) -> None:
    @routes.get("/rejudge")
    async def listed(request: Request, viewer: Reader) -> Response:  # noqa: ARG001  # asked for by its point
        return await _listed(pages, parts, request)

    @routes.get("/rejudge/{batch_id}")
    async def one(request: Request, viewer: Reader, batch_id: str) -> Response:
        return await pages.show(request, "rejudge_batch.html", **await _state(parts, viewer, batch_id))

    @routes.get("/rejudge/{batch_id}/state")
    async def state(request: Request, viewer: Reader, batch_id: str) -> Response:
        return await pages.show(request, "rejudge_state.html", **await _state(parts, viewer, batch_id))


async def _state(parts: Parts, viewer: Viewer, batch_id: str) -> dict[str, Any]:
    found = await rejudging.preview(parts, batch_id, after=None, at_most=_SHOWN, only_different=True)
    return {
        "batch": found.batch,
        "differences": found.differences,
        "items": found.items,
        "may_apply": viewer.may(Permission.REJUDGE_APPLY) and found.batch.state == "ready",
        "may_cancel": viewer.may(Permission.REJUDGE_WRITE) and found.batch.state == "running",
    }


def _deciding(routes: APIRouter, parts: Parts) -> None:
    @routes.post("/rejudge/{batch_id}/apply")
    async def apply(request: Request, viewer: Applier, batch_id: str) -> Response:
        skip = "yes" in await forms.choices(request, "skip_changed")
        await rejudging.apply(parts, viewer, batch_id, skip_changed=skip)
        return see_other(f"/rejudge/{batch_id}", done="applied")

    @routes.post("/rejudge/{batch_id}/discard")
    async def discard(request: Request, viewer: Applier, batch_id: str) -> Response:
        await rejudging.discard(parts, viewer, batch_id, await forms.text(request, "reason", at_most=500))
        return see_other(f"/rejudge/{batch_id}", done="discarded")

    @routes.post("/rejudge/{batch_id}/cancel")
    async def cancel(request: Request, viewer: Writer, batch_id: str) -> Response:
        await rejudging.cancel(parts, viewer, batch_id, await forms.text(request, "reason", at_most=500))
        return see_other(f"/rejudge/{batch_id}", done="canceled")
