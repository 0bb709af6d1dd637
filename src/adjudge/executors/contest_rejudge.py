"""``contest.rejudge_preview``: how a rejudge batch would change the scoreboards of contests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.contests.rejudge_preview import ScoreboardPreview, preview
from adjudge.domain.contest import ContestRole
from adjudge.domain.permissions import Permission
from adjudge.executors.impersonation import find_contest_as
from adjudge.services.awards import with_stored
from adjudge.store import Database, Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests.activity_models import AwardRow

_ROLES = (ContestRole.ORGANISER, ContestRole.JUDGE)


class ContestRejudgePreviewExecutor:
    """Computes how a rejudge batch would change scoreboards, first solves and awards; it changes nothing.

    The artifact has `batch_id`, `changes` (rows, first solves and awards that would differ) and `contests`, a list of
    objects with `contest_id`, `slug`, `rows` (`participant`, `old_rank`, `new_rank`), `first_solves` (`problem`, `old`,
    `new`) and `awards` (`award`, `old`, `new`: lists of participants). Without a batch there are no changes.
    """

    type: ClassVar[str] = "contest.rejudge_preview"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.REJUDGE_WRITE,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "batch_id": {"type": ["string", "null"], "description": "The batch, from a `rejudge` node that previews."}
        },
        "required": ["batch_id"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeResult:
        """Fold the new verdicts into the scoreboards and compare."""
        batch_id = context.cfg["batch_id"]
        found = [] if batch_id is None else await self._database.read(lambda tx: _read(tx, batch_id))
        for item, _ in found:
            await find_contest_as(self._database, context, item.contest.id, *_ROLES)
        contests = [_document(item, stored) for item, stored in found]
        changes = sum(len(item["rows"]) + len(item["first_solves"]) + len(item["awards"]) for item in contests)
        return NodeResult({"batch_id": batch_id, "changes": changes, "contests": contests})


async def _read(tx: Tx, batch_id: str) -> list[tuple[ScoreboardPreview, list[AwardRow]]]:
    """The changes of each contest, with its edited awards."""
    return [(item, await award_store.awards(tx, item.contest.id)) for item in await preview(tx, batch_id)]


def _document(item: ScoreboardPreview, stored: Sequence[AwardRow]) -> dict[str, Any]:
    names = {row.participant.id: row.participant.name for row in item.before.rows}
    labels = {problem.id: problem.label for problem in item.before.problems}

    def name(participant_id: str | None) -> str | None:
        return None if participant_id is None else names.get(participant_id, participant_id)

    return {
        "contest_id": item.contest.id,
        "slug": item.contest.slug,
        "rows": [
            {"participant": name(row.participant_id), "old_rank": row.old_rank, "new_rank": row.new_rank}
            for row in item.row_differences()
        ],
        "first_solves": [
            {"problem": labels.get(problem, problem), "old": name(old), "new": name(new)}
            for problem, (old, new) in item.first_solve_differences().items()
        ],
        "awards": [
            {"award": code, "old": [name(one) for one in old], "new": [name(one) for one in new]}
            for code, old, new in _award_differences(item, stored)
        ],
    }


def _award_differences(
    item: ScoreboardPreview, stored: Sequence[AwardRow]
) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The awards that would go to others: award, old and new participants. Edited awards do not change."""
    old, new = (
        {award.id: award.participant_ids for award in with_stored(board, item.contest, stored)}
        for board in (item.before, item.after)
    )
    return [
        (code, old.get(code, ()), new.get(code, ()))
        for code in sorted({*old, *new})
        if old.get(code, ()) != new.get(code, ())
    ]
