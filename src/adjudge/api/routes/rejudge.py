"""Rejudging: make a batch, look at the differences, then apply or discard it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.api.actions import rejudging
from adjudge.api.asking import needs
from adjudge.api.moments import parse_moment
from adjudge.api.paging import DEFAULT_LIMIT, MAX_LIMIT, cursor_of, place_of
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.api.wire.rejudge import (
    ApplyRejudge,
    NewRejudge,
    RejudgeApplied,
    RejudgeBatch,
    RejudgeDifference,
    RejudgeItem,
    RejudgePage,
    RejudgePreview,
)
from adjudge.api.wire.submissions import Reason
from adjudge.domain.access import Permission
from adjudge.store.rejudge import Wanted

Reader = Annotated[Viewer, needs(Permission.REJUDGE_READ)]
Writer = Annotated[Viewer, needs(Permission.REJUDGE_WRITE)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Cursor = Annotated[str | None, Query(max_length=2048)]


def router(parts: Parts) -> APIRouter:
    """Everything about rejudge batches."""
    routes = APIRouter(prefix="/rejudge-batches", tags=["rejudge"])

    @routes.post(
        "",
        status_code=202,
        summary="Create a rejudge batch",
        description="Judges the submissions again. Verdicts change only when the batch is applied.",
    )
    async def create(body: NewRejudge, viewer: Writer) -> RejudgeBatch:
        asked = body.filter
        wanted = Wanted(
            ids=tuple(asked.ids),
            contest_id=asked.contest,
            user_id=asked.user,
            language=parts.languages.get(asked.language).id if asked.language else None,
            verdict=asked.verdict,
            since=parse_moment(asked.since, "filter.since") if asked.since else None,
            until=parse_moment(asked.until, "filter.until") if asked.until else None,
        )
        batch = await rejudging.create(
            parts,
            viewer,
            wanted,
            problem=asked.problem,
            policy=body.policy,
            revision=body.revision,
            reason=body.reason,
        )
        return RejudgeBatch.of(batch)

    @routes.get("", summary="List rejudge batches, newest first")
    async def page(viewer: Reader, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> RejudgePage:  # noqa: ARG001  # asked for by its point
        place = place_of(cursor, [str])
        rows = await rejudging.page(parts, before=str(place[0]) if place else None, at_most=limit + 1)
        more = cursor_of([rows[limit - 1].id]) if len(rows) > limit else None
        return RejudgePage(items=[RejudgeBatch.of(row) for row in rows[:limit]], next=more)

    @routes.get("/{batch_id}", summary="Get a rejudge batch and its progress")
    async def read(batch_id: str, viewer: Reader) -> RejudgeBatch:  # noqa: ARG001  # asked for by its point
        return RejudgeBatch.of(await rejudging.read(parts, batch_id))

    @routes.get("/{batch_id}/preview", summary="Preview the verdict changes of a batch")
    async def preview(
        batch_id: str,
        viewer: Reader,  # noqa: ARG001  # asked for by its point
        only_different: bool = True,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> RejudgePreview:
        place = place_of(cursor, [str])
        found = await rejudging.preview(
            parts,
            batch_id,
            after=str(place[0]) if place else None,
            at_most=limit + 1,
            only_different=only_different,
        )
        more = cursor_of([found.items[limit - 1].submission_id]) if len(found.items) > limit else None
        return RejudgePreview(
            batch=RejudgeBatch.of(found.batch),
            differences=[RejudgeDifference(**asdict(item)) for item in found.differences],
            items=[RejudgeItem(**asdict(item)) for item in found.items[:limit]],
            next=more,
        )

    @routes.post(
        "/{batch_id}:apply",
        summary="Apply a rejudge batch",
        description=(
            "All verdicts change in one transaction. Fails with CONFLICT if a submission changed "
            "since the batch was created."
        ),
    )
    async def apply(
        batch_id: str,
        viewer: Annotated[Viewer, needs(Permission.REJUDGE_APPLY)],
        body: ApplyRejudge | None = None,
    ) -> RejudgeApplied:
        skip = body.skip_changed if body else False
        batch, done = await rejudging.apply(parts, viewer, batch_id, skip_changed=skip)
        return RejudgeApplied(batch=RejudgeBatch.of(batch), changed=done.changed, kept=done.kept, skipped=done.skipped)

    @routes.post("/{batch_id}:discard", summary="Discard a rejudge batch")
    async def discard(batch_id: str, viewer: Writer, body: Reason | None = None) -> RejudgeBatch:
        return RejudgeBatch.of(await rejudging.discard(parts, viewer, batch_id, body.reason if body else ""))

    @routes.post("/{batch_id}:cancel", summary="Cancel a running rejudge batch")
    async def cancel(batch_id: str, viewer: Writer, body: Reason | None = None) -> RejudgeBatch:
        return RejudgeBatch.of(await rejudging.cancel(parts, viewer, batch_id, body.reason if body else ""))

    return routes
