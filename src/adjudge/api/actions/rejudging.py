"""Rejudge batches: made, looked at, applied or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.cache.entities import Entity
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.store import Tx, rejudge
from adjudge.store.reads import AFTER_ALL
from adjudge.store.rejudge import Applied, Batch, Difference, Item, NewBatch, Policy, Rejudging, Revision, Wanted


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of applying a batch."""

    batch: Batch
    differences: list[Difference]
    items: list[Item]


async def create(
    parts: Parts,
    viewer: Viewer,
    wanted: Wanted,
    *,
    problem: str | None,
    policy: Policy,
    revision: Revision,
    reason: str,
) -> Batch:
    """Start a batch. A filter that says nothing is refused: everything is never meant."""
    if problem is not None:
        found = await parts.desk.rulebook.find(problem)
        if found is None:
            raise NotFound("problem", problem)
        wanted = replace(wanted, problem_id=found.id)
    if wanted == Wanted():
        raise InvalidInput(
            "filter: at least one criterion is required (problem, contest, user, ids, …).", field="filter"
        )
    await parts.gate.check_room(viewer)
    batch_id = parts.mint()
    batch = NewBatch(batch_id, viewer.id, wanted, policy, revision, reason)
    await parts.database.transact(lambda tx: Rejudging(parts.jobs, parts.mint).create(tx, batch))
    return await read(parts, batch_id)


async def read(parts: Parts, batch_id: str) -> Batch:
    """One batch."""
    return await parts.database.read(lambda tx: rejudge.find(tx, batch_id))


async def page(parts: Parts, *, before: str | None, at_most: int) -> list[Batch]:
    """Batches, the newest first."""
    return await parts.database.read(lambda tx: rejudge.page(tx, before=before or AFTER_ALL, at_most=at_most))


async def preview(parts: Parts, batch_id: str, *, after: str | None, at_most: int, only_different: bool) -> Preview:
    """What applying would do, in one snapshot."""

    async def look(tx: Tx) -> Preview:
        batch = await rejudge.find(tx, batch_id)
        items = await rejudge.items(tx, batch_id, after=after or "", at_most=at_most, only_different=only_different)
        return Preview(batch, await rejudge.differences(tx, batch_id), items)

    return await parts.database.read(look)


async def apply(parts: Parts, viewer: Viewer, batch_id: str, *, skip_changed: bool) -> tuple[Batch, Applied]:
    """Let the new verdicts be the submissions', all at once."""
    operations = Rejudging(parts.jobs, parts.mint)
    applied = await parts.database.transact(
        lambda tx: operations.apply(tx, batch_id, actor=viewer.id, skip_changed=skip_changed)
    )
    await _forget_statuses(parts, batch_id)
    return await read(parts, batch_id), applied


async def _forget_statuses(parts: Parts, batch_id: str) -> None:
    """Drop what this process remembers of the submissions; elsewhere it ends by its time, within seconds."""
    items = await parts.database.read(
        lambda tx: rejudge.items(tx, batch_id, after="", at_most=rejudge.MOST, only_different=False)
    )
    for item in items:
        parts.cache.drop(Entity.SUBMISSION_STATUS, item.submission_id)


async def discard(parts: Parts, viewer: Viewer, batch_id: str, reason: str) -> Batch:
    """Let everything stay as it is."""
    await parts.database.transact(
        lambda tx: Rejudging(parts.jobs).discard(tx, batch_id, actor=viewer.id, reason=reason)
    )
    return await read(parts, batch_id)


async def cancel(parts: Parts, viewer: Viewer, batch_id: str, reason: str) -> Batch:
    """End a batch whose runs have not all ended."""
    await parts.database.transact(lambda tx: Rejudging(parts.jobs).cancel(tx, batch_id, actor=viewer.id, reason=reason))
    return await read(parts, batch_id)
