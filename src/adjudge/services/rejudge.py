"""Rejudge batches: create, preview, apply, discard."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge.cache.policies import CacheEntity
from adjudge.cache.two_tier import TwoTierCache
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id, parse_number
from adjudge.schema.scoreboard import ScoreboardPreviewRead
from adjudge.services.admission import AdmissionController
from adjudge.services.rejudge_scoreboards import preview_scoreboards
from adjudge.services.submission_access import find_batch_contests, find_hidden_contests_of_batch
from adjudge.services.submit import SubmissionRulesCache
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging import rejudge
from adjudge.store.judging.models import (
    NewRejudgeBatch,
    RejudgeApplyResult,
    RejudgeBatchRow,
    RejudgeItemRow,
    RejudgeSelection,
    RevisionChoice,
    VerdictChangeCount,
    VerdictPolicy,
)
from adjudge.store.judging.queries import MAX_ID
from adjudge.store.judging.rejudge import RejudgeCommands


@dataclass(frozen=True, slots=True)
class RejudgePreview:
    """Preview of applying a batch."""

    batch: RejudgeBatchRow
    differences: list[VerdictChangeCount]
    items: list[RejudgeItemRow]


@dataclass(frozen=True, slots=True)
class RejudgeService:
    """Rejudge batches: create, preview, apply, discard."""

    database: Database
    jobs: JobCommands
    cache: TwoTierCache
    admission: AdmissionController
    rules: SubmissionRulesCache
    new_id: IdFactory = new_id

    async def create_batch(
        self,
        viewer: Viewer,
        selection: RejudgeSelection,
        *,
        problem: str | None,
        policy: VerdictPolicy,
        revision: RevisionChoice,
        reason: str,
    ) -> RejudgeBatchRow:
        """Create a batch. An empty filter is rejected, because rejudging everything is rarely intended."""
        if problem is not None:
            rules = await self.rules.find_problem(problem)
            if rules is None:
                raise NotFound("problem", problem)
            selection = replace(selection, problem_id=rules.id)
        if selection == RejudgeSelection():
            raise InvalidInput(
                "filter: at least one criterion is required (problem, contest, user, ids, …).", field="filter"
            )
        await self.admission.check_capacity(viewer)
        batch_id = self.new_id()
        batch = NewRejudgeBatch(batch_id, viewer.id, selection, policy, revision, reason)
        await self.database.transact(lambda tx: RejudgeCommands(self.jobs, self.new_id).create(tx, batch))
        return await self.get_batch(viewer, batch_id)

    async def resolve_id(self, viewer: Viewer, reference: str) -> str:
        """The id of a batch that is given by id or number."""
        number = parse_number(reference)
        if number is None:
            return reference
        batch_id = await self.database.read(lambda tx: rejudge.find_id(tx, number))
        try:
            return (await self.get_batch(viewer, batch_id or "")).id
        except NotFound:
            raise NotFound("rejudge_batch", reference) from None

    async def get_batch(self, viewer: Viewer, batch_id: str) -> RejudgeBatchRow:
        """A batch; one with submissions of a contest that is not over is missing for those outside of its jury."""
        return await self.database.read(lambda tx: _find(tx, viewer, batch_id))

    async def list_batches(self, viewer: Viewer, *, before: str | None, limit: int) -> list[RejudgeBatchRow]:
        """The batches that the viewer may see, newest first."""

        async def read(tx: Tx) -> list[RejudgeBatchRow]:
            hidden = await find_batch_contests(tx, viewer)
            return await rejudge.page(tx, before=before or MAX_ID, limit=limit, hidden_contests=hidden)

        return await self.database.read(read)

    async def preview_batch(
        self, viewer: Viewer, batch_id: str, *, after: str | None, limit: int, only_different: bool
    ) -> RejudgePreview:
        """The effect of applying a batch, read in one snapshot; without contests that the viewer may not see all of."""

        async def read(tx: Tx) -> RejudgePreview:
            batch = await _find(tx, viewer, batch_id)
            hidden = await find_hidden_contests_of_batch(tx, viewer, batch_id)
            items = await rejudge.items(
                tx,
                batch_id,
                after=after or "",
                limit=limit,
                only_different=only_different,
                hidden_contests=hidden,
            )
            counts = await rejudge.count_verdict_changes(tx, batch_id, hidden_contests=hidden)
            return RejudgePreview(batch, counts, items)

        return await self.database.read(read)

    async def preview_scoreboards(self, viewer: Viewer, batch_id: str) -> list[ScoreboardPreviewRead]:
        """How applying a batch would change the scoreboards of contests."""
        return await preview_scoreboards(self.database, viewer, batch_id)

    async def apply_batch(
        self, viewer: Viewer, batch_id: str, *, skip_changed: bool
    ) -> tuple[RejudgeBatchRow, RejudgeApplyResult]:
        """Apply the new verdicts to the submissions, in one transaction."""
        operations = RejudgeCommands(self.jobs, self.new_id, listener=CONTEST_LISTENER)
        applied = await self.database.transact(
            lambda tx: operations.apply(tx, batch_id, actor=viewer.id, skip_changed=skip_changed)
        )
        await self._invalidate_cached_status(batch_id)
        return await self.get_batch(viewer, batch_id), applied

    async def _invalidate_cached_status(self, batch_id: str) -> None:
        """Drop cached statuses of the submissions in this process; other processes' entries expire within seconds."""
        items = await self.database.read(
            lambda tx: rejudge.items(tx, batch_id, after="", limit=rejudge.MAX_SUBMISSIONS, only_different=False)
        )
        for item in items:
            self.cache.invalidate(CacheEntity.SUBMISSION_STATUS, item.submission_id)

    async def discard_batch(self, viewer: Viewer, batch_id: str, reason: str) -> RejudgeBatchRow:
        """Discard a batch; the verdicts stay."""
        await self.database.transact(
            lambda tx: RejudgeCommands(self.jobs).discard(tx, batch_id, actor=viewer.id, reason=reason)
        )
        return await self.get_batch(viewer, batch_id)

    async def cancel_batch(self, viewer: Viewer, batch_id: str, reason: str) -> RejudgeBatchRow:
        """Cancel a batch whose judge runs have not all finished."""
        await self.database.transact(
            lambda tx: RejudgeCommands(self.jobs).cancel(tx, batch_id, actor=viewer.id, reason=reason)
        )
        return await self.get_batch(viewer, batch_id)


async def _find(tx: Tx, viewer: Viewer, batch_id: str) -> RejudgeBatchRow:
    batch = await rejudge.find(tx, batch_id)
    if await find_batch_contests(tx, viewer, batch_id=batch_id):
        raise NotFound("rejudge_batch", batch_id)
    return batch
