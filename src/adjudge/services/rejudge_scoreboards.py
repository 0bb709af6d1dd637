"""How a rejudge batch would change the scoreboards, first solves and awards of contests, before it is applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.contests import rejudge_preview
from adjudge.contests.awards import Award
from adjudge.contests.board import Board
from adjudge.contests.exports import points_number
from adjudge.contests.formats.base import RowKeys
from adjudge.contests.rejudge_preview import ScoreboardPreview
from adjudge.schema.scoreboard import (
    AwardChangeRead,
    FirstSolveChangeRead,
    ScoreboardChangeRead,
    ScoreboardPreviewRead,
)
from adjudge.services.awards import with_stored
from adjudge.services.submission_access import find_hidden_contests_of_batch
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests.activity_models import AwardRow


async def preview_scoreboards(database: Database, viewer: Viewer, batch_id: str) -> list[ScoreboardPreviewRead]:
    """One entry for each contest with submissions that the batch would change, if the viewer sees all of it."""

    async def read(tx: Tx) -> list[tuple[ScoreboardPreview, list[AwardRow]]]:
        hidden = await find_hidden_contests_of_batch(tx, viewer, batch_id)
        found = await rejudge_preview.preview(tx, batch_id, hidden_contests=hidden)
        return [(item, await award_store.awards(tx, item.contest.id)) for item in found]

    return [_read(preview, stored) for preview, stored in await database.read(read)]


def _read(preview: ScoreboardPreview, stored: Sequence[AwardRow]) -> ScoreboardPreviewRead:
    names = {row.participant.id: row.participant.name for row in preview.after.rows}
    labels = {problem.id: problem.label for problem in preview.after.problems}
    rows = [
        ScoreboardChangeRead(
            participant_id=item.participant_id,
            name=names[item.participant_id],
            old_rank=item.old_rank,
            new_rank=item.new_rank,
            old_result=_result(preview.after, item.old_keys),
            new_result=_result(preview.after, item.new_keys),
        )
        for item in preview.row_differences()
    ]
    firsts = [
        FirstSolveChangeRead(
            label=labels.get(problem_id, problem_id),
            old_participant=None if old is None else names[old],
            new_participant=None if new is None else names[new],
        )
        for problem_id, (old, new) in preview.first_solve_differences().items()
    ]
    before, after = (with_stored(board, preview.contest, stored) for board in (preview.before, preview.after))
    contest = preview.contest
    return ScoreboardPreviewRead(
        contest=contest.slug,
        title=contest.settings.title,
        rows=rows,
        first_solves=firsts,
        awards=_award_changes(before, after, names),
    )


def _result(board: Board, keys: RowKeys) -> str:
    """The result of a row in short: solved problems and penalty in minutes, or points."""
    return f"{keys.k1} / {-keys.k2 // 60}" if board.is_pass_fail else f"{points_number(keys.k1):g}"


def _award_changes(before: Sequence[Award], after: Sequence[Award], names: Mapping[str, str]) -> list[AwardChangeRead]:
    old, new = {item.id: item for item in before}, {item.id: item for item in after}
    changes = []
    for award_id in dict.fromkeys([*new, *old]):
        had = set(old[award_id].participant_ids) if award_id in old else set()
        gets = set(new[award_id].participant_ids) if award_id in new else set()
        if had != gets:
            citation = (new.get(award_id) or old[award_id]).citation
            lost, gained = (sorted(names.get(item, item) for item in items) for items in (had - gets, gets - had))
            changes.append(AwardChangeRead(id=award_id, citation=citation, lost=lost, gained=gained))
    return changes
