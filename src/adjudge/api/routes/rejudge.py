"""Rejudge batches: create, preview, apply or discard."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.rejudge import RejudgeApplyRequest, RejudgeCreate
from adjudge.api.schema.submissions import ReasonRequest
from adjudge.domain.permissions import Permission
from adjudge.domain.timestamps import parse_timestamp
from adjudge.judge.languages import Languages
from adjudge.schema.rejudge import (
    RejudgeApplyRead,
    RejudgeBatchPage,
    RejudgeBatchRead,
    RejudgeItemRead,
    RejudgePreviewRead,
    VerdictChangeCountRead,
)
from adjudge.schema.scoreboard import ScoreboardPreviewList
from adjudge.services.rejudge import RejudgeService
from adjudge.services.viewer import Viewer
from adjudge.store.judging.models import RejudgeSelection

Reader = Annotated[Viewer, require_permission(Permission.REJUDGE_READ)]
Writer = Annotated[Viewer, require_permission(Permission.REJUDGE_WRITE)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Cursor = Annotated[str | None, Query(max_length=2048)]


def router(languages: Languages, rejudges: RejudgeService) -> APIRouter:
    routes = api_router("rejudge", "/rejudge-batches")

    @routes.post(
        "",
        status_code=202,
        summary="Create a rejudge batch",
        description="Judges the submissions again. Verdicts change only when the batch is applied.",
    )
    async def create(body: RejudgeCreate, viewer: Writer) -> RejudgeBatchRead:
        asked = body.filter
        wanted = RejudgeSelection(
            ids=tuple(asked.ids),
            contest_id=asked.contest,
            user_id=asked.user,
            language=languages.get(asked.language).id if asked.language else None,
            verdict=asked.verdict,
            since_us=parse_timestamp(asked.since, "filter.since") if asked.since else None,
            until_us=parse_timestamp(asked.until, "filter.until") if asked.until else None,
        )
        batch = await rejudges.create_batch(
            viewer,
            wanted,
            problem=asked.problem,
            policy=body.policy,
            revision=body.revision,
            reason=body.reason,
        )
        return RejudgeBatchRead.of(batch)

    @routes.get("", summary="List rejudge batches, newest first")
    async def page(viewer: Reader, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> RejudgeBatchPage:
        place = decode_cursor(cursor, [str])
        rows = await rejudges.list_batches(viewer, before=str(place[0]) if place else None, limit=limit + 1)
        more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
        return RejudgeBatchPage(items=[RejudgeBatchRead.of(row) for row in rows[:limit]], next=more)

    @routes.get("/{batch_id}", summary="Get a rejudge batch and its progress, by ID or number")
    async def read(batch_id: str, viewer: Reader) -> RejudgeBatchRead:
        found = await rejudges.resolve_id(viewer, batch_id)
        return RejudgeBatchRead.of(await rejudges.get_batch(viewer, found))

    @routes.get("/{batch_id}/preview", summary="Preview the verdict changes of a batch")
    async def preview(
        batch_id: str,
        viewer: Reader,
        only_different: bool = True,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> RejudgePreviewRead:
        place = decode_cursor(cursor, [str])
        found = await rejudges.preview_batch(
            viewer,
            batch_id,
            after=str(place[0]) if place else None,
            limit=limit + 1,
            only_different=only_different,
        )
        more = encode_cursor([found.items[limit - 1].submission_id]) if len(found.items) > limit else None
        return RejudgePreviewRead(
            batch=RejudgeBatchRead.of(found.batch),
            differences=[VerdictChangeCountRead.of(item) for item in found.differences],
            items=[RejudgeItemRead.of(item) for item in found.items[:limit]],
            next=more,
        )

    @routes.get(
        "/{batch_id}/scoreboards",
        summary="Preview the changes of scoreboards",
        description="Ranks, first solves and awards of the contests concerned, as they would be if it were applied.",
    )
    async def scoreboards(batch_id: str, viewer: Reader) -> ScoreboardPreviewList:
        found = await rejudges.resolve_id(viewer, batch_id)
        await rejudges.get_batch(viewer, found)
        return ScoreboardPreviewList(items=await rejudges.preview_scoreboards(viewer, found))

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
        viewer: Annotated[Viewer, require_permission(Permission.REJUDGE_APPLY)],
        body: RejudgeApplyRequest | None = None,
    ) -> RejudgeApplyRead:
        skip = body.skip_changed if body else False
        batch, done = await rejudges.apply_batch(viewer, batch_id, skip_changed=skip)
        return RejudgeApplyRead(
            batch=RejudgeBatchRead.of(batch), changed=done.changed, kept=done.kept, skipped=done.skipped
        )

    @routes.post("/{batch_id}:discard", summary="Discard a rejudge batch")
    async def discard(batch_id: str, viewer: Writer, body: ReasonRequest | None = None) -> RejudgeBatchRead:
        return RejudgeBatchRead.of(await rejudges.discard_batch(viewer, batch_id, body.reason if body else ""))

    @routes.post("/{batch_id}:cancel", summary="Cancel a running rejudge batch")
    async def cancel(batch_id: str, viewer: Writer, body: ReasonRequest | None = None) -> RejudgeBatchRead:
        return RejudgeBatchRead.of(await rejudges.cancel_batch(viewer, batch_id, body.reason if body else ""))

    return routes
